"""The trail: every act on the books but requests, with who, by what way, and when."""

from collections.abc import Collection, Iterator
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import ColumnElement, Connection, insert, select

from tarazu.store.schema import acts
from tarazu.store.searching import any_contains

LOOKED_AT_MAX = 10_000
"""Acts that are gone through for one page of those of some kinds or some person, which no index has."""


class Via(StrEnum):
    """The way in which an act came."""

    COMMAND = "command"
    OPERATOR = "operator"
    """An operator's page."""
    TOKEN = "token"  # noqa: S105 - no secret
    """The admin API."""
    HOLDER = "holder"
    """The panel: the account's own holder."""


class Act(Struct, frozen=True, kw_only=True):
    """One act, as in `key.revoke`, by whom and on what.

    `account_id` is whose account it was about, `subject` the id of what else; `detail` has a few facts, no secret.
    """

    id: str
    act: str
    made_by: str
    via: Via
    account_id: str | None
    subject: str | None
    detail: dict[str, Any]
    made_at_ms: int


class ActFilter(Struct, frozen=True, kw_only=True):
    """Which acts are looked for: those that are all of what is given. `made_by` is a part of who did it.

    `first_id` sorts before those from some instant on, `end_id` after those that are early enough.
    """

    names: tuple[str, ...] = ()
    made_by: str = ""
    account_id: str | None = None
    first_id: str | None = None
    end_id: str | None = None


class ActPage(Struct, frozen=True, kw_only=True):
    """What was found, the newest first; `before` is the act that the next page begins after, None without a next one.

    `looked_at` is how many acts were gone through where the page ends for their number, and not for its length.
    """

    acts: list[Act]
    before: str | None
    looked_at: int | None


def insert_act(connection: Connection, act: Act) -> None:
    """Put an act into the trail."""
    detail = msgspec.json.encode(act.detail).decode()
    connection.execute(insert(acts).values({**asdict(act), "via": act.via.value, "detail": detail}))


def newest_acts(connection: Connection, sought: ActFilter, *, limit: int, before: str | None = None) -> ActPage:
    """Read the newest acts of those that are sought, at most `limit`, and older than the act `before`, if given.

    Where no index leads to them, at most LOOKED_AT_MAX are gone through for a page.
    """
    every = select(*_COLUMNS).where(*_indexed(sought, before)).order_by(acts.c.id.desc())
    query, looked_at = every, None
    if sought.names or sought.made_by:
        looked_at = every.limit(LOOKED_AT_MAX).subquery("looked_at")
        query = select(looked_at).order_by(looked_at.c.id.desc())
        if sought.names:
            query = query.where(looked_at.c.act.in_(sought.names))
        if sought.made_by:
            query = query.where(any_contains(connection, sought.made_by, looked_at.c.made_by))
    found = [_act_of(row) for row in connection.execute(query.limit(limit + 1)).mappings()]
    if len(found) > limit:
        return ActPage(acts=found[:limit], before=found[limit - 1].id, looked_at=None)
    end = None
    if looked_at is not None:
        last = every.with_only_columns(acts.c.id).offset(LOOKED_AT_MAX - 1).limit(1)
        end = connection.execute(last).scalar_one_or_none()
    return ActPage(acts=found, before=end, looked_at=None if end is None else LOOKED_AT_MAX)


def has_act(connection: Connection, act_id: str) -> bool:
    """Tell whether the trail has an act with this id."""
    return connection.execute(select(acts.c.id).where(acts.c.id == act_id)).first() is not None


def newest_of_kind(connection: Connection, name: str, *, among: int) -> Act | None:
    """Read the newest act of a kind, if it is among the newest so many acts."""
    newest = select(acts).order_by(acts.c.id.desc()).limit(among).subquery("newest")
    query = select(*(newest.c[name] for name in Act.__struct_fields__)).where(newest.c.act == name)
    row = connection.execute(query.order_by(newest.c.id.desc()).limit(1)).mappings().first()
    return None if row is None else _act_of(row)


def newest_by_holder(
    connection: Connection, account_id: str, names: Collection[str], *, first_id: str, limit: int
) -> list[int]:
    """Tell when an account's holder has done these acts, the newest first: at most `limit`, from the id on."""
    query = (
        select(acts.c.made_at_ms)
        .where(acts.c.account_id == account_id, acts.c.id >= first_id)
        .where(acts.c.via == Via.HOLDER.value, acts.c.act.in_(names))
        .order_by(acts.c.id.desc())
        .limit(limit)
    )
    return list(connection.execute(query).scalars())


def _indexed(sought: ActFilter, before: str | None) -> Iterator[ColumnElement[bool]]:
    if sought.account_id is not None:
        yield acts.c.account_id == sought.account_id
    if sought.first_id is not None:
        yield acts.c.id >= sought.first_id
    if sought.end_id is not None:
        yield acts.c.id < sought.end_id
    if before is not None:
        yield acts.c.id < before


def _act_of(row: Any) -> Act:
    return Act(**{**row, "via": Via(row["via"]), "detail": msgspec.json.decode(row["detail"])})


_COLUMNS = [acts.c[name] for name in Act.__struct_fields__]
