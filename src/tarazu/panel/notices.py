"""What a page says after a form has led back to it, by a word that is kept for it."""

from tarazu.panel.messages import later

NOTICE = "done"
"""What is kept under this name names a notice."""

WARNINGS = frozenset(
    {
        "account-stopped",
        "email-changed",
        "holder-signed-out",
        "intake-stopped",
        "key-paused",
        "key-revoked",
        "second-factor-removed",
        "session-ended",
        "session-over",
        "sessions-ended",
    }
)
"""Those that tell of something that has ended: they are no reason to be glad."""

NOTICES = {
    "key-changed": later("The key is changed. It takes effect with the next request."),
    "key-paused": later("The key is paused. Requests with it are refused until you resume it."),
    "key-resumed": later("The key works again."),
    "key-revoked": later("The key is revoked. Requests with it are refused from now on."),
    "name-changed": later("Your name is changed."),
    "password-changed": later("Your password is changed. All your other sessions have ended."),
    "session-ended": later("That session is signed out."),
    "sessions-ended": later("All your other sessions have ended."),
    "second-factor-removed": later("The second factor is off."),
    "password-chosen": later("Welcome. Your password is set."),
    "language-changed": later("Your language is saved."),
    "account-opened": later("The account is created. Now give it keys, credits or an invitation to the panel."),
    "account-renamed": later("The account has its new name."),
    "account-changed": later("The account is changed. It takes effect with the next request."),
    "account-stopped": later("The account is not active any more. Requests with its keys are refused."),
    "email-changed": later("The email is changed. Make an invitation, with which its holder chooses a password."),
    "holder-signed-out": later("The account holder is signed out everywhere."),
    "intake-stopped": later("Traffic is off. Every request is refused until you turn it on again."),
    "intake-resumed": later("Traffic is on. Requests are accepted again."),
    "session-over": later(
        "Your session has ended. Sign in, and you are back where you were, with what you had written."
    ),
    "signed-out": later("You are signed out."),
}

WITH_FIGURES = {
    "credits-added": later("Credits added: {credits}. The balance is now {balance}."),
    "credits-added-before": later(
        "A top-up of {credits} with this reference was there already; nothing was added again. "
        "The balance is {balance}."
    ),
    "corrected": later("Balance corrected by {credits:+}. It is now {balance}."),
    "corrected-before": later(
        "A correction of {credits:+} with this reference was there already; nothing was changed again. "
        "The balance is {balance}."
    ),
}
"""Those that tell figures too: to the session in which the form was sent, and no other."""
