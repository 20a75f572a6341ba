"""Why a person is not let in, or may not change how they sign in."""

from enum import StrEnum

from tarazu.domain.password_rules import PasswordFault


class SignInRefusal(StrEnum):
    """Why a person is not let in."""

    WRONG = "wrong"
    """No person may sign in with this email and this password."""
    WRONG_PASSWORD = "wrong_password"  # noqa: S105 - no password
    """It is not that of the person who is signed in."""
    TOO_MANY = "too_many"
    """Too many wrong passwords or codes were given; nothing was compared."""
    BUSY = "busy"
    """Too many passwords wait to be compared."""
    WRONG_CODE = "wrong_code"
    """The code is no good one, or was used before."""
    CODE_TOO_LATE = "code_too_late"
    """No code is waited for any more; the way begins with the password again."""
    INVITATION_ENDED = "invitation_ended"
    """There is no such invitation, or not any more."""
    BAD_PASSWORD = "bad_password"  # noqa: S105 - no password
    """What was to be the new password is too short or too long, or `fault` tells what is wrong with it."""


class SignInError(Exception):
    """A person is not let in. `retry_after_s` tells when to try again, where that is known."""

    def __init__(
        self, reason: SignInRefusal, *, retry_after_s: int | None = None, fault: PasswordFault | None = None
    ) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.fault = fault
