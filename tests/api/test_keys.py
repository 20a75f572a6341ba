"""API keys, from `tarazu key …` to the requests that they open, and what is left of them on disk."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

import pytest

from tarazu.domain.bounds import Bounds
from tests.support.answers import assert_refused, look, read_usage
from tests.support.at_once import held
from tests.support.backend import ScriptedBackend, answers
from tests.support.odd_keys import key_with_another_secret, mistyped, unknown_key
from tests.support.processes import books_being_written
from tests.support.rows import rows
from tests.support.service import BACKEND_KEY, MODELS, PATIENT, USAGE, Customer, RunningService
from tests.support.set_clock import SetClock
from tests.support.visitor import holder
from tests.support.written import written

SHAPE = re.compile(r"trz_([0-9A-Za-z]{12})([0-9A-Za-z]{32})([0-9A-Za-z]{6})")
"""Prefix, public id, secret and checksum: what a secret scanner looks for."""
DAY_S = 86_400
HOUR_S = 3_600

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Models with time enough for a command while they answer."""
    return PATIENT


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service that tells the time by the test's clock."""
    return service_by_clock


# The shape


@rows("decisions.keys.1")
def test_a_key_has_the_shape_that_scanners_look_for(service: RunningService) -> None:
    """Prefix, 12 characters that are its id, 32 secret ones, 6 of checksum; no two are alike."""
    customer = service.customer()
    keys = [customer, *(service.another_key(customer) for _ in range(9))]
    for key in keys:
        shape = SHAPE.fullmatch(key.secret)
        assert shape is not None
        assert key.key_id == f"key_{shape[1]}"
    assert len({key.key_id for key in keys}) == len({key.secret[16:48] for key in keys}) == len(keys)
    text = f"token = {customer.secret!r}; see the documentation"
    assert [found[0] for found in SHAPE.finditer(text)] == [customer.secret]


@rows("decisions.keys.1", "spec.authentication.rule_4")
def test_a_key_mistyped_in_any_one_place_is_refused(service: RunningService, backend: ScriptedBackend) -> None:
    """Each of the 50 characters after the prefix counts, those of the checksum too."""
    customer = service.customer()
    for place in range(len("trz_"), len(customer.secret)):
        assert_refused(_get_usage(service, mistyped(customer.secret, place)), 401, "invalid_api_key", counted=False)
    assert backend.received == []


@rows("decisions.keys.1")
def test_a_mistyped_key_is_refused_without_a_look_up(service: RunningService) -> None:
    """While the database is locked for writing, a good key waits for it, and a mistyped one has its answer."""
    customer = service.customer()
    wrong = Customer(customer.account_id, customer.key_id, mistyped(customer.secret))
    with ThreadPoolExecutor(1) as pool:
        with books_being_written(service):
            good = pool.submit(service.chat, customer)
            assert_refused(service.chat(wrong), 401, "invalid_api_key", counted=False)
            assert not good.done()
        assert good.result().status == 200


@rows("decisions.keys.1", "decisions.order_of_checks.4")
def test_a_well_formed_key_that_is_unknown_is_refused(service: RunningService) -> None:
    """Also one with the public id of a good key and another secret."""
    for secret in (unknown_key(), key_with_another_secret(service.customer())):
        assert SHAPE.fullmatch(secret)
        assert_refused(_get_usage(service, secret), 401, "invalid_api_key", counted=False)


# What is kept


@rows("decisions.keys.1")
def test_only_a_sha_256_of_the_secret_is_stored(service: RunningService) -> None:
    """The row holds the digest of the 32 characters, and nothing written by the service holds them, used or not."""
    customer = service.customer()
    issued = _create(service, customer, "--name", "laptop")
    used, unused = customer.secret, issued["secret"]
    assert service.chat(customer).status == 200
    for secret, key_id in ((used, customer.key_id), (unused, issued["id"])):
        part = secret[16:48]
        assert look(service, "SELECT digest FROM keys WHERE id = :id", id=key_id) == [(sha256(part.encode()).digest(),)]
        assert part.encode() not in written(service)


@rows("decisions.keys.1")
def test_the_whole_key_is_shown_once(service: RunningService) -> None:
    """Only by the command that makes it; listing and revoking tell its id."""
    customer = service.customer()
    issued = _create(service, customer, "--name", "laptop")
    later = [
        service.run("key", "list", customer.account_id, "--json"),
        service.run("key", "list", customer.account_id),
        service.run("key", "revoke", issued["id"], "--json"),
    ]
    for done in later:
        assert done.returncode == 0
        assert issued["id"] in done.stdout
        assert issued["secret"][16:48] not in done.stdout + done.stderr


@rows("decisions.keys.1")
def test_a_person_is_shown_the_whole_key_once_too(service: RunningService) -> None:
    """Without --json it stands in the output one time, and the person is told to keep it."""
    done = service.run("key", "create", service.customer().account_id, "--name", "laptop")
    assert done.returncode == 0
    shown = [match[0] for match in SHAPE.finditer(done.stdout)]
    assert len(shown) == 1
    assert "not shown again" in done.stdout
    assert _get_usage(service, shown[0]).status == 200


def test_no_secret_and_no_prompt_is_in_any_file(service: RunningService, backend: ScriptedBackend) -> None:
    """Keys of callers and backends, prompts and replies are in no log and no table, whatever goes wrong."""
    customer = service.customer()
    backend.behaviour = answers(b"reply-canary-2b7e", status=500)
    service.chat(customer, "prompt-canary-91d4")
    service.chat(customer, "prompt-canary-91d4" * 2_000)
    service.post(customer, b"body-canary-0a3c")
    service.get(USAGE, Customer(customer.account_id, customer.key_id, mistyped(customer.secret)))
    for canary in ("reply-canary-2b7e", "prompt-canary-91d4", "body-canary-0a3c", customer.secret[16:48], BACKEND_KEY):
        assert canary.encode() not in written(service)


# What a key has


@rows("decisions.keys.2")
def test_a_key_has_a_name(service: RunningService) -> None:
    """It is asked for, and GET /usage shows it."""
    customer = service.customer()
    issued = _create(service, customer, "--name", "Ada's laptop")
    assert issued["name"] == "Ada's laptop"
    assert _get_usage(service, issued["secret"]).json["key"] == {"id": issued["id"], "name": "Ada's laptop"}
    refused = service.run("key", "create", customer.account_id, "--json")
    assert refused.returncode != 0
    assert "--name" in refused.stderr
    assert len(service.provisioning.keys(customer.account_id)) == 2


@rows("decisions.keys.2")
def test_everything_but_the_name_is_optional(service: RunningService, clock: SetClock) -> None:
    """Without them a key has no end, all models of the plan, and the account's limit alone."""
    customer = service.customer("narrow")
    issued = _create(service, customer, "--name", "plain")
    assert (issued["expires_at"], issued["models"], issued["limit_per_minute"]) == (None, None, None)
    clock.advance(100 * 365 * DAY_S)
    listed = service.get(MODELS, _customer(customer, issued)).json["data"]
    assert len(listed) == len(service.configuration.catalogue.models)
    assert _get_usage(service, issued["secret"]).json["rate_limit"]["limit_per_minute"] == 3


@rows("decisions.keys.2", "decisions.order_of_checks.4")
def test_a_key_works_until_it_expires(service: RunningService, clock: SetClock) -> None:
    """90 days less an instant, on every endpoint; then 401 on every endpoint, and no other key minds."""
    customer = service.customer()
    issued = _create(service, customer, "--name", "for a while", "--expires", "90d")
    key = _customer(customer, issued)
    assert issued["expires_at"] == "2026-05-11T12:00:00Z"
    clock.set("2026-05-11T11:59:59.999Z")
    assert [service.chat(key).status, service.get(USAGE, key).status, service.get(MODELS, key).status] == [200] * 3
    clock.set("2026-05-11T12:00:00Z")
    for answer in (service.chat(key), service.get(USAGE, key), service.get(MODELS, key)):
        assert_refused(answer, 401, "invalid_api_key", counted=False)
    assert service.chat(customer).status == 200


@rows("decisions.keys.2")
def test_the_list_of_models_narrows_the_plan(service: RunningService) -> None:
    """What it names is served, the rest of the plan is not found."""
    customer = service.customer("basic")
    key = _customer(customer, _create(service, customer, "--name", "narrow", "--models", "test/two,odd/a:b.c-1/x"))
    assert [model["id"] for model in service.get(MODELS, key).json["data"]] == ["test/two", "odd/a:b.c-1/x"]
    assert [service.chat(key, model=id_).status for id_ in ("test/two", "odd/a:b.c-1/x")] == [200, 200]
    assert_refused(service.chat(key, model="test/one"), 404, "model_not_found")
    assert service.chat(customer, model="test/one").status == 200


@rows("decisions.keys.2")
def test_the_list_of_models_never_widens_the_plan(service: RunningService) -> None:
    """A model outside the plan stays outside, also when the key names it and nothing else."""
    customer = service.customer("basic")
    key = _customer(customer, _create(service, customer, "--name", "wide", "--models", "test/dear,test/one"))
    alone = service.another_key(customer, models=("test/dear",))
    everything = service.another_key(customer, models=("*",))
    for each in (key, alone, everything):
        assert_refused(service.chat(each, model="test/dear"), 404, "model_not_found")
        assert "test/dear" not in [model["id"] for model in service.get(MODELS, each).json["data"]]
    assert service.chat(key, model="test/one").status == 200


@rows("decisions.keys.2")
def test_a_key_may_have_a_limit_of_its_own(service: RunningService) -> None:
    """2 a minute for it, and as ever for the other keys."""
    customer = service.customer()
    key = _customer(customer, _create(service, customer, "--name", "slow", "--limit-per-minute", "2"))
    assert [service.chat(key).status for _ in range(3)] == [200, 200, 429]
    assert [service.chat(customer).status for _ in range(3)] == [200] * 3


@rows("decisions.keys.2")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--limit-per-minute", "0"),
        ("--limit-per-minute", "1.5"),
        ("--expires", "0d"),
        ("--expires", "soon"),
        ("--models", "no/such-model"),
        ("--models", ","),
        ("--name", " "),
    ],
)
def test_what_a_key_cannot_have_is_refused(service: RunningService, option: str, value: str) -> None:
    """With a message, and no key is made."""
    customer = service.customer()
    name = () if option == "--name" else ("--name", "wrong")
    done = service.run("key", "create", customer.account_id, *name, option, value)
    assert done.returncode != 0
    assert done.stderr.startswith("tarazu: ")
    assert SHAPE.search(done.stdout) is None
    assert len(service.provisioning.keys(customer.account_id)) == 1


# Replacing and revoking


@rows("decisions.keys.3")
def test_replacing_mints_a_new_secret_and_stops_the_old_one_at_once(service: RunningService) -> None:
    """Under the same name, with the same models and limit; the next request with the old one is refused."""
    customer = service.customer()
    old = service.another_key(customer, models=("test/two",), limit_per_minute=7)
    assert service.chat(old).status == 200
    issued = _run(service, "key", "replace", old.key_id)
    new = _customer(customer, issued)
    assert SHAPE.fullmatch(new.secret)
    assert new.key_id != old.key_id
    assert new.secret[16:48] != old.secret[16:48]
    assert_refused(service.chat(old), 401, "invalid_api_key", counted=False)
    assert_refused(service.get(USAGE, old), 401, "invalid_api_key", counted=False)
    usage = read_usage(service, new)
    assert usage["key"] == {"id": new.key_id, "name": "another key"}
    assert usage["rate_limit"]["limit_per_minute"] == 7
    assert [model["id"] for model in service.get(MODELS, new).json["data"]] == ["test/two"]
    assert service.chat(new).status == 200


@rows("decisions.keys.3")
def test_with_a_grace_period_the_old_key_works_until_its_end(service: RunningService, clock: SetClock) -> None:
    """Both work for the hour that was asked for; then only the new one does."""
    old = service.customer()
    new = _customer(old, _run(service, "key", "replace", old.key_id, "--grace", "1h"))
    clock.advance(HOUR_S - 1)
    assert [service.chat(key).status for key in (old, new)] == [200, 200]
    clock.advance(1)
    assert_refused(service.chat(old), 401, "invalid_api_key", counted=False)
    assert service.chat(new).status == 200


@rows("decisions.keys.3")
def test_a_grace_period_does_not_lengthen_the_life_of_a_key(service: RunningService, clock: SetClock) -> None:
    """A key that ends in an hour ends in an hour, and so does the one in its place."""
    customer = service.customer()
    old = service.another_key(customer, expires_in_s=HOUR_S)
    new = _customer(customer, _run(service, "key", "replace", old.key_id, "--grace", "2d"))
    clock.advance(HOUR_S)
    for key in (old, new):
        assert_refused(service.chat(key), 401, "invalid_api_key", counted=False)


@rows("decisions.keys.5")
@pytest.mark.parametrize("own_end_s", [None, 90 * DAY_S])
def test_a_successor_has_the_own_end_of_the_key_and_not_that_of_its_grace(
    service: RunningService, own_end_s: int | None
) -> None:
    """A key in its time of grace is not replaced again, and the error names the key to replace; that one can be."""
    customer = service.customer()
    old = service.another_key(customer, expires_in_s=own_end_s)
    own_end_ms = service.provisioning.key(old.key_id).expires_at_ms
    first = _run(service, "key", "replace", old.key_id, "--grace", "1h")
    grace_end_ms = service.provisioning.key(old.key_id).expires_at_ms
    refused = service.run("key", "replace", old.key_id, "--grace", "7d")
    assert refused.returncode == 1
    assert first["id"] in refused.stderr
    second = _run(service, "key", "replace", first["id"], "--grace", "1h")
    assert service.provisioning.key(second["id"]).expires_at_ms == own_end_ms
    assert service.provisioning.key(old.key_id).expires_at_ms == grace_end_ms != own_end_ms
    assert len(service.provisioning.keys(customer.account_id)) == 4


@rows("decisions.keys.6")
def test_a_paused_key_is_refused_until_it_is_resumed(service: RunningService, backend: ScriptedBackend) -> None:
    """On every endpoint, with a message that says so to who has the whole key; it takes no place."""
    customer = service.customer()
    other = service.another_key(customer)
    paused = _run(service, "key", "pause", customer.key_id)
    assert (paused["state"], _run(service, "key", "pause", customer.key_id)) == ("paused", paused)
    for answer in (service.chat(customer), service.get(USAGE, customer), service.get(MODELS, customer)):
        assert_refused(answer, 401, "invalid_api_key", counted=False)
        assert "paused" in answer.json["error"]["message"]
    guessed = _get_usage(service, key_with_another_secret(customer))
    assert "paused" not in guessed.json["error"]["message"]
    assert backend.received == []
    assert service.chat(other).status == 200
    resumed = _run(service, "key", "resume", customer.key_id)
    assert (resumed["state"], resumed["paused_at"]) == ("active", None)
    assert service.chat(customer).status == 200


@rows("decisions.keys.3")
def test_a_key_that_has_ended_cannot_be_replaced(service: RunningService) -> None:
    """A revoked key brings no new one."""
    customer = service.customer()
    service.provisioning.revoke_key(customer.key_id)
    done = service.run("key", "replace", customer.key_id, "--json")
    assert done.returncode != 0
    assert "no longer works" in done.stderr
    assert len(service.provisioning.keys(customer.account_id)) == 1


@rows("decisions.order_of_checks.4", "spec.authentication.rule_4", "spec.codes.invalid_api_key")
def test_a_revocation_holds_from_the_next_request_on(service: RunningService, backend: ScriptedBackend) -> None:
    """What is running is served and paid, what comes after is 401; the account's other keys work on."""
    customer = service.customer()
    other = service.another_key(customer)
    with held(backend, partial(service.chat, customer)) as (asked,):
        revoked = _run(service, "key", "revoke", customer.key_id)
        assert_refused(service.chat(customer), 401, "invalid_api_key", counted=False)
        assert_refused(service.get(USAGE, customer), 401, "invalid_api_key", counted=False)
    assert revoked["state"] == "revoked"
    assert asked.result().status == 200
    assert service.chat(other).status == 200
    assert read_usage(service, other)["api_credits"]["used"] == 2


def test_revoking_twice_is_revoking_once(service: RunningService, clock: SetClock) -> None:
    """The second time changes nothing, and fails nothing."""
    customer = service.customer()
    first = _run(service, "key", "revoke", customer.key_id)
    clock.advance(HOUR_S)
    assert _run(service, "key", "revoke", customer.key_id) == first


def _run(service: RunningService, *arguments: str) -> Any:
    done = service.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _create(service: RunningService, customer: Customer, *options: str) -> Any:
    return _run(service, "key", "create", customer.account_id, *options)


def _customer(customer: Customer, issued: Any) -> Customer:
    return Customer(customer.account_id, issued["id"], issued["secret"])


def _get_usage(service: RunningService, secret: str) -> Any:
    return service.request("GET", USAGE, headers={"Authorization": f"Bearer {secret}"})


@rows("decisions.keys.4")
def test_a_holder_makes_no_more_keys_than_an_account_may_have(service: RunningService) -> None:
    """Beyond it the form says what to do; a command still makes one, and says that it is beyond."""
    someone = holder(service)
    keys = [service.provisioning.create_key(someone.account_id, name="by hand").key.id for _ in range(Bounds().keys)]
    someone.visitor.get("/panel/keys/new")
    refused = someone.visitor.send("/panel/keys/new", csrf=None, name="laptop")
    assert refused.status == 409
    assert "Revoke one first" in refused.text
    made = service.run("key", "create", someone.account_id, "--name", "one more")
    assert (made.returncode, "101 keys that have not ended" in made.stderr) == (0, True)
    for key in keys[:2]:
        assert someone.visitor.send(f"/panel/keys/{key}/revoke").status == 303
    someone.visitor.get("/panel/keys/new")
    assert someone.visitor.send("/panel/keys/new", csrf=None, name="laptop").status == 200
