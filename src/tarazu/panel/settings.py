"""The settings of whoever is signed in, on either site: name, password, language."""

from http import HTTPStatus

from starlette.responses import Response

from tarazu.panel.doors import refused
from tarazu.panel.frame import address_of
from tarazu.panel.messages import told
from tarazu.panel.refusals import refusal_text
from tarazu.panel.visits import Visit
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.service.signing_in import SignInError, SigningIn


class SettingsPages:
    """The page, and its forms."""

    def __init__(self, signing_in: SigningIn) -> None:
        self._signing_in = signing_in

    async def show(self, visit: Visit) -> Response:
        """Show what can be changed."""
        return visit.page("settings.html", name=visit.someone.name, name_refusal=None, password_refusal=None)

    async def rename(self, visit: Visit) -> Response:
        """Change the name."""
        name = visit.form.text("name")
        try:
            await self._signing_in.rename(visit.someone, name)
        except ProvisioningError as error:
            values = {"name": name, "name_refusal": told(error, visit.formats), "password_refusal": None}
            return visit.page("settings.html", HTTPStatus.UNPROCESSABLE_ENTITY, **values)
        return visit.done("/settings", "name-changed")

    async def change_password(self, visit: Visit) -> Response:
        """Change the password; all other sessions end."""
        try:
            await self._signing_in.change_password(
                visit.someone,
                old=visit.form.text("old"),
                new=visit.form.text("new"),
                keep=visit.secret,
                address=address_of(visit.request),
            )
        except SignInError as error:
            values = {"name": visit.someone.name, "name_refusal": None}
            return refused(visit, error, "settings.html", password_refusal=refusal_text(error, visit.formats), **values)
        return visit.done("/settings", "password-changed")
