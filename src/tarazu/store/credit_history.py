"""What has changed a balance beside requests: top-ups and adjustments, one under the other."""

from enum import StrEnum

from msgspec import Struct
from sqlalchemy import Connection, literal, select, tuple_, union_all

from tarazu.store.schema import adjustments, topups


class ChangeKind(StrEnum):
    """What a change of a balance is."""

    TOPUP = "top-up"
    ADJUSTMENT = "adjustment"


class CreditChange(Struct, frozen=True, kw_only=True):
    """One change: `why` is a top-up's note or an adjustment's reason. `made_by` is None in older top-ups alone."""

    id: str
    kind: ChangeKind
    credits: int
    reference: str | None
    why: str | None
    made_by: str | None
    created_at_ms: int


_TOPUPS = select(
    topups.c.account_id,
    topups.c.id,
    literal(ChangeKind.TOPUP.value).label("kind"),
    topups.c.credits,
    topups.c.reference,
    topups.c.note.label("why"),
    topups.c.made_by,
    topups.c.created_at_ms,
)
_ADJUSTMENTS = select(
    adjustments.c.account_id,
    adjustments.c.id,
    literal(ChangeKind.ADJUSTMENT.value).label("kind"),
    adjustments.c.credits,
    adjustments.c.reference,
    adjustments.c.reason.label("why"),
    adjustments.c.made_by,
    adjustments.c.created_at_ms,
)
_CHANGES = union_all(_TOPUPS, _ADJUSTMENTS).subquery("changes")


def credit_changes(
    connection: Connection,
    account_id: str,
    *,
    limit: int,
    before: str | None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> list[CreditChange]:
    """Read an account's changes, the newest first, at most `limit`; those before the change with the id `before`.

    Where they are given: not older than `since_ms`, older than `until_ms`.

    Raises:
        LookupError: the account has no change with that id.
    """
    columns = [_CHANGES.c[name] for name in CreditChange.__struct_fields__]
    query = select(*columns).where(_CHANGES.c.account_id == account_id)
    if since_ms is not None:
        query = query.where(_CHANGES.c.created_at_ms >= since_ms)
    if until_ms is not None:
        query = query.where(_CHANGES.c.created_at_ms < until_ms)
    if before is not None:
        then = connection.execute(
            select(_CHANGES.c.created_at_ms).where(_CHANGES.c.account_id == account_id, _CHANGES.c.id == before)
        ).scalar_one_or_none()
        if then is None:
            raise LookupError(before)
        query = query.where(tuple_(_CHANGES.c.created_at_ms, _CHANGES.c.id) < (then, before))
    query = query.order_by(_CHANGES.c.created_at_ms.desc(), _CHANGES.c.id.desc()).limit(limit)
    return [CreditChange(**{**row, "kind": ChangeKind(row["kind"])}) for row in connection.execute(query).mappings()]
