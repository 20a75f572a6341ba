"""Somebody with a browser that runs no scripts: keeps cookies, fills in the forms of the page, and reads what comes."""

import asyncio
from html.parser import HTMLParser
from http import HTTPStatus
from http.cookies import SimpleCookie
from itertools import count
from urllib.parse import urlencode

from msgspec import Struct

from tarazu.panel.sites import HOLDERS, OPERATORS, Site
from tarazu.service.back_office import BackOffice
from tarazu.service.passwords import Passwords
from tarazu.service.people_acts import Invitation
from tarazu.service.proving import Browser, Prover
from tarazu.service.signing_in import Entered, SigningIn
from tests.support.people import CHEAP
from tests.support.service import Answer, RunningService

FORM = "application/x-www-form-urlencoded"
PASSWORD = "a sentence to remember"
VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "path", "rect", "line"})
KEPT = "kept="
SHOWN_ONCE = ("/shown", "/invitation", "/second-factor/codes", "/sign-in/code")
_numbers = count(1)


class Html(HTMLParser):
    """A page as a browser reads it; what is opened must be closed, in order, and no id stand twice."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.pieces: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == [], self.open
        ids = self.values("id")
        assert len(set(ids)) == len(ids), ids

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element that has no end of its own."""
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        """Check that the element that ends is the one that is open."""
        if tag not in VOID:
            assert self.open.pop() == tag, f"{self.getpos()}: {tag}"

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.pieces.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.pieces).split())

    def values(self, name: str, tag: str | None = None) -> list[str]:
        """List the values of an attribute, of one kind of elements or of all, in the order of the page."""
        return [attributes[name] for found, attributes in self.elements if name in attributes and tag in (None, found)]

    def field(self, name: str) -> str:
        """Tell what a field has in it."""
        return next(a["value"] for _, a in self.elements if a.get("name") == name and "value" in a)


class Page(Struct, frozen=True):
    """What came back."""

    answer: Answer
    html: Html | None

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.answer.status

    @property
    def text(self) -> str:
        """All that can be read."""
        assert self.html is not None, self.answer
        return self.html.text

    @property
    def leads_to(self) -> str:
        """Where a redirect leads."""
        assert self.status == 303, self.answer
        return self.answer.headers["location"]

    def field(self, name: str) -> str:
        """Tell what a field of the page has in it."""
        assert self.html is not None, self.answer
        return self.html.field(name)


class Visitor:
    """One browser at one service."""

    def __init__(self, service: RunningService, *, language: str = "en") -> None:
        self.service = service
        self.cookies: dict[str, str] = {}
        self.kept: dict[str, str] = {}
        """What goes to one page alone, by its path."""
        self.language = language
        self.csrf = ""

    def get(self, path: str, **headers: str) -> Page:
        """Open an address."""
        return self._ask("GET", path, None, headers)

    def send(self, path: str, *, csrf: str | None = None, **fields: str | list[str]) -> Page:
        """Send a form as the page that was opened last would."""
        sent = {"csrf": self.csrf if csrf is None else csrf, **fields}
        return self._answer(path, self.send_body(path, urlencode(sent, doseq=True)))

    def send_body(self, path: str, body: str, **headers: str) -> Page:
        """Send a form, whatever is in it; headers that are given replace a browser's."""
        origin = f"http://127.0.0.1:{self.service.port}"
        return self._ask("POST", path, body, {"Content-Type": FORM, "Origin": origin, **headers})

    def _answer(self, path: str, page: Page) -> Page:
        """Go on to the form again where it was refused, or to what is shown once; a browser goes wherever it is led."""
        if page.status != HTTPStatus.SEE_OTHER or KEPT not in page.leads_to:
            return page
        onward = page.leads_to.partition("?")[0]
        return self.follow(page) if onward == path.partition("?")[0] or onward.endswith(SHOWN_ONCE) else page

    def follow(self, page: Page) -> Page:
        """Go where a redirect leads."""
        return self.get(page.leads_to)

    def _ask(self, method: str, path: str, body: str | None, headers: dict[str, str]) -> Page:
        kept = [cookie for of, cookie in self.kept.items() if _is_under(path.partition("?")[0], of)]
        cookies = "; ".join((*kept, *(f"{name}={value}" for name, value in self.cookies.items())))
        sent = {"Accept-Language": self.language, **({"Cookie": cookies} if cookies else {}), **headers}
        answer = self.service.request(method, path, body, {name: value for name, value in sent.items() if value})
        for cookie in answer.cookies:
            for name, morsel in SimpleCookie(cookie).items():
                if name.endswith("_kept"):
                    self.kept[morsel["path"]] = f"{name}={morsel.value}"
                elif morsel.value:
                    self.cookies[name] = morsel.value
                else:
                    del self.cookies[name]
        is_html = answer.headers.get("content-type", "").startswith("text/html")
        html = Html(answer.body.decode()) if is_html else None
        if html is not None and "csrf" in html.values("name"):
            self.csrf = html.field("csrf")
        return Page(answer, html)


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


class Holder(Struct, frozen=True):
    """An account whose holder is signed in."""

    account_id: str
    email: str
    visitor: Visitor


def holder(service: RunningService, plan: str | None = "large", *, balance: int = 0, language: str = "en") -> Holder:
    """Open an account whose holder has followed the invitation, and stay signed in."""
    email = f"holder{next(_numbers)}@example.com"
    account = service.provisioning.create_account(name="Sara", email=email, plan=plan)
    if balance:
        service.provisioning.add_credit(account.id, balance, reference=f"start of {account.id}")
    visitor = _let_in(service, HOLDERS, service.provisioning.invite_holder(account.id), language)
    return Holder(account.id, email, visitor)


class Operator(Struct, frozen=True):
    """An operator who is signed in."""

    operator_id: str
    email: str
    visitor: Visitor


def operator(service: RunningService, *, language: str = "en") -> Operator:
    """Make an operator who has followed the invitation, and stay signed in."""
    email = f"operator{next(_numbers)}@example.com"
    made, invitation = service.provisioning.create_operator(email=email, name="Omid")
    return Operator(made.id, email, _let_in(service, OPERATORS, invitation, language))


def _let_in(service: RunningService, site: Site, invitation: Invitation, language: str) -> Visitor:
    """Follow an invitation straight in the books, with a hash that takes no time, and open the first page."""
    visitor = Visitor(service, language=language)
    entered = asyncio.run(_accept(service, site, invitation.token))
    visitor.cookies |= {site.cookie: entered.secret, site.device_cookie: entered.device}
    page = visitor.get(f"{site.path}/")
    if page.status == HTTPStatus.SEE_OTHER:  # what is required comes first
        visitor.follow(page)
    return visitor


async def _accept(service: RunningService, site: Site, token: str) -> Entered:
    office, passwords = BackOffice(service.engine, service.configuration.catalogue, service.clock), Passwords(CHEAP)
    try:
        signing_in = SigningIn(office, Prover(office, passwords, service.clock), service.clock)
        entry = await signing_in.accept(site.kind, token, PASSWORD, browser=Browser("127.0.0.1"))
    finally:
        passwords.close()
        office.close()
    assert isinstance(entry, Entered)
    return entry
