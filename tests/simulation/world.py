"""One world: what happens, as its seed decides. Nothing else decides anything: no clock, no thread, no other chance."""

from random import Random
from typing import Any
from unittest.mock import patch

from tarazu.domain.admission import Decision
from tarazu.domain.calendar import iso_time
from tarazu.domain.credits import Hold, Reason, RequestState
from tarazu.domain.errors import Refusal
from tarazu.domain.idempotency import Replay
from tarazu.domain.keys import PresentedKey
from tarazu.service.identifiers import new_topup_id
from tarazu.store.accounts import insert_account
from tarazu.store.audit import audit
from tarazu.store.engine import transaction
from tarazu.store.keys import insert_key
from tarazu.store.operations import Admit, End, Identify, Sweep, Work
from tarazu.store.topups import Topup, insert_topup
from tests.simulation.callers import Callers
from tests.simulation.faults import AT_STATEMENT, Fault
from tests.simulation.judge import Judge
from tests.simulation.machine import ENGINES, Machine
from tests.simulation.operator import Operator
from tests.simulation.process import Process
from tests.simulation.scenery import make_scenery, with_new_prices
from tests.simulation.times import choose_pause_ms, choose_skew_ms
from tests.simulation.told import Payment, Sending, Told, Transaction, Waiting

STEPS_MIN, STEPS_MAX = 12, 36
BURST_MAX = 5
BATCH_MAX = 12
STATEMENTS = 14
"""About as many as a transaction has."""
FAULT_PERCENT = 30
CHARGED, RELEASED = RequestState.CHARGED, RequestState.RELEASED
REASONS = (None, None, None, None, *Reason)
"""Why there is no reply, by the caller's own doing; mostly there is one, or none by the backend's."""


class World:
    """Processes, callers and an operator on one machine. `trace` tells what has happened so far."""

    def __init__(self, seed: int, machine: Machine) -> None:
        self.trace: list[str] = []
        self._random = Random(seed)  # noqa: S311 - to be replayed
        self._machine = machine
        self._told = Told()

    def run(self) -> None:
        """Begin, take some steps, and let everybody be well at the end.

        Raises:
            AssertionError: something did not hold, or the product has failed where it must not.
        """
        keys, identifiers = "os.urandom", "tarazu.service.identifiers._random_bytes"
        with patch(keys, self._random.randbytes), patch(identifiers, self._random.randbytes):
            self._begin()
            try:
                for _ in range(self._random.randint(STEPS_MIN, STEPS_MAX)):
                    self._step()
                self._end()
            finally:
                self._die()

    def _begin(self) -> None:
        self._machine.begin()
        scenery = make_scenery(self._random)
        self._zone, self._now_ms = scenery.zone, scenery.now_ms
        operators, *engines = self._machine.engines
        keys: dict[str, list[PresentedKey]] = {}
        with transaction(operators.engine) as connection:
            for account in scenery.accounts:
                insert_account(connection, account)
                keys[account.id] = []
                self._told.standings[account.id] = {(account.plan, account.status.value)}
            for key in scenery.keys:
                insert_key(connection, key)
                keys[key.account_id].append(PresentedKey(key.id, key.digest))
            for payment in scenery.payments:
                insert_topup(connection, _topup(payment))
                self._told.payments[payment.reference] = payment
        self._processes = [
            Process(f"p{number}", engines[number - 1], self._clock, scenery.catalogue)
            for number in range(1, self._random.randint(1, ENGINES - 1) + 1)
        ]
        self._callers = Callers(self._random, keys)
        self._operator = Operator(self._random, operators, scenery.catalogue, self._clock, self._told, self._callers)
        self._judge = Judge(self._machine.look, self._told, self._zone)
        plans = ", ".join(f"{account.id} on {account.plan}" for account in scenery.accounts)
        self._note(f"{len(self._processes)} processes in {scenery.zone}; {plans}")

    def _clock(self) -> int:
        return self._now_ms

    def _note(self, line: str) -> None:
        self.trace.append(f"{iso_time(self._now_ms)} {line}")

    def _chance(self, percent: int) -> bool:
        return self._random.randrange(100) < percent

    def _fault(self) -> Fault | None:
        if not self._chance(FAULT_PERCENT):
            return None
        kind = self._random.choice(self._machine.faults)
        return Fault(kind, self._random.randint(1, STATEMENTS) if kind in AT_STATEMENT else 0)

    # What happens: most often, a process has something to do.

    def _step(self) -> None:
        held = [row for row in self._judge.rows.requests.values() if row.state == "held"]
        self._now_ms += choose_pause_ms(self._random, self._now_ms, self._zone, {row.deadline_ms for row in held})
        process = self._random.choice(self._processes)
        events = {self._work: 80, self._operate: 12, self._kill: 1, self._set_clock: 3, self._reload: 1}
        if self._operator.has_closed():
            events[self._operate] += 30
        if self._machine.has_power_cuts:
            events[self._cut_power] = 4
        self._random.choices(list(events), weights=list(events.values()))[0](process)

    def _operate(self, _process: Process) -> None:
        fault = self._fault()
        words, is_committed = self._operator.act(fault)
        self._note(f"operator {words}{_with(fault)}")
        if is_committed:
            self._judge.operator_has_acted()
        else:
            self._judge.nothing_has_changed()

    def _kill(self, process: Process) -> None:
        self._note(f"{process.name} is killed")
        process.die()

    def _set_clock(self, process: Process) -> None:
        process.skew_ms = choose_skew_ms(self._random, self._now_ms, self._zone)
        self._note(f"{process.name} sets its clock to {iso_time(process.now_ms())}")

    def _reload(self, process: Process) -> None:
        self._note(f"{process.name} reads new prices and plans")
        process.reload(with_new_prices(self._random, process.catalogue))

    def _cut_power(self, _process: Process) -> None:
        if self._chance(20):
            self._machine.checkpoint()
        self._die()
        self._note(f"POWER CUT: {self._machine.cut_power(self._random)}")
        self._judge.power_is_back()

    def _die(self) -> None:
        for process in self._processes:
            process.die()

    def _work(self, process: Process) -> None:
        if not process.is_alive:
            self._note(f"{process.name} starts")
            process.is_alive = True
        for _ in range(self._random.randint(0, BURST_MAX)):
            sending = self._callers.send()
            self._told.sendings[sending.id] = sending
            process.queue.append(Waiting(Admit(sending.asked), sending))
        for sending in list(process.owed.values()):
            if self._chance(65):
                self._end_hold(process, sending)
        if self._chance(8):
            payment = self._operator.choose_payment(self._callers.account_id())
            topup = _topup(payment)
            process.queue.append(Waiting(Work(lambda connection, _now_ms: insert_topup(connection, topup)), payment))
        if self._chance(8):
            process.queue.append(Waiting(Identify(self._callers.key(self._callers.account_id()))))
        self._run_batch(process, self._fault(), sweeps=self._chance(25))

    def _end_hold(self, process: Process, sending: Sending) -> None:
        """Let the model answer or fail, or the caller leave; sometimes let the hold be ended twice."""
        reason = self._random.choice(REASONS)
        process.end(sending, RELEASED if reason or self._chance(25) else CHARGED, reason)
        if self._chance(12):  # nobody charges what was given up by its caller
            process.end(sending, RELEASED if reason or self._chance(50) else CHARGED)

    # A batch, and what its askers learn of it.

    def _run_batch(self, process: Process, fault: Fault | None, *, sweeps: bool) -> None:
        batch = process.queue[:BATCH_MAX]
        del process.queue[:BATCH_MAX]
        if sweeps:
            batch.append(Waiting(Sweep()))
        if not batch:
            return
        clock = "" if process.skew_ms == 0 else f"(clock {iso_time(process.now_ms())}) "
        self._note(f"{process.name} {clock}{'; '.join(map(str, batch))}{_with(fault)}")
        ran, is_committed = process.run(batch, fault)
        if ran.answers is not None:
            assert is_committed, "answered before the commit"
            self._give_answers(process, ran)
        else:
            self._lose_answers(process, ran, is_committed=is_committed)
        if is_committed:
            self._judge.batch_has_run(ran)
        else:
            self._judge.nothing_has_changed()

    def _give_answers(self, process: Process, ran: Transaction) -> None:
        self.trace.append(f"    {'; '.join(map(_words, ran.answers or ()))}")
        for waiting, answer in zip(ran.waiting, ran.answers or (), strict=True):
            match waiting.operation, waiting.asker:
                case Admit(), Sending() as sending:
                    assert isinstance(answer, Decision), f"{sending.id}: {answer!r}"
                    if isinstance(answer.outcome, Hold):
                        process.owe(sending, answer.outcome)
                case End(), Sending() as sending:
                    assert isinstance(answer, bool), f"{sending.id}: {answer!r}"
                    if answer and waiting.is_charge:
                        self._told.delivered.add(sending.id)
                case Work(), Payment() as payment if answer is None:
                    self._told.payments[payment.reference] = payment

    def _lose_answers(self, process: Process, ran: Transaction, *, is_committed: bool) -> None:
        """Tell everybody that the books are unavailable, or nothing where the process has died."""
        self.trace.append(f"    {'unavailable' if process.is_alive else 'dead'}")
        for waiting in ran.waiting:
            if waiting.is_charge and isinstance(waiting.asker, Sending):
                if is_committed:
                    self._told.maybe_charged.add(waiting.asker.id)
                if process.is_alive:
                    process.owe(waiting.asker)  # it asks again, or gives up and releases
            elif isinstance(waiting.asker, Payment) and is_committed:
                self._told.note_unanswered(waiting.asker)

    # How it ends.

    def _end(self) -> None:
        """Everybody is alive, and does what waits; the deadlines pass, somebody sweeps, the others come too late."""
        for process in self._processes:
            process.is_alive = True
            process.skew_ms = 0
            while process.queue:
                self._run_batch(process, None, sweeps=False)
        self._now_ms = max([self._now_ms, *(row.deadline_ms for row in self._judge.rows.requests.values())]) + 1
        self._run_batch(self._random.choice(self._processes), None, sweeps=True)
        self._judge.nothing_is_held()
        for process in self._processes:
            for sending in list(process.owed.values()):
                self._end_hold(process, sending)
            self._run_batch(process, None, sweeps=False)
        for payment in list(self._told.maybe_payments.values()):
            self._note(f"operator {self._operator.add_credit(payment)}")
        self._judge.operator_has_acted()
        report = audit(self._machine.engines[0].engine, overdue_before_ms=self._now_ms)
        assert report.differences == (), f"the audit finds {report.differences}"
        self._note(f"{len(self._told.sendings)} requests sent, {len(self._told.delivered)} replies delivered")


def _topup(payment: Payment) -> Topup:
    return Topup(id=new_topup_id(), **payment._asdict(), note=None, made_by="operator", created_at_ms=0)


def _with(fault: Fault | None) -> str:
    return "" if fault is None else f" | {fault}"


def _words(answer: Any) -> str:
    match getattr(answer, "outcome", answer):
        case Hold(credits=credits_, source=source):
            return f"held {credits_} of {source}"
        case Refusal(error=error):
            return error.name.lower()
        case Replay(reply=reply):
            return f"again {reply.decode()}"
        case None | bool() | int() as plain:
            return str(plain)
        case other:
            return type(other).__name__
