"""`tarazu credit`."""

import re

import pytest

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
        f"tarazu: The reference r was used before, for 500 credits to {account_id}; nothing was added. "
        "Give every payment a reference of its own.\n"
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
