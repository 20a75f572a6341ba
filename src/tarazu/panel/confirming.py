"""Ask for the password once more before a form is taken that matters: nothing that was written into it is lost."""

from tarazu.panel.refusals import Refused

CONFIRM_PASSWORD = "confirm_password"  # noqa: S105 - the name of a field
CONFIRM_CODE = "confirm_code"


class UnconfirmedError(Exception):
    """The password is to be given first; `refused` tells what was wrong with the one that was given."""

    def __init__(self, refused: Refused | None) -> None:
        super().__init__("the password is to be given first")
        self.refused = refused
