"""How acts of the trail are told to operators."""

import re
from pathlib import Path
from typing import Any

import pytest

import tarazu.service
from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.operators.acts import ACTS, Fact, act_line
from tarazu.store.trail import Act, Via

ENGLISH, PERSIAN = Formats(Language.ENGLISH), Formats(Language.PERSIAN)
SERVICE = Path(tarazu.service.__file__).parent
RECORDED = re.compile(r'(_record|record_personal_act)\(\s*connection, "([a-z_.]+)"')
BY_PERSON = "record_personal_act"
"""What it records are acts of accounts and of operators, and begin with that word."""


def told(act: str, formats: Formats = ENGLISH, **detail: Any) -> tuple[Fact, ...]:
    """Tell the facts of an act."""
    return line(act, formats, **detail)[1]


def line(act: str, formats: Formats = ENGLISH, **detail: Any) -> tuple[str, tuple[Fact, ...]]:
    """Tell an act."""
    made = Act(
        id="act_1",
        act=act,
        made_by="omid@example.com",
        via=Via.OPERATOR,
        account_id="acc_1",
        subject=None,
        detail=detail,
        made_at_ms=0,
    )
    told = act_line(made, formats)
    return told.what, told.facts


def test_every_act_has_words() -> None:
    """Whatever the service puts into the trail."""
    recorded = set()
    for source in SERVICE.glob("*.py"):
        for by, name in RECORDED.findall(source.read_text("utf-8")):
            whose = ("account.", "operator.") if by == BY_PERSON else ("",)
            recorded |= {prefix + name for prefix in whose}
    assert len(recorded) >= 20
    assert recorded <= set(ACTS)


def test_a_change_tells_how_it_was_before() -> None:
    """Also where there was nothing, or is nothing now."""
    facts = told("account.set", plan=[None, "pro"], status=["active", "blocked"])
    assert facts == (Fact("plan", "pro", "none"), Fact("status", "blocked", "active"))
    assert told("account.set", PERSIAN, status=["active", "blocked"]) == (Fact("وضعیت", "مسدود", "فعال"),)


def test_what_was_not_given_is_not_told() -> None:
    """As the email of an account without one."""
    assert told("account.create", name="Ada", email=None, plan=None) == (Fact("name", "Ada"),)


@pytest.mark.parametrize(
    ("seconds", "english", "persian"),
    [
        (0, "at once", "همین حالا"),
        (1, "1 second", "۱ ثانیه"),
        (90, "90 seconds", "۹۰ ثانیه"),
        (3_600, "1 hour", "۱ ساعت"),
        (7 * 86_400, "7 days", "۷ روز"),
    ],
)
def test_a_length_of_time_is_told_in_its_largest_unit(seconds: int, english: str, persian: str) -> None:
    """And as a whole number of it."""
    assert told("key.replace", grace_s=seconds) == (Fact("old key ends after", english),)
    assert told("intake.stop", PERSIAN, retry_after_s=seconds)[0].value == persian


def test_numbers_are_told_as_they_are_written() -> None:
    """Credits with their sign, counts without, and a list as one."""
    assert told("credit.adjust", credits=-1500) == (Fact("credits", "\u200e\u22121,500"),)
    assert told("account.sign_out", PERSIAN, sessions=12)[0].value == "۱۲"
    assert told("token.create", scopes=["read", "credits"]) == (Fact("scopes", "read, credits"),)


def test_what_is_not_known_is_told_as_it_is() -> None:
    """Acts of a release that knew more, as after a step back to the one before."""
    assert line("shop.close", colour="red") == ("shop.close", (Fact("colour", "red"),))
