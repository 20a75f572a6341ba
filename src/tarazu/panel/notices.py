"""What a page says after a form has led back to it, by the word in its address."""

from tarazu.panel.messages import later

NOTICE = "done"
"""The parameter of an address that names a notice."""

NOTICES = {
    "key-revoked": later("The key is revoked. Requests with it are refused from now on."),
    "name-changed": later("Your name is changed."),
    "password-changed": later("Your password is changed. All your other sessions have ended."),
    "session-ended": later("That session has ended."),
    "sessions-ended": later("All your other sessions have ended."),
    "second-factor-removed": later("The second factor is off."),
    "password-chosen": later("Welcome. Your password is set."),
    "language-changed": later("Your language is saved."),
    "account-opened": later("The account is open. It can be given keys, credits and an invitation to the panel."),
    "account-changed": later("The account is changed. That holds from the next request on."),
    "holder-signed-out": later("The holder is signed out everywhere."),
    "credits-added": later("The credits are added."),
    "credits-added-before": later("A top-up with this reference was there already; nothing was added again."),
    "corrected": later("The balance is corrected."),
    "corrected-before": later("A correction with this reference was there already; nothing was changed again."),
    "intake-stopped": later("Intake is stopped. Every request is refused until you resume it."),
    "intake-resumed": later("Intake is running. Requests are taken again."),
    "signed-out": later("You are signed out."),
}
