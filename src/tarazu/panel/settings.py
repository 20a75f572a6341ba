"""The settings of a person who is signed in, on either site: name, password, second factor, sessions, language."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.frame import Frame
from tarazu.panel.messages import told
from tarazu.panel.refusals import refusal_status, refusal_text
from tarazu.panel.visits import Visit
from tarazu.service.own_access import OwnAccess
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.sign_in_errors import SignInError

_DIGEST_DIGITS = 64


class SettingsPages:
    """The page, and its forms."""

    def __init__(self, frame: Frame, own_access: OwnAccess) -> None:
        self._frame = frame
        self._own_access = own_access

    async def show(self, visit: Visit) -> Response:
        """Show what can be changed."""
        return await self._show(visit, HTTPStatus.OK)

    async def rename(self, visit: Visit) -> Response:
        """Change the name."""
        name = visit.form.text("name")
        try:
            await self._own_access.rename(visit.someone, name)
        except ProvisioningError as error:
            refusal = told(error, visit.formats)
            return await self._show(visit, HTTPStatus.UNPROCESSABLE_ENTITY, name=name, name_refusal=refusal)
        return visit.done("/settings", "name-changed")

    async def change_password(self, visit: Visit) -> Response:
        """Change the password; all other sessions end."""
        try:
            secret = await self._own_access.change_password(
                visit.someone_signed_in,
                old=visit.form.text("old"),
                new=visit.form.text("new"),
                code=visit.form.text("code"),
                browser=visit.browser,
            )
        except ProvisioningError as error:
            refusal = told(error, visit.formats)
            return await self._show(visit, HTTPStatus.UNPROCESSABLE_ENTITY, password_refusal=refusal)
        except SignInError as error:
            refusal = refusal_text(error, visit.formats)
            response = await self._show(visit, refusal_status(error), password_refusal=refusal)
            if error.retry_after_s is not None:
                response.headers["retry-after"] = str(error.retry_after_s)
            return response
        return self._frame.keep(visit, visit.done("/settings", "password-changed"), secret)

    async def end_session(self, visit: Visit) -> Response:
        """End one session; with this one the person leaves."""
        digest = _digest(visit.form.text("session"))
        if digest is not None:
            await self._own_access.end_session(visit.someone_signed_in, digest, browser=visit.browser)
        if digest == visit.someone_signed_in.session.digest:
            return self._frame.leave(visit, visit.done("/sign-in", "signed-out"))
        return visit.done("/settings", "session-ended")

    async def end_other_sessions(self, visit: Visit) -> Response:
        """End all sessions but this one."""
        await self._own_access.end_other_sessions(visit.someone_signed_in, browser=visit.browser)
        return visit.done("/settings", "sessions-ended")

    async def _show(
        self,
        visit: Visit,
        status: int,
        *,
        name: str | None = None,
        name_refusal: str | None = None,
        password_refusal: str | None = None,
    ) -> Response:
        return visit.page(
            "settings.html",
            status,
            name=visit.someone.name if name is None else name,
            name_refusal=name_refusal,
            password_refusal=password_refusal,
            sessions=await self._own_access.sessions(visit.someone_signed_in),
            this_session=visit.someone_signed_in.session.digest,
        )


def _digest(text: str) -> bytes | None:
    """Read which session is meant."""
    if len(text) != _DIGEST_DIGITS:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
