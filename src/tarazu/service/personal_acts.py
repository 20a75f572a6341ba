"""What people change of themselves, in the trail."""

from typing import Any

from sqlalchemy import Connection

from tarazu.domain.people import Person, PersonKind
from tarazu.service.acting import record_act
from tarazu.service.identifiers import first_act_id
from tarazu.service.pace import HOUR_MS
from tarazu.store.trail import Via, newest_by_holder

OFTEN = frozenset({"sign_in", "end_sessions"})
"""What a person may do as often as they like, and a trail must not grow by without end."""
OFTEN_HOURLY_MAX = 60
"""So many of these acts of one holder are recorded in an hour. The log tells of all."""


def record_personal_act(connection: Connection, act: str, person: Person, now_ms: int, /, **detail: Any) -> None:
    """Put an act of a person on themselves, whose row is locked, into the trail. `detail` must hold no secret."""
    is_holder = person.kind is PersonKind.HOLDER
    if is_holder and act in OFTEN:
        names, first_id = [f"account.{each}" for each in OFTEN], first_act_id(now_ms - HOUR_MS + 1)
        recorded = newest_by_holder(connection, person.id, names, first_id=first_id, limit=OFTEN_HOURLY_MAX)
        if len(recorded) == OFTEN_HOURLY_MAX:
            return
    record_act(
        connection,
        f"{'account' if is_holder else 'operator'}.{act}",
        person.id if is_holder else None,
        None if is_holder else person.id,
        by=person.email,
        via=Via.HOLDER if is_holder else Via.OPERATOR,
        now_ms=now_ms,
        detail={name: value for name, value in detail.items() if value is not None},
    )
