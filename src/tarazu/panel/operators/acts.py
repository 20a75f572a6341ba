"""How acts are told to people: what was done, by what way, and the facts about it. Pure."""

from typing import Any

from msgspec import Struct

from tarazu.domain.accounts import AccountStatus
from tarazu.panel.formats import Formats
from tarazu.panel.messages import later, translations
from tarazu.panel.operators.choices import STATUSES
from tarazu.store.trail import Act, Via

ACTS = {
    "account.create": later("account created"),
    "account.set": later("account changed"),
    "account.invite": later("holder invited"),
    "account.sign_out": later("holder signed out"),
    "account.set_password": later("password changed"),
    "key.create": later("key created"),
    "key.set": later("key changed"),
    "key.pause": later("key paused"),
    "key.resume": later("key resumed"),
    "key.revoke": later("key revoked"),
    "key.replace": later("key replaced"),
    "credit.add": later("credits added"),
    "credit.adjust": later("balance corrected"),
    "intake.stop": later("traffic stopped"),
    "intake.resume": later("traffic resumed"),
    "books.audit": later("books audited"),
    "operator.create": later("operator created"),
    "operator.set": later("operator changed"),
    "operator.invite": later("operator invited"),
    "operator.set_password": later("password changed"),
    "account.sign_in": later("holder signed in"),
    "operator.sign_in": later("operator signed in"),
    "account.end_sessions": later("sessions ended"),
    "operator.end_sessions": later("sessions ended"),
    "account.set_second_factor": later("second factor set up"),
    "operator.set_second_factor": later("second factor set up"),
    "account.remove_second_factor": later("second factor removed"),
    "operator.remove_second_factor": later("second factor removed"),
    "token.create": later("admin token created"),
    "token.revoke": later("admin token revoked"),
}
WAYS = {
    Via.COMMAND: later("command line"),
    Via.OPERATOR: later("operators' pages"),
    Via.TOKEN: later("admin API"),
    Via.HOLDER: later("holder's panel"),
}
FACTS = {
    "name": later("name"),
    "email": later("email"),
    "plan": later("plan"),
    "status": later("status"),
    "credits": later("credits"),
    "reference": later("reference"),
    "reason": later("reason"),
    "models": later("models"),
    "limit_per_minute": later("limit per minute"),
    "expires_at": later("expires"),
    "in_place_of": later("in place of"),
    "grace_s": later("old key ends after"),
    "sessions": later("sessions ended"),
    "address": later("address"),
    "browser": later("browser"),
    "retry_after_s": later("retry after"),
    "scopes": later("scopes"),
    "differences": later("differences"),
}
DURATIONS = {"grace_s", "retry_after_s"}
SECONDS_PER_DAY = 86_400
SECONDS_PER_HOUR = 3_600
CHANGE = ".set"
"""Acts with this ending tell of each fact how it was before and is now."""


class Fact(Struct, frozen=True):
    """One fact about an act, in words. `before` is what it was, where it was changed."""

    label: str
    value: str
    before: str | None = None


class ActLine(Struct, frozen=True, kw_only=True):
    """An act in the reader's words."""

    act: Act
    what: str
    way: str
    facts: tuple[Fact, ...]


def act_line(act: Act, formats: Formats) -> ActLine:
    """Tell of an act; what this release has no word for stands as the books have it."""
    gettext = translations(formats.language).gettext
    return ActLine(
        act=act,
        what=gettext(ACTS[act.act]) if act.act in ACTS else act.act,
        way=gettext(WAYS[act.via]),
        facts=tuple(
            _fact(name, value, formats, is_change=act.act.endswith(CHANGE))
            for name, value in act.detail.items()
            if value is not None
        ),
    )


def _fact(name: str, value: Any, formats: Formats, *, is_change: bool) -> Fact:
    label = translations(formats.language).gettext(FACTS[name]) if name in FACTS else name
    if is_change and isinstance(value, list) and len(value) == len(("before", "now")):
        before, now = value
        return Fact(label, _written(name, now, formats), _written(name, before, formats))
    return Fact(label, _written(name, value, formats))


def _written(name: str, value: Any, formats: Formats) -> str:
    gettext = translations(formats.language).gettext
    if value is None:
        return gettext("none")
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, int):
        return _number(name, value, formats)
    if name == "status" and value in set(AccountStatus):
        return gettext(STATUSES[AccountStatus(value)])
    return str(value)


def _number(name: str, number: int, formats: Formats) -> str:
    if name in DURATIONS:
        return _span(number, formats)
    return formats.change(number) if name == "credits" else formats.number(number)


def _span(seconds: int, formats: Formats) -> str:
    """Tell a length of time in the largest unit of which it is a whole number."""
    words = translations(formats.language)
    if seconds == 0:
        return words.gettext("at once")
    number = seconds
    if seconds % SECONDS_PER_DAY == 0:
        number = seconds // SECONDS_PER_DAY
        text = words.ngettext("{shown} day", "{shown} days", number)
    elif seconds % SECONDS_PER_HOUR == 0:
        number = seconds // SECONDS_PER_HOUR
        text = words.ngettext("{shown} hour", "{shown} hours", number)
    else:
        text = words.ngettext("{shown} second", "{shown} seconds", number)
    return text.format(shown=formats.number(number))
