"""The settings of a person who is signed in, on either site: name, password, second factor, sessions, language."""

from starlette.responses import Response

from tarazu.panel.frame import Frame
from tarazu.panel.visits import Visit
from tarazu.service.own_access import OwnAccess

_DIGEST_DIGITS = 64


class SettingsPages:
    """The page, and its forms."""

    def __init__(self, frame: Frame, own_access: OwnAccess) -> None:
        self._frame = frame
        self._own_access = own_access

    async def show(self, visit: Visit) -> Response:
        """Show what can be changed."""
        signed_in = visit.someone_signed_in
        sessions = await self._own_access.sessions(signed_in)
        return visit.page("settings.html", sessions=sessions, this_session=signed_in.session.digest)

    async def rename(self, visit: Visit) -> Response:
        """Change the name."""
        await self._own_access.rename(visit.someone, visit.form.text("name"))
        return visit.done("/settings", "name-changed")

    async def change_password(self, visit: Visit) -> Response:
        """Change the password; all other sessions end."""
        secret = await self._own_access.change_password(
            visit.someone_signed_in,
            old=visit.form.text("old"),
            new=visit.form.text("new"),
            code=visit.form.text("code"),
            browser=visit.browser,
        )
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


def _digest(text: str) -> bytes | None:
    """Read which session is meant."""
    if len(text) != _DIGEST_DIGITS:
        return None
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None
