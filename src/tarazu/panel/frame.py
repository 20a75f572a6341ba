"""What every page of a site goes through: who asks, in which language, and whether a form is one of ours."""

from collections.abc import Awaitable, Callable
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.routing import ExactRoute
from tarazu.domain.accounts import Account
from tarazu.domain.calendar import next_period_day, period_of
from tarazu.domain.credits import Means, means_of, turn_page
from tarazu.domain.people import PersonKind
from tarazu.domain.secrets import digest_of
from tarazu.panel.cookies import cookie_of
from tarazu.panel.formats import Formats
from tarazu.panel.forms import FORM_BYTES_MAX, NUL, FormReader
from tarazu.panel.headers import ORIGIN
from tarazu.panel.hosts import KnownHosts
from tarazu.panel.kept import KEPT, Kept, Kind, NotTakenError, to_keep
from tarazu.panel.language import LANGUAGE_COOKIE, Language, choose, known
from tarazu.panel.messages import later
from tarazu.panel.notices import NOTICE
from tarazu.panel.refusals import Refused
from tarazu.panel.sites import Site
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOffice
from tarazu.service.own_access import OwnAccess
from tarazu.service.proving import SignedIn
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.service.sign_in_errors import SignInError
from tarazu.service.sign_in_events import tell_form_refused
from tarazu.service.signing_in import Entered, SigningIn
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.devices import DEVICE_DAYS

if TYPE_CHECKING:
    from tarazu.service.running import Service

VISIT = "tarazu.visit"
"""Where a request's scope keeps the visit, for the page that says what went wrong with it."""
SESSION_COOKIE_S = {PersonKind.HOLDER: 30 * 86_400, PersonKind.OPERATOR: 12 * 3_600}
"""As long as a session can last at most; the books say when it ends."""
DEVICE_COOKIE_S = DEVICE_DAYS * 86_400
LANGUAGE_COOKIE_S = 365 * 86_400
SECOND_FACTOR_PATH = "/settings/second-factor"
WITHOUT_SECOND_FACTOR = (SECOND_FACTOR_PATH, "/sign-out", "/language")
"""What a person may do who must set a second factor up first."""

CONFIRM_PASSWORD = "confirm_password"  # noqa: S105 - the name of a field
CONFIRM_CODE = "confirm_code"
OF_ANOTHER_SESSION = Refused(
    status=HTTPStatus.FORBIDDEN,
    text=later("You have signed in again since this page was opened. Check the form, and send it again."),
)

Handler = Callable[[Visit], Awaitable[Response]]


class Page(NamedTuple):
    """What shows a page, and what takes its form."""

    get: Handler | None
    post: Handler | None
    is_open: bool
    form_bytes_max: int


class Frame:
    """The frame of one site. With `needs_second_factor` a person without one sets it up before anything else."""

    def __init__(
        self,
        site: Site,
        signing_in: SigningIn,
        own_access: OwnAccess,
        office: BackOffice,
        hosts: KnownHosts,
        public_url: str | None,
        *,
        needs_second_factor: bool = False,
    ) -> None:
        self.site = site
        self._signing_in = signing_in
        self._own_access = own_access
        self._office = office
        self._hosts = hosts
        self._public = "" if public_url is None else _origin_of(public_url)
        self._needs_second_factor = needs_second_factor
        self._forms = FormReader()

    @classmethod
    def of(cls, site: Site, service: "Service", *, needs_second_factor: bool = False) -> "Frame":
        """Make the frame of a site of a service."""
        people = service.people[site.kind]
        return cls(
            site,
            people.signing_in,
            people.own_access,
            people.office,
            KnownHosts(service.server),
            service.server.public_url,
            needs_second_factor=needs_second_factor,
        )

    def route(
        self,
        path: str,
        *,
        get: Handler | None = None,
        post: Handler | None = None,
        is_open: bool = False,
        is_guarded: bool = False,
        form_bytes_max: int = FORM_BYTES_MAX,
    ) -> ExactRoute:
        """Make the route of a page: what shows it, and what takes its form. `is_open`: also to who is not signed in.

        `is_guarded`: its form is taken only where the password was given a short while ago, and asked for else.
        """
        page = Page(get, post if post is None or not is_guarded else self._guarded(post), is_open, form_bytes_max)

        async def serve(request: Request) -> Response:
            return await self._serve(request, page)

        methods = [method for method, handler in (("GET", get), ("POST", post)) if handler is not None]
        return ExactRoute(path, serve, methods=methods)

    def visit(self, request: Request, signed_in: SignedIn | None = None, secret: str = "") -> Visit:
        """Make the visit of a request by a person, or by one who is not known."""
        language = choose(
            saved=None if signed_in is None else signed_in.person.language,
            cookie=cookie_of(request, LANGUAGE_COOKIE, known),
            accept_language=request.headers.get("accept-language", ""),
        )
        origin, catalogue = request.scope[ORIGIN], self._office.catalogue
        now_ms = self._office.clock()
        period = period_of(now_ms, catalogue.zone)
        account = None if signed_in is None else signed_in.person.account
        return Visit(
            site=self.site,
            request=request,
            formats=Formats(language, catalogue.zone),
            shop=catalogue.shop,
            now_ms=now_ms,
            means=Means.ENOUGH if account is None else means_of(_this_period(account, period), catalogue),
            has_plan=account is not None and catalogue.plan(account.plan) is not None,
            renewal_day=next_period_day(period),
            origin=origin,
            signed_in=signed_in,
            secret=secret,
            device=cookie_of(request, cookie_name(self.site.device_cookie, is_secure=origin.is_secure), digest_of),
        )

    def enter(self, visit: Visit, response: Response, entered: Entered) -> Response:
        """Have the browser keep what says that it is signed in, and what says that it is known."""
        self.keep(visit, response, entered.secret)
        self._set(visit, response, self.site.device_cookie, entered.device, DEVICE_COOKIE_S)
        return response

    def keep(self, visit: Visit, response: Response, secret: str) -> Response:
        """Have the browser keep what says that it is signed in."""
        self._set(visit, response, self.site.cookie, secret, SESSION_COOKIE_S[self.site.kind])
        return response

    def leave(self, visit: Visit, response: Response) -> Response:
        """Have the browser forget it; it stays known."""
        self._set(visit, response, self.site.cookie, "", 0)
        return response

    def speak(self, visit: Visit, response: Response, language: Language) -> Response:
        """Have the browser keep a choice of language, for both sites."""
        response.set_cookie(
            LANGUAGE_COOKIE,
            language.value,
            max_age=LANGUAGE_COOKIE_S,
            secure=visit.origin.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    def _set(self, visit: Visit, response: Response, name: str, value: str, max_age_s: int) -> None:
        is_secure = visit.origin.is_secure
        response.set_cookie(
            cookie_name(name, is_secure=is_secure),
            value,
            max_age=max_age_s,
            path="/" if is_secure else self.site.path,
            secure=is_secure,
            httponly=True,
            samesite="lax",
        )

    async def _serve(self, request: Request, page: Page) -> Response:
        if not self._hosts.include(request.scope[ORIGIN]):
            raise HTTPException(HTTPStatus.MISDIRECTED_REQUEST)
        if any(NUL in text for text in (request.scope["path"], *request.query_params.values())):
            raise HTTPException(HTTPStatus.NOT_FOUND)  # no text of the books may hold one
        if request.method == "POST":
            if not self._is_from_here(request):
                self._refuse_form(request, None, "another site")
            return await self._take(request, page)
        visit = (await self._known(request)).with_kept()
        request.scope[VISIT] = visit
        if visit.person is None and not page.is_open:
            return self._to_sign_in(visit, page)
        if self._lacks_second_factor(visit):
            return visit.redirect(SECOND_FACTOR_PATH)
        return await self._show(page, visit)

    async def _show(self, page: Page, visit: Visit) -> Response:
        if visit.kept.kind is Kind.CONFIRM:
            return visit.page("confirm.html")
        assert page.get is not None, "the route takes only the methods that have a handler"
        return await page.get(visit)

    async def _take(self, request: Request, page: Page) -> Response:
        """Take a form, or lead back to its page, which offers it again as it was written and says what is wrong."""
        try:
            visit = await self._known(request)
        except BooksUnavailableError as error:
            visit = self.visit(request, secret=self._secret(request))
            form = await self._forms.read(request, page.form_bytes_max, is_open=True)
            kept = Kept(kind=Kind.REFUSED, fields=to_keep(form.fields), refused=Refused.of(error))
            response = None if page.get is None else visit.lead(visit.path, kept)
            if response is None:
                raise
            return response
        request.scope[VISIT] = visit
        visit = await self._with_form(visit, page)
        form = visit.form
        if visit.person is None and not page.is_open:
            return self._to_sign_in(visit, page)
        if self._lacks_second_factor(visit):
            return visit.redirect(SECOND_FACTOR_PATH)
        if visit.person is not None and not compare_digest(form.text("csrf").encode(), visit.csrf.encode()):
            tell_form_refused(self.site.kind, visit.person.id, visit.origin.address, "another session")
            return await self._lead_back(visit, page, Kind.REFUSED, OF_ANOTHER_SESSION)
        assert page.post is not None, "the route takes only the methods that have a handler"
        try:
            return await page.post(visit)
        except NotThereError:
            raise
        except NotTakenError as not_taken:
            kind, refused = not_taken.kind, not_taken.refused
        except (ProvisioningError, SignInError, BooksUnavailableError) as error:
            kind, refused = Kind.REFUSED, Refused.of(error)
        return await self._lead_back(visit, page, kind, refused)

    async def _with_form(self, visit: Visit, page: Page) -> Visit:
        """Read the form. Where the session has ended, one that is too large is left unread: its page may keep it."""
        try:
            form = await self._forms.read(visit.request, page.form_bytes_max, is_open=visit.person is None)
        except HTTPException as refused:
            if refused.status_code != HTTPStatus.REQUEST_ENTITY_TOO_LARGE or not visit.had_session or page.is_open:
                raise
            return visit
        return replace(visit, form=form)

    async def _lead_back(self, visit: Visit, page: Page, kind: Kind, refused: Refused | None) -> Response:
        """Lead to the page of the form. Where that is too large to be kept, the page is there and then its answer."""
        if page.get is None:
            raise _problem(refused)
        kept = Kept(kind=kind, fields=to_keep(visit.form.fields), refused=refused)
        return await visit.lead_or_show(visit.path, kept, partial(self._show, page))

    def _guarded(self, handler: Handler) -> Handler:
        """Ask for the password before a form is taken, unless it was given a short while ago in this session."""

        async def guarded(visit: Visit) -> Response:
            signed_in, form = visit.someone_signed_in, visit.form
            if not signed_in.session.is_confirmed(self._office.clock()):
                password = form.text(CONFIRM_PASSWORD)
                if not password:
                    raise NotTakenError(None, kind=Kind.CONFIRM)
                try:
                    await self._own_access.confirm(
                        signed_in, password=password, code=form.text(CONFIRM_CODE), browser=visit.browser
                    )
                except SignInError as error:
                    raise NotTakenError(Refused.of(error), kind=Kind.CONFIRM) from None
            return await handler(visit)

        return guarded

    def _lacks_second_factor(self, visit: Visit) -> bool:
        if not self._needs_second_factor or visit.person is None or visit.person.has_second_factor:
            return False
        return visit.path not in WITHOUT_SECOND_FACTOR

    async def _known(self, request: Request) -> Visit:
        secret = self._secret(request)
        self._office.meet(secret, request.scope[ORIGIN].address)
        signed_in = None
        if secret:
            signed_in = await self._signing_in.signed_in(self.site.kind, secret)
            self._office.note(secret, None if signed_in is None else signed_in.person.id)
        return self.visit(request, signed_in, secret)

    def _secret(self, request: Request) -> str:
        return cookie_of(request, cookie_name(self.site.cookie, is_secure=request.scope[ORIGIN].is_secure), digest_of)

    def _to_sign_in(self, visit: Visit, page: Page) -> Response:
        """Lead to the door, and from there to the page that was asked for, with what was written into its form."""
        is_form = visit.request.method == "POST"
        if not visit.had_session:
            return visit.redirect("/sign-in", **({} if is_form or visit.path == "/" else {"next": visit.address}))
        over = visit.named(Kept(kind=Kind.DONE, fields=((NOTICE, "session-over"),)))
        unsent = visit.named(Kept(kind=Kind.UNSENT, fields=to_keep(visit.form.fields)))
        onward = visit.address
        if is_form:
            onward = self.site.url("/") if page.get is None else f"{self.site.url(visit.path)}?{KEPT}={unsent.id}"
        response = visit.redirect("/sign-in", next=onward, **{KEPT: over.id})
        visit.keep(response, "/sign-in", over)
        while is_form and page.get is not None and not visit.keep(response, visit.path, unsent):
            # The longest is left out first, as a conversation is beside its next message.
            longest = max(unsent.fields, key=lambda field: len(field[1]))
            unsent = replace(unsent, fields=tuple(field for field in unsent.fields if field is not longest))
        return response

    def _is_from_here(self, request: Request) -> bool:
        """Tell whether a form was sent by a page of this host and scheme, as every browser says of every form."""
        named = _origin_of(request.headers.get("origin") or request.headers.get("referer") or "")
        origin = request.scope[ORIGIN]
        return bool(named) and named in {f"{origin.scheme}://{origin.host}", self._public}

    def _refuse_form(self, request: Request, person_id: str | None, reason: str) -> None:
        tell_form_refused(self.site.kind, person_id, request.scope[ORIGIN].address, reason)
        raise HTTPException(HTTPStatus.FORBIDDEN)


def _problem(refused: Refused | None) -> HTTPException:
    """Say what is wrong with a form that has no page to be offered again on."""
    if refused is None:
        return HTTPException(HTTPStatus.CONFLICT)
    retry_after = {} if refused.retry_after_s is None else {"retry-after": str(refused.retry_after_s)}
    return HTTPException(refused.status, headers=retry_after)


def _origin_of(address: str) -> str:
    """Cut an address behind its scheme, host and port."""
    return "/".join(address.lower().split("/", 3)[:3])


def _this_period(account: Account, period: str) -> Account:
    """Take an account whose page is of an earlier period as one that has used nothing in this one."""
    return account if account.period == period else turn_page(account, period, 0)


def cookie_name(name: str, *, is_secure: bool) -> str:
    """Name a cookie: over HTTPS as one that only this very host can have set (`__Host-`), with all its paths."""
    return f"__Host-{name}" if is_secure else name
