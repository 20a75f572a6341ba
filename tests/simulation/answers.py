"""Whether the answers of a committed transaction are true, judged by the rows after it.

Operators' changes and endings come before admissions in a batch, so an admission is judged by the rows at its end.
"""

from sqlalchemy.exc import IntegrityError

from tarazu.domain.admission import Caller, Decision
from tarazu.domain.credits import Hold, RequestState
from tarazu.domain.errors import Error, ExhaustedDetails, Refusal
from tarazu.domain.idempotency import Replay
from tarazu.store.operations import Admit, End, Identify, Sweep
from tests.simulation.places import Places, minute_of
from tests.simulation.rows import Rows
from tests.simulation.told import Payment, Sending, Told, Transaction
from tests.support.values import DAY_MS


class Answers:
    """Judges one transaction. The places that were answered for are taken."""

    def __init__(self, transaction: Transaction, before: Rows, rows: Rows, told: Told, places: Places) -> None:
        self._transaction = transaction
        self._before = before
        self._rows = rows
        self._told = told
        self._places = places

    def check(self) -> None:
        """Go through all, in their order."""
        assert self._transaction.answers is not None
        for waiting, answer in zip(self._transaction.waiting, self._transaction.answers, strict=True):
            match waiting.operation, waiting.asker:
                case Admit(), Sending() as sending:
                    self._decision(sending, answer)
                case End() as end, _:
                    self._ending(end, is_true=answer)
                case Identify(key), _:
                    error = self._caller_refused(key.id)
                    assert answer.error is error if error else isinstance(answer, Caller), f"{answer}, not {error}"
                case _, Payment() as payment:
                    is_new = payment.reference not in self._before.topups
                    is_refused = isinstance(answer, IntegrityError) and not is_new
                    assert answer is None or is_refused, f"{payment} was answered {answer!r}"
                case Sweep(), _:
                    swept = _swept(self._rows) - _swept(self._before)
                    assert answer == len(swept), f"told of {answer} holds swept, not of {sorted(swept)}"

    def _ending(self, end: End, *, is_true: bool) -> None:
        row = self._rows.requests.get(end.request_id)
        if is_true:
            assert row is not None, f"{end.request_id} was told to be {end.state}, and is not there"
            states = {end.state.value} if end.reason is None else {end.state.value, "charged"}
            assert row.state in states, f"{end.request_id} was told to be {end.state}, and is {row.state}"
        elif row is not None:
            assert row.state != "held", f"{end.request_id} was told to have ended, and is held"
            assert end.state is not RequestState.CHARGED or row.state != "charged", f"{end.request_id} is charged"

    def _decision(self, sending: Sending, decision: Decision) -> None:
        outcome = decision.outcome
        minute = minute_of(self._transaction.now_ms)
        error = self._refused_at_once(sending, minute)
        assert error is None or getattr(outcome, "error", None) is error, f"{sending.id}: {outcome}, not {error}"
        if error is not None:
            return
        callers = self._rows.accounts[sending.account_id], self._rows.keys[sending.asked.key.id]
        self._places.take(*callers, minute)
        room = self._places.room(*callers, self._transaction.catalogue, minute)
        assert decision.rate_limit is not None, f"{sending.id} was not told of its window"
        assert decision.rate_limit.remaining == room, f"{sending.id}: {decision.rate_limit}, not {room}"
        if isinstance(sending.asked.request, Refusal):
            assert outcome is sending.asked.request, f"{sending.id} is invalid, and was answered {outcome}"
        elif isinstance(outcome, Hold):
            self._hold(sending, outcome)
        elif isinstance(outcome, Replay):
            self._replay(sending, outcome)
        else:
            self._refusal(sending, outcome)

    def _refused_at_once(self, sending: Sending, minute: int) -> Error | None:
        error = self._caller_refused(sending.asked.key.id)
        if error is not None:
            return error
        if self._rows.is_stopped:
            return Error.SYSTEM_STOPPED
        callers = self._rows.accounts[sending.account_id], self._rows.keys[sending.asked.key.id]
        room = self._places.room(*callers, self._transaction.catalogue, minute)
        return Error.RATE_LIMIT_EXCEEDED if room <= 0 else None

    def _caller_refused(self, key_id: str) -> Error | None:
        key = self._rows.keys.get(key_id)
        now_ms = self._transaction.now_ms
        if (
            key is None
            or key.revoked_at_ms is not None
            or key.paused_at_ms is not None
            or (key.expires_at_ms or now_ms + 1) <= now_ms
        ):
            return Error.INVALID_API_KEY
        return None if self._rows.accounts[key.account_id].status == "active" else Error.ACCOUNT_UNAVAILABLE

    def _hold(self, sending: Sending, hold: Hold) -> None:
        row = self._rows.requests.get(sending.id)
        assert row is not None, f"{sending.id} was told to be held, and is not there"
        told = (hold.request_id, hold.account_id, hold.key_id, hold.model_id, hold.credits, hold.source.value)
        assert told == row[:6], f"{sending.id} was told {hold}, and is {row}"
        assert (hold.period, hold.day, hold.created_at_ms, hold.deadline_ms) == row[7:11], f"{hold}, and {row}"
        account = self._rows.accounts[sending.account_id]
        if row.source == "plan" and row.credits > 0:
            quota = self._transaction.quota(account.plan)
            assert account.used <= quota, f"{account} has used more than its quota of {quota}"

    def _replay(self, sending: Sending, replay: Replay) -> None:
        first = self._told.sendings[replay.reply.decode().removeprefix("reply to ")]
        assert first in self._owners(sending, "charged", same_body=True), f"{sending.id}: the reply is another's"

    def _refusal(self, sending: Sending, refusal: Refusal) -> None:
        account = self._rows.accounts[sending.account_id]
        if isinstance(details := refusal.details, ExhaustedDetails):
            assert details.limit == self._transaction.quota(account.plan), f"{sending.id}: {refusal}, {account}"
            assert details.cost > max(details.limit - details.used, details.api_credit_balance), f"{refusal}"
            assert details.api_credit_balance >= account.balance, f"{sending.id}: {refusal}, {account}"
            assert details.used <= account.used or details.period != account.period, f"{refusal}, {account}"
        elif refusal.error is Error.IDEMPOTENCY_CONFLICT:
            assert self._owners(sending, "held", same_body=True), f"{sending.id}: nobody with its key is running"
        elif refusal.error is Error.IDEMPOTENCY_MISMATCH:
            assert self._owners(sending, "held", "charged", same_body=False), f"{sending.id}: its key is free"

    def _owners(self, sending: Sending, *states: str, same_body: bool) -> list[Sending]:
        """List the requests in such a state that may have the idempotency key still."""
        since_ms = self._transaction.now_ms - DAY_MS
        rows = (
            row
            for row in self._rows.requests.values()
            if row.state in states and row.reason is None and row.created_at_ms > since_ms
        )
        sendings = [self._told.sendings[row.id] for row in rows if row.account_id == sending.account_id]
        return [
            first
            for first in sendings
            if first.sent and sending.sent and first.sent[0] == sending.sent[0]
            if (first.sent == sending.sent) is same_body
        ]


def _swept(rows: Rows) -> set[str]:
    return {row.id for row in rows.requests.values() if row.state == "swept"}
