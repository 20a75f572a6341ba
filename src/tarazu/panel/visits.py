"""One request of a browser, as the pages are given it."""

from collections.abc import Awaitable, Callable
from hashlib import sha256
from http import HTTPStatus
from secrets import token_urlsafe
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tarazu.domain.browsers import browser_words
from tarazu.domain.catalogue import Shop
from tarazu.domain.credits import Means
from tarazu.domain.keys import base62
from tarazu.domain.numbers import read_number
from tarazu.domain.people import Person
from tarazu.panel.cookies import cookie_of
from tarazu.panel.formats import Formats
from tarazu.panel.forms import Form
from tarazu.panel.kept import KEPT, KEPT_S, Kept, Kind, seal, unseal
from tarazu.panel.notices import NOTICE
from tarazu.panel.rendering import render
from tarazu.panel.sites import Site
from tarazu.service.forwarding import Origin
from tarazu.service.proving import Browser, SignedIn

CSRF_DIGITS = 43
ID_BYTES = 6
KEPT_LOOKS_MAX = 4
"""Of what a browser keeps for a page and for those above it, the page's own comes first (RFC 6265, 5.4)."""
FIELDS_OF = {"limit_per_minute": ("limit",), "expires_in_s": ("days",), "reason": ("why",), "note": ("why",)}
"""Fields that forms call otherwise than programs do."""
ADDRESS_CHARACTERS_MAX = 2_000
"""Of an address that a browser has named."""


class Visit(Struct, frozen=True, kw_only=True):
    """Who asks for which page, in which language, from where."""

    site: Site
    request: Request
    formats: Formats
    shop: Shop
    now_ms: int
    means: Means = Means.ENOUGH
    """Whether the account of the holder who is signed in can pay."""
    has_plan: bool = False
    renewal_day: str = ""
    """The first day of the next period, on which quotas are new."""
    origin: Origin
    signed_in: SignedIn | None = None
    secret: str = ""
    """What the cookie of a session holds, whether it is live or has ended."""
    device: str = ""
    """What the cookie of a known browser holds."""
    form: Form = Form()
    """The form that was sent, or that is kept for this page."""
    kept: Kept = Kept()

    @property
    def refusal(self) -> str | None:
        """Say why the form that is kept for this page was refused, if it was."""
        return None if self.kept.refused is None else self.kept.refused.told(self.formats)

    @property
    def wrong_fields(self) -> tuple[str, ...]:
        """Name the fields that the form was refused for, if it was."""
        refused = self.kept.refused
        return () if refused is None else FIELDS_OF.get(refused.member, (refused.member,))

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
        return csrf_of(self.secret) if self.signed_in is not None else ""

    @property
    def had_session(self) -> bool:
        """Tell whether the browser comes with a session that has ended, or with a form of one."""
        return self.signed_in is None and bool(self.secret or self.form.text("csrf"))

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

    def part(self, name: str) -> str:
        """Tell a part of the path, by its name in the route."""
        part: str = self.request.path_params[name]
        return part

    def query(self, name: str) -> str:
        """Tell a parameter of the address; empty where there is none."""
        return self.request.query_params.get(name, "")

    def number(self, name: str) -> int | None:
        """Tell the whole number that a parameter of the address has, if it has one."""
        return read_number(self.query(name))

    def written(self, name: str, otherwise: str = "", *, path: str = "") -> str:
        """Tell what was written into a field of a form that is offered again: of the one that goes to `path`, if given.

        Where the form was not there, `otherwise`.
        """
        texts = self.written_all(name) if self.path.endswith(path) else ()
        return texts[0] if texts else otherwise

    def written_all(self, name: str) -> tuple[str, ...]:
        """List what was written into the fields of this name."""
        return self.form.texts(name) if self.kept.kind in {Kind.REFUSED, Kind.UNSENT} else ()

    def page(self, template: str, status: int = 200, /, **values: object) -> Response:
        """Answer with a page; where it says why a form was refused, with the status of that."""
        refused = self.kept.refused
        if refused is not None and status == HTTPStatus.OK:
            status = refused.status
        response = Response(render(template, self, values), status_code=status, media_type="text/html")
        if refused is not None and refused.retry_after_s is not None:
            response.headers["retry-after"] = str(refused.retry_after_s)
        return response

    def redirect(self, path: str, /, **query: str) -> Response:
        """Lead to another page of the site, to be read there."""
        address = self.site.url(path) + ("?" + urlencode(query, safe="/") if query else "")
        return RedirectResponse(address, status_code=303)

    def done(self, path: str, notice: str, /, **figures: int) -> Response:
        """Lead to another page, which says what has been done, with its figures."""
        fields = ((NOTICE, notice), *((name, str(figure)) for name, figure in figures.items()))
        return self._lead(path, Kept(kind=Kind.TOLD if figures else Kind.DONE, fields=fields))

    def show_once(self, path: str, /, **values: str) -> Response:
        """Lead to a page that shows something until it is left."""
        return self._lead(path, Kept(kind=Kind.SHOWN, fields=tuple(values.items())))

    def shown(self, name: str) -> str:
        """Tell what this page is to show; empty where it was left, or never had anything to show in this session."""
        return self.form.text(name) if self.kept.kind is Kind.SHOWN else ""

    def lead(self, path: str, kept: Kept) -> Response | None:
        """Lead to a page for which something is kept; None where it is too large for that."""
        named = self.named(kept)
        response = self.redirect(path, **{KEPT: named.id})
        return response if self.keep(response, path, named) else None

    def _lead(self, path: str, kept: Kept) -> Response:
        response = self.lead(path, kept)
        assert response is not None, "a notice and a secret are small"
        return response

    async def lead_or_show(self, path: str, kept: Kept, show: Callable[["Visit"], Awaitable[Response]], /) -> Response:
        """Lead to a page for which something is kept; where it is too large, show the page as the answer."""
        return self.lead(path, kept) or await show(replace(self, kept=kept, form=Form(kept.fields)))

    def named(self, kept: Kept) -> Kept:
        """Give it the name by which an address asks for it."""
        return replace(kept, id=token_urlsafe(ID_BYTES))

    def keep(self, response: Response, path: str, kept: Kept) -> bool:
        """Have the browser keep something for a page; tell whether it is small enough."""
        sealed = seal(kept, path, self.secret)
        if sealed is not None:
            self._set_kept(response, path, sealed, KEPT_S)
        return sealed is not None

    def leave(self, path: str) -> Response:
        """Lead to another page, and have the browser forget what is kept for this one."""
        response = self.redirect(path)
        self._set_kept(response, self.path, "", 0)
        return response

    def with_kept(self) -> "Visit":
        """Take up what the browser keeps for this page, if the address asks for it."""
        named = self.query(KEPT)
        if not named:
            return self
        found, looks = Kept(), KEPT_LOOKS_MAX

        def is_asked_for(value: str) -> bool:
            nonlocal found, looks
            looks -= 1
            found = unseal(value, self.path, self.secret) if looks >= 0 else Kept()
            return found.id == named

        has_it = cookie_of(self.request, self._kept_cookie, is_asked_for)
        return replace(self, kept=found, form=Form(found.fields)) if has_it else self

    @property
    def _kept_cookie(self) -> str:
        name = f"{self.site.cookie}_kept"
        return f"__Secure-{name}" if self.origin.is_secure else name

    def _set_kept(self, response: Response, path: str, value: str, max_age_s: int) -> None:
        response.set_cookie(
            self._kept_cookie,
            value,
            max_age=max_age_s,
            path=self.site.url(path),
            secure=self.origin.is_secure,
            httponly=True,
            samesite="lax",
        )

    def back(self, address: str) -> Response:
        """Lead to an address that the browser has named, if it is one of this site's pages; to the first, else."""
        return RedirectResponse(own_address(self.site, address), status_code=303)


def csrf_of(secret: str) -> str:
    """Derive it from the session's secret, which it does not tell."""
    return base62(int.from_bytes(sha256(f"csrf:{secret}".encode()).digest(), "big"), CSRF_DIGITS)


def own_address(site: Site, address: str) -> str:
    """Let an address of the site pass, path and query alone; any other becomes that of its first page."""
    path, mark, query = address.partition("#")[0].partition("?")
    is_own = path.startswith(site.url("/")) and "//" not in path and ".." not in path
    is_plain = len(address) <= ADDRESS_CHARACTERS_MAX and "\\" not in address and address.isprintable()
    return path + (mark and query and f"?{query}") if is_own and is_plain else site.url("/")
