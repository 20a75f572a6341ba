"""The trail: every act on the books but requests, with who, by what way, and when."""

from collections.abc import Collection
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict
from sqlalchemy import Connection, insert, select

from tarazu.store.schema import acts


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


def insert_act(connection: Connection, act: Act) -> None:
    """Put an act into the trail."""
    detail = msgspec.json.encode(act.detail).decode()
    connection.execute(insert(acts).values({**asdict(act), "via": act.via.value, "detail": detail}))


def list_acts(
    connection: Connection, *, limit: int, account_id: str | None = None, before: str | None = None
) -> list[Act]:
    """Read the newest acts, at most `limit`; of one account if given, and older than the act `before` if given."""
    query = select(*(acts.c[name] for name in Act.__struct_fields__)).order_by(acts.c.id.desc()).limit(limit)
    if account_id is not None:
        query = query.where(acts.c.account_id == account_id)
    if before is not None:
        query = query.where(acts.c.id < before)
    return [_act_of(row) for row in connection.execute(query).mappings()]


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


def _act_of(row: Any) -> Act:
    return Act(**{**row, "via": Via(row["via"]), "detail": msgspec.json.decode(row["detail"])})
