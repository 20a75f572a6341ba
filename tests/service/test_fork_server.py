"""The process that forks workers: what it does too late leaves no worker behind that nobody watches."""

import errno
import os
import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S

LATE = """
import os, signal
from tarazu.service import fork_server
from tarazu.service.link import Link, Order, Stage

fork_server.ANSWER_TIMEOUT_S = 0.1
held, let_go = os.pipe()

def wait():
    os.read(held, 1)

def run(index, connection):
    setup = Link(connection, on_parent_end=lambda: None).begin()
    os.write(told, setup.encode())
    return 0

def children():
    with open(f"/proc/self/task/{{os.getpid()}}/children") as listed:
        return [int(child) for child in listed.read().split()]

heard, told = os.pipe()
server = fork_server.ForkServer(run, forget=lambda: os.register_at_fork(after_in_child=wait))
for _ in range(2):
    try:
        server.fork(0)
    except TimeoutError as error:
        print(error)
{act}
"""
"""Has the server fork, and holds up what it forks until a byte is written to `let_go`."""
LET_GO = """
os.write(let_go, bytes(2))
server._socket.settimeout(None)
server._late.join()
assert children() == [server.process_id]
os.write(let_go, bytes(2))
process_id, connection = server.fork(0)
connection.send(Order(1, "served", Stage.SERVING))
print(os.read(heard, 100).decode(), os.waitpid(process_id, 0)[1])
os.set_blocking(heard, False)
try:
    os.read(heard, 100)
except BlockingIOError:
    print("nobody else")
"""
KILLED = """
os.kill(server.process_id, signal.SIGKILL)
os.write(let_go, bytes(2))
os.close(told)
print(os.read(heard, 100))
server._late.join()
try:
    server.fork(0)
except ConnectionError:
    print("it has ended")
server.close()
"""
NO_ROOM = """
import os
from tarazu.service import fork_server

fork, asked = os.fork, 0

def limited():
    global asked
    is_server = os.getpid() == server_id
    asked += is_server
    if asked == (1 if is_server else 2):
        raise BlockingIOError(11, "no room")
    return fork()

def forget():
    global server_id
    server_id = os.getpid()
    os.fork = limited

server = fork_server.ForkServer(lambda index, connection: index, forget=forget)
for _ in range(3):
    try:
        process_id, connection = server.fork(7)
        print(os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1]))
    except OSError as error:
        print(error.strerror)
"""
"""Has no room for a process: when it is asked first, of the server; then, of what the server has forked."""


def ran(code: str) -> list[str]:
    """Run a process; answer with what it prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


TOLD = ["timed out", "what it was asked before is not done yet"]


@pytest.mark.parametrize(
    ("act", "printed"),
    [(LET_GO, ["served 0", "nobody else"]), (KILLED, ["b''", "it has ended"])],
    ids=["slow", "killed meanwhile"],
)
def test_a_worker_that_is_forked_too_late_ends_and_serves_nothing(act: str, printed: list[str]) -> None:
    """Another one has its place by then. The server forks on as soon as it has caught up."""
    assert ran(LATE.format(act=act)) == [*TOLD, *printed]


def test_without_room_for_one_more_process_the_server_stays() -> None:
    """Whoever asks is told, and may ask again."""
    assert ran(NO_ROOM) == [os.strerror(errno.EAGAIN)] * 2 + ["7"]
