"""The ledger: one thread, one transaction at a time, as many operations in each as are waiting (group commit).

Under load a batch is let grow, and the cost of its statements and its commit is shared; when idle a call waits for
nobody.
"""

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

import structlog
from msgspec import Struct
from sqlalchemy import Connection, Engine

from tarazu.domain.admission import Asked, Caller, Decision
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, Reason, RequestState
from tarazu.domain.errors import Refusal
from tarazu.domain.keys import PresentedKey
from tarazu.store.availability import BooksUnavailableError, reason_of
from tarazu.store.batch import run_batch
from tarazu.store.engine import KeptConnection
from tarazu.store.operations import (
    SWEEP_MAX,
    Admit,
    End,
    Identify,
    Later,
    Operation,
    Sweep,
    Work,
    needs_disk,
    only_reads,
)

BATCH_MAX = 256
QUEUE_MAX = 8_192
CROWD = 12
"""A batch of more operations is that of a crowd, and so is the next one, which is let grow before it begins."""
GATHER_S = 0.0005
GATHER_TIMES_MAX = 8
GATHER_MORE = 2
"""So many operations that have come within GATHER_S are worth another wait."""
SWEEP_INTERVAL_S = 5
WAIT_MAX_S = 10.0
"""Nobody waits longer for an answer from the books, be they slow or silent; longer than a batch waits for a lock."""
AWAY_WAIT_S = 0.5
"""Nor longer than this while they are away: enough for the batch that finds them back."""

log = structlog.get_logger()


class LedgerFullError(BooksUnavailableError):
    """More operations wait than the queue may hold; nothing was changed."""


class LedgerState(Enum):
    """The life of a ledger."""

    NEW = "new"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


class _Call(Struct, eq=False):
    operation: Operation
    future: "asyncio.Future[Any] | None"


class Ledger:
    """The only way to the books while the service runs.

    `catalogue` may be replaced at any time; a batch uses the one that is there when it starts.
    """

    def __init__(self, engine: Engine, catalogue: Catalogue, clock: Clock) -> None:
        self.catalogue = catalogue
        self._connection = KeptConnection(engine)
        self._clock = clock
        self._state = LedgerState.NEW
        self._is_away = False
        self._waiting: SimpleQueue[_Call | None] = SimpleQueue()
        self._put_back: list[_Call] = []
        """The first of the next batch; for the ledger's thread alone, as is what follows."""
        self._is_crowded = False
        self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
        self._next_sweep_s = 0.0

    def __repr__(self) -> str:
        return f"<Ledger {self._state.value}, {self._waiting.qsize()} waiting>"

    def start(self) -> None:
        """Start the thread; call it in the event loop that will await the answers."""
        self._loop = asyncio.get_running_loop()
        self._state = LedgerState.RUNNING
        self._thread.start()

    async def stop(self) -> None:
        """Run what is waiting, then end the thread. Operations that come later are refused."""
        self._state = LedgerState.STOPPING
        self._waiting.put(None)  # so that the thread looks up
        await asyncio.to_thread(self._thread.join)
        self._state = LedgerState.STOPPED

    async def admit(self, asked: Asked) -> Decision:
        """Decide on a request and store the decision.

        A caller that goes away while the decision is being made gets its hold released.

        Raises:
            BooksUnavailableError: nothing was decided, or it is not known to be stored: a hold is released then.
        """
        future = self._submit(Admit(asked))
        try:
            decision: Decision = await self._in_time(future)
        except BaseException:
            # The answer may have come, and this task have been cancelled before its turn to take it.
            if future.done() and not future.cancelled() and future.exception() is None:
                self._discard(future.result())
            raise
        return decision

    async def charge(
        self, hold: Hold, *, tries: int, prompt_tokens: int, completion_tokens: int, reply: bytes | None = None
    ) -> bool:
        """Turn a hold into a charge; True once that is on disk, False when the hold had been given back before.

        `reply` is kept with the charge under the hold's idempotency key, where it has one.

        Raises:
            BooksUnavailableError: it is not known to be on disk. It may be asked for again.
        """
        charged: bool = await self._submit(
            End(
                request_id=hold.request_id,
                account_id=hold.account_id,
                period=hold.period,
                state=RequestState.CHARGED,
                tries=tries,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                idempotency_key=hold.idempotency_key,
                reply=reply,
            )
        )
        return charged

    def release(self, hold: Hold, *, tries: int, reason: Reason | None = None) -> None:
        """Give a hold's credits back soon; nobody waits for it. Where the books fail, the sweep does it.

        With a reason it is one of those that are free only so often in an hour.
        """
        end = End(
            request_id=hold.request_id,
            account_id=hold.account_id,
            period=hold.period,
            state=RequestState.RELEASED,
            tries=tries,
            idempotency_key=hold.idempotency_key,
            reason=reason,
        )
        try:
            self._put(_Call(end, None))
        except BooksUnavailableError as error:
            log.warning("release_left_to_sweep", request_id=hold.request_id, reason=str(error))

    async def identify(self, key: PresentedKey) -> Caller | Refusal:
        """Tell who is calling, from fresh rows.

        Raises:
            BooksUnavailableError: the books cannot be read.
        """
        caller: Caller | Refusal = await self._in_time(self._submit(Identify(key)))
        return caller

    async def work(self, function: Callable[[Connection, int], Any]) -> Any:
        """Run `function(connection, now_ms)` inside a transaction of the ledger and answer with its result.

        Raises:
            BooksUnavailableError: it is not known to be done.
        """
        return await self._in_time(self._submit(Work(function)))

    async def look(self, function: Callable[[Connection], Any]) -> Any:
        """Read by `function(connection)`, without any lock, and answer with its result.

        Raises:
            BooksUnavailableError: the books cannot be read.
        """
        return await self._in_time(
            self._submit(Work(lambda connection, _now_ms: function(connection), only_reads=True))
        )

    async def _in_time(self, future: "asyncio.Future[Any]") -> Any:
        """Wait for an answer, for a bounded time: a database that hangs says nothing, not even that it is away."""
        wait_s = AWAY_WAIT_S if self._is_away else WAIT_MAX_S
        alarm = self._loop.call_later(wait_s, self._give_up, future, wait_s)
        try:
            return await future
        finally:
            alarm.cancel()

    def _give_up(self, future: "asyncio.Future[Any]", wait_s: float) -> None:
        if not future.done():
            self._is_away = self._is_away or wait_s == WAIT_MAX_S
            future.set_exception(BooksUnavailableError("The database has not answered in time."))

    def _submit(self, operation: Operation) -> "asyncio.Future[Any]":
        future = self._loop.create_future()
        self._put(_Call(operation, future))
        return future

    def _put(self, call: _Call) -> None:
        if self._state is not LedgerState.RUNNING:
            raise BooksUnavailableError("The ledger has stopped.")
        # An ending always fits: there is at most one for each hold, and the holds were let in here.
        if self._waiting.qsize() >= QUEUE_MAX and not isinstance(call.operation, End):
            raise LedgerFullError(f"More than {QUEUE_MAX} operations wait for the database.")
        self._waiting.put(call)

    def _run(self) -> None:
        while calls := self._take():
            try:
                answers = self._transact([call.operation for call in calls])
                self._is_away = False
            except Exception as error:  # noqa: BLE001 - the thread goes on; each caller is told
                self._is_away = isinstance(error, BooksUnavailableError)
                log.error("ledger_batch_failed", operations=len(calls), reason=reason_of(error))  # noqa: TRY400 - a trace may quote values
                answers = [error] * len(calls)
            if calls[-1].operation == Sweep() and answers[-1] == SWEEP_MAX:
                self._next_sweep_s = 0.0
            self._put_back = [call for call, answer in zip(calls, answers, strict=True) if isinstance(answer, Later)]
            self._deliver(calls, answers)
        self._connection.close()

    def _take(self) -> list[_Call]:
        """Wait for work. Empty only when the ledger stops and nothing waits any more."""
        while True:
            is_running = self._state is LedgerState.RUNNING
            pause_s = self._next_sweep_s - monotonic() if is_running else 0.0
            calls = self._take_waiting(pause_s)
            if is_running and self._next_sweep_s <= monotonic():
                self._next_sweep_s = monotonic() + SWEEP_INTERVAL_S
                calls.append(_Call(Sweep(), None))
            if calls or not is_running:
                return calls

    def _take_waiting(self, pause_s: float) -> list[_Call]:
        """Take what waits; when that is nothing, wait so long for the first."""
        calls: list[_Call] = []
        for call in self._put_back:
            _add(calls, call)
        self._put_back = []
        with suppress(Empty):
            if not calls and pause_s > 0:
                _add(calls, self._waiting.get(timeout=pause_s))
            if self._is_crowded:
                self._gather()
            while len(calls) < BATCH_MAX:
                _add(calls, self._waiting.get_nowait())
        self._is_crowded = len(calls) > CROWD
        return calls

    def _gather(self) -> None:
        """Let more operations come, as long as many do."""
        for _ in range(GATHER_TIMES_MAX):
            before = self._waiting.qsize()
            sleep(GATHER_S)
            if self._waiting.qsize() < before + GATHER_MORE:
                break

    def _transact(self, operations: Sequence[Operation]) -> list[Any]:
        """Run the operations as one transaction; where one breaks it, each as its own."""
        answers: list[Any] = []
        try:
            with self._connection.transaction(
                read_only=all(map(only_reads, operations)),
                relaxed=not any(map(needs_disk, operations)),
            ) as connection:
                answers = run_batch(connection, operations, self.catalogue, self._clock())
        except BooksUnavailableError:
            # With answers, it was the commit that failed: it may have happened, and nobody admitted will hear of it.
            # The releases are tried once: where the books are away for longer, the holds are left to the sweep.
            for answer in answers:
                self._discard(answer)
            raise
        except Exception:
            if len(operations) == 1:
                raise
            return [self._alone(operation) for operation in operations]
        return answers

    def _alone(self, operation: Operation) -> Any:
        try:
            return self._transact([operation])[0]
        except Exception as error:  # noqa: BLE001 - it is the answer to this operation alone
            return error

    def _deliver(self, calls: Sequence[_Call], answers: Sequence[Any]) -> None:
        def deliver() -> None:
            for call, answer in zip(calls, answers, strict=True):
                if isinstance(answer, Later):
                    continue
                if call.future is None:
                    self._note(call.operation, answer)
                elif call.future.done():
                    self._discard(answer)
                elif isinstance(answer, BaseException):
                    call.future.set_exception(_for_future(answer))
                else:
                    call.future.set_result(answer)

        self._loop.call_soon_threadsafe(deliver)

    def _discard(self, answer: object) -> None:
        """Undo what nobody waits for any more: a caller has gone, or been told of a failure, and is admitted."""
        if isinstance(answer, Decision) and isinstance(answer.outcome, Hold):
            self.release(answer.outcome, tries=0)

    def _note(self, operation: Operation, answer: object) -> None:
        if isinstance(answer, BaseException):
            log.warning("left_to_sweep", operation=type(operation).__name__, reason=str(answer))
        elif isinstance(operation, Sweep) and answer:
            log.warning("holds_swept", holds=answer)


def _add(calls: list[_Call], call: _Call | None) -> None:
    """Add a call. Whoever has gone meanwhile wants nothing any more; a charge not begun gives way to the release."""
    if call is not None and (call.future is None or not call.future.done()):
        calls.append(call)


def _for_future(error: BaseException) -> BaseException:
    """Wrap what a future refuses to take: it would stay without an answer, and all after it in the batch."""
    if not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError("The operation raised StopIteration.")
    wrapped.__cause__ = error
    return wrapped
