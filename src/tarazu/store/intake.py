"""The operator's intake switch in the books: one row."""

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from tarazu.domain.accounts import Intake
from tarazu.store.prepared import Prepared, Row
from tarazu.store.schema import intake

READ_INTAKE = Prepared(select(intake.c.stopped, intake.c.retry_after_s))
"""Finds the row that `intake_of` reads."""


def intake_of(rows: Sequence[Row]) -> Intake:
    """Tell how the switch stands."""
    ((stopped, retry_after_s),) = rows
    return Intake(bool(stopped), retry_after_s)


def read_intake(connection: Connection) -> Intake:
    """Read the switch."""
    return intake_of(READ_INTAKE.read(connection, {}))


def write_intake(connection: Connection, switch: Intake) -> None:
    """Set the switch; it holds from the next request on, in every process."""
    connection.execute(update(intake).values(stopped=int(switch.stopped), retry_after_s=switch.retry_after_s))
