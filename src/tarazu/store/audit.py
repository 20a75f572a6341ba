"""Recompute the books from their rows and compare: every credit must be where the figures say it is."""

from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Label, Select, and_, case, func, literal, or_, select, union_all

from tarazu.domain.credits import RequestState, Source
from tarazu.store.schema import accounts, adjustments, daily_usage, idempotency_keys, requests, topups

_KEPT = requests.c.state.in_([RequestState.HELD, RequestState.CHARGED])
_CHARGED = requests.c.state == RequestState.CHARGED
USAGE_KEY = ("account_id", "day", "key_id", "model_id")
USAGE_FIGURES = ("requests", "credits", "prompt_tokens", "completion_tokens")


class Difference(Struct, frozen=True, kw_only=True):
    """One figure in the books that its rows do not bear out. `subject` says which: an account, a day, a request."""

    account_id: str
    figure: str
    subject: str
    booked: int
    computed: int


class AuditReport(Struct, frozen=True, kw_only=True):
    """What was compared, and where it differs."""

    accounts: int
    requests: int
    differences: tuple[Difference, ...]


def audit(connection: Connection, *, overdue_before_ms: int) -> AuditReport:
    """Check every invariant on one state of the books; `overdue_before_ms`: no hold's deadline may be before it."""
    differences = [
        *_used(connection),
        *_balance(connection),
        *_daily_usage(connection),
        *_overdue(connection, overdue_before_ms),
        *_idempotency_keys(connection),
    ]
    return AuditReport(
        accounts=connection.execute(select(func.count()).select_from(accounts)).scalar_one(),
        requests=connection.execute(select(func.count()).select_from(requests)).scalar_one(),
        differences=tuple(differences),
    )


def _used(connection: Connection) -> Iterator[Difference]:
    """Used quota = credits of the period's requests from the plan, held or charged."""
    spent = (
        select(requests.c.account_id, requests.c.period, func.sum(requests.c.credits).label("credits"))
        .where(_KEPT, requests.c.source == Source.PLAN)
        .group_by(requests.c.account_id, requests.c.period)
        .subquery()
    )
    computed = func.coalesce(spent.c.credits, 0)
    query = (
        select(accounts.c.id, accounts.c.period, accounts.c.used, computed)
        .outerjoin(spent, and_(spent.c.account_id == accounts.c.id, spent.c.period == accounts.c.period))
        .where(accounts.c.used != computed)
        .order_by(accounts.c.id)
    )
    for account_id, period, booked, value in connection.execute(query):
        yield Difference(account_id=account_id, figure="used", subject=period, booked=booked, computed=int(value))


def _balance(connection: Connection) -> Iterator[Difference]:
    """Balance = top-ups + adjustments - credits of requests from the balance, held or charged; never below zero."""
    added = (
        select(topups.c.account_id, func.sum(topups.c.credits).label("credits"))
        .group_by(topups.c.account_id)
        .subquery()
    )
    spent = (
        select(requests.c.account_id, func.sum(requests.c.credits).label("credits"))
        .where(_KEPT, requests.c.source == Source.BALANCE)
        .group_by(requests.c.account_id)
        .subquery()
    )
    adjusted = (
        select(adjustments.c.account_id, func.sum(adjustments.c.credits).label("credits"))
        .group_by(adjustments.c.account_id)
        .subquery()
    )
    computed = (
        func.coalesce(added.c.credits, 0) + func.coalesce(adjusted.c.credits, 0) - func.coalesce(spent.c.credits, 0)
    )
    query = (
        select(accounts.c.id, accounts.c.balance, computed)
        .outerjoin(added, added.c.account_id == accounts.c.id)
        .outerjoin(adjusted, adjusted.c.account_id == accounts.c.id)
        .outerjoin(spent, spent.c.account_id == accounts.c.id)
        .where(or_(accounts.c.balance != computed, accounts.c.balance < 0))
        .order_by(accounts.c.id)
    )
    for account_id, booked, value in connection.execute(query):
        yield Difference(account_id=account_id, figure="balance", subject="", booked=booked, computed=int(value))


def _daily_usage(connection: Connection) -> Iterator[Difference]:
    """Daily usage = the charged requests of that day, by account, key and model."""
    sums: dict[str, Any] = {name: func.coalesce(func.sum(requests.c[name]), 0) for name in USAGE_FIGURES[1:]}
    sums["requests"] = func.count()
    booked = select(*_usage_key(daily_usage.c), *_figures(lambda name: daily_usage.c[name], lambda _: literal(0)))
    computed = (
        select(*_usage_key(requests.c), *_figures(lambda _: literal(0), lambda name: sums[name]))
        .where(_CHARGED)
        .group_by(*_usage_key(requests.c))
    )
    both = union_all(booked, computed).subquery()
    totals_of = _figures(
        lambda name: func.sum(both.c[f"booked_{name}"]), lambda name: func.sum(both.c[f"computed_{name}"])
    )
    pairs = zip(totals_of[: len(USAGE_FIGURES)], totals_of[len(USAGE_FIGURES) :], strict=True)
    query: Select[Any] = (
        select(*_usage_key(both.c), *totals_of)
        .group_by(*_usage_key(both.c))
        .having(or_(*(left.element != right.element for left, right in pairs)))
        .order_by(*_usage_key(both.c))
    )
    for account_id, day, key_id, model_id, *totals in connection.execute(query):
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


def _overdue(connection: Connection, before_ms: int) -> Iterator[Difference]:
    """No hold is older than its deadline plus the sweep interval."""
    query = (
        select(requests.c.account_id, requests.c.id, requests.c.deadline_ms)
        .where(requests.c.state == RequestState.HELD, requests.c.deadline_ms < before_ms)
        .order_by(requests.c.deadline_ms)
    )
    for account_id, request_id, deadline_ms in connection.execute(query):
        yield Difference(
            account_id=account_id,
            figure="overdue hold: deadline_ms",
            subject=request_id,
            booked=deadline_ms,
            computed=before_ms,
        )


def _idempotency_keys(connection: Connection) -> Iterator[Difference]:
    """A key with a reply belongs to a charged request, one without to a held one."""
    kept = idempotency_keys.c
    has_reply = kept.reply.is_not(None)
    belongs = case((has_reply, RequestState.CHARGED.value), else_=RequestState.HELD.value)
    query = (
        select(kept.account_id, kept.request_id, has_reply)
        .outerjoin(requests, and_(requests.c.id == kept.request_id, requests.c.period == kept.period))
        .where(or_(requests.c.state.is_(None), requests.c.state != belongs))
        .order_by(kept.request_id)
    )
    for account_id, request_id, is_answered in connection.execute(query):
        of_state = "with a reply: charged" if is_answered else "without a reply: held"
        yield Difference(
            account_id=account_id,
            figure=f"idempotency key {of_state} requests",
            subject=request_id,
            booked=1,
            computed=0,
        )


def _figures(
    booked: Callable[[str], ColumnElement[Any]], computed: Callable[[str], ColumnElement[Any]]
) -> list[Label[Any]]:
    return [
        *(booked(name).label(f"booked_{name}") for name in USAGE_FIGURES),
        *(computed(name).label(f"computed_{name}") for name in USAGE_FIGURES),
    ]


def _usage_key(columns: Any) -> list[ColumnElement[Any]]:
    return [columns[name] for name in USAGE_KEY]
