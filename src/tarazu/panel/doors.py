"""The pages by which people come in and leave: sign in, invitation, sign out, language. The same for both sites."""

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response

from tarazu.panel.frame import Frame, address_of
from tarazu.panel.language import known
from tarazu.panel.refusals import refusal_text
from tarazu.panel.visits import Visit
from tarazu.service.signing_in import SignInError, SigningIn, SignInRefusal

STATUSES = {
    SignInRefusal.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    SignInRefusal.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    SignInRefusal.INVITATION_ENDED: HTTPStatus.NOT_FOUND,
}


class DoorPages:
    """The door of one site."""

    def __init__(self, frame: Frame, signing_in: SigningIn) -> None:
        self._frame = frame
        self._signing_in = signing_in

    async def door(self, visit: Visit) -> Response:
        """Ask for email and password; who is in already goes on."""
        if visit.person is not None:
            return visit.back(visit.query("next"))
        return visit.page("sign_in.html", refusal=None, email="", onward=visit.query("next"))

    async def sign_in(self, visit: Visit) -> Response:
        """Let somebody in."""
        form, site = visit.form, self._frame.site
        email, onward = form.text("email"), form.text("next")
        try:
            secret = await self._signing_in.sign_in(
                site.kind, email=email, password=form.text("password"), address=address_of(visit.request)
            )
        except SignInError as error:
            values = {"refusal": refusal_text(error, visit.formats), "email": email, "onward": onward}
            return refused(visit, error, "sign_in.html", **values)
        return self._frame.enter(visit.back(onward), secret)

    async def sign_out(self, visit: Visit) -> Response:
        """Let somebody out; who is out already is."""
        if visit.secret:
            await self._signing_in.sign_out(visit.secret)
        return self._frame.leave(visit.done("/sign-in", "signed-out"))

    async def invitation(self, visit: Visit) -> Response:
        """Ask who follows an invitation to choose a password."""
        token = visit.request.path_params["token"]
        invited = await self._signing_in.invited(self._frame.site.kind, token)
        status = HTTPStatus.OK if invited is not None else HTTPStatus.NOT_FOUND
        return visit.page("invitation.html", status, invited=invited, refusal=None)

    async def accept(self, visit: Visit) -> Response:
        """Set the password and let the person in."""
        token = visit.request.path_params["token"]
        kind = self._frame.site.kind
        invited = await self._signing_in.invited(kind, token)
        try:
            secret = await self._signing_in.accept(kind, token, visit.form.text("password"))
        except SignInError as error:
            ended = error.reason is SignInRefusal.INVITATION_ENDED
            values = {"invited": None if ended else invited, "refusal": refusal_text(error, visit.formats)}
            return refused(visit, error, "invitation.html", **values)
        return self._frame.enter(visit.done("/", "password-chosen"), secret)

    async def speak(self, visit: Visit) -> Response:
        """Change the language, for this browser, and for the person who is signed in."""
        language = known(visit.form.text("language"))
        if language is None:
            raise HTTPException(HTTPStatus.BAD_REQUEST)
        if visit.person is not None:
            await self._signing_in.speak(visit.person, language.value)
        return self._frame.speak(visit.back(visit.form.text("next")), language)


def refused(visit: Visit, error: SignInError, template: str, /, **values: object) -> Response:
    """Show a page again with what is wrong, and tell programs when to come back."""
    response = visit.page(template, STATUSES.get(error.reason, HTTPStatus.UNPROCESSABLE_ENTITY), **values)
    if error.retry_after_s is not None:
        response.headers["retry-after"] = str(error.retry_after_s)
    return response
