"""The second factor of a person who is signed in: set it up with an application's code, see its state, turn it off."""

import os

from markupsafe import Markup
from starlette.responses import Response

from tarazu.domain.second_factor import SECRET_BYTES, secret_of, secret_text, setup_address
from tarazu.panel.visits import Visit
from tarazu.service.own_access import OwnAccess

CODES_PATH = "/settings/second-factor/codes"
SERVICE_NAME = "Tarazu"
"""What applications list it under."""


class SecondFactorPages:
    """The page, and its forms."""

    def __init__(self, own_access: OwnAccess) -> None:
        self._own_access = own_access

    async def show(self, visit: Visit) -> Response:
        """Show how to set it up, or that it is."""
        if visit.someone.has_second_factor:
            return visit.page("second_factor_on.html")
        # The one that was shown before, since an application may have it by now.
        secret = secret_of(visit.form.text("secret")) or os.urandom(SECRET_BYTES)
        return visit.page("second_factor.html", **_new(visit, secret))

    async def set_up(self, visit: Visit) -> Response:
        """Set it up; the recovery codes are shown once."""
        codes = await self._own_access.set_up_second_factor(
            visit.someone_signed_in, visit.form.text("secret"), visit.form.text("code"), browser=visit.browser
        )
        return visit.show_once(CODES_PATH, codes=" ".join(codes))

    async def codes(self, visit: Visit) -> Response:
        """Show the recovery codes, until the page is left."""
        return visit.page("recovery_codes.html", codes=visit.shown("codes").split())

    async def leave(self, visit: Visit) -> Response:
        """Forget them."""
        return visit.leave("/settings")

    async def remove(self, visit: Visit) -> Response:
        """Turn it off."""
        await self._own_access.remove_second_factor(
            visit.someone_signed_in,
            password=visit.form.text("password"),
            code=visit.form.text("code"),
            browser=visit.browser,
        )
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
