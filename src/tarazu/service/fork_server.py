"""Fork workers at any time: from a process that has imported all that they need, and never has a second thread."""

import errno
import os
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from tarazu.service.kernel import adopt_orphans, name_process
from tarazu.service.worker import hold_signals

NAME = "tarazu forks"
ANSWER_TIMEOUT_S = 5.0
"""Far longer than a fork takes. A worker that is forked later all the same finds nobody at the other end."""
INDEX_BYTES = 1
PROCESS_ID_BYTES = 8

Run = Callable[[int, "Connection[Any, Any]"], int]
"""What a worker does, by its index and the connection to its parent; answers with the exit status."""


class ForkServer:
    """The parent's end. The parent has threads, which a fork would stop in the middle of anything.

    What is forked becomes the parent's own child, as if the parent had forked it.
    """

    def __init__(self, run: Run, *, forget: Callable[[], None]) -> None:
        """Fork the server; `forget` closes what it must not keep open of its parent's, nor any worker."""
        assert threading.active_count() == 1, "a fork would stop the others in the middle of anything"
        adopt_orphans()
        self._socket, theirs = socket.socketpair()
        self._socket.settimeout(ANSWER_TIMEOUT_S)
        self._late: threading.Thread | None = None
        self.process_id = os.fork()
        if self.process_id == 0:
            _serve(self._socket, theirs, run, forget)
        theirs.close()

    def __repr__(self) -> str:
        return f"<ForkServer {self.process_id}>"

    def fork(self, index: int) -> tuple[int, "Connection[Any, Any]"]:
        """Answer with the process id of a new worker, and with the parent's end of its connection.

        Raises:
            TimeoutError: the server has not answered yet. It may be asked again later.
            ConnectionError: the server has ended.
            OSError: there is no room for one more process, or file.
        """
        if self._late is not None and self._late.is_alive():
            raise TimeoutError("what it was asked before is not done yet")
        ours, theirs = Pipe()
        try:
            with theirs:
                socket.send_fds(self._socket, [index.to_bytes(INDEX_BYTES)], [theirs.fileno()])
            return self._answer(), ours
        except OSError as error:
            ours.close()
            if isinstance(error, TimeoutError):
                self._see_off_late()
            raise

    def _answer(self) -> int:
        answer = self._socket.recv(PROCESS_ID_BYTES)
        if not answer:
            raise BrokenPipeError("it has ended")
        process_id = int.from_bytes(answer)
        if process_id == 0:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return process_id

    def _see_off_late(self) -> None:
        try:
            self._late = threading.Thread(target=self._see_off, name="late worker", daemon=True)
            self._late.start()
        except RuntimeError:  # no room for one more thread
            raise ConnectionAbortedError("it is late, and nobody can wait for it") from None

    def _see_off(self) -> None:
        """Wait for a worker that comes too late, and for its end, for nobody gives it anything to do."""
        wait([self._socket])
        with suppress(OSError):  # there is no worker; where the server has ended, whoever asks next is told
            os.waitpid(self._answer(), 0)

    def close(self) -> None:
        """End the server. Workers that it has forked go on."""
        os.kill(self.process_id, signal.SIGKILL)
        os.waitpid(self.process_id, 0)
        self._socket.close()


def _serve(parents: socket.socket, parent: socket.socket, run: Run, forget: Callable[[], None]) -> NoReturn:
    """Be the server, until the parent closes its end, `parents`."""
    try:
        parents.close()
        forget()  # or the port would stay taken as long as a worker finishes what it serves
        hold_signals()  # for a worker they wait until it has its own answers; here they mean nothing
        name_process(NAME)
        while True:
            message, descriptors, *_ = socket.recv_fds(parent, INDEX_BYTES, 1)
            if not message:
                os._exit(0)
            [descriptor] = descriptors
            work = partial(_work, parent, run, int.from_bytes(message), descriptor)
            parent.sendall(_fork_orphan(work).to_bytes(PROCESS_ID_BYTES))
            os.close(descriptor)
    finally:
        os._exit(1)


def _work(parent: socket.socket, run: Run, index: int, descriptor: int) -> int:
    parent.close()
    return run(index, Connection(descriptor))


def _fork_orphan(work: Callable[[], int]) -> int:
    """Fork a process whose parent ends at once, so that it becomes a child of this server's parent.

    Answers with its process id; 0 where there is no room for one more process.
    """
    readable, writable = os.pipe()
    try:
        between = os.fork()
    except OSError:
        os.close(readable)
        os.close(writable)
        return 0
    if between == 0:
        _fork_and_end(work, (readable, writable))
    os.close(writable)
    worker = int.from_bytes(os.read(readable, PROCESS_ID_BYTES))
    os.close(readable)
    os.waitpid(between, 0)
    return worker


def _fork_and_end(work: Callable[[], int], pipe: tuple[int, int]) -> NoReturn:
    try:
        worker = os.fork()
        if worker == 0:
            for each in pipe:
                os.close(each)
            os._exit(work())
        os.write(pipe[1], worker.to_bytes(PROCESS_ID_BYTES))
        os._exit(0)
    finally:
        os._exit(1)
