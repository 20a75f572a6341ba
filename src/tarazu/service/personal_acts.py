"""What people change of themselves, in the trail."""

from typing import Any

from sqlalchemy import Connection

from tarazu.domain.people import Person, PersonKind
from tarazu.service.acting import record_act
from tarazu.service.pace import done_within_an_hour
from tarazu.store.trail import Via

OFTEN = frozenset({"sign_in", "end_sessions"})
"""What a person may do as often as they like, and a trail must not grow by without end."""
OFTEN_HOURLY_MAX = 60
"""So many of these acts of one holder are recorded in an hour. The log tells of all."""


def record_personal_act(connection: Connection, act: str, person: Person, now_ms: int, /, **detail: Any) -> None:
    """Put an act of a person on themselves, whose row is locked, into the trail. `detail` must hold no secret."""
    is_holder = person.kind is PersonKind.HOLDER
    if is_holder and act in OFTEN:
        names = [f"account.{each}" for each in OFTEN]
        recorded = done_within_an_hour(connection, person.id, names, limit=OFTEN_HOURLY_MAX, now_ms=now_ms)
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
