"""`tarazu credit`."""

import getpass
import os
import re

import pytest

from tarazu.cli.operator_name import operator_name
from tarazu.service.books import open_books
from tarazu.store.engine import transaction
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


@pytest.mark.parametrize("amount", ["1.5", "1.0", "1e3", "0x10", "ten", "1,5", "12,34", "1,000,00", "۱،۵", "9" * 51])
def test_an_amount_is_never_rounded_or_guessed(tarazu: Commands, amount: str) -> None:
    """What is no whole number is a usage error, never another number; a comma is none of fractions."""
    account_id = tarazu.account()
    ran = tarazu("credit", "add", account_id, amount, "--reference", "r")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"tarazu: Invalid value for AMOUNT: expected a whole number, got '{amount}'\n"
        "See how it is used: tarazu credit add --help\n"
    )
    assert tarazu.json("account", "show", account_id)["balance"] == 0


@pytest.mark.parametrize("amount", ["1000", "1,000", "1_000", "۱٬۰۰۰"])
def test_an_amount_may_be_written_as_people_do(tarazu: Commands, amount: str) -> None:
    """With separators between groups of three digits, and in Persian: what a page or a bill shows can be pasted."""
    account_id = tarazu.account()
    assert tarazu.json("credit", "add", account_id, amount, "--reference", "r")["balance"] == 1_000


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


def test_add_says_one_credit_of_one(tarazu: Commands) -> None:
    """As the other commands do."""
    account_id = tarazu.account()
    ran = tarazu("credit", "add", account_id, "1", "--reference", "r")
    assert ran.out == f"Added 1 credit to {account_id}.\nThe balance is 1 credit.\n"


@pytest.mark.parametrize(
    "words", [["-3", "--reason", "a mistake"], ["--reason", "a mistake", "-3"], ["--reason=a mistake", "--", "-3"]]
)
def test_adjust_takes_a_negative_amount_anywhere(tarazu: Commands, words: list[str]) -> None:
    """Before, after and behind the options: it is no option itself."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "5", "--reference", "r")
    ran = tarazu("credit", "adjust", account_id, *words)
    assert (ran.status, ran.out) == (0, f"Took 3 credits from {account_id}.\nThe balance is 2 credits.\n")


@pytest.mark.parametrize("amount", ["-1.5", "-1e3", "-1,5", "-1,000", "-x", "--5", "-", "\u22121,5"])
def test_adjust_never_rounds_or_guesses(tarazu: Commands, amount: str) -> None:
    """What is no whole number is a usage error, never another number; after a hyphen digits alone are an amount."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "5000", "--reference", "r")
    ran = tarazu("credit", "adjust", account_id, amount, "--reason", "a mistake")
    assert (ran.status, ran.out) == (2, "")
    assert amount in ran.err
    assert tarazu.json("account", "show", account_id)["balance"] == 5_000


def test_a_mistyped_option_of_adjust_is_no_amount(tarazu: Commands) -> None:
    """Though amounts may begin with a hyphen, the option that was meant is named."""
    ran = tarazu("credit", "adjust", tarazu.account(), "--reson", "a mistake", "-5")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("tarazu: Unknown option: --reson. Did you mean --reason?\n")


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
    assert tarazu.json("account", "show", account_id)["balance"] == 5


def test_a_reference_of_an_adjustment_is_not_for_a_payment(tarazu: Commands) -> None:
    """The message tells what it was used for, with exit status 1; nothing is added."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "50", "--reference", "r")
    tarazu("credit", "adjust", account_id, "-5", "--reason", "a mistake", "--reference", "a")
    ran = tarazu("credit", "add", account_id, "5", "--reference", "a")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"tarazu: The reference a was used before, for an adjustment of {account_id} by -5 credits; nothing was "
        "changed. Give every payment and every correction a reference of its own.\n"
    )
    assert tarazu.json("account", "show", account_id)["balance"] == 45


def test_adjust_needs_a_reason(tarazu: Commands) -> None:
    """Without one it is a usage error."""
    ran = tarazu("credit", "adjust", tarazu.account(), "5")
    assert (ran.status, ran.out) == (2, "")
    assert "--reason" in ran.err


def test_history_shows_who_when_and_why(tarazu: Commands) -> None:
    """Newest first, for people and for programs; the credits with their sign."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "500", "--reference", "invoice 7", "--note", "for May", "--by", "shop")
    tarazu("credit", "adjust", account_id, "-20", "--reason", "a mistake", "--by", "ada")
    document = tarazu.json("credit", "history", account_id)
    assert (document["account_id"], document["balance"], document["more"]) == (account_id, 480, False)
    assert [
        (change["kind"], change["credits"], change["made_by"], change["why"], change["reference"])
        for change in document["changes"]
    ] == [("adjustment", -20, "ada", "a mistake", None), ("top-up", 500, "shop", "for May", "invoice 7")]
    heading, adjustment, topup, blank, balance = tarazu("credit", "history", account_id).out.splitlines()
    assert heading.split() == ["ID", "WHEN", "KIND", "CREDITS", "BY", "WHY"]
    assert adjustment.split()[2:] == ["adjustment", "-20", "ada", "a", "mistake"]
    assert topup.split()[2:] == ["top-up", "+500", "shop", "invoice", "7:", "for", "May"]
    assert {line.split()[0] for line in (adjustment, topup)} == {change["id"] for change in document["changes"]}
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
    assert out.splitlines()[-1] == (
        f"There are more. See them with: tarazu credit history {account_id} --limit 2 --before {last}"
    )
    rest = tarazu.json("credit", "history", account_id, "--limit", "2", "--before", last)
    assert [change["reference"] for change in rest["changes"]] == ["0"]
    assert rest["more"] is False
    beyond = tarazu("credit", "history", account_id, "--before", rest["changes"][-1]["id"])
    assert beyond.out == f"{account_id} has nothing before {rest['changes'][-1]['id']}.\nThe balance is 3 credits.\n"


@pytest.mark.parametrize("limit", ["0", "1001"])
def test_a_page_of_history_is_bounded(tarazu: Commands, limit: str) -> None:
    """It says so, rather than show another number than was asked for."""
    ran = tarazu("credit", "history", tarazu.account(), "--limit", limit)
    assert (ran.status, ran.out, ran.err) == (1, "", f"tarazu: The limit must be 1 to 1000, not {limit}.\n")


def test_history_shows_nobody_for_a_top_up_from_before(tarazu: Commands) -> None:
    """Releases that did not record who made it left NULL: nobody in the table, null for programs."""
    account_id = tarazu.account()
    tarazu("credit", "add", account_id, "5", "--reference", "r")
    engine = open_books("sqlite:///tarazu.db")
    with transaction(engine) as connection:
        connection.exec_driver_sql("UPDATE topups SET made_by = NULL")
    engine.dispose()
    [change] = tarazu.json("credit", "history", account_id)["changes"]
    assert change["made_by"] is None
    _, topup, *_ = tarazu("credit", "history", account_id).out.splitlines()
    assert topup.split()[2:] == ["top-up", "+5", "r"]


def test_an_empty_history_says_how_to_begin(tarazu: Commands) -> None:
    """With the command to add credits."""
    account_id = tarazu.account()
    assert tarazu("credit", "history", account_id).out == (
        f"{account_id} has no top-ups and no adjustments.\nThe balance is 0 credits.\n"
        f"Add credits with: tarazu credit add {account_id} AMOUNT --reference REF\n"
    )
    assert tarazu.json("credit", "history", account_id) == {
        "account_id": account_id,
        "balance": 0,
        "changes": [],
        "more": False,
    }


def test_history_of_an_unknown_account(tarazu: Commands) -> None:
    """A mistyped id is said to be one."""
    ran = tarazu("credit", "history", "acc_x")
    assert (ran.status, ran.err) == (1, "tarazu: There is no account 'acc_x'. List them with: tarazu account list\n")


# Who.


@pytest.mark.parametrize("command", [("add", "5", "--reference", "r"), ("adjust", "5", "--reason", "a mistake")])
def test_who_is_recorded(tarazu: Commands, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]) -> None:
    """Whom --by names, before $TARAZU_OPERATOR."""
    account_id = tarazu.account()
    name, amount, *options = command
    monkeypatch.setenv("TARAZU_OPERATOR", "grace")
    assert tarazu.json("credit", name, account_id, amount, *options, "--by", " Ada L. ")["made_by"] == "Ada L."
    options[-1] += " again"
    assert tarazu.json("credit", name, account_id, amount, *options)["made_by"] == "grace"
    assert [change["made_by"] for change in tarazu.json("credit", "history", account_id)["changes"]].count("grace") == 1


def test_an_empty_name_is_refused(tarazu: Commands) -> None:
    """A variable that a script forgot to set must not become somebody else's name."""
    account_id = tarazu.account()
    ran = tarazu("credit", "add", account_id, "5", "--reference", "r", "--by", "")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "tarazu: The name of who does it is missing. Write one.\n"
    assert tarazu.json("account", "show", account_id)["balance"] == 0


def test_a_name_that_cannot_be_recorded_hinders_nobody_who_only_looks(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at where it is written down."""
    account_id = tarazu.account()
    monkeypatch.setenv("TARAZU_OPERATOR", "x" * 201)
    assert tarazu.json("credit", "history", account_id)["changes"] == []


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"TARAZU_OPERATOR": " Ada ", "SUDO_USER": "grace"}, "Ada"),
        ({"TARAZU_OPERATOR": " ", "SUDO_USER": "grace"}, "grace"),
        ({"SUDO_USER": ""}, "joan"),
        ({}, "joan"),
    ],
)
def test_who_acts_is_who_is_named_else_who_logged_in(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], name: str
) -> None:
    """$TARAZU_OPERATOR, the caller of sudo, the login name."""
    monkeypatch.setenv("LOGNAME", "joan")
    assert operator_name(environ) == name


def test_who_has_no_login_name_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container that runs under a user of no name."""

    def nobody() -> str:
        raise KeyError

    monkeypatch.setattr(getpass, "getuser", nobody)
    assert operator_name({}) == f"user {os.getuid()}"
