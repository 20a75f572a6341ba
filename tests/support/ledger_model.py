"""The books in plain dicts: what decisions.md says about credits, windows and holds, written a second time.

A batch on the real books must come out as here, where one operation is done after the other on rows of Python. It
shares no code with the product: even the calendar is its own (the zone of the model is UTC+03:30, without summer time).
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.values import DAY_MS, MINUTE_MS

ZONE_OFFSET = timedelta(hours=3, minutes=30)
HOLD_MS = 90_000
"""Time-out of the models (60 s) and time to settle (30 s)."""
WINDOW_AHEAD_MAX = 5
"""Minutes by which a window may lie ahead of the clock."""

Row = dict[str, Any]


def reply_of(request_id: str) -> bytes:
    """Write the reply that a request is charged with."""
    return f"reply to {request_id}".encode()


@dataclass
class LedgerModel:
    """Tables of rows, and the prices, plans and limits that they are moved by."""

    prices: dict[str, int]
    plans: dict[str, tuple[int, int]]
    """Monthly credits and requests a minute of each plan."""
    payg_per_minute: int
    accounts: dict[str, Row] = field(default_factory=dict)
    keys: dict[str, Row] = field(default_factory=dict)
    requests: dict[str, Row] = field(default_factory=dict)
    usage: dict[tuple[str, str, str, str], list[int]] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    kept: dict[tuple[str, str], Row] = field(default_factory=dict)
    """What was sent with an idempotency key, by account and key."""
    stopped: bool = False

    def add_account(self, id_: str, plan: str | None, period: str) -> None:
        """Add an account with nothing used and no balance."""
        self.accounts[id_] = {
            "id": id_,
            "plan": plan,
            "status": "active",
            "period": period,
            "used": 0,
            "balance": 0,
            "minute": 0,
            "taken": 0,
        }

    def add_key(self, id_: str, account_id: str, limit: int | None) -> None:
        """Add a key."""
        self.keys[id_] = {"id": id_, "account": account_id, "limit": limit, "revoked": False, "minute": 0, "taken": 0}

    def held(self) -> list[str]:
        """List the requests that are held."""
        return sorted(id_ for id_, row in self.requests.items() if row["state"] == "held")

    def blocked(self) -> list[str]:
        """List the accounts that are not active."""
        return sorted(id_ for id_, row in self.accounts.items() if row["status"] != "active")

    def month_start_ms(self, now_ms: int, months: int) -> int:
        """Tell when the month begins that is so many months on, in the zone of the model."""
        here = datetime.fromtimestamp(now_ms / 1_000, UTC) + ZONE_OFFSET
        years, month = divmod(here.month - 1 + months, 12)
        start = datetime(here.year + years, month + 1, 1, tzinfo=UTC) - ZONE_OFFSET
        return round(start.timestamp() * 1_000)

    def top_up(self, account_id: str, credits_: int, reference: str) -> bool:
        """Add credits, once for each reference."""
        if reference in self.references:
            return False
        self.references.add(reference)
        self.accounts[account_id]["balance"] += credits_
        return True

    def sweep(self, now_ms: int) -> int:
        """Give back what is overdue, and forget the idempotency keys of yesterday."""
        overdue = [id_ for id_, row in self.requests.items() if row["state"] == "held" and row["deadline_ms"] < now_ms]
        for id_ in overdue:
            self.end(id_, "swept", now_ms)
        self.kept = {place: row for place, row in self.kept.items() if row["created_ms"] > now_ms - DAY_MS}
        return len(overdue)

    def end(self, request_id: str, state: str, now_ms: int, tokens: tuple[int, int] = (0, 0)) -> bool:
        """End a hold, if it is one. A charge that is asked for again has ended so."""
        request = self.requests[request_id]
        if request["state"] != "held":
            return state == "charged" and bool(request["state"] == state)
        account = self.accounts[request["account"]]
        if state != "charged":
            self._turn_page(account, now_ms)
        request["state"] = state
        self._end_key(request_id, state)
        if state == "charged":
            place = (request["account"], request["day"], request["key"], request["model"])
            old = self.usage.get(place, [0, 0, 0, 0])
            new = (1, request["credits"], *tokens)
            self.usage[place] = [one + other for one, other in zip(old, new, strict=True)]
        elif request["source"] == "api_balance":
            account["balance"] += request["credits"]
        elif request["period"] == account["period"]:
            account["used"] -= request["credits"]
        return True

    def _end_key(self, request_id: str, state: str) -> None:
        for place, row in list(self.kept.items()):
            if row["request"] == request_id and state == "charged":
                row["reply"] = reply_of(request_id)
            elif row["request"] == request_id:
                del self.kept[place]

    def admit(
        self, request_id: str, key_id: str, model: str, now_ms: int, sent: tuple[str, bytes] | None
    ) -> str | bytes:
        """Decide on a request, `sent` with an idempotency key and a body, or without a key.

        Answer with the source of its hold, with the reply of an earlier one, or with the code of the refusal.
        """
        key = self.keys[key_id]
        account = self.accounts[key["account"]]
        if key["revoked"]:
            return "invalid_api_key"
        if account["status"] != "active":
            return "account_unavailable"
        if self.stopped:
            return "system_stopped"
        quota, per_minute = self.plans.get(account["plan"] or "", (None, self.payg_per_minute))
        if not self._take_places(account, key, per_minute, now_ms // MINUTE_MS):
            return "rate_limit_exceeded"
        self._turn_page(account, now_ms)
        if sent is not None and (earlier := self._earlier(account, sent, now_ms)):
            return earlier
        if quota is None and account["balance"] == 0:
            return "upgrade_required"
        if model not in self.prices:
            return "model_not_found"
        outcome = self._hold(request_id, account, key, model, quota, now_ms)
        if sent is not None and request_id in self.requests:
            row = {"request": request_id, "created_ms": now_ms, "reply": None, "body": sent[1]}
            self.kept[account["id"], sent[0]] = row
        return outcome

    def _earlier(self, account: Row, sent: tuple[str, bytes], now_ms: int) -> str | bytes | None:
        row = self.kept.get((account["id"], sent[0]))
        if row is None or row["created_ms"] <= now_ms - DAY_MS:
            return None
        if row["body"] != sent[1]:
            return "IDEMPOTENCY_KEY_REUSED"
        reply: bytes | None = row["reply"]
        return "IDEMPOTENCY_KEY_RUNNING" if reply is None else reply

    def _take_places(self, account: Row, key: Row, per_minute: int, minute: int) -> bool:
        windows = [(account, per_minute), (key, key["limit"])]
        for row, limit in windows:
            taken = row["taken"] if 0 <= row["minute"] - minute <= WINDOW_AHEAD_MAX else 0
            if limit is not None and taken >= limit:
                return False
        for row, _ in windows:
            if not 0 <= row["minute"] - minute <= WINDOW_AHEAD_MAX:
                row["minute"], row["taken"] = minute, 0
            row["taken"] += 1
        return True

    def _turn_page(self, account: Row, now_ms: int) -> None:
        period = _day(now_ms)[:7]
        if account["period"] != period:
            account["period"] = period
            account["used"] = sum(
                row["credits"]
                for row in self.requests.values()
                if (row["account"], row["period"], row["source"]) == (account["id"], period, "plan")
                and row["state"] in ("held", "charged")
            )

    def _hold(self, request_id: str, account: Row, key: Row, model: str, quota: int | None, now_ms: int) -> str:
        cost = self.prices[model]
        day, used = _day(now_ms), account["used"]
        if quota is not None and used + cost <= max(quota, used):
            source = "plan"
        elif cost <= account["balance"]:
            source = "api_balance"
        else:
            return "api_credits_exhausted"
        account["used" if source == "plan" else "balance"] += cost if source == "plan" else -cost
        self.requests[request_id] = {
            "account": account["id"],
            "key": key["id"],
            "model": model,
            "credits": cost,
            "source": source,
            "state": "held",
            "period": account["period"],
            "day": day,
            "deadline_ms": now_ms + HOLD_MS,
        }
        return source


def _day(now_ms: int) -> str:
    return (datetime.fromtimestamp(now_ms / 1_000, UTC) + ZONE_OFFSET).date().isoformat()
