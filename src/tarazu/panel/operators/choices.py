"""What operators choose from in forms about accounts: plans, and statuses by the words that people use for them."""

from http import HTTPStatus

from starlette.exceptions import HTTPException

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.catalogue import Catalogue
from tarazu.panel.formats import Formats
from tarazu.panel.messages import later, translations

STATUSES = {
    AccountStatus.ACTIVE: later("active"),
    AccountStatus.UNVERIFIED: later("unverified"),
    AccountStatus.INACTIVE: later("inactive"),
    AccountStatus.BLOCKED: later("blocked"),
}

Choice = tuple[str, str]
"""The value that a form sends, and what people read."""


def plan_choices(catalogue: Catalogue, formats: Formats, present: str | None = None) -> list[Choice]:
    """List the plans on sale after the choice of none; `present` is that of an account, which may be sold no more."""
    names = list(catalogue.plans)
    if present is not None and present not in catalogue.plans:
        names.append(present)
    return [("", translations(formats.language).gettext("no plan")), *((name, name) for name in names)]


def status_choices(formats: Formats) -> list[Choice]:
    """List the statuses of accounts."""
    gettext = translations(formats.language).gettext
    return [(status.value, gettext(word)) for status, word in STATUSES.items()]


def read_status(text: str) -> AccountStatus:
    """Read one of them.

    Raises:
        HTTPException: the form offers no such status.
    """
    try:
        return AccountStatus(text)
    except ValueError:
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
