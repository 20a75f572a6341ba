"""`tarazu account`."""

import re

import pytest

from tests.cli.commands import Commands


def test_create_prints_the_account(tarazu: Commands) -> None:
    """`account create --json` prints the new account, with its id, plan, status and figures."""
    account = tarazu.json("account", "create", "--name", "Ada", "--email", "Ada@Example.com", "--plan", "basic")
    assert re.fullmatch(r"acc_\w{14}", account.pop("id"))
    assert re.fullmatch(r"\d{4}-\d\d", account.pop("period"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", account.pop("created_at"))
    assert account == {
        "name": "Ada",
        "email": "ada@example.com",
        "plan": "basic",
        "status": "active",
        "used": 0,
        "limit": 1_000,
        "remaining": 1_000,
        "balance": 0,
    }


def test_create_says_what_comes_next(tarazu: Commands) -> None:
    """A person reads the account, one field a line, and the command that issues a key for it."""
    ran = tarazu("account", "create", "--name", "Ada [1]", "--status", "unverified")
    account_id = re.search(r"acc_\w{14}", ran.out)
    assert account_id
    assert "Name     Ada [1]\n" in ran.out
    assert "Status   unverified\n" in ran.out
    assert "Used     0 of 0 credits, 0 left\n" in ran.out
    assert ran.out.endswith(f"key create {account_id[0]} --name NAME\n")


def test_show_prints_what_it_has_now(tarazu: Commands) -> None:
    """`account show --json` prints plan, status, period, used, limit and balance; without a plan the limit is 0."""
    account_id = tarazu.account()
    tarazu.json("credit", "add", account_id, "1200", "--reference", "r")
    account = tarazu.json("account", "show", account_id)
    assert (account["id"], account["plan"], account["status"]) == (account_id, None, "active")
    assert (account["used"], account["limit"], account["balance"]) == (0, 0, 1_200)
    assert "Balance  1,200 credits\n" in tarazu("account", "show", account_id).out


def test_a_name_may_hold_joiners(tarazu: Commands) -> None:
    """Persian names are written with a zero-width character inside; it is no control character."""
    name = "علی\u200cرضا"
    assert tarazu.json("account", "create", "--name", name)["name"] == name


def test_list_shows_all_accounts_oldest_first(tarazu: Commands) -> None:
    """`account list` prints a line, or with --json a member, for each account."""
    first, second = tarazu.account("--plan", "large"), tarazu.account()
    assert [account["id"] for account in tarazu.json("account", "list")] == [first, second]
    heading, *lines = tarazu("account", "list").out.splitlines()
    assert heading.split() == ["ID", "NAME", "EMAIL", "PLAN", "STATUS", "USED", "LIMIT", "BALANCE"]
    assert [line.split() for line in lines] == [
        [first, "Ada", "large", "active", "0", "50,000", "0"],
        [second, "Ada", "none", "active", "0", "0", "0"],
    ]


def test_list_without_accounts_says_how_to_open_one(tarazu: Commands) -> None:
    """Empty books are told of in words; with --json they are an empty list."""
    assert tarazu("account", "list").out.endswith("account create --name NAME\n")
    assert tarazu.json("account", "list") == []


def test_set_changes_plan_and_status_apart(tarazu: Commands) -> None:
    """`account set` changes what is named and leaves the rest."""
    account_id = tarazu.account("--plan", "basic")
    changed = tarazu.json("account", "set", account_id, "--status", "blocked")
    assert (changed["plan"], changed["status"]) == ("basic", "blocked")
    changed = tarazu.json("account", "set", account_id, "--plan", "large")
    assert (changed["plan"], changed["status"], changed["limit"]) == ("large", "blocked", 50_000)
    changed = tarazu.json("account", "set", account_id, "--no-plan", "--status", "active")
    assert (changed["plan"], changed["status"], changed["limit"]) == (None, "active", 0)
    assert tarazu.json("account", "set", account_id, "--no-second-factor") == changed
    assert tarazu.json("account", "rename", account_id, "Ada L.") == {**changed, "name": "Ada L."}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            (),
            (
                "There is nothing to change.\n"
                "Give --email EMAIL, --plan PLAN, --no-plan, --status STATUS or --no-second-factor."
            ),
        ),
        (("--plan", "basic", "--no-plan"), "--plan and --no-plan exclude each other.\nGive one of them."),
    ],
)
def test_set_wants_one_clear_change(tarazu: Commands, options: tuple[str, ...], message: str) -> None:
    """Nothing to change, or two plans at once, is a mistake in the usage."""
    ran = tarazu("account", "set", "acc_x", *options)
    assert (ran.status, ran.out, ran.err) == (2, "", f"tarazu: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "acc_x"), "There is no account 'acc_x'. List them with: tarazu account list"),
        (("set", "acc_x", "--no-plan"), "There is no account 'acc_x'. List them with: tarazu account list"),
        (("create", "--name", " "), "The name is missing. Write one."),
        (
            ("create", "--name", "A", "--email", "nobody"),
            "'nobody' is no email address. Write one as in ada@example.com.",
        ),
        (("create", "--name", "A", "--plan", "gold"), "There is no plan 'gold'. Plans: basic, large."),
        (
            ("create", "--name", "A", "--email", "a@b.c"),
            "There is an account with the email a@b.c already. Give another. Or find it with: tarazu account list",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tarazu: Commands, arguments: tuple[str, ...], message: str) -> None:
    """A refusal is one line on standard error with a next step, nothing on standard output, and exit status 1."""
    tarazu.account("--email", "a@b.c")
    ran = tarazu("account", *arguments, "--json")
    assert (ran.status, ran.out, ran.err) == (1, "", f"tarazu: {message}\n")


def test_invite_prints_a_link_for_the_holder(tarazu: Commands) -> None:
    """`account invite --json` prints the account and a link into the panel; a person reads whom to send it to."""
    account_id = tarazu.account("--email", "ada@example.com")
    invited = tarazu.json("account", "invite", account_id)
    assert invited["id"] == account_id
    assert re.fullmatch(r"http://127\.0\.0\.1:8080/panel/invitation/\w{43}", invited["link"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", invited["link_expires_at"])
    ran = tarazu("account", "invite", account_id)
    assert re.search(r"^Link +http://\S+/panel/invitation/\w{43}$", ran.out, re.MULTILINE)
    assert ran.out.endswith("Send it to the account's holder alone: whoever follows it first chooses the password.\n")


def test_nobody_is_invited_without_an_email(tarazu: Commands) -> None:
    """It is what the holder would sign in with."""
    ran = tarazu("account", "invite", tarazu.account())
    assert ran.status == 1
    assert "has no email address" in ran.err


def test_sign_out_tells_how_many_sessions_have_ended(tarazu: Commands) -> None:
    """None, where nobody is signed in."""
    account_id = tarazu.account("--email", "ada@example.com")
    assert tarazu.json("account", "sign-out", account_id) == {"id": account_id, "sessions": 0}
    assert tarazu("account", "sign-out", account_id).out == f"Ended 0 sessions of the holder of {account_id}.\n"
    assert tarazu("account", "sign-out", "acc_x").status == 1


def test_set_gives_an_email_and_voids_the_link_that_went_to_another(tarazu: Commands) -> None:
    """An account without one is told how; of two accounts one may have it; it is in the trail."""
    account_id, other = tarazu.account(), tarazu.account("--email", "grace@example.com")
    assert f"tarazu account set {account_id} --email EMAIL" in tarazu("account", "invite", account_id).err
    assert tarazu.json("account", "set", account_id, "--email", "Ada@Example.com")["email"] == "ada@example.com"
    assert tarazu.json("account", "invite", account_id)["id"] == account_id
    taken = tarazu("account", "set", account_id, "--email", "grace@example.com")
    assert (taken.status, "tarazu account list" in taken.err) == (1, True)
    assert tarazu.json("account", "show", other)["email"] == "grace@example.com"
    acts = [act["detail"] for act in tarazu.json("admin", "trail", "--account", account_id)["acts"]]
    assert {"email": [None, "ada@example.com"]} in acts
