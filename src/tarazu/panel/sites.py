"""The two worlds of pages, which share their looks and nothing else."""

from urllib.parse import urlencode

from msgspec import Struct

from tarazu.domain.people import PersonKind
from tarazu.service.configuration.addresses import ADMIN_PATH, PANEL_PATH


class Site(Struct, frozen=True, kw_only=True):
    """One of them: the path under which all its pages are, and the cookie that says who is signed in there."""

    kind: PersonKind
    path: str
    cookie: str

    @property
    def device_cookie(self) -> str:
        """The cookie that says that a person has signed in there before."""
        return f"{self.cookie}_device"

    def url(self, path: str, /, **query: str | int) -> str:
        """Tell the address of one of its pages, with the parameters that are not empty; `/` is its first."""
        given = {name: value for name, value in query.items() if value != ""}
        return self.path + path + ("?" + urlencode(given) if given else "")


HOLDERS = Site(kind=PersonKind.HOLDER, path=PANEL_PATH, cookie="tarazu_panel")
OPERATORS = Site(kind=PersonKind.OPERATOR, path=ADMIN_PATH, cookie="tarazu_admin")
