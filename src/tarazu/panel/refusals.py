"""Say why a person may not come in, or why a request was not served, to whom it concerns."""

from http import HTTPStatus

from tarazu.domain.errors import Error, Refusal
from tarazu.domain.password_rules import PasswordFault
from tarazu.panel.formats import Formats
from tarazu.panel.messages import later, translations
from tarazu.service.sign_in_errors import SignInError, SignInRefusal

SECONDS_PER_MINUTE = 60

_SIGN_IN = {
    SignInRefusal.WRONG: later("This email and password do not belong together. Check both, and try again."),
    SignInRefusal.BUSY: later("Too many people are signing in just now. Try again in a few seconds."),
    SignInRefusal.INVITATION_ENDED: later("This invitation has been used or has ended. Ask for a new one."),
    SignInRefusal.BAD_PASSWORD: later("A password has 10 to 200 characters. Choose another."),
    SignInRefusal.WRONG_CODE: later("This code is not good, or was used before. Wait for the next one, and try again."),
    SignInRefusal.CODE_TOO_LATE: later("This took too long. Begin with your password again."),
}
_PASSWORDS = {
    PasswordFault.COMMON: later(
        "This is one of the commonest passwords, which are tried first. Choose another: three or four words will do."
    ),
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
    Error.INVALID_API_KEY: later("This key has ended. Choose another, or create one."),
    Error.UPGRADE_REQUIRED: later("Your account has neither a plan nor a balance. Top it up first."),
    Error.API_CREDITS_EXHAUSTED: later(
        "What is left of your quota and your balance does not pay for this model. Top up, or choose a cheaper one."
    ),
    Error.ACCOUNT_UNAVAILABLE: later("Your account is not active, so no model answers it."),
    Error.MODEL_NOT_FOUND: later("This key may not use this model. Choose another of either."),
    Error.INPUT_TOO_LARGE: later("The conversation is longer than 24,000 characters. Start a new one."),
    Error.MESSAGES_REQUIRED: later("Write a message first."),
    Error.UPSTREAM_ERROR: later("The model gave no reply. Nothing was charged. Try again."),
}


def refusal_status(error: SignInError) -> int:
    """Tell the status of the page that says it."""
    return _STATUSES.get(error.reason, HTTPStatus.UNPROCESSABLE_ENTITY)


def refusal_text(error: SignInError, formats: Formats) -> str:
    """Say why a person may not come in."""
    words = translations(formats.language)
    if error.fault is not None:
        return words.gettext(_PASSWORDS[error.fault])
    if error.reason is not SignInRefusal.TOO_MANY:
        return words.gettext(_SIGN_IN[error.reason])
    minutes = -(-(error.retry_after_s or 1) // SECONDS_PER_MINUTE)
    text = words.ngettext(
        "Too many wrong ones. Try again in {minutes} minute, or in a browser that you have signed in with before.",
        "Too many wrong ones. Try again in {minutes} minutes, or in a browser that you have signed in with before.",
        minutes,
    )
    return text.format(minutes=formats.number(minutes))


def completion_text(refusal: Refusal, formats: Formats) -> str:
    """Say why a request was not served."""
    words = translations(formats.language)
    if refusal.error in _COMPLETION:
        return words.gettext(_COMPLETION[refusal.error])
    text = words.ngettext(
        "The service takes no requests just now. Try again in {seconds} second.",
        "The service takes no requests just now. Try again in {seconds} seconds.",
        refusal.retry_after_s or 1,
    )
    if refusal.error is Error.RATE_LIMIT_EXCEEDED:
        text = words.ngettext(
            "This minute's requests are used up. Try again in {seconds} second.",
            "This minute's requests are used up. Try again in {seconds} seconds.",
            refusal.retry_after_s or 1,
        )
    return text.format(seconds=formats.number(refusal.retry_after_s or 1))
