"""`tarazu credit`."""

import getpass
import re

import pytest

from tarazu.cli.operator_name import operator_name
from tests.cli.commands import Commands


def test_add_prints_the_topup_and_the_balance(tarazu: Commands) -> None:
    """`credit add --json` prints the top-up, that it was added, and what the balance is now."""
    account_id = tarazu.account()
    topup = tarazu.json("credit", "add", account_id, "500", "--reference", "invoice 7", "--note", "thanks")
    assert re.fullmatch(r"top_\w{14}", topup.pop("id"))
    assert topup.pop("created_at")
    assert topup == {
        "account_id": account_id,
        "credits": 500,
        "reference": "invoice 7",
        "note": "thanks",
        "made_by": operator_name(),
        "added": True,
        "balance": 500,
    }


def test_the_same_reference_adds_once(tarazu: Commands) -> None:
    """Repeating a top-up works, says so, answers with the first one, and adds nothing."""
    add = ("credit", "add", tarazu.account(), "1500", "--reference", "r")
    assert tarazu(*add).out == f"Added 1,500 credits to {add[2]}.\nThe balance is 1,500 credits.\n"
    again = tarazu.json(*add)
    assert (again["added"], again["balance"]) == (False, 1_500)
    assert tarazu.json(*add) == again
    ran = tarazu(*add)
    assert ran.status == 0
    assert ran.out == (
        f"Nothing was added: the reference r brought 1,500 credits at {again['created_at']} already.\n"
        "The balance is 1,500 credits.\n"
    )


def test_a_reference_used_for_something_else_is_refused(tarazu: Commands) -> None:
    """The same reference with another amount is a mistake: exit status 1, nothing added."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "500", "--reference", "r")
    ran = tarazu("credit", "add", account_id, "501", "--reference", "r")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"tarazu: The reference r was used before, for 500 credits to {account_id}; nothing was changed. "
        "Give every payment and every correction a reference of its own.\n"
    )
    assert tarazu.json("account", "show", account_id)["balance"] == 500


@pytest.mark.parametrize("amount", ["0", "-5", "1000000000000001"])
def test_an_amount_out_of_bounds_is_refused(tarazu: Commands, amount: str) -> None:
    """Nothing, less than nothing and more than the books hold are refused with exit status 1."""
    ran = tarazu("credit", "add", tarazu.account(), amount, "--reference", "r")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == f"tarazu: The amount must be a whole number from 1 to 1000000000000000, not {amount}.\n"


@pytest.mark.parametrize("amount", ["1.5", "1.0", "1e3", "0x10", "ten", "1_000", "1,000", "٣", "9" * 19])
def test_an_amount_is_never_rounded_or_guessed(tarazu: Commands, amount: str) -> None:
    """What is not written in plain digits is a usage error, never another number."""
    account_id = tarazu.account()
    ran = tarazu("credit", "add", account_id, amount, "--reference", "r")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"tarazu: Invalid value for AMOUNT: expected a whole number, got '{amount}'\n"
        "See how it is used: tarazu credit add --help\n"
    )
    assert tarazu.json("account", "show", account_id)["balance"] == 0


def test_an_unknown_account_gets_nothing(tarazu: Commands) -> None:
    """A mistyped account id is said to be one, and the reference stays free."""
    ran = tarazu("credit", "add", "acc_x", "5", "--reference", "r")
    assert (ran.status, ran.err) == (1, "tarazu: There is no account 'acc_x'. List them with: tarazu account list\n")
    assert tarazu.json("credit", "add", tarazu.account(), "5", "--reference", "r")["added"] is True


def test_adjust_takes_and_gives(tarazu: Commands) -> None:
    """A negative amount is typed as it is; the answer says what was done and what the balance is now."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "1500", "--reference", "r")
    took = tarazu("credit", "adjust", account_id, "-1200", "--reason", "invoice 117 was paid twice")
    assert (took.status, took.err) == (0, "")
    assert took.out == f"Took 1,200 credits from {account_id}.\nThe balance is 300 credits.\n"
    gave = tarazu("credit", "adjust", account_id, "1", "--reason", "outage")
    assert gave.out == f"Gave 1 credit to {account_id}.\nThe balance is 301 credits.\n"


def test_adjust_prints_the_adjustment_and_the_balance(tarazu: Commands) -> None:
    """`credit adjust --json`, with who has done it."""
    account_id = tarazu.account()
    adjust = ("credit", "adjust", account_id, "+20", "--reason", "outage", "--reference", "sorry", "--by", "Ada L.")
    adjustment = tarazu.json(*adjust)
    assert re.fullmatch(r"adj_\w{14}", adjustment["id"])
    assert {name: adjustment[name] for name in adjustment if name not in {"id", "created_at"}} == {
        "account_id": account_id,
        "credits": 20,
        "reason": "outage",
        "reference": "sorry",
        "made_by": "Ada L.",
        "adjusted": True,
        "balance": 20,
    }
    assert tarazu.json(*adjust) == {**adjustment, "adjusted": False}
    assert tarazu(*adjust).out == (
        f"Nothing was changed: the reference sorry adjusted the balance by +20 credits at {adjustment['created_at']} "
        "already.\nThe balance is 20 credits.\n"
    )


def test_adjust_never_goes_below_zero(tarazu: Commands) -> None:
    """It says how much is there, with exit status 1, and takes nothing."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "5", "--reference", "r")
    ran = tarazu("credit", "adjust", account_id, "-6", "--reason", "a correction")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        "tarazu: The balance may not be below zero; it is 5 now, so at most 5 credits can be taken. "
        "What is held for requests on their way is not in it.\n"
    )


def test_adjust_needs_a_reason(tarazu: Commands) -> None:
    """Without one it is a usage error."""
    ran = tarazu("credit", "adjust", tarazu.account(), "5")
    assert (ran.status, ran.out) == (2, "")
    assert "--reason" in ran.err


def test_history_shows_who_when_and_why(tarazu: Commands) -> None:
    """Newest first, for people and for programs."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "500", "--reference", "invoice 7", "--note", "for May", "--by", "shop")
    tarazu("credit", "adjust", account_id, "-20", "--reason", "a mistake", "--by", "ada")
    document = tarazu.json("credit", "history", account_id)
    assert (document["account_id"], document["balance"], document["more"]) == (account_id, 480, False)
    assert [
        (change["kind"], change["credits"], change["made_by"], change["why"], change["reference"])
        for change in document["changes"]
    ] == [("adjustment", -20, "ada", "a mistake", None), ("topup", 500, "shop", "for May", "invoice 7")]
    heading, adjustment, topup, blank, balance = tarazu("credit", "history", account_id).out.splitlines()
    assert heading.split() == ["ID", "AT", "KIND", "CREDITS", "BY", "WHY", "REFERENCE"]
    assert adjustment.split()[2:] == ["adjustment", "-20", "ada", "a", "mistake"]
    assert topup.split()[2:] == ["topup", "500", "shop", "for", "May", "invoice", "7"]
    assert (blank, balance) == ("", "The balance is 480 credits.")


def test_history_says_how_to_see_more(tarazu: Commands) -> None:
    """The line to paste shows the next page."""
    account_id = tarazu.account()
    for number in range(3):
        tarazu("credit", "add", account_id, "1", "--reference", str(number))
    page = tarazu.json("credit", "history", account_id, "--limit", "2")
    assert (len(page["changes"]), page["more"]) == (2, True)
    last = page["changes"][-1]["id"]
    out = tarazu("credit", "history", account_id, "--limit", "2").out
    assert f"There are more:\ntarazu credit history {account_id} --limit 2 --before {last}" in out
    rest = tarazu.json("credit", "history", account_id, "--limit", "2", "--before", last)
    assert [change["reference"] for change in rest["changes"]] == ["0"]
    assert rest["more"] is False


def test_an_empty_history_says_how_to_begin(tarazu: Commands) -> None:
    """With the command to add credits."""
    account_id = tarazu.account()
    out = tarazu("credit", "history", account_id).out
    assert out.startswith("The balance is 0 credits.\nNothing has been added yet. To add credits:\n")
    assert f"credit add {account_id} AMOUNT --reference REF" in out


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TARAZU_OPERATOR": " Ada ", "SUDO_USER": "grace"}, "Ada"),
        ({"TARAZU_OPERATOR": "", "SUDO_USER": "grace"}, "grace"),
        ({}, getpass.getuser()),
    ],
)
def test_who_acts_is_who_is_named_else_who_logged_in(environ: dict[str, str], name: str) -> None:
    """$TARAZU_OPERATOR, the caller of sudo, the login name."""
    assert operator_name(environ) == name
