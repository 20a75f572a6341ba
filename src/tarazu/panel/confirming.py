"""Ask for the password once more before a form is taken that matters: nothing that was written into it is lost."""

from starlette.responses import Response

from tarazu.panel.refusals import refusal_text
from tarazu.panel.visits import Visit, refused
from tarazu.service.sign_in_errors import SignInError

CONFIRM_PASSWORD = "confirm_password"  # noqa: S105 - the name of a field
CONFIRM_CODE = "confirm_code"
_OWN_FIELDS = frozenset({CONFIRM_PASSWORD, CONFIRM_CODE, "csrf"})


def confirm_page(visit: Visit, error: SignInError | None) -> Response:
    """Show the form's fields again, hidden, with one for the password and, where there is a second factor, its code."""
    fields = [(name, value) for name, value in visit.form.fields if name not in _OWN_FIELDS]
    if error is None:
        return visit.page("confirm.html", fields=fields, refusal=None)
    return refused(visit, error, "confirm.html", fields=fields, refusal=refusal_text(error, visit.formats))
