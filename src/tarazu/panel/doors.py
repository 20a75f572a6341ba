"""The pages by which people come in and leave: sign in, invitation, sign out, language. The same for both sites."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.panel.frame import Frame
from tarazu.panel.language import known
from tarazu.panel.refusals import refusal_text
from tarazu.panel.visits import Visit, refused
from tarazu.service.own_access import OwnAccess
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.service.signing_in import Entered, Halfway, SigningIn


class DoorPages:
    """The door of one site."""

    def __init__(self, frame: Frame, signing_in: SigningIn, own_access: OwnAccess) -> None:
        self._frame = frame
        self._signing_in = signing_in
        self._own_access = own_access

    async def door(self, visit: Visit) -> Response:
        """Ask for email and password; who is in already goes on."""
        if visit.person is not None:
            return visit.back(visit.query("next"))
        return visit.page("sign_in.html", refusal=None, email="", onward=visit.query("next"))

    async def sign_in(self, visit: Visit) -> Response:
        """Let a person in, or ask for a code first."""
        form, kind = visit.form, self._frame.site.kind
        email, onward = form.text("email"), form.text("next")
        try:
            entry = await self._signing_in.sign_in(
                kind, email=email, password=form.text("password"), browser=visit.browser
            )
        except SignInError as error:
            values = {"refusal": refusal_text(error, visit.formats), "email": email, "onward": onward}
            return refused(visit, error, "sign_in.html", **values)
        return self._go_in(visit, entry, visit.back(onward), onward)

    async def give_code(self, visit: Visit) -> Response:
        """Let a person in who has given the password, by a code."""
        form, ticket, onward = visit.form, visit.form.text("ticket"), visit.form.text("next")
        try:
            entered = await self._signing_in.give_code(
                self._frame.site.kind, ticket, form.text("code"), browser=visit.browser
            )
        except SignInError as error:
            refusal = refusal_text(error, visit.formats)
            if error.reason is SignInRefusal.CODE_TOO_LATE:
                return refused(visit, error, "sign_in.html", refusal=refusal, email="", onward=onward)
            return refused(visit, error, "sign_in_code.html", refusal=refusal, ticket=ticket, onward=onward)
        return self._go_in(visit, entered, visit.back(onward), onward)

    async def sign_out(self, visit: Visit) -> Response:
        """Let a person out; who is out already is."""
        if visit.signed_in is not None:
            await self._signing_in.sign_out(visit.signed_in, browser=visit.browser)
        return self._frame.leave(visit, visit.done("/sign-in", "signed-out"))

    async def invitation(self, visit: Visit) -> Response:
        """Ask who follows an invitation to choose a password."""
        token = visit.request.path_params["token"]
        invited = await self._signing_in.invited(self._frame.site.kind, token)
        status = HTTPStatus.OK if invited is not None else HTTPStatus.NOT_FOUND
        return visit.page("invitation.html", status, invited=invited, refusal=None)

    async def accept(self, visit: Visit) -> Response:
        """Set the password and let the person in, or ask for a code first."""
        token = visit.request.path_params["token"]
        kind = self._frame.site.kind
        invited = await self._signing_in.invited(kind, token)
        try:
            entry = await self._signing_in.accept(kind, token, visit.form.text("password"), browser=visit.browser)
        except SignInError as error:
            ended = error.reason is SignInRefusal.INVITATION_ENDED
            values = {"invited": None if ended else invited, "refusal": refusal_text(error, visit.formats)}
            return refused(visit, error, "invitation.html", **values)
        return self._go_in(visit, entry, visit.done("/", "password-chosen"), "")

    async def speak(self, visit: Visit) -> Response:
        """Change the language, for this browser, and for the person who is signed in."""
        language = known(visit.form.text("language"))
        if language is None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        if visit.person is not None:
            await self._own_access.speak(visit.person, language.value)
        return self._frame.speak(visit, visit.back(visit.form.text("next")), language)

    def _go_in(self, visit: Visit, entry: Entered | Halfway, response: Response, onward: str) -> Response:
        if isinstance(entry, Entered):
            return self._frame.enter(visit, response, entry)
        return visit.page("sign_in_code.html", refusal=None, ticket=entry.ticket, onward=onward)
