"""Recompute the books from their rows and compare: every credit must be where the figures say it is.

The requests are added up once, by `sums`, and the rules compare those sums. A row that breaks a rule by itself is
looked for among the rows.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from msgspec import Struct
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    ScalarSelect,
    Select,
    Table,
    and_,
    case,
    func,
    or_,
    select,
)

from tarazu.domain.credits import RequestState, Source
from tarazu.store.idempotency import DROPPED_BYTES
from tarazu.store.schema import accounts, adjustments, daily_usage, idempotency_keys, keys, requests, topups
from tarazu.store.snapshot import snapshot
from tarazu.store.sums import BOOKED, COMPUTED, USAGE_FIGURES, USAGE_KEY, add_up, caller_sums, sums, usage_sums
from tarazu.store.telling import Tell, tell_nobody

LISTED_MAX = 1_000
"""Differences of one rule that are told one by one; those beyond it are counted."""
ROWS_AT_ONCE = 1_000
"""Rows of a result that are in memory at once, however many differ."""


class Difference(Struct, frozen=True, kw_only=True):
    """One figure in the books that its rows do not bear out. `subject` says which: an account, a day, a request."""

    account_id: str
    figure: str
    subject: str
    booked: int
    computed: int


class RuleReport(Struct, frozen=True, kw_only=True):
    """How many differences one rule has found; at most LISTED_MAX of them are listed."""

    name: str
    found: int
    listed: int


class AuditReport(Struct, frozen=True, kw_only=True):
    """What was compared, and where it differs: `found` counts all differences, also those that are not listed."""

    accounts: int
    requests: int
    found: int
    rules: tuple[RuleReport, ...]
    differences: tuple[Difference, ...]


def audit(engine: Engine, *, overdue_before_ms: int, tell: Tell = tell_nobody) -> AuditReport:
    """Check every invariant on one state of the books; `overdue_before_ms`: no hold's deadline may be before it.

    Raises:
        BooksUnavailableError: the books cannot be read.
    """
    reports: list[RuleReport] = []
    differences: list[Difference] = []
    with snapshot(engine, sums) as connection:
        add_up(connection, tell)
        for rule, check in _rules(overdue_before_ms).items():
            tell(f"comparing the {rule}", None)
            found, listed = 0, len(differences)
            for found, difference in enumerate(check(connection), start=1):
                if found <= LISTED_MAX:
                    differences.append(difference)
            reports.append(RuleReport(name=rule, found=found, listed=len(differences) - listed))
        return AuditReport(
            accounts=connection.execute(select(func.count()).select_from(accounts)).scalar_one(),
            requests=int(connection.execute(select(_sum_of(caller_sums.c.requests))).scalar_one()),
            found=sum(report.found for report in reports),
            rules=tuple(reports),
            differences=tuple(differences),
        )


def _rules(overdue_before_ms: int) -> dict[str, Callable[[Connection], Iterator[Difference]]]:
    """Name the rules, in the order of the report."""
    return {
        "used quotas": _used,
        "balances": _balance,
        "daily usage": _daily_usage,
        "deadlines of holds": lambda connection: _overdue(connection, overdue_before_ms),
        "idempotency keys": _idempotency_keys,
        "requests": _requests,
        "owners of rows": _owners,
    }


def _used(connection: Connection) -> Iterator[Difference]:
    """Used quota = credits of the period's requests from the plan, held or charged."""
    spent = _sum_for_account(
        caller_sums, caller_sums.c.period == accounts.c.period, caller_sums.c.source == Source.PLAN
    )
    query = (
        select(accounts.c.id, accounts.c.period, accounts.c.used, spent)
        .where(accounts.c.used != spent)
        .order_by(accounts.c.id)
    )
    for account_id, period, booked, computed in _rows(connection, query):
        yield Difference(account_id=account_id, figure="used", subject=period, booked=booked, computed=int(computed))


def _balance(connection: Connection) -> Iterator[Difference]:
    """Balance = top-ups + adjustments - credits of requests from the balance, held or charged; never below zero."""
    spent = _sum_for_account(caller_sums, caller_sums.c.source == Source.BALANCE)
    computed = _sum_for_account(topups) + _sum_for_account(adjustments) - spent
    query = (
        select(accounts.c.id, accounts.c.balance, computed)
        .where(or_(accounts.c.balance != computed, accounts.c.balance < 0))
        .order_by(accounts.c.id)
    )
    for account_id, booked, value in _rows(connection, query):
        yield Difference(account_id=account_id, figure="balance", subject="", booked=booked, computed=int(value))


def _daily_usage(connection: Connection) -> Iterator[Difference]:
    """Daily usage = the charged requests of that day, by account, key and model; no row is there for none."""
    key = [usage_sums.c[name] for name in USAGE_KEY]
    booked, computed = ([func.sum(usage_sums.c[side + name]) for name in USAGE_FIGURES] for side in (BOOKED, COMPUTED))
    query: Select[Any] = (
        select(*key, *booked, *computed)
        .group_by(*key)
        .having(or_(*(left != right for left, right in zip(booked, computed, strict=True))))
        .order_by(*key)
    )
    for day, account_id, key_id, model_id, *totals in _rows(connection, query):
        figures = zip(USAGE_FIGURES, totals[: len(USAGE_FIGURES)], totals[len(USAGE_FIGURES) :], strict=True)
        for name, left, right in figures:
            if left != right:
                yield Difference(
                    account_id=account_id,
                    figure=f"daily usage: {name}",
                    subject=f"{day} {key_id} {model_id}",
                    booked=int(left),
                    computed=int(right),
                )
    empty = select(*(daily_usage.c[name] for name in USAGE_KEY)).where(daily_usage.c.requests == 0)
    for day, account_id, key_id, model_id in _rows(connection, empty):
        yield _stray(account_id, "daily usage without a request", f"{day} {key_id} {model_id}")


def _overdue(connection: Connection, before_ms: int) -> Iterator[Difference]:
    """No hold is older than its deadline plus the sweep interval."""
    query = (
        select(requests.c.account_id, requests.c.id, requests.c.deadline_ms)
        .where(requests.c.state == RequestState.HELD, requests.c.deadline_ms < before_ms)
        .order_by(requests.c.deadline_ms)
    )
    for account_id, request_id, deadline_ms in _rows(connection, query):
        yield Difference(
            account_id=account_id,
            figure="overdue hold: deadline_ms",
            subject=request_id,
            booked=deadline_ms,
            computed=before_ms,
        )


def _idempotency_keys(connection: Connection) -> Iterator[Difference]:
    """A key with a reply, or of a dropped one, belongs to a charged request of its account, any other to a held one.

    A reply has the length that is counted.
    """
    kept = idempotency_keys.c
    has_reply = or_(kept.reply.is_not(None), kept.reply_bytes == DROPPED_BYTES)
    belongs = case((has_reply, RequestState.CHARGED.value), else_=RequestState.HELD.value)
    is_its_own = and_(
        requests.c.id == kept.request_id, requests.c.period == kept.period, requests.c.account_id == kept.account_id
    )
    query = (
        select(kept.account_id, kept.request_id, has_reply)
        .outerjoin(requests, is_its_own)
        .where(or_(requests.c.state.is_(None), requests.c.state != belongs))
        .order_by(kept.request_id)
    )
    for account_id, request_id, is_answered in _rows(connection, query):
        of_state = "with a reply: charged" if is_answered else "without a reply: held"
        yield _stray(account_id, f"idempotency key {of_state} requests", request_id)
    length = func.coalesce(func.length(kept.reply), DROPPED_BYTES)
    miscounted = (
        select(kept.account_id, kept.request_id, kept.reply_bytes, length)
        .where(kept.reply_bytes != length)
        .order_by(kept.request_id)
    )
    for account_id, request_id, booked, computed in _rows(connection, miscounted):
        yield Difference(
            account_id=account_id, figure="bytes of a reply", subject=request_id, booked=booked, computed=computed
        )


def _requests(connection: Connection) -> Iterator[Difference]:
    """A request is in no period before its day; what has ended has its time, and a charge its tokens.

    The period may be a later one than the day's: before 0002 an account's page was never turned back, whatever a clock
    did.
    """
    faults = {
        "request in a period before its day": requests.c.period < func.substr(requests.c.day, 1, 7),
        "request whose state and time of its end disagree": (
            (requests.c.state == RequestState.HELD) != requests.c.ended_at_ms.is_(None)
        ),
        "charged request without its tokens": and_(
            requests.c.state == RequestState.CHARGED,
            or_(requests.c.prompt_tokens.is_(None), requests.c.completion_tokens.is_(None)),
        ),
    }
    query = select(requests.c.account_id, requests.c.id, *faults.values()).where(or_(*faults.values()))
    yield from _strays(connection, query, faults)


def _owners(connection: Connection) -> Iterator[Difference]:
    """Each row's account exists, and its key is the account's."""
    sent, of_key = caller_sums.c, keys.alias("of_key").c
    faults: dict[str, ColumnElement[bool]] = {
        "requests of an account that does not exist": accounts.c.id.is_(None),
        "requests with a key that is not the account's": func.coalesce(of_key.account_id, "") != sent.account_id,
    }
    query = (
        select(sent.account_id, sent.key_id, *(_sum_of(case((fault, sent.requests))) for fault in faults.values()))
        .select_from(caller_sums)
        .outerjoin(accounts, accounts.c.id == sent.account_id)
        .outerjoin(of_key.id.table, of_key.id == sent.key_id)
        .where(or_(*faults.values()))
        .group_by(sent.account_id, sent.key_id)
        .order_by(sent.account_id, sent.key_id)
    )
    yield from _strays(connection, query, faults)
    for table in (keys, topups, adjustments):
        orphans = (
            select(table.c.account_id, table.c.id)
            .outerjoin(accounts, accounts.c.id == table.c.account_id)
            .where(accounts.c.id.is_(None))
        )
        for account_id, row_id in _rows(connection, orphans):
            yield _stray(account_id, f"{table.name} of an account that does not exist", row_id)


def _sum_for_account(table: Table, *conditions: ColumnElement[bool]) -> ColumnElement[Any]:
    """Add up the credits that a table has for the account of the row: looked up by its index, so nothing is kept."""
    found: ScalarSelect[Any] = (
        select(_sum_of(table.c.credits)).where(table.c.account_id == accounts.c.id, *conditions).scalar_subquery()
    )
    return found


def _sum_of(column: ColumnElement[Any]) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column), 0)


def _rows(connection: Connection, query: Select[Any]) -> Iterator[Any]:
    yield from connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})


def _strays(connection: Connection, query: Select[Any], faults: Iterable[str]) -> Iterator[Difference]:
    """Turn rows of account, subject and how often each of the faults is there into differences."""
    for account_id, subject, *counts in _rows(connection, query):
        for fault, count in zip(faults, counts, strict=True):
            if count:
                yield _stray(account_id, fault, subject, int(count))


def _stray(account_id: str, figure: str, subject: str, count: int = 1) -> Difference:
    """Make the difference of rows that must not be there: the books have them, nothing bears them out."""
    return Difference(account_id=account_id, figure=figure, subject=subject, booked=count, computed=0)
