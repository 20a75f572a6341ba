"""Look into the trail: a page of its acts, of all kinds or of those that are looked for."""

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.service.finding import existing_account
from tarazu.service.identifiers import first_act_id
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.trail import Act, ActFilter, has_act, newest_acts


class Trail(Struct, frozen=True):
    """Acts, newest first; `before` is the one that the next page begins after, None where there are no older ones.

    `looked_at` is how many were gone through where the page ends for their number, and not for its length.
    """

    acts: tuple[Act, ...] = ()
    before: str | None = None
    looked_at: int | None = None

    @property
    def more(self) -> bool:
        """Tell whether there are older ones, or may be."""
        return self.before is not None


class TrailFilter(Struct, frozen=True, kw_only=True):
    """Which acts are looked for: on this account, of these kinds, by whom (a part of it), from and until an instant."""

    account_id: str | None = None
    names: tuple[str, ...] = ()
    made_by: str = ""
    since_ms: int | None = None
    until_ms: int | None = None
    """The first instant that is not looked at any more."""


def trail_page(connection: Connection, sought: TrailFilter, *, limit: int, before: str | None) -> Trail:
    """List the newest acts of those that are sought, at most `limit`, and before the act `before`, if given.

    Raises:
        ProvisioningError: there is no such account or act.
    """
    if sought.account_id is not None:
        existing_account(connection, sought.account_id)
    if before is not None and not has_act(connection, before):
        raise NotThereError("There is no act {act!r}.", hint="List them with: tarazu admin trail", act=before)
    filter_ = ActFilter(
        names=sought.names,
        made_by=sought.made_by,
        account_id=sought.account_id,
        first_id=None if sought.since_ms is None else first_act_id(sought.since_ms),
        end_id=None if sought.until_ms is None else first_act_id(sought.until_ms),
    )
    found = newest_acts(connection, filter_, limit=limit, before=before)
    return Trail(tuple(found.acts), found.before, found.looked_at)
