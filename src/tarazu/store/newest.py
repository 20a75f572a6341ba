"""A page of an account's rows, the newest first: found by the index of account and time, in a bounded search."""

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from sqlalchemy import Column, ColumnElement, Connection, Select, select, tuple_
from sqlalchemy.sql.base import ReadOnlyColumnCollection

LOOKED_AT_MAX = 10_000
"""Rows that are gone through for one page of those with some property that no index has."""


class Place(Struct, frozen=True):
    """Where a list goes on: after what is of this instant and has this id, or with "" before all of that instant."""

    at_ms: int
    id: str


class Placed(Protocol):
    """A row that has a place in a list."""

    @property
    def place(self) -> Place:
        """Where a list goes on after it."""


R = TypeVar("R", bound=Placed)
Narrowing = Callable[[ReadOnlyColumnCollection[str, Any]], list[ColumnElement[bool]]]


class NewestPage(Struct, Generic[R], frozen=True):
    """What was found; the next page begins after `end`, None when there is no next one.

    `looked_at` is how many rows were gone through where the page ends for their number, and not for its length: the
    next one may have more, or none.
    """

    rows: list[R]
    end: Place | None = None
    looked_at: int | None = None


class Newest(Struct, Generic[R], frozen=True, kw_only=True):
    """How a table is read that has accounts, and ids, and at which instants its rows are.

    `read` reads the few rows that a query of the `columns` with a limit selects.
    """

    at: Column[int]
    columns: Sequence[Column[Any]]
    read: Callable[[Connection, Select[Any]], list[R]]

    def page(
        self,
        connection: Connection,
        account_id: str,
        *,
        limit: int,
        before: Place | None,
        since_ms: int | None,
        until_ms: int | None,
        narrowing: Narrowing | None,
    ) -> NewestPage[R]:
        """Read an account's newest rows, at most `limit`, older than the place `before`.

        Where they are given: not older than `since_ms`, older than `until_ms`, and all of `narrowing`, which no index
        leads to.
        """
        columns, at = self.at.table.c, self.at
        conditions = [columns.account_id == account_id]
        if since_ms is not None:
            conditions.append(at >= since_ms)
        if until_ms is not None:
            conditions.append(at < until_ms)
        if before is not None:
            conditions.append(at <= before.at_ms)  # the index has the time, and not the id
            conditions.append(tuple_(at, columns.id) < (before.at_ms, before.id))
        of_account = select(*self.columns).where(*conditions).order_by(at.desc(), columns.id.desc())
        if narrowing is None:
            return _cut(self.read(connection, of_account.limit(limit + 1)), limit)
        looked_at = of_account.limit(LOOKED_AT_MAX).subquery("looked_at")
        newest_first = (looked_at.c[at.name].desc(), looked_at.c.id.desc())
        found = select(looked_at).where(*narrowing(looked_at.c)).order_by(*newest_first).limit(limit + 1)
        page = _cut(self.read(connection, found), limit)
        if page.end is not None:
            return page
        last = connection.execute(
            of_account.with_only_columns(at, columns.id).offset(LOOKED_AT_MAX - 1).limit(1)
        ).one_or_none()
        return page if last is None else NewestPage(page.rows, Place(*last), LOOKED_AT_MAX)


def _cut(rows: list[R], limit: int) -> NewestPage[R]:
    """Make a page of the first `limit` rows, of which one more was read, if there is one."""
    return NewestPage(rows[:limit], rows[limit - 1].place if len(rows) > limit else None)
