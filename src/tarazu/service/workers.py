"""The workers as their parent sees them: started, watched, told what has changed, replaced, and stopped."""

import os
import pickle
import signal
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any

import structlog
from msgspec import Struct

from tarazu.service.connections import borrowed
from tarazu.service.link import Answer, Order, Stage
from tarazu.service.shortages import shortage

TURN_S = 1.0
STUCK_TURNS = 10
"""So many turns of the parent without a beat, and a worker is stuck; so many without an answer, and it cannot hear.

A pause of the parent, or of the whole machine, is one turn, however long: no worker is blamed for it.
"""
START_TURNS = 60
"""The same for one that has not beaten yet: a process that is made afresh imports all that it needs first."""
SEND_TIMEOUT_S = 10.0
PUBLISH_TIMEOUT_S = 60.0
"""For so long a new setup waits for all workers, those too that take the place of others meanwhile."""
STOPPED = "exit status 0"
TELL_AGAIN_S = 1.0
"""How often a worker that has not stopped yet is told to again."""
YOUNG_S = 10.0
DEATHS_WITHIN_S = 60.0
DEATHS_MORE = 2
"""So many more than there are workers die young within DEATHS_WITHIN_S, and to start them again mends nothing.

That is so unless another one has outlived them all: it serves on, and they have no room, or meet what it has not met.
"""

StartProcess = Callable[[int], tuple[int, "Connection[Any, Any]"]]

log = structlog.get_logger()


class Published(Struct, frozen=True):
    """How many workers serve by a new setup, of how many; `is_undone`: one could not, so that none does."""

    workers: int
    of: int
    is_undone: bool = False

    @property
    def is_done(self) -> bool:
        """Tell whether all of them do."""
        return self.workers == self.of and not self.is_undone


class Worker:
    """One worker process. Its end is taken note of in `await_end` alone, so that no signal meets another process."""

    def __init__(self, index: int, process_id: int, connection: "Connection[Any, Any]") -> None:
        self.index = index
        self.process_id = process_id
        self.connection = connection
        self.answered = 0
        """The number of its last answer; 0 while it starts."""
        self.done = 0
        """The number of the last order that it has done."""
        self.is_heard = False
        self.silent_turns = 0
        self.unanswered_turns = 0
        self.has_ended = False
        self.began_s = time.monotonic()
        self._ended_s: float | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()

    def __repr__(self) -> str:
        return f"<Worker {self.index + 1}, process {self.process_id}{', ended' if self.has_ended else ''}>"

    def tell(self, order: Order) -> bool:
        """Send an order; False when the worker cannot hear it."""
        try:
            with self._sending:
                self.connection.send(order)
        except OSError:
            return False
        return True

    def hang_up(self) -> None:
        """Hear no more of it, and tell it nothing."""
        with self._sending:
            self.connection.close()

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the worker has ended."""
        with self._lock:
            if not self.has_ended:
                os.kill(self.process_id, number)

    def await_end(self) -> str:
        """Wait for the end; tell how it came."""
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.process_id, os.WEXITED | os.WNOWAIT)
        with self._lock:
            self.has_ended, self._ended_s = True, time.monotonic()
            try:
                _, status = os.waitpid(self.process_id, 0)
            except ChildProcessError:
                return "unknown"
        code = os.waitstatus_to_exitcode(status)
        return signal.Signals(-code).name if code < 0 else f"exit status {code}"

    @property
    def is_young(self) -> bool:
        """Tell whether it has lived for less than YOUNG_S."""
        return (self._ended_s or time.monotonic()) < self.began_s + YOUNG_S

    def fault(self, number: int) -> str | None:
        """Take note of a turn of the parent, whose newest order has this number; tell what is wrong by now."""
        self.silent_turns += 1
        self.unanswered_turns = self.unanswered_turns + 1 if 0 < self.answered < number else 0
        if self.silent_turns >= (STUCK_TURNS if self.is_heard else START_TURNS):
            return "worker_stuck"
        return "worker_does_not_answer" if self.unanswered_turns >= STUCK_TURNS else None


class Workers:
    """So many workers, each in its place: whoever dies, or is found stuck, is replaced.

    `start_process` starts one by its index, and answers with its process id and our end of the connection to it.
    """

    def __init__(self, count: int, start_process: StartProcess, setup: Any) -> None:
        self._count = count
        self._start_process = start_process
        self._order = Order(1, setup, Stage.SERVING)
        self._workers: dict[int, Worker] = {}
        self._changed = threading.Condition()
        self._publishing = threading.Lock()
        self._ended: SimpleQueue[Worker | None] = SimpleQueue()
        self._deaths: deque[float] = deque()
        self._is_leaving = self._is_stopping = False

    def __repr__(self) -> str:
        return f"<Workers {list(self._workers.values())}>"

    @property
    def setup(self) -> Any:
        """What the workers are to serve by."""
        return self._order.setup

    @property
    def process_ids(self) -> list[int]:
        """The processes of this moment."""
        return [worker.process_id for worker in self._living()]

    def start(self) -> None:
        """Start all, and begin to watch them."""
        self._wakes, self._waker = Pipe(duplex=False)
        for index in range(self._count):
            self._start(index)
        threading.Thread(target=self._watch, name="watch", daemon=True).start()

    def keep(self) -> bool:
        """Replace each worker that ends, until `leave` is called; False when they die faster than that helps."""
        while (ended := self._ended.get()) is not None:
            if ended.is_young and self._are_too_many(time.monotonic()):
                if all(worker.began_s > self._deaths[0] for worker in self._living()):
                    return False
                time.sleep(TURN_S)
            self._replace(ended.index)
        return True

    def leave(self) -> None:
        """Let `keep` end. It may be called in a signal handler.

        From then on a worker may stop by itself: Ctrl-C in a terminal, or a supervisor, sends the signal to all.
        """
        self._is_leaving = True
        self._ended.put(None)

    def publish(self, setup: Any) -> Published:
        """Have all workers serve by a setup, and tell how many do.

        One that cannot hear, or does not answer, is killed; the one that takes its place begins with the newest. When
        one answers that it cannot, all go back to what they served by before.
        """
        with self._publishing:
            before = self._order.setup
            number = self._tell(setup=setup)
            published = self._published(number)
            if published.is_undone:
                self._undo(before)
            return published

    def enter(self, stage: Stage, timeout_s: float) -> None:
        """Have all workers enter a stage, and wait until they have, or for so long."""
        number = self._tell(stage=stage)
        with self._changed:
            self._changed.wait_for(lambda: all(worker.answered >= number for worker in self._living()), timeout_s)

    def stop(self, timeout_s: float) -> None:
        """Stop all: those that have not ended in time are killed. All are told again and again meanwhile.

        A signal that comes while granian has its event loop paused, between the application's start and the first
        request, is forgotten by uvloop until the next one. A worker that has missed it takes requests while another
        one is waited for, which may end a long one.
        """
        until_s = time.monotonic() + timeout_s
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
            while living := self._living():
                is_late = time.monotonic() >= until_s
                for worker in living:
                    if is_late:
                        log.error("worker_killed", worker=worker.index + 1, worker_pid=worker.process_id)
                    worker.send_signal(signal.SIGKILL if is_late else signal.SIGTERM)
                self._changed.wait(TELL_AGAIN_S if is_late else min(TELL_AGAIN_S, max(until_s - time.monotonic(), 0)))

    def _are_too_many(self, died_at_s: float) -> bool:
        self._deaths.append(died_at_s)
        while self._deaths[0] < died_at_s - DEATHS_WITHIN_S:
            self._deaths.popleft()
        if len(self._deaths) <= self._count + DEATHS_MORE:
            return False
        log.error("workers_keep_dying", deaths=len(self._deaths), within_s=DEATHS_WITHIN_S)
        return True

    def _living(self) -> list[Worker]:
        return [worker for worker in list(self._workers.values()) if not worker.has_ended]

    def _replace(self, index: int) -> None:
        """Start a worker, again and again while that is not possible: the others serve meanwhile."""
        while not self._is_leaving:
            try:
                self._start(index)
            except (OSError, RuntimeError) as error:
                log.error("worker_not_started", worker=index + 1, reason=shortage(error) or str(error))  # noqa: TRY400 - it says all
                time.sleep(TURN_S)
            else:
                return

    def _start(self, index: int) -> None:
        worker = Worker(index, *self._start_process(index))
        _bound_sending(worker.connection)
        try:
            threading.Thread(target=self._await_end, args=(worker,), name=f"worker {index + 1}", daemon=True).start()
        except RuntimeError:  # no room for one more thread
            worker.send_signal(signal.SIGKILL)
            worker.await_end()
            worker.hang_up()
            raise
        with self._changed:
            self._workers[index] = worker
        self._waker.send(None)
        worker.tell(self._order)  # where it cannot hear it, it is found silent

    def _await_end(self, worker: Worker) -> None:
        ending = worker.await_end()
        if not (self._is_stopping or (self._is_leaving and ending == STOPPED)):
            log.error("worker_ended", worker=worker.index + 1, worker_pid=worker.process_id, ending=ending)
        with self._changed:
            self._changed.notify_all()
        self._ended.put(worker)

    def _tell(self, *, setup: Any = None, stage: Stage | None = None) -> int:
        with self._changed:
            newest = self._order
            self._order = Order(newest.number + 1, setup or newest.setup, stage or newest.stage)
            order, told = self._order, self._living()
        for worker in told:
            worker.tell(order)
        return order.number

    def _undo(self, setup: Any) -> None:
        number = self._tell(setup=setup)
        self._published(number)
        for worker in self._living():
            if worker.done < number:
                worker.send_signal(signal.SIGKILL)

    def _published(self, number: int) -> Published:
        def answered() -> list[Worker]:
            return [worker for worker in self._living() if worker.answered >= number]

        def is_settled() -> bool:
            return self._is_stopping or len(answered()) == self._count

        with self._changed:
            self._changed.wait_for(is_settled, PUBLISH_TIMEOUT_S)
            done = sum(worker.done >= number for worker in answered())
            return Published(done, self._count, is_undone=done < len(answered()))

    def _watch(self) -> None:
        next_turn_s = time.monotonic() + TURN_S
        while True:
            heard: dict[Any, Worker] = {
                worker.connection: worker for worker in self._living() if not worker.connection.closed
            }
            for connection in wait([self._wakes, *heard], max(next_turn_s - time.monotonic(), 0)):
                if connection is self._wakes:
                    self._wakes.recv()
                else:
                    self._hear(heard[connection])
            if time.monotonic() >= next_turn_s:
                next_turn_s = time.monotonic() + TURN_S
                self._turn()

    def _hear(self, worker: Worker) -> None:
        try:
            message = worker.connection.recv_bytes()
        except (EOFError, OSError):
            worker.hang_up()  # it has ended, or cannot be told any more: then it is found silent
            return
        worker.is_heard, worker.silent_turns = True, 0
        if message:
            answer: Answer = pickle.loads(message)  # noqa: S301 - of a process of our own
            with self._changed:
                worker.answered = answer.number
                worker.done = answer.number if answer.is_done else worker.done
                self._changed.notify_all()

    def _turn(self) -> None:
        for worker in self._living():
            if fault := worker.fault(self._order.number):
                log.error(fault, worker=worker.index + 1, worker_pid=worker.process_id)
                worker.send_signal(signal.SIGKILL)


def _bound_sending(connection: "Connection[Any, Any]") -> None:
    """Let a message that the other end does not read be given up."""
    bound = struct.pack("@ll", int(SEND_TIMEOUT_S), 0)
    with borrowed(connection.fileno()) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, bound)
