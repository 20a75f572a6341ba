"""The operator's intake switch in the books: one row."""

from sqlalchemy import Connection, select, update

from tarazu.domain.accounts import Intake
from tarazu.store.prepared import Prepared
from tarazu.store.schema import intake

_READ = Prepared(select(intake.c.stopped, intake.c.retry_after_s))


def read_intake(connection: Connection) -> Intake:
    """Read the switch."""
    ((stopped, retry_after_s),) = _READ.read(connection, {})
    return Intake(bool(stopped), retry_after_s)


def write_intake(connection: Connection, switch: Intake) -> None:
    """Set the switch; it holds from the next request on, in every process."""
    connection.execute(update(intake).values(stopped=int(switch.stopped), retry_after_s=switch.retry_after_s))
