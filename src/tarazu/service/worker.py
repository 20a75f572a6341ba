"""A process that serves, forked by the one that watches it or started afresh: name, signals, turns and end."""

import asyncio
import os
import signal
import time
from contextlib import suppress
from typing import NoReturn

import granian._signals
from granian._granian import WorkerSignal

from tarazu.service.kernel import forbid_core_dumps, name_process

WORKER_NAME = "tarazu worker"
"""What `ps` and `top` show."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def hold_signals() -> None:
    """Let signals wait. For what is forked from here they wait until it has become a worker."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def become_worker() -> None:
    """Make this process one for itself: SIGTERM stops it, and no core dump shows its memory."""
    forbid_core_dumps()
    _take_signals()
    _stop_once()
    _let_threads_finish()
    name_process(WORKER_NAME)


def end_without_parent(stop_timeout_s: int) -> NoReturn:
    """Stop this worker when the process that started it is no more: nobody else would, and it keeps the port.

    What is not done then within `stop_timeout_s` is given up.
    """
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(stop_timeout_s)
    os._exit(1)


def _take_signals() -> None:
    """Be ended by SIGTERM as any process, until the event loop takes it: what was forked has its parent's answers.

    SIGHUP is for the parent, which tells the workers what has changed; so is a terminal's SIGINT, until the event loop
    takes it, for the parent's SIGTERM follows.
    """
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL if each is signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def _stop_once() -> None:
    """Have granian hear of the first signal to stop alone: after a second one it waits until it is killed.

    More come when a terminal's SIGINT is followed by the parent's SIGTERM, and when the parent tells again.
    """

    def set_loop_signals(loop: asyncio.AbstractEventLoop) -> WorkerSignal:
        stop = WorkerSignal()

        def hear() -> None:
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(each, lambda: None)
            stop.set()

        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, hear)
        return stop

    granian._signals.set_loop_signals = set_loop_signals  # noqa: SLF001 - it has no hook for it


def _let_threads_finish() -> None:
    """Have the kernel interrupt none of this process's threads, all begun after this, for another that has work again.

    Each runs until it waits, so the next finds more to do at once: a tenth of the switches from thread to thread, and a
    tenth to a fifth less of a core under load. The price: beside a process that keeps the same core busy, each waits
    for its turn. Whoever has chosen a policy for the service (`chrt`) keeps it.
    """
    if os.sched_getscheduler(0) == os.SCHED_OTHER:
        with suppress(OSError):  # it is only quicker
            os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
