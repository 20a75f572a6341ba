"""`tarazu admin`."""

import re
from pathlib import Path

import pytest

from tarazu.cli.people_documents import InvitationDocument, IssuedTokenDocument, NewOperatorDocument
from tarazu.domain.keys import ADMIN_TOKEN, parse
from tarazu.service.control import Control, Told
from tests.cli.commands import Commands
from tests.cli.test_key import DAY_S, seconds

LINK = r"http://127\.0\.0\.1:8080/admin/invitation/\w{43}"


def operator(tarazu: Commands, email: str = "grace@example.com") -> str:
    """Make an operator; answer with the id."""
    id_: str = tarazu.json("admin", "operator", "create", "--email", email, "--name", "Grace")["id"]
    return id_


def token(tarazu: Commands, *options: str) -> str:
    """Issue a token; answer with its id."""
    id_: str = tarazu.json("admin", "token", "create", "--name", "shop", "--scopes", "read", *options)["id"]
    return id_


def test_operator_create_prints_the_operator_and_the_link(tarazu: Commands) -> None:
    """`admin operator create --json` prints who it is, and the link, which is good for three days."""
    made = tarazu.json("admin", "operator", "create", "--email", "Grace@Example.com", "--name", "Grace Hopper")
    assert re.fullmatch(r"opr_\w{14}", made.pop("id"))
    assert re.fullmatch(LINK, made.pop("link"))
    assert seconds(made.pop("created_at"), made.pop("link_expires_at")) == 3 * DAY_S
    assert made == {
        "name": "Grace Hopper",
        "email": "grace@example.com",
        "status": "active",
        "has_password": False,
    }


def test_operator_create_says_what_to_do_with_the_link(tarazu: Commands, folder: Path) -> None:
    """A person reads it once: no other command and no file has what it ends with."""
    ran = tarazu("admin", "operator", "create", "--email", "grace@example.com", "--name", "Grace [1]")
    link = re.search(rf"^Link +({LINK})$", ran.out, re.MULTILINE)
    assert link
    assert "Name     Grace [1]\n" in ran.out
    assert ran.out.endswith("Send it to the operator alone: whoever follows it first chooses the password.\n")
    secret = link[1].rpartition("/")[2]
    others = tarazu("admin", "operator", "list", "--json").out + tarazu("admin", "trail", "--json").out
    assert secret not in others
    assert not any(secret.encode() in file.read_bytes() for file in folder.iterdir())


def test_the_link_is_under_the_address_that_callers_use(tarazu: Commands, folder: Path) -> None:
    """`public_url`, where the configuration has one, for operators and holders."""
    config = folder / "tarazu.toml"
    config.write_text(config.read_text() + '[server]\npublic_url = "https://ai.example.com"\n')
    invited = tarazu.json("admin", "operator", "invite", operator(tarazu))
    assert invited["link"].startswith("https://ai.example.com/admin/invitation/")
    account_id = tarazu.account("--email", "ada@example.com")
    assert tarazu.json("account", "invite", account_id)["link"].startswith("https://ai.example.com/panel/invitation/")


def test_a_link_leads_to_what_runs(tarazu: Commands, folder: Path) -> None:
    """Also where the service was started with --host and --port; `public_url` stands above that."""
    Control(folder / "tarazu.toml", "http://127.0.0.1:18231", lambda _ask: Told()).start()
    made = tarazu.json("admin", "operator", "create", "--email", "grace@example.com", "--name", "Grace")
    invited = tarazu.json("admin", "operator", "invite", made["id"])
    holder = tarazu.json("account", "invite", tarazu.account("--email", "ada@example.com"))
    links = [each["link"] for each in (made, invited, holder)]
    assert all(link.startswith("http://127.0.0.1:18231/") for link in links), links
    config = folder / "tarazu.toml"
    config.write_text(config.read_text() + '[server]\npublic_url = "https://ai.example.com"\n')
    assert tarazu.json("admin", "operator", "invite", made["id"])["link"].startswith("https://ai.example.com/")


def test_operator_list_shows_all_oldest_first(tarazu: Commands) -> None:
    """A line, or with --json a member, for each; without any, how to make one."""
    assert "admin operator create --email EMAIL --name NAME\n" in tarazu("admin", "operator", "list").out
    ids = [operator(tarazu), operator(tarazu, "hedy@example.com")]
    found = tarazu.json("admin", "operator", "list")
    assert sorted(each["id"] for each in found) == sorted(ids)
    heading, *lines = tarazu("admin", "operator", "list").out.splitlines()
    assert heading.split() == ["ID", "NAME", "EMAIL", "STATUS", "PASSWORD", "CREATED"]
    assert lines[0].split()[:5] == [found[0]["id"], "Grace", found[0]["email"], "active", "no"]


def test_operator_invite_makes_another_link(tarazu: Commands) -> None:
    """For the same operator, and another one each time."""
    id_ = operator(tarazu)
    first, second = (tarazu.json("admin", "operator", "invite", id_) for _ in range(2))
    assert first["id"] == second["id"] == id_
    assert re.fullmatch(LINK, first["link"])
    assert first["link"] != second["link"]
    assert re.search(rf"^Link +{LINK}$", tarazu("admin", "operator", "invite", id_).out, re.MULTILINE)


def test_operator_set_shuts_out_and_lets_in(tarazu: Commands) -> None:
    """The status is what is asked for; an inactive one cannot be invited, and it says what helps."""
    id_ = operator(tarazu)
    assert tarazu.json("admin", "operator", "set", id_, "--status", "inactive")["status"] == "inactive"
    ran = tarazu("admin", "operator", "invite", id_)
    assert ran.status == 1
    assert f"tarazu admin operator set {id_} --status active" in ran.err
    said = tarazu("admin", "operator", "set", id_, "--status", "active").out
    assert said == f"{id_} (grace@example.com) is active.\n"
    said = tarazu("admin", "operator", "set", id_, "--no-second-factor").out
    assert said == f"{id_} (grace@example.com) is active and has no second factor.\n"
    nothing = tarazu("admin", "operator", "set", id_)
    assert (nothing.status, nothing.out) == (2, "")
    assert "Give --email EMAIL, --status STATUS or --no-second-factor." in nothing.err


def test_operator_set_changes_the_email(tarazu: Commands) -> None:
    """The password goes with it; the trail tells both addresses, and one that another operator has is refused."""
    id_ = operator(tarazu)
    changed = tarazu.json("admin", "operator", "set", id_, "--email", "Hopper@Example.com")
    assert (changed["email"], changed["has_password"]) == ("hopper@example.com", False)
    tarazu("admin", "operator", "create", "--email", "grace@example.com", "--name", "Another")
    taken = tarazu("admin", "operator", "set", id_, "--email", "grace@example.com")
    assert (taken.status, "grace@example.com already" in taken.err) == (1, True)
    assert tarazu.json("admin", "operator", "list")[0]["email"] == "hopper@example.com"
    assert "hopper@example.com" in tarazu("admin", "trail").out


def test_token_create_prints_the_whole_token(tarazu: Commands) -> None:
    """`admin token create --json` prints id and secret, which is a well-formed token of that id, and its settings."""
    options = ("--name", "shop", "--scopes", "credits, read", "--expires", "90d")
    made = tarazu.json("admin", "token", "create", *options)
    presented = parse(made.pop("secret"), ADMIN_TOKEN)
    assert presented is not None
    assert presented.id == made.pop("id")
    assert seconds(made.pop("created_at"), made.pop("expires_at")) == 90 * DAY_S
    assert made == {"name": "shop", "scopes": ["read", "credits"]}


def test_token_create_shows_a_person_the_token_once(tarazu: Commands, folder: Path) -> None:
    """The token stands in the output of its making; no later command and no file has it."""
    ran = tarazu("admin", "token", "create", "--name", "shop", "--scopes", "read")
    found = re.search(r"^Token +(tra_\w+)$", ran.out, re.MULTILINE)
    assert found
    assert "Expires  never\n" in ran.out
    assert ran.out.endswith("Keep the token now: it is not shown again.\n")
    secret = found[1][len("tra_") + 12 : -6]
    assert secret not in tarazu("admin", "token", "list", "--json").out + tarazu("admin", "trail", "--json").out
    assert not any(secret.encode() in file.read_bytes() for file in folder.iterdir())


@pytest.mark.parametrize("scopes", ["write", "", ",", "read,write"])
def test_token_create_names_the_scopes_that_there_are(tarazu: Commands, scopes: str) -> None:
    """Whoever has mistyped one is told all."""
    ran = tarazu("admin", "token", "create", "--name", "shop", "--scopes", scopes)
    assert ran.status == 1
    assert "read, accounts, credits" in ran.err


def test_token_list_shows_all_and_their_state(tarazu: Commands) -> None:
    """Also one that is revoked; without any, how to issue one."""
    assert "admin token create --name NAME --scopes SCOPES\n" in tarazu("admin", "token", "list").out
    first, second = token(tarazu), token(tarazu, "--expires", "1h")
    revoked = tarazu.json("admin", "token", "revoke", first)
    assert (revoked["state"], revoked["id"]) == ("revoked", first)
    found = {each["id"]: each["state"] for each in tarazu.json("admin", "token", "list")}
    assert found == {first: "revoked", second: "active"}
    heading, *lines = tarazu("admin", "token", "list").out.splitlines()
    assert heading.split() == ["ID", "NAME", "STATE", "SCOPES", "BY", "CREATED", "EXPIRES"]
    assert len(lines) == 2


def test_token_revoke_says_since_when(tarazu: Commands) -> None:
    """And what is no token is said to be none, with how to find one."""
    id_ = token(tarazu)
    assert re.fullmatch(rf"{id_} \(shop\) is revoked since \S+Z\.\n", tarazu("admin", "token", "revoke", id_).out)
    ran = tarazu("admin", "token", "revoke", "tok_x")
    assert ran.status == 1
    assert "tarazu admin token list" in ran.err


def test_trail_shows_what_was_done_newest_first(tarazu: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    """With who, by what way, on what, and the facts of it."""
    assert tarazu("admin", "trail").out == "There is nothing in the trail.\n"
    monkeypatch.setenv("TARAZU_OPERATOR", "grace")
    account_id = tarazu.account("--plan", "basic")
    (act,) = tarazu.json("admin", "trail")["acts"]
    assert re.fullmatch(r"act_\w{23}", act.pop("id"))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", act.pop("made_at"))
    assert act == {
        "act": "account.create",
        "made_by": "grace",
        "via": "command",
        "account_id": account_id,
        "subject": None,
        "detail": {"name": "Ada", "email": None, "plan": "basic", "status": "active"},
    }
    heading, line = tarazu("admin", "trail").out.splitlines()
    assert heading.split() == ["ID", "WHEN", "ACT", "BY", "VIA", "ACCOUNT", "SUBJECT", "DETAIL"]
    assert f" {account_id} " in line
    assert line.endswith('name="Ada" email=null plan="basic" status="active"')


def test_trail_goes_page_by_page_and_by_account(tarazu: Commands) -> None:
    """Each page says how to see the next; nothing is left out and nothing comes twice."""
    account_id, other = tarazu.account(), tarazu.account()
    for status in ("blocked", "active"):
        tarazu.json("account", "set", account_id, "--status", status)
    all_ids = [act["id"] for act in tarazu.json("admin", "trail")["acts"]]
    first = tarazu.json("admin", "trail", "--limit", "3")
    last = tarazu.json("admin", "trail", "--limit", "3", "--before", first["acts"][-1]["id"])
    assert [first["more"], last["more"]] == [True, False]
    assert [act["id"] for act in first["acts"] + last["acts"]] == all_ids
    of_one = tarazu.json("admin", "trail", "--account", other)["acts"]
    assert [act["account_id"] for act in of_one] == [other]
    said = tarazu("admin", "trail", "--account", account_id, "--limit", "2").out
    next_page = re.search(r"admin trail (--account \S+ --limit 2 --before \S+)\n$", said)
    assert next_page
    assert len(tarazu.json("admin", "trail", *next_page[1].split())["acts"]) == 1
    assert tarazu("admin", "trail", "--before", all_ids[-1]).out == f"There is nothing before {all_ids[-1]}.\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("trail", "--before", "zzz"), "There is no act 'zzz'. List them with: tarazu admin trail"),
        (("trail", "--before", "act_"), "There is no act 'act_'."),
        (("operator", "invite", "opr_x"), "There is no operator 'opr_x'."),
        (("operator", "set", "opr_x", "--status", "active"), "There is no operator 'opr_x'."),
        (("trail", "--account", "acc_x"), "There is no account 'acc_x'."),
        (("trail", "--limit", "0"), "The limit must be 1 to 1000, not 0."),
    ],
)
def test_what_cannot_be_done_is_said(tarazu: Commands, arguments: tuple[str, ...], words: str) -> None:
    """In words, with exit status 1."""
    ran = tarazu("admin", *arguments)
    assert ran.status == 1
    assert words in ran.err


def test_an_operator_has_an_email_alone(tarazu: Commands) -> None:
    """A second one with it is refused, with how to find the first."""
    operator(tarazu)
    ran = tarazu("admin", "operator", "create", "--email", "GRACE@example.com", "--name", "G")
    assert ran.status == 1
    assert "tarazu admin operator list" in ran.err


def test_documents_show_no_secret_in_an_error() -> None:
    """What is to be seen once is not in what a trace would print of them."""
    link = {"link": "http://x/admin/invitation/secret", "link_expires_at": "t"}
    person = {"id": "opr_1", "name": "G", "email": "g@example.com", "status": "active", "created_at": "t"}
    documents = [
        InvitationDocument(id="opr_1", **link),
        NewOperatorDocument(**person, has_password=False, **link),
        IssuedTokenDocument(id="tok_1", secret="secret", name="x", scopes=(), created_at="t", expires_at=None),
    ]
    assert "secret" not in repr(documents)
