"""The days that a page is asked for in its address."""

from tarazu.panel.messages import told
from tarazu.panel.ranges import USUAL, Shown, read_days
from tarazu.panel.visits import Visit
from tarazu.service.provisioning_errors import ProvisioningError


def days_of(visit: Visit, today: str) -> tuple[Shown, str | None]:
    """Tell the days that are asked for; where they cannot be shown, the usual ones, and what is wrong."""
    try:
        return read_days(visit.query("range"), visit.query("from"), visit.query("until"), today), None
    except ProvisioningError as error:
        return read_days(USUAL, "", "", today), told(error, visit.formats)


def days_query(visit: Visit) -> dict[str, str]:
    """Tell how another address asks for the same days."""
    return {name: visit.query(name) for name in ("range", "from", "until")}
