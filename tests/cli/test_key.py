"""`tarazu key`."""

import re
from datetime import datetime
from pathlib import Path

import pytest

from tarazu.cli.documents import IssuedKeyDocument
from tarazu.domain.keys import parse
from tests.cli.commands import Commands

HOUR_S = 3_600
DAY_S = 86_400


def seconds(start: str, end: str) -> float:
    """Count the seconds between two times that were printed."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def test_create_prints_the_whole_key(tarazu: Commands) -> None:
    """`key create --json` prints id and secret, which is a well-formed key of that id, and its settings."""
    account_id = tarazu.account()
    key = tarazu.json("key", "create", account_id, "--name", "laptop")
    presented = parse(key.pop("secret"))
    assert presented is not None
    assert presented.id == key.pop("id")
    assert key.pop("created_at")
    assert key == {
        "account_id": account_id,
        "name": "laptop",
        "models": None,
        "limit_per_minute": None,
        "expires_at": None,
    }


def test_create_takes_expiry_models_and_limit(tarazu: Commands) -> None:
    """--expires, --models and --limit-per-minute are what the key has."""
    options = ("--expires", "90d", "--models", "test/one, test/two", "--limit-per-minute", "7")
    key = tarazu.json("key", "create", tarazu.account(), "--name", "ci", *options)
    assert (key["models"], key["limit_per_minute"]) == (["test/one", "test/two"], 7)
    assert seconds(key["created_at"], key["expires_at"]) == 90 * DAY_S


def test_create_shows_a_person_the_key_once(tarazu: Commands, folder: Path) -> None:
    """The key stands in the output of its making; no later command and no file has it."""
    account_id = tarazu.account()
    ran = tarazu("key", "create", account_id, "--name", "laptop")
    key = re.search(r"^Key +(trz_\w+)$", ran.out, re.MULTILINE)
    assert key
    assert ran.out.endswith("Keep the key now: it is not shown again.\n")
    secret = key[1][len("trz_") + 12 : -6]
    assert secret not in tarazu("key", "list", account_id, "--json").out + tarazu("key", "list", account_id).out
    assert not any(secret.encode() in file.read_bytes() for file in folder.iterdir())


def test_list_shows_keys_with_their_state(tarazu: Commands) -> None:
    """`key list` has the ended keys too, oldest first, and says which they are."""
    account_id = tarazu.account()
    first = tarazu.json("key", "create", account_id, "--name", "first", "--models", "test/one")["id"]
    second = tarazu.json("key", "create", account_id, "--name", "second")["id"]
    tarazu("key", "revoke", first)
    listed = tarazu.json("key", "list", account_id)
    assert [(key["id"], key["state"]) for key in listed] == [(first, "revoked"), (second, "active")]
    assert [set(key) for key in listed] == [
        {
            "id",
            "account_id",
            "name",
            "state",
            "models",
            "limit_per_minute",
            "created_at",
            "expires_at",
            "revoked_at",
            "paused_at",
            "successor_id",
        }
    ] * 2
    heading, *lines = tarazu("key", "list", account_id).out.splitlines()
    assert heading.split() == ["ID", "NAME", "STATE", "MODELS", "PER", "MINUTE", "CREATED", "EXPIRES"]
    assert [line.split()[:4] for line in lines] == [
        [first, "first", "revoked", "test/one"],
        [second, "second", "active", "all"],
    ]


def test_list_without_keys_says_how_to_issue_one(tarazu: Commands) -> None:
    """An account without keys is told of in words."""
    account_id = tarazu.account()
    assert tarazu("key", "list", account_id).out.endswith(f"key create {account_id} --name NAME\n")


def test_revoke_ends_a_key_once(tarazu: Commands) -> None:
    """`key revoke` prints since when the key is revoked, and the first time stands."""
    key_id = tarazu.json("key", "create", tarazu.account(), "--name", "k")["id"]
    first = tarazu.json("key", "revoke", key_id)
    assert (first["id"], first["state"]) == (key_id, "revoked")
    assert tarazu.json("key", "revoke", key_id) == first
    assert tarazu("key", "revoke", key_id).out == f"{key_id} (k) is revoked since {first['revoked_at']}.\n"


def test_replace_issues_the_same_key_anew(tarazu: Commands) -> None:
    """`key replace --json` prints what `key create --json` does: another id and secret, the same settings."""
    account_id = tarazu.account()
    old = tarazu.json("key", "create", account_id, "--name", "k", "--expires", "1d", "--models", "test/one")
    new = tarazu.json("key", "replace", old["id"])
    assert set(new) == set(old)
    assert new["secret"] != old["secret"]
    unchanged = ("account_id", "name", "models", "limit_per_minute", "expires_at")
    assert [new[name] for name in unchanged] == [old[name] for name in unchanged]
    assert [key["state"] for key in tarazu.json("key", "list", account_id)] == ["revoked", "active"]


def test_replace_leaves_the_old_key_a_time_of_grace(tarazu: Commands) -> None:
    """With --grace the old key stays active and ends after that time."""
    account_id = tarazu.account()
    old_id = tarazu.json("key", "create", account_id, "--name", "k")["id"]
    new = tarazu("key", "replace", old_id, "--grace", "1h")
    assert new.out.endswith(f"The old one, {old_id}, ends after its time of grace.\n")
    old, replacement = tarazu.json("key", "list", account_id)
    assert (old["state"], replacement["state"]) == ("active", "active")
    assert abs(seconds(replacement["created_at"], old["expires_at"]) - HOUR_S) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--models", "test/nine"), "There is no model 'test/nine'. Models: test/one, test/two."),
        (("--models", " , "), "A list of models must name at least one."),
        (("--limit-per-minute", "0"), "The limit per minute must be at least 1, not 0."),
    ],
)
def test_create_refuses_what_no_key_can_have(tarazu: Commands, options: tuple[str, ...], message: str) -> None:
    """A bad model, limit or expiry is said in one line, with exit status 1, and no key is made."""
    account_id = tarazu.account()
    ran = tarazu("key", "create", account_id, "--name", "k", *options)
    assert (ran.status, ran.out, ran.err) == (1, "", f"tarazu: {message}\n")
    assert tarazu.json("key", "list", account_id) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "acc_x", "--name", "k"), "There is no account 'acc_x'. List them with: tarazu account list"),
        (("list", "acc_x"), "There is no account 'acc_x'. List them with: tarazu account list"),
        (("revoke", "key_x"), "There is no key 'key_x'. List them with: tarazu key list ACCOUNT"),
        (("replace", "key_x"), "There is no key 'key_x'. List them with: tarazu key list ACCOUNT"),
    ],
)
def test_unknown_accounts_and_keys_are_said_to_be(tarazu: Commands, arguments: tuple[str, ...], message: str) -> None:
    """An id that nobody has is told with the command that lists those there are."""
    ran = tarazu("key", *arguments)
    assert (ran.status, ran.out, ran.err) == (1, "", f"tarazu: {message}\n")


def test_replacing_an_ended_key_is_refused(tarazu: Commands) -> None:
    """A revoked key has no successor."""
    key_id = tarazu.json("key", "create", tarazu.account(), "--name", "k")["id"]
    tarazu("key", "revoke", key_id)
    ran = tarazu("key", "replace", key_id)
    assert (ran.status, ran.err) == (1, f"tarazu: {key_id} no longer works; create a new key instead.\n")


@pytest.mark.parametrize(
    ("option", "value"), [("--expires", "90"), ("--expires", "soon"), ("--limit-per-minute", "1.5")]
)
def test_values_that_cannot_be_read_are_usage_errors(tarazu: Commands, option: str, value: str) -> None:
    """A mistyped duration or number is said with the option, what was expected and where the help is; status 2."""
    ran = tarazu("key", "create", "acc_x", "--name", "k", option, value)
    problem, advice = ran.err.splitlines()
    assert (ran.status, ran.out) == (2, "")
    assert re.fullmatch(rf"tarazu: Invalid value for {option}: expected a .+, got '{re.escape(value)}'", problem)
    assert advice == "See how it is used: tarazu key create --help"


def test_the_document_does_not_give_its_secret_away() -> None:
    """The document of a new key names it by its id when it is shown for debugging."""
    document = IssuedKeyDocument(
        id="key_1",
        secret="trz_canary",
        account_id="acc_1",
        name="k",
        models=None,
        limit_per_minute=None,
        created_at="2026-01-01T00:00:00Z",
        expires_at=None,
    )
    assert repr(document) == "IssuedKeyDocument(key_1)"
