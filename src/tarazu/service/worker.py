"""A process that serves, forked by the one that watches it or started afresh: its name, its signals and its end."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from pathlib import Path

WORKER_NAME = "tarazu worker"
"""What `ps -o comm` and `top` show; the kernel keeps 15 characters."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_held() -> Iterator[None]:
    """Let signals wait until the block ends. For what is forked in it they wait until it has become a worker."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def become_worker(stop_timeout_s: int) -> None:
    """Make this process one for itself: a stop ends it, and so does the end of its parent, after `stop_timeout_s`."""
    _take_signals()
    with suppress(OSError):
        Path("/proc/self/comm").write_text(WORKER_NAME)
    threading.Thread(target=_end_with_parent, args=(stop_timeout_s,), name="parent", daemon=True).start()


def _take_signals() -> None:
    """Be ended by signals as any process, until the event loop takes them: what was forked has its parent's answers.

    SIGHUP is for the parent, which tells the workers what has changed.
    """
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN if each is signal.SIGHUP else signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _end_with_parent(stop_timeout_s: int) -> None:
    """Stop this worker when the process that started it has been killed: nobody else would, and it keeps the port."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    assert parent.pid is not None
    with suppress(ProcessLookupError):
        wait([os.pidfd_open(parent.pid)])  # not parent.join(): a worker forked later keeps open what that waits for
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(stop_timeout_s)
    os._exit(1)
