"""The second factor of a person who is signed in: set it up with an application's code, see its state, turn it off."""

import os
from http import HTTPStatus

from markupsafe import Markup
from starlette.responses import Response

from tarazu.domain.second_factor import SECRET_BYTES, secret_of, secret_text, setup_address
from tarazu.panel.messages import told
from tarazu.panel.refusals import refusal_text
from tarazu.panel.visits import Visit, refused
from tarazu.service.own_access import OwnAccess
from tarazu.service.provisioning_errors import ConflictError
from tarazu.service.sign_in_errors import SignInError

SERVICE_NAME = "Tarazu"
"""What applications list it under."""


class SecondFactorPages:
    """The page, and its forms."""

    def __init__(self, own_access: OwnAccess) -> None:
        self._own_access = own_access

    async def show(self, visit: Visit) -> Response:
        """Show how to set it up, or that it is."""
        if visit.someone.has_second_factor:
            return visit.page("second_factor_on.html", refusal=None)
        return visit.page("second_factor.html", **_new(visit, os.urandom(SECRET_BYTES)), refusal=None)

    async def set_up(self, visit: Visit) -> Response:
        """Set it up, and show the recovery codes this once."""
        text = visit.form.text("secret")
        try:
            codes = await self._own_access.set_up_second_factor(
                visit.someone_signed_in, text, visit.form.text("code"), browser=visit.browser
            )
        except ConflictError as error:
            return visit.page("second_factor_on.html", HTTPStatus.CONFLICT, refusal=told(error, visit.formats))
        except SignInError as error:
            values = _new(visit, secret_of(text) or os.urandom(SECRET_BYTES))
            return refused(visit, error, "second_factor.html", refusal=refusal_text(error, visit.formats), **values)
        return visit.page("recovery_codes.html", codes=codes)

    async def remove(self, visit: Visit) -> Response:
        """Turn it off."""
        form = visit.form
        try:
            await self._own_access.remove_second_factor(
                visit.someone_signed_in,
                password=form.text("password"),
                code=form.text("code"),
                browser=visit.browser,
            )
        except SignInError as error:
            return refused(visit, error, "second_factor_on.html", refusal=refusal_text(error, visit.formats))
        return visit.done("/settings", "second-factor-removed")


def _new(visit: Visit, secret: bytes) -> dict[str, object]:
    """Show a secret as a picture, as a text in groups, and as an address that a telephone can open."""
    import segno  # noqa: PLC0415 - seldom needed, and a tenth of a second

    address = setup_address(secret, service=SERVICE_NAME, email=visit.someone.email)
    picture = segno.make(address, error="m", micro=False).svg_inline(light="#fff", omitsize=True, svgclass="qr")
    text = secret_text(secret)
    return {
        "picture": Markup(picture),  # noqa: S704 - made of squares alone
        "address": address,
        "secret": text,
        "groups": " ".join(text[start : start + 4] for start in range(0, len(text), 4)),
    }
