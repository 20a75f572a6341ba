"""What all acts on the books have in common: whose they are, the transaction each is, and the trail that it leaves."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, Engine

from tarazu.domain.accounts import Account
from tarazu.domain.calendar import Clock, period_of
from tarazu.domain.catalogue import Catalogue
from tarazu.service.checks import NAME_LENGTH_MAX, checked_text
from tarazu.service.identifiers import new_act_id
from tarazu.store.engine import transaction
from tarazu.store.pages import on_page
from tarazu.store.trail import Act, Via, insert_act


class Acting:
    """Acts on one set of books of whoever `by` names. Each is put into the trail, with the way by which it came."""

    def __init__(self, engine: Engine, catalogue: Catalogue, clock: Clock, *, by: str, via: Via = Via.COMMAND) -> None:
        self._engine = engine
        self._catalogue = catalogue
        self._clock = clock
        self._by = by  # checked where it is recorded: whoever only looks needs no name
        self._via = via

    def _transaction(self) -> AbstractContextManager[Connection]:
        return transaction(self._engine)

    def _reading(self) -> AbstractContextManager[Connection]:
        return transaction(self._engine, read_only=True)

    def _record(
        self, connection: Connection, act: str, account_id: str | None, subject: str | None = None, /, **detail: Any
    ) -> None:
        record_act(
            connection,
            act,
            account_id,
            subject,
            by=self._made_by(),
            via=self._via,
            now_ms=self._clock(),
            detail=detail,
        )

    def _on_this_page(self, connection: Connection, found: Sequence[Account]) -> list[Account]:
        return on_page(connection, found, period_of(self._clock(), self._catalogue.zone))

    def _made_by(self) -> str:
        return checked_text("name of who does it", self._by, NAME_LENGTH_MAX)


def record_act(
    connection: Connection,
    act: str,
    account_id: str | None,
    subject: str | None,
    /,
    *,
    by: str,
    via: Via,
    now_ms: int,
    detail: dict[str, Any],
) -> None:
    """Put an act into the trail. `detail` must hold no secret."""
    insert_act(
        connection,
        Act(
            id=new_act_id(now_ms),
            act=act,
            made_by=by,
            via=via,
            account_id=account_id,
            subject=subject,
            detail=detail,
            made_at_ms=now_ms,
        ),
    )
