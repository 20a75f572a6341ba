"""The process that forks workers: what it does too late leaves no worker behind that nobody watches."""

import subprocess
import sys

import pytest

from tests.support.patience import PATIENCE_S

LATE = """
import os, time
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
fork_server.ANSWER_TIMEOUT_S = 60
while server._is_late.is_set():
    time.sleep(0.01)
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
server.close()
os.write(let_go, bytes(2))
os.close(told)
print(os.read(heard, 100))
"""


def ran(act: str) -> list[str]:
    """Run a process in which the server is late; answer with what it prints."""
    code = LATE.format(act=act)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


TOLD = ["timed out", "what it was asked before is not done yet"]


@pytest.mark.parametrize(
    ("act", "printed"), [(LET_GO, ["served 0", "nobody else"]), (KILLED, ["b''"])], ids=["slow", "killed meanwhile"]
)
def test_a_worker_that_is_forked_too_late_ends_and_serves_nothing(act: str, printed: list[str]) -> None:
    """Another one has its place by then. The server forks on as soon as it has caught up."""
    assert ran(act) == [*TOLD, *printed]
