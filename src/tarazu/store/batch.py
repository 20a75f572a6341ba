"""Run a batch of operations in one transaction: read all rows they touch, decide in memory, write what changed.

Rows are locked in the order of their ids, accounts before keys before requests, so that batches of several
processes cannot deadlock. The number of statements does not grow with the batch.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Connection, select, union_all

from tarazu.domain.accounts import Account, Intake, Key
from tarazu.domain.admission import Asked, Caller, Decision, admit, identify
from tarazu.domain.calendar import hour_of, period_of
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, RequestState, forgiven, give_back
from tarazu.domain.errors import Refusal
from tarazu.store.among import among, among_found
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import books_errors
from tarazu.store.idempotency import KeyPage, Place, forget_old_keys
from tarazu.store.intake import READ_INTAKE, intake_of
from tarazu.store.many_rows import RowsStatement, insert_rows, update_rows, write_all
from tarazu.store.operations import Admit, End, Identify, Later, Operation, Sweep, Work, only_reads
from tarazu.store.pages import on_page
from tarazu.store.prepared import Prepared, Row, Values, read_together
from tarazu.store.rows import (
    HOLD_ROW,
    account_of,
    hold_of,
    hold_row,
    key_of,
    select_accounts,
    select_holds,
    select_keys,
)
from tarazu.store.schema import accounts, daily_usage, keys, requests
from tarazu.store.sweeping import overdue_ends

_FIND_ACCOUNTS = (
    select_accounts()
    .where(
        # A union, for with "or" no index would lead PostgreSQL to the accounts of both: it would read all there are.
        among_found(
            accounts.c.id,
            union_all(
                select(keys.c.account_id).where(among(keys.c.id, "key_ids")),
                select(accounts.c.id).where(among(accounts.c.id, "account_ids")).correlate(None),
            ),
        )
    )
    .order_by(accounts.c.id)
)
_READ_ACCOUNTS, _LOCK_ACCOUNTS = Prepared(_FIND_ACCOUNTS), Prepared(_FIND_ACCOUNTS.with_for_update())
_FIND_KEYS = select_keys().where(among(keys.c.id, "key_ids")).order_by(keys.c.id)
_READ_KEYS, _LOCK_KEYS = Prepared(_FIND_KEYS), Prepared(_FIND_KEYS.with_for_update())
_LOCK_KEPT = Prepared(
    select_holds()
    .add_columns(requests.c.state)
    .where(among(requests.c.id, "request_ids"))
    .where(among(requests.c.period, "periods"))
    .where((requests.c.state == RequestState.HELD) | (requests.c.state == RequestState.CHARGED))
    .order_by(requests.c.id)
    .with_for_update()
)
_WINDOW = ("window_minute", "window_taken")
_ABANDONED = ("abandoned_hour", "abandoned_taken")
_STORE_ACCOUNTS = update_rows(accounts, by=["id"], setting=["period", "used", "balance", *_WINDOW, *_ABANDONED])
_STORE_KEYS = update_rows(keys, by=["id"], setting=_WINDOW)
_STORE_HOLDS = insert_rows(requests, HOLD_ROW)
_STORE_ENDS = update_rows(
    requests,
    by=["id", "period"],
    setting=["state", "ended_at_ms", "tries", "prompt_tokens", "completion_tokens", "reason"],
    # The same as "is held", which would lead PostgreSQL to the index of what is held: until that is vacuumed, all that
    # was held in the last minutes is still in there.
    where=requests.c.ended_at_ms.is_(None),
)
_USAGE_FIGURES = ("requests", "credits", "prompt_tokens", "completion_tokens")
_USAGE_COLUMNS = ("account_id", "day", "key_id", "model_id", *_USAGE_FIGURES)
_STORE_USAGE = insert_rows(daily_usage, _USAGE_COLUMNS, adding=_USAGE_FIGURES)


def run_batch(connection: Connection, operations: Sequence[Operation], catalogue: Catalogue, now_ms: int) -> list[Any]:
    """Answer each operation, in order. A `Work` that fails is answered with its exception.

    Credits that end a hold are back before the batch's admissions are decided.

    Raises:
        BooksUnavailableError: the database failed under a `Work`; the transaction must be rolled back.
    """
    answers: dict[int, Any] = {}
    for place, operation in enumerate(operations):
        if isinstance(operation, Work):
            answers[place] = _work(connection, operation, now_ms)
    swept = overdue_ends(connection, now_ms) if any(isinstance(each, Sweep) for each in operations) else []

    page = _Page(connection, [*operations, *swept], catalogue, now_ms)
    for end in swept:
        page.end(end)
    for place, operation in enumerate(operations):
        if isinstance(operation, End):
            answers[place] = page.end(operation)
        elif isinstance(operation, Sweep):
            answers[place] = len(swept)
    for place, operation in enumerate(operations):
        if isinstance(operation, Admit):
            answers[place] = page.admit(operation)
        elif isinstance(operation, Identify):
            answers[place] = page.identify(operation)
    page.store()
    return [answers[place] for place in range(len(operations))]


class _Page:
    """The rows that one batch works on: read and locked at the start, changed in memory, stored at the end."""

    def __init__(
        self, connection: Connection, operations: Sequence[Operation], catalogue: Catalogue, now_ms: int
    ) -> None:
        self._connection = connection
        self._catalogue = catalogue
        self._now_ms = now_ms
        self._new_holds: list[Hold] = []
        self._ended: list[tuple[Hold, End]] = []
        self._idempotency = KeyPage(connection, now_ms, catalogue.bounds)
        self._forgets_old_keys = any(isinstance(operation, Sweep) for operation in operations)
        self._read(operations)

    def admit(self, operation: Admit) -> Decision | Later:
        asked = operation.asked
        caller = self._caller(asked.key.id)
        place = _place(asked, caller)
        if place is not None and self._idempotency.is_left(place):
            return Later()
        earlier = None if place is None else self._idempotency.earlier(place)
        decision = admit(asked, caller, self._intake, self._catalogue, self._now_ms, earlier)
        if decision.caller is not None:
            self._change(decision.caller.account)
            self._changed_keys.add(decision.caller.key.id)
            self._keys[decision.caller.key.id] = decision.caller.key
        if isinstance(decision.outcome, Hold):
            self._new_holds.append(decision.outcome)
            if asked.idempotency is not None:
                self._idempotency.take(decision.outcome, asked.idempotency.fingerprint)
        return decision

    def identify(self, operation: Identify) -> Caller | Refusal:
        return identify(operation.key, self._caller(operation.key.id), self._now_ms)

    def end(self, operation: End) -> bool:
        hold = self._holds.pop(operation.request_id, None)
        is_charge = operation.state is RequestState.CHARGED
        if hold is None:
            return is_charge and operation.request_id in self._charged
        self._idempotency.end(operation)
        if operation.reason is not None and not self._forgive(hold.account_id):
            # Nobody has the reply: it is charged, and its key is free all the same.
            self._ended.append((hold, replace(operation, state=RequestState.CHARGED)))
            self._charged.add(hold.request_id)
            return True
        self._ended.append((hold, operation))
        if is_charge:
            self._charged.add(hold.request_id)
        else:
            self._change(give_back(self._accounts[hold.account_id], hold))
        return True

    def _forgive(self, account_id: str) -> bool:
        free_per_hour = self._catalogue.abandoned_per_hour
        account = forgiven(self._accounts[account_id], hour_of(self._now_ms), free_per_hour)
        if account is None:
            return False
        self._change(account)
        return True

    def store(self) -> None:
        writes = list(self._changes_of_callers())
        if self._new_holds:
            writes.append((_STORE_HOLDS, [hold_row(hold) for hold in self._new_holds]))
        if self._ended:
            writes.append((_STORE_ENDS, [self._end_row(end) for _, end in self._ended]))
        if usage := self._usage():
            writes.append((_STORE_USAGE, usage))
        written = write_all(self._connection, writes)
        assert written == [len(rows) for _, rows in writes], "a row that was locked has changed elsewhere"
        self._idempotency.store()
        if self._forgets_old_keys:
            forget_old_keys(self._connection, self._now_ms)

    def _read(self, operations: Sequence[Operation]) -> None:
        asked: list[Asked] = []
        ends: list[End] = []
        key_ids: set[str] = set()
        for operation in operations:
            if isinstance(operation, Admit):
                asked.append(operation.asked)
                key_ids.add(operation.asked.key.id)
            elif isinstance(operation, Identify):
                key_ids.add(operation.key.id)
            elif isinstance(operation, End):
                ends.append(operation)
        locks = not all(map(only_reads, operations))
        rows = self._rows(key_ids, ends, with_intake=bool(asked), locks=locks)

        found = [account_of(row) for row in rows.get("accounts", ())]
        period = period_of(self._now_ms, self._catalogue.zone)
        self._accounts: dict[str, Account] = {
            account.id: account for account in on_page(self._connection, found, period)
        }
        self._keys: dict[str, Key] = {row[0]: key_of(row) for row in rows.get("keys", ())}
        self._holds: dict[str, Hold] = {}
        self._charged: set[str] = set()
        for *row, state in rows.get("kept", ()):
            if state == RequestState.HELD:
                self._holds[row[0]] = hold_of(row)
            else:
                self._charged.add(row[0])
        self._intake = intake_of(rows["intake"]) if asked else Intake()
        self._changed_accounts: set[str] = set()
        self._changed_keys: set[str] = set()
        places = (_place(each, self._caller(each.key.id)) for each in asked)
        self._idempotency.read(list(dict.fromkeys(place for place in places if place is not None)))

    def _rows(
        self, key_ids: Collection[str], ends: Sequence[End], *, with_intake: bool, locks: bool
    ) -> dict[str, list[Row]]:
        reads: dict[str, tuple[Prepared, Values]] = {}
        if key_ids or ends:
            ids = {"account_ids": [end.account_id for end in ends], "key_ids": list(key_ids)}
            reads["accounts"] = (_LOCK_ACCOUNTS if locks else _READ_ACCOUNTS, ids)
        if key_ids:
            reads["keys"] = (_LOCK_KEYS if locks else _READ_KEYS, {"key_ids": list(key_ids)})
        if ends:
            ids = {"request_ids": [end.request_id for end in ends], "periods": list({end.period for end in ends})}
            reads["kept"] = (_LOCK_KEPT, ids)
        if with_intake:
            reads["intake"] = (READ_INTAKE, {})
        return dict(zip(reads, read_together(self._connection, list(reads.values())), strict=True))

    def _caller(self, key_id: str) -> Caller | None:
        key = self._keys.get(key_id)
        return None if key is None else Caller(key, self._accounts[key.account_id])

    def _change(self, account: Account) -> None:
        assert account.used >= 0, "more quota was given back than was taken"
        assert account.balance >= 0, "the balance was overdrawn"
        self._accounts[account.id] = account
        self._changed_accounts.add(account.id)

    def _changes_of_callers(self) -> Iterator[tuple[RowsStatement, list[dict[str, Any]]]]:
        if self._changed_accounts:
            yield _STORE_ACCOUNTS, [_account_change(self._accounts[id_]) for id_ in sorted(self._changed_accounts)]
        if self._changed_keys:
            yield _STORE_KEYS, [_key_change(self._keys[id_]) for id_ in sorted(self._changed_keys)]

    def _end_row(self, end: End) -> dict[str, Any]:
        return {
            "of_id": end.request_id,
            "of_period": end.period,
            "state": end.state.value,
            "ended_at_ms": self._now_ms,
            "tries": end.tries,
            "prompt_tokens": end.prompt_tokens,
            "completion_tokens": end.completion_tokens,
            "reason": end.reason,
        }

    def _usage(self) -> list[dict[str, Any]]:
        """Add the batch's charges up by the rows of daily_usage, in the order of their keys."""
        figures: dict[tuple[str, str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for hold, end in self._ended:
            if end.state is RequestState.CHARGED:
                sums = figures[hold.account_id, hold.day, hold.key_id, hold.model_id]
                for index, figure in enumerate((1, hold.credits, end.prompt_tokens, end.completion_tokens)):
                    sums[index] += figure
        return [dict(zip(_USAGE_COLUMNS, (*key, *sums), strict=True)) for key, sums in sorted(figures.items())]


def _place(asked: Asked, caller: Caller | None) -> Place | None:
    return None if asked.idempotency is None or caller is None else (caller.account.id, asked.idempotency.key)


def _work(connection: Connection, operation: Work, now_ms: int) -> Any:
    savepoint = connection.begin_nested()
    try:
        with books_errors():
            answer = operation.function(connection, now_ms)
            savepoint.commit()
    except BooksUnavailableError:
        # SQLite answers a full disk by rolling back everything, the savepoint too: what follows would run outside a
        # transaction, and what came before would be answered though it is gone. So the whole batch fails.
        raise
    except Exception as error:  # noqa: BLE001 - it is the answer to this operation alone
        savepoint.rollback()
        return error
    return answer


def _account_change(account: Account) -> dict[str, Any]:
    return {
        "of_id": account.id,
        "period": account.period,
        "used": account.used,
        "balance": account.balance,
        "window_minute": account.window.minute,
        "window_taken": account.window.taken,
        "abandoned_hour": account.abandoned_hour,
        "abandoned_taken": account.abandoned_taken,
    }


def _key_change(key: Key) -> dict[str, Any]:
    return {"of_id": key.id, "window_minute": key.window.minute, "window_taken": key.window.taken}
