"""What people change of themselves, in the trail."""

from typing import Any

from sqlalchemy import Connection

from tarazu.domain.people import Person, PersonKind
from tarazu.service.acting import record_act
from tarazu.store.trail import Via


def record_personal_act(connection: Connection, act: str, person: Person, now_ms: int, /, **detail: Any) -> None:
    """Put an act of a person on themselves into the trail. `detail` must hold no secret."""
    is_holder = person.kind is PersonKind.HOLDER
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
