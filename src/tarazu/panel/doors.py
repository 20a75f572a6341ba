"""The pages by which people come in and leave: sign in, invitation, sign out, language. The same for both sites."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.domain.people import PersonKind
from tarazu.panel.frame import Frame
from tarazu.panel.language import known
from tarazu.panel.visits import Visit
from tarazu.service.own_access import OwnAccess
from tarazu.service.sign_in_errors import SignInRefusal
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
        return await self._door(visit)

    async def sign_in(self, visit: Visit) -> Response:
        """Let a person in, or ask for a code first."""
        form, onward = visit.form, visit.form.text("next")
        entry = await self._signing_in.sign_in(
            self._frame.site.kind, email=form.text("email"), password=form.text("password"), browser=visit.browser
        )
        return self._go_in(visit, entry, visit.back(onward), onward)

    async def code(self, visit: Visit) -> Response:
        """Ask who has given the password for a code; who takes too long begins with the password again."""
        if visit.person is not None:
            return visit.back(visit.form.text("next"))
        refused, ticket = visit.kept.refused, visit.form.text("ticket")
        if not ticket or (refused is not None and refused.reason is SignInRefusal.CODE_TOO_LATE):
            return await self._door(visit)
        return visit.page("sign_in_code.html", ticket=ticket, onward=visit.form.text("next"))

    async def give_code(self, visit: Visit) -> Response:
        """Let a person in who has given the password, by a code."""
        form, onward = visit.form, visit.form.text("next")
        entered = await self._signing_in.give_code(
            self._frame.site.kind, form.text("ticket"), form.text("code"), browser=visit.browser
        )
        return self._go_in(visit, entered, visit.back(onward), onward)

    async def sign_out(self, visit: Visit) -> Response:
        """Let a person out; who is out already is."""
        if visit.signed_in is not None:
            await self._signing_in.sign_out(visit.signed_in, browser=visit.browser)
        return self._frame.leave(visit, visit.done("/sign-in", "signed-out"))

    async def invitation(self, visit: Visit) -> Response:
        """Ask who follows an invitation to choose a password."""
        token = visit.part("token")
        invited = await self._signing_in.invited(self._frame.site.kind, token)
        status = HTTPStatus.OK if invited is not None else HTTPStatus.NOT_FOUND
        return visit.page("invitation.html", status, invited=invited)

    async def accept(self, visit: Visit) -> Response:
        """Set the password and let the person in, or ask for a code first."""
        token, password = visit.part("token"), visit.form.text("password")
        entry = await self._signing_in.accept(self._frame.site.kind, token, password, browser=visit.browser)
        return self._go_in(visit, entry, visit.done("/", "password-chosen"), "")

    async def speak(self, visit: Visit) -> Response:
        """Change the language, for this browser, and for the person who is signed in."""
        language = known(visit.form.text("language"))
        if language is None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        if visit.person is not None:
            await self._own_access.speak(visit.person, language.value)
        is_saved = visit.form.text("next") == visit.site.url("/settings")
        onward = visit.done("/settings", "language-changed") if is_saved else visit.back(visit.form.text("next"))
        return self._frame.speak(visit, onward, language)

    def _go_in(self, visit: Visit, entry: Entered | Halfway, response: Response, onward: str) -> Response:
        if isinstance(entry, Entered):
            return self._frame.enter(visit, response, entry)
        return visit.show_once("/sign-in/code", ticket=entry.ticket, next=onward)

    async def _door(self, visit: Visit) -> Response:
        is_operators = self._frame.site.kind is PersonKind.OPERATOR
        is_first = is_operators and await self._signing_in.is_nobody_there()
        onward = visit.written("next") or visit.query("next")
        return visit.page("sign_in.html", onward=onward, is_first=is_first)
