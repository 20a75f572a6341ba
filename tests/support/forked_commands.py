"""Commands without the cost of a start: each in a process of its own, forked from one that has imported what they need.

That a command also works from the shell is for `tests/cli` to show.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Mapping
from pathlib import Path
from subprocess import PIPE, CompletedProcess
from tempfile import TemporaryDirectory

_PARENT = '''"""Fork for each line that comes in, and run the command that it tells of."""
import importlib
import json
import os
import signal
import sys
import traceback

from tarazu.cli.running import main

for name in ("tarazu.service.books", "tarazu.service.provisioning", "tarazu.store.migrate", "alembic.command"):
    importlib.import_module(name)


def run(order):
    os.environ.clear()
    os.environ.update(order["environ"])
    status_pipe = os.open(f"{order['folder']}/status", os.O_WRONLY)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # not the pipe on which the next order comes
    sys.stdin = open(0)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{order['folder']}/{name}", os.O_WRONLY | os.O_CREAT), stream)
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
    os.write(status_pipe, str(status).encode())


signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
for line in sys.stdin:
    if os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        try:
            run(json.loads(line))
        finally:
            os._exit(0)
'''


class ForkedCommands:
    """Runs `tarazu` commands, several at once if asked to, by the code that is found first in `environ`."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._code = environ.get("PYTHONPATH")
        self._parent = subprocess.Popen([sys.executable, "-c", _PARENT], stdin=PIPE, text=True, env=dict(environ))
        self._lock = threading.Lock()
        self.close = weakref.finalize(self, self._parent.communicate)

    def run(self, arguments: tuple[str, ...], environ: Mapping[str, str]) -> "CompletedProcess[str]":
        """Run one command to its end. If it has no time to tell its status, it counts as killed."""
        assert environ.get("PYTHONPATH") == self._code, "what runs first has run before"
        assert self._parent.stdin is not None
        with TemporaryDirectory() as name:
            folder = Path(name)
            os.mkfifo(folder / "status")
            order = {"arguments": arguments, "environ": dict(environ), "folder": name}
            with self._lock:
                self._parent.stdin.write(json.dumps(order) + "\n")
                self._parent.stdin.flush()
            status = int((folder / "status").read_text() or -signal.SIGKILL)
            return CompletedProcess(arguments, status, (folder / "out").read_text(), (folder / "err").read_text())
