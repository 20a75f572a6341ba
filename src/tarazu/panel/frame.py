"""What every page of a site goes through: who asks, in which language, and whether a form is one of ours."""

from collections.abc import Awaitable, Callable
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from urllib.parse import quote, urlsplit

from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tarazu.api.routing import ExactRoute
from tarazu.domain.people import Person, PersonKind
from tarazu.domain.secrets import digest_of
from tarazu.panel.cookies import cookie_of
from tarazu.panel.formats import Formats
from tarazu.panel.forms import FORM_BYTES_MAX, NUL, FormReader
from tarazu.panel.language import LANGUAGE_COOKIE, Language, choose, known
from tarazu.panel.sites import Site
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.signing_in import SigningIn

VISIT = "tarazu.visit"
"""Where a request's scope keeps the visit, for the page that says what went wrong with it."""
SESSION_COOKIE_S = {PersonKind.HOLDER: 30 * 86_400, PersonKind.OPERATOR: 12 * 3_600}
"""As long as a session can last at most; the books say when it ends."""
LANGUAGE_COOKIE_S = 365 * 86_400

Handler = Callable[[Visit], Awaitable[Response]]


class Frame:
    """The frame of one site. `base_url` is the address at which browsers reach the service."""

    def __init__(self, site: Site, signing_in: SigningIn, office: BackOffice, base_url: str) -> None:
        self.site = site
        self._signing_in = signing_in
        self._office = office
        self._base = urlsplit(base_url)
        self._forms = FormReader()

    def route(
        self,
        path: str,
        *,
        get: Handler | None = None,
        post: Handler | None = None,
        is_open: bool = False,
        form_bytes_max: int = FORM_BYTES_MAX,
    ) -> ExactRoute:
        """Make the route of a page: what shows it, and what takes its form. `is_open`: also to who is not signed in."""

        async def serve(request: Request) -> Response:
            return await self._serve(request, get, post, is_open=is_open, form_bytes_max=form_bytes_max)

        methods = [method for method, handler in (("GET", get), ("POST", post)) if handler is not None]
        return ExactRoute(path, serve, methods=methods)

    def visit(self, request: Request, person: Person | None = None, secret: str = "") -> Visit:
        """Make the visit of a request by somebody, or by nobody known."""
        language = choose(
            saved=None if person is None else person.language,
            cookie=cookie_of(request, LANGUAGE_COOKIE, known),
            accept_language=request.headers.get("accept-language", ""),
        )
        return Visit(
            site=self.site,
            request=request,
            formats=Formats(language, self._office.catalogue.zone),
            person=person,
            secret=secret,
        )

    def enter(self, response: Response, secret: str) -> Response:
        """Have the browser keep what says that it is signed in."""
        response.set_cookie(
            self.site.cookie,
            secret,
            max_age=SESSION_COOKIE_S[self.site.kind],
            path=self.site.path,
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    def leave(self, response: Response) -> Response:
        """Have the browser forget it."""
        response.delete_cookie(
            self.site.cookie, path=self.site.path, secure=self.is_secure, httponly=True, samesite="lax"
        )
        return response

    def speak(self, response: Response, language: Language) -> Response:
        """Have the browser keep a choice of language, for both sites."""
        response.set_cookie(
            LANGUAGE_COOKIE,
            language.value,
            max_age=LANGUAGE_COOKIE_S,
            secure=self.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    @property
    def is_secure(self) -> bool:
        """Whether cookies are for HTTPS alone: always, but on a machine that is asked by itself."""
        return self._base.scheme != "http" or not is_loopback(self._base.hostname or "")

    async def _serve(
        self, request: Request, get: Handler | None, post: Handler | None, *, is_open: bool, form_bytes_max: int
    ) -> Response:
        if any(NUL in text for text in (request.scope["path"], *request.query_params.values())):
            raise HTTPException(HTTPStatus.NOT_FOUND)  # no text of the books may hold one
        is_form = request.method == "POST"
        if is_form and not self._is_from_here(request):
            raise HTTPException(HTTPStatus.FORBIDDEN)
        visit = await self._known(request)
        request.scope[VISIT] = visit
        if visit.person is None and not is_open:
            return self._to_sign_in(visit)
        handler = post if is_form else get
        assert handler is not None, "the route takes only the methods that have a handler"
        if is_form:
            form = await self._forms.read(request, form_bytes_max)
            if visit.person is not None and not compare_digest(form.text("csrf").encode(), visit.csrf.encode()):
                raise HTTPException(HTTPStatus.FORBIDDEN)
            visit = replace(visit, form=form)
        return await handler(visit)

    async def _known(self, request: Request) -> Visit:
        secret = cookie_of(request, self.site.cookie, digest_of)
        person = await self._signing_in.person(self.site.kind, secret) if secret else None
        return self.visit(request, person, secret if person is not None else "")

    def _to_sign_in(self, visit: Visit) -> Response:
        """Lead to the door, and from there to the page that was asked for."""
        address = self.site.url("/sign-in")
        if visit.request.method != "POST" and visit.path != "/":
            query = visit.request.url.query
            address += "?next=" + quote(self.site.url(visit.path) + (f"?{query}" if query else ""), safe="/")
        return RedirectResponse(address, status_code=HTTPStatus.SEE_OTHER)

    def _is_from_here(self, request: Request) -> bool:
        """Tell whether a form was sent by a page of this host, as every browser says of every form."""
        named = request.headers.get("origin") or request.headers.get("referer") or ""
        try:
            host = urlsplit(named).netloc.lower()
        except ValueError:
            return False
        return bool(host) and host in {request.headers.get("host", "").lower(), self._base.netloc.lower()}


def address_of(request: Request) -> str:
    """Tell where a request comes from: the peer of its connection; behind a proxy on this machine, the proxy's peer."""
    peer = "" if request.client is None else request.client.host
    if not is_loopback(peer):
        return peer
    hops = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    try:
        return str(ip_address(hops))
    except ValueError:
        return peer


def is_loopback(host: str) -> bool:
    """Tell whether a host is this machine, as it calls itself."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
