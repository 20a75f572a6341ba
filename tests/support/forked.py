"""Commands and services without the cost of a start: forked from a process that has imported what they need.

That each also works from the shell is for `tests/cli`, `tests/api/test_serving.py` and `tests/crashes` to show.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import PIPE, CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory
from typing import NamedTuple

_PARENT = '''"""Fork for each line that comes in, and run the command that it tells of."""
import importlib
import json
import os
import signal
import sys
import traceback

from tarazu.cli.running import main

NEEDED = {
    "serve": ("tarazu.application", "tarazu.service.serving"),
    None: ("tarazu.service.books", "tarazu.service.provisioning", "tarazu.store.migrate", "alembic.command"),
}


def run(order):
    os.environ.clear()
    os.environ.update(order["environ"])
    os.chdir(order["cwd"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # not the pipe on which the next order comes
    sys.stdin = open(0)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND), stream)
    sys.argv = ["tarazu", *order["arguments"]]
    status = 1
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def watch(order):
    """Tell the number of the process, and how it has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    told = os.open(order["told"], os.O_WRONLY)
    process = os.fork()
    if process == 0:
        os.close(told)
        try:
            os._exit(run(order))
        finally:
            os._exit(1)
    os.write(told, b"%d\\n" % process)
    os.write(told, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that watch
for line in sys.stdin:
    order = json.loads(line)
    for name in NEEDED.get(order["arguments"][0], NEEDED[None]):
        importlib.import_module(name)
    if os.fork() == 0:
        try:
            watch(order)
        finally:
            os._exit(0)
os._exit(0)  # to take apart what was imported takes seconds where a test process has many of these
'''


class Output(NamedTuple):
    """The files that a process writes to, at their end."""

    out: Path
    err: Path


class Forked:
    """A process that was forked elsewhere, with what tests use of `subprocess.Popen`."""

    def __init__(self, args: Sequence[str], told: int) -> None:
        self.args = list(args)
        self.returncode: int | None = None
        self._told = os.fdopen(told, "rb", buffering=0)
        self._ready = select.poll()
        self._ready.register(told, select.POLLIN)
        self._lock = threading.Lock()
        self.pid = int(self._line())

    def __repr__(self) -> str:
        return f"<Forked {self.pid}: {self.returncode}>"

    def poll(self) -> int | None:
        """Answer with the exit status, if it has ended."""
        return self._wait_for_end(0)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end, and answer with its exit status; minus the number of the signal that ended it."""
        status = self._wait_for_end(timeout)
        if status is None:
            raise TimeoutExpired(self.args, timeout or 0)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)

    def _wait_for_end(self, timeout_s: float | None) -> int | None:
        with self._lock:
            if self.returncode is None and self._ready.poll(None if timeout_s is None else timeout_s * 1_000):
                self.returncode = int(self._line() or -signal.SIGKILL)
                self._told.close()
            return self.returncode

    def _line(self) -> bytes:
        return self._told.readline()


class _Forking:
    """The process that forks, with the code that is found first in `environ`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdin=PIPE, text=True, env=dict(environ))
        self._lock = threading.Lock()
        weakref.finalize(self, self._parent.communicate)

    def begin(self, arguments: Sequence[str], environ: Mapping[str, str], output: Output, cwd: Path | None) -> Forked:
        """Begin a command."""
        assert self._parent.stdin is not None
        with TemporaryDirectory() as folder:
            told = os.path.join(folder, "told")  # noqa: PTH118 - as it goes into the order
            os.mkfifo(told)
            order = {"arguments": arguments, "environ": dict(environ), "told": told, "cwd": str(cwd or Path.cwd())}
            with self._lock:
                self._parent.stdin.write(json.dumps({**order, "out": str(output.out), "err": str(output.err)}) + "\n")
                self._parent.stdin.flush()
            return Forked(["tarazu", *arguments], os.open(told, os.O_RDONLY))


@cache
def _forking(code: str | None) -> _Forking:
    return _Forking(os.environ if code is None else {**os.environ, "PYTHONPATH": code})


def begin(arguments: Sequence[str], environ: Mapping[str, str], output: Output, *, cwd: Path | None = None) -> Forked:
    """Begin a `tarazu` command, by the code that is found first in `environ`."""
    return _forking(environ.get("PYTHONPATH")).begin(arguments, environ, output, cwd)


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> "CompletedProcess[str]":
    """Run a `tarazu` command to its end, several at once if asked to."""
    with TemporaryDirectory() as name:
        output = Output(Path(name, "out"), Path(name, "err"))
        process = begin(arguments, environ, output)
        status = process.wait()
        return CompletedProcess(process.args, status, output.out.read_text(), output.err.read_text())
