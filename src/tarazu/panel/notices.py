"""What a page says after a form has led back to it, by the word in its address."""

from tarazu.panel.messages import later

NOTICE = "done"
"""The parameter of an address that names a notice."""

NOTICES = {
    "key-revoked": later("The key is revoked. Requests with it are refused from now on."),
    "name-changed": later("Your name is changed."),
    "password-changed": later("Your password is changed. All your other sessions have ended."),
    "password-chosen": later("Welcome. Your password is set."),
    "language-changed": later("Your language is saved."),
    "signed-out": later("You are signed out."),
}
