"""Say why a person may not come in, or why a request was not served, to whom it concerns."""

from http import HTTPStatus
from typing import TypeGuard

from msgspec import Struct

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.password_rules import PasswordFault
from tarazu.panel.formats import Formats
from tarazu.panel.messages import filled_in, later, translations
from tarazu.service.completion import BOOKS_RETRY_AFTER_S
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.service.sign_in_errors import SignInError, SignInRefusal
from tarazu.store.availability import BooksUnavailableError

SECONDS_PER_MINUTE = 60

_UNAVAILABLE = later("The database could not be reached, so nothing was changed. Check the form, and send it again.")

_SIGN_IN = {
    SignInRefusal.WRONG: later("Wrong email or password. Check both, and try again."),
    SignInRefusal.WRONG_PASSWORD: later("This is not your present password. Check it, and try again."),
    SignInRefusal.BUSY: later("Too many people are signing in just now. Try again in a few seconds."),
    SignInRefusal.INVITATION_ENDED: later("This invitation has been used or is no longer valid. Ask for a new one."),
    SignInRefusal.BAD_PASSWORD: later("A password has 10 to 200 characters. Choose another."),
    SignInRefusal.WRONG_CODE: later("This code is wrong, or was used before. Wait for the next one, and try again."),
    SignInRefusal.CODE_TOO_LATE: later("This took too long. Start again with your password."),
}
_PASSWORDS = {
    PasswordFault.COMMON: later(
        "This is one of the commonest passwords, which are tried first. Choose another: three or four words will do."
    ),
    PasswordFault.SAME: later("This is the password that you have already. Choose another."),
    PasswordFault.OWN: later(
        "This is little more than your email, your name or the name of this service. Choose another."
    ),
    PasswordFault.REPEATED: later("This is the same again and again. Choose another: three or four words will do."),
    PasswordFault.RUN: later(
        "This is a run of digits, letters or keys beside each other. Choose another: three or four words will do."
    ),
}
_STATUSES = {
    SignInRefusal.TOO_MANY: HTTPStatus.TOO_MANY_REQUESTS,
    SignInRefusal.BUSY: HTTPStatus.SERVICE_UNAVAILABLE,
    SignInRefusal.INVITATION_ENDED: HTTPStatus.NOT_FOUND,
}
_COMPLETION = {
    Error.INVALID_API_KEY: later("This key no longer works. Choose another, or create one."),
    Error.UPGRADE_REQUIRED: later("Your account has neither a plan nor a balance. Top it up first."),
    Error.API_CREDITS_EXHAUSTED: later(
        "Your remaining quota and balance do not cover this model. Top up, or choose a cheaper one."
    ),
    Error.ACCOUNT_UNAVAILABLE: later("Your account is not active, so no model answers it."),
    Error.MODEL_NOT_FOUND: later("This key may not use this model. Choose another of either."),
    Error.INPUT_TOO_LARGE: later("The conversation is longer than 24,000 characters. Start a new one."),
    Error.MESSAGES_REQUIRED: later("Write a message first."),
    Error.IDEMPOTENCY_CONFLICT: later("This message is being answered already. Wait a moment, and send it again."),
    Error.IDEMPOTENCY_MISMATCH: later("This message was sent before, with another text. Send it from a new page."),
    Error.UPSTREAM_ERROR: later("The model gave no reply. Nothing was charged. Try again."),
}


class Refused(Struct, frozen=True, kw_only=True):
    """Why a form was refused, to be said in any language: by its message, or by why a person may not come in."""

    status: int
    text: str = ""
    values: dict[str, int | str] = {}
    error: str = ""
    """Why a completion was refused: the name of an Error."""
    reason: SignInRefusal | None = None
    fault: PasswordFault | None = None
    retry_after_s: int | None = None
    member: str = ""
    """What of the form it is about, as programs name it."""

    @classmethod
    def of(cls, error: ProvisioningError | SignInError | BooksUnavailableError) -> "Refused":
        """Take it from the error."""
        if isinstance(error, BooksUnavailableError):
            return cls(status=HTTPStatus.SERVICE_UNAVAILABLE, text=_UNAVAILABLE, retry_after_s=BOOKS_RETRY_AFTER_S)
        if isinstance(error, SignInError):
            status = _STATUSES.get(error.reason, HTTPStatus.UNPROCESSABLE_ENTITY)
            return cls(status=status, reason=error.reason, fault=error.fault, retry_after_s=error.retry_after_s)
        status = HTTPStatus.CONFLICT if isinstance(error, ConflictError) else HTTPStatus.UNPROCESSABLE_ENTITY
        values = {name: value if _is_small(value) else str(value) for name, value in error.values.items()}
        return cls(status=status, text=error.text, values=values, member=error.member or "")

    @classmethod
    def of_completion(cls, refusal: Refusal) -> "Refused":
        """Take it from what was said to a request for a completion."""
        kind = refusal.error.value
        return cls(status=kind.status, error=refusal.error.name, retry_after_s=refusal.retry_after_s)

    @property
    def is_unpaid(self) -> bool:
        """Whether a top-up or a plan helps."""
        return self.error in {Error.UPGRADE_REQUIRED.name, Error.API_CREDITS_EXHAUSTED.name}

    def told(self, formats: Formats) -> str:
        """Say it."""
        if self.error:
            return _completion_text(Error[self.error], self.retry_after_s or 1, formats)
        if self.reason is None:
            return filled_in(self.text, self.values, formats)
        return _sign_in_text(self, self.reason, formats)


def _is_small(value: object) -> TypeGuard[int]:
    """Tell whether it is a number that can be kept as one."""
    return isinstance(value, int) and abs(value) < 1 << 63


def _sign_in_text(refused: Refused, reason: SignInRefusal, formats: Formats) -> str:
    words = translations(formats.language)
    if refused.fault is not None:
        return words.gettext(_PASSWORDS[refused.fault])
    if reason is not SignInRefusal.TOO_MANY:
        return words.gettext(_SIGN_IN[reason])
    minutes = -(-(refused.retry_after_s or 1) // SECONDS_PER_MINUTE)
    text = words.ngettext(
        "Too many wrong attempts. Try again in {minutes} minute, or in a browser that you have signed in with before.",
        "Too many wrong attempts. Try again in {minutes} minutes, or in a browser that you have signed in with before.",
        minutes,
    )
    return text.format(minutes=formats.number(minutes))


def _completion_text(error: Error, retry_after_s: int, formats: Formats) -> str:
    words = translations(formats.language)
    if error in _COMPLETION:
        return words.gettext(_COMPLETION[error])
    text = words.ngettext(
        "The service takes no requests just now. Try again in {seconds} second.",
        "The service takes no requests just now. Try again in {seconds} seconds.",
        retry_after_s,
    )
    if error is Error.RATE_LIMIT_EXCEEDED:
        text = words.ngettext(
            "This minute's requests are used up. Try again in {seconds} second.",
            "This minute's requests are used up. Try again in {seconds} seconds.",
            retry_after_s,
        )
    return text.format(seconds=formats.number(retry_after_s))
