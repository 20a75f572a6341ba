"""One request of a browser, as the pages are given it."""

from hashlib import sha256
from urllib.parse import urlencode

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tarazu.domain.browsers import browser_words
from tarazu.domain.keys import base62
from tarazu.domain.people import Person
from tarazu.panel.formats import Formats
from tarazu.panel.forms import Form
from tarazu.panel.notices import NOTICE
from tarazu.panel.refusals import refusal_status
from tarazu.panel.rendering import render
from tarazu.panel.sites import Site
from tarazu.service.forwarding import Origin
from tarazu.service.proving import Browser, SignedIn
from tarazu.service.sign_in_errors import SignInError

CSRF_DIGITS = 43
ADDRESS_CHARACTERS_MAX = 2_000
"""Of an address that a browser has named."""


class Visit(Struct, frozen=True, kw_only=True):
    """Who asks for which page, in which language, from where. `secret` is what the cookie of a live session holds."""

    site: Site
    request: Request
    formats: Formats
    origin: Origin
    signed_in: SignedIn | None = None
    secret: str = ""
    device: str = ""
    """What the cookie of a known browser holds."""
    form: Form = Form()

    @property
    def person(self) -> Person | None:
        """The person who is signed in, if there is one."""
        return None if self.signed_in is None else self.signed_in.person

    @property
    def someone_signed_in(self) -> SignedIn:
        """The person and the session, on a page that is only for those who are signed in."""
        assert self.signed_in is not None, "the frame lets nobody else come here"
        return self.signed_in

    @property
    def browser(self) -> Browser:
        """The browser, as it is counted and remembered."""
        words = browser_words(self.request.headers.get("user-agent", ""))
        return Browser(address=self.origin.address, words=words, device=self.device)

    @property
    def someone(self) -> Person:
        """Who is signed in, on a page that is only for those who are."""
        return self.someone_signed_in.person

    @property
    def csrf(self) -> str:
        """What every form of this session carries, and no other site can know; empty without a session."""
        return csrf_of(self.secret) if self.secret else ""

    @property
    def path(self) -> str:
        """The page's path inside its site."""
        path: str = self.request.scope["path"]
        return path.removeprefix(self.site.path)

    @property
    def address(self) -> str:
        """Where to come back to after a form that belongs to no page: this page, if it can be opened by its address."""
        query = self.request.url.query
        return self.site.url(self.path) + (f"?{query}" if query else "")

    def query(self, name: str) -> str:
        """Tell a parameter of the address; empty where there is none."""
        return self.request.query_params.get(name, "")

    def page(self, template: str, status: int = 200, /, **values: object) -> Response:
        """Answer with a page."""
        return Response(render(template, self, values), status_code=status, media_type="text/html")

    def redirect(self, path: str, /, **query: str) -> Response:
        """Lead to another page of the site, to be read there."""
        address = self.site.url(path) + ("?" + urlencode(query) if query else "")
        return RedirectResponse(address, status_code=303)

    def done(self, path: str, notice: str) -> Response:
        """Lead to another page, which says what has been done."""
        return self.redirect(path, **{NOTICE: notice})

    def back(self, address: str) -> Response:
        """Lead to an address that the browser has named, if it is one of this site's pages; to the first, else."""
        return RedirectResponse(own_address(self.site, address), status_code=303)


def refused(visit: Visit, error: SignInError, template: str, /, **values: object) -> Response:
    """Show a page again with what is wrong, and tell programs when to come back."""
    response = visit.page(template, refusal_status(error), **values)
    if error.retry_after_s is not None:
        response.headers["retry-after"] = str(error.retry_after_s)
    return response


def csrf_of(secret: str) -> str:
    """Derive it from the session's secret, which it does not tell."""
    return base62(int.from_bytes(sha256(f"csrf:{secret}".encode()).digest(), "big"), CSRF_DIGITS)


def own_address(site: Site, address: str) -> str:
    """Let an address of the site pass, path and query alone; any other becomes that of its first page."""
    path, mark, query = address.partition("#")[0].partition("?")
    is_own = path.startswith(site.url("/")) and "//" not in path and ".." not in path
    is_plain = len(address) <= ADDRESS_CHARACTERS_MAX and "\\" not in address and address.isprintable()
    return path + (mark and query and f"?{query}") if is_own and is_plain else site.url("/")
