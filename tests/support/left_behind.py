"""End what a pytest process has started and left behind when it was killed: by an operator, or because a test hung.

One process waits for its end; it is told of each service and each database server, and ends those that are still there.
"""

import atexit
import subprocess
import sys
from functools import cache
from pathlib import Path
from subprocess import PIPE

_WATCH = '''"""Take note of what is started, line by line; when the lines end, end what is left of it."""
import os
import shutil
import signal
import sys
from pathlib import Path


def began(process_id):
    """Tell when the process began: a later one may have the same number."""
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return None


processes, folders = {}, []
for line in sys.stdin:
    kind, _, value = line.rstrip().partition(" ")
    if kind == "process":
        processes[int(value)] = began(value)
    else:
        folders.append(Path(value))
for process_id, then in processes.items():
    if then is not None and began(process_id) == then:
        os.kill(process_id, signal.SIGTERM)
for folder in folders:
    server = folder / "postgresql" / "postmaster.pid"
    if server.exists():
        os.kill(int(server.read_text().split()[0]), signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)
'''


def end_process_with_us(process_id: int) -> None:
    """Have SIGTERM sent to a process that is still there when this one is not."""
    _tell(f"process {process_id}")


def remove_server_with_us(folder: Path) -> None:
    """Have a PostgreSQL server ended, and its folder removed, if they are still there when this process is not."""
    _tell(f"folder {folder}")


def _tell(line: str) -> None:
    stdin = _watch().stdin
    assert stdin is not None
    stdin.write(line + "\n")
    stdin.flush()


@cache
def _watch() -> "subprocess.Popen[str]":
    watch = subprocess.Popen([sys.executable, "-c", _WATCH], stdin=PIPE, text=True, start_new_session=True)
    atexit.register(watch.communicate)
    return watch
