"""The rules of the books, written a second time: what decisions.md says about credits, windows and holds.

A batch on the real books must come out as here, where one operation is done after the other on rows of Python. No code
is shared with the product, not even the calendar's.
"""

from tests.support.ledger_tables import AccountRow, KeptRow, KeyRow, RequestRow, Tables, day_of, reply_of
from tests.support.values import DAY_MS, HOUR_MS, MINUTE_MS

HOLD_MS = 90_000
"""Time-out of the models (60 s) and time to settle (30 s)."""

Sent = tuple[str, bytes]
"""An idempotency key, and the SHA-256 of the body that it came with."""


class LedgerModel(Tables):
    """Moves the rows. `admit` answers with the source of a hold, an earlier reply, or the code of a refusal."""

    def admit(self, id_: str, key: KeyRow, model: str, now_ms: int, sent: Sent | None) -> str | bytes:
        """Decide on a request."""
        account, minute = self.accounts[key.account], now_ms // MINUTE_MS
        quota, per_minute = self.plans.get(account.plan or "", (None, self.payg_per_minute))
        if key.is_revoked:
            return "invalid_api_key"
        if account.status != "active":
            return "account_unavailable"
        if self.is_stopped:
            return "system_stopped"
        if account.taken_in(minute) >= per_minute or (key.limit and key.taken_in(minute) >= key.limit):
            return "rate_limit_exceeded"
        account.take_place(minute)
        key.take_place(minute)
        self.turn_page(account, now_ms)
        if sent and (earlier := self._answer_to_key(account, sent, now_ms)):
            return earlier
        if quota is None and account.balance == 0:
            return "upgrade_required"
        if model not in self.prices:
            return "model_not_found"
        return self._hold(id_, key, account, model, quota, now_ms, sent)

    def _hold(
        self, id_: str, key: KeyRow, account: AccountRow, model: str, quota: int | None, now_ms: int, sent: Sent | None
    ) -> str:
        cost, day = self.prices[model], day_of(now_ms)
        if quota is not None and account.used + cost <= max(quota, account.used):
            source, account.used = "plan", account.used + cost
        elif account.balance >= cost:
            source, account.balance = "api_balance", account.balance - cost
        else:
            return "api_credits_exhausted"
        self.requests[id_] = RequestRow(id_, account.id, key.id, model, cost, source, day[:7], day, now_ms + HOLD_MS)
        if sent:
            self.kept[account.id, sent[0]] = KeptRow(id_, account.id, *sent, now_ms)
        return source

    def end(
        self, id_: str, state: str, now_ms: int, tokens: tuple[int, int] = (0, 0), *, is_callers_doing: bool = False
    ) -> bool:
        """End a hold, if it is one. A charge that is asked for again has ended so.

        What is the caller's own doing is given back only so often in an hour, and charged then.
        """
        request = self.requests[id_]
        account = self.accounts[request.account]
        if request.state != "held":
            return request.state == state == "charged"
        self._end_key(id_, state)
        if is_callers_doing:
            hour = now_ms // HOUR_MS
            is_behind = account.free_hour == hour + 1  # then it goes on with what a clock that is ahead has begun
            free = account.free_in_hour if is_behind or account.free_hour == hour else 0
            if free >= self.free_per_hour:
                state = "charged"
            else:
                account.free_hour, account.free_in_hour = account.free_hour if is_behind else hour, free + 1
        if state != "charged":
            self.turn_page(account, now_ms)
        request.state = state
        if state == "charged":
            self.add_usage(request, tokens)
        elif request.source == "api_balance":
            account.balance += request.credits
        elif request.period == account.period:
            account.used -= request.credits
        return True

    def sweep(self, now_ms: int) -> int:
        """Give back what is overdue, and forget the idempotency keys of yesterday."""
        overdue = [id_ for id_ in self.held() if self.requests[id_].deadline_ms < now_ms]
        self.kept = {place: row for place, row in self.kept.items() if row.created_ms > now_ms - DAY_MS}
        return sum(self.end(id_, "swept", now_ms) for id_ in overdue)

    def top_up(self, account_id: str, credits_: int, reference: str) -> bool:
        """Add credits, once for each reference."""
        if reference in self.references:
            return False
        self.references.add(reference)
        self.accounts[account_id].balance += credits_
        return True

    def adjust(self, account_id: str, credits_: int) -> bool:
        """Add credits or take some, but no more than there are."""
        account = self.accounts[account_id]
        if account.balance + credits_ < 0:
            return False
        account.balance += credits_
        return True

    # Idempotency keys.

    def _answer_to_key(self, account: AccountRow, sent: Sent, now_ms: int) -> str | bytes | None:
        key, fingerprint = sent
        first = self.kept.get((account.id, key))
        if first is None or first.created_ms <= now_ms - DAY_MS:
            return None
        return "idempotency_mismatch" if first.fingerprint != fingerprint else first.reply or "idempotency_conflict"

    def _end_key(self, id_: str, state: str) -> None:
        for place, row in list(self.kept.items()):
            if row.request == id_ and state == "charged":
                row.reply = reply_of(id_)
            elif row.request == id_:
                del self.kept[place]
