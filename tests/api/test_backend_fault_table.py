"""What a failing backend comes to, for each kind of server: every cell of the table, over real HTTP.

In a cell one backend fails in one way. It is asked twice: `alone`, as the only backend of a model, and in a `pair`,
before another one that is well. No two cells share a model, so no backend's health tells on another. All are asked at
once, when the module begins. The books have no part in it, so they are in SQLite alone.
"""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
import trustme
from msgspec import Struct
from msgspec.structs import replace

from tarazu.backends.kinds import KINDS
from tarazu.backends.port import Remedy
from tests.support.answers import credits_left, look
from tests.support.backend import Exchange, ScriptedBackend
from tests.support.certified import ca_file, serving
from tests.support.dialects import ANSWERS
from tests.support.envelopes import assert_domain_error
from tests.support.failing import CANARY, PROMPT, ROWS, Row, full, refuses, together
from tests.support.processes import peak_bytes, workers
from tests.support.rows import rows
from tests.support.service import BACKEND_KEY, Answer, Customer, RunningService, checked

PLANS = """
[plans.three]
monthly_credits = 3
requests_per_minute = 100
"""
TIMEOUT_S = 20
"""Far more than any cell takes."""
STALLED_S = 0.3
"""The time-out of the backends that stall."""
LARGE_TOGETHER_BYTES_MAX = 64 * 1024 * 1024
"""Far above what the replies that come at once may hold, and far below the 50 MiB that each of them has."""
AT_ONCE = 24
ESTIMATES = {"prompt_tokens": 5, "completion_tokens": 3}
"""Four characters each."""
SHAPES = ("alone", "pair")


CELLS = [(kind, name) for name in ROWS for kind in KINDS]
"""The kinds of one row are neighbours, so that they are asked together."""
FAILING = [(kind, name) for kind, name in CELLS if ROWS[name].fault is not None]
VALID = [(kind, name) for kind, name in CELLS if ROWS[name].fault is None]


class Outcome(Struct, frozen=True):
    """What became of one request. `row` is that of the books: state, credits, tries.

    `asked` are the calls at the backend that fails, and at the one that is well.
    """

    customer: Customer
    answer: Answer
    left: tuple[int, int]
    row: tuple[Any, ...]
    asked: tuple[int, int]
    faults: list[tuple[str, str]]


class World(Struct, frozen=True):
    """What is left when all cells have been asked."""

    outcomes: dict[tuple[str, str, str], Outcome]
    log: str
    books: bytes
    secrets: list[str]
    elsewhere: int
    certified: int
    grown_bytes: int


def _section(kind: str, url: str, **settings: object) -> str:
    lines = {"kind": kind, "url": url, "model": "m", "api_key_env": "BACKEND_KEY", **settings}
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())


def _catalogue(places: dict[str, str], ca_file: str) -> str:
    """Sell two models for each cell."""
    text = PLANS
    for kind, name in CELLS:
        row = ROWS[name]
        for shape in SHAPES:
            model = f"{kind}/{name}/{shape}"
            settings: dict[str, object] = {"timeout_s": STALLED_S} if row.stalls else {}
            if row.place in {"expired", "another host"}:
                settings["ca_file"] = ca_file
            sections = [_section(kind, f"{places[row.place]}/failing/{model}", **settings)]
            if shape == "pair":
                sections.append(_section(kind, f"{places['server']}/well/{model}", priority=1))
            text += f'[models."{model}"]\ncredits = 1\ntimeout_s = {TIMEOUT_S}\n'
            text += "".join(f'[[models."{model}".backends]]\n{section}' for section in sections)
    return text


async def _behave(exchange: Exchange) -> None:
    """Answer as the address says."""
    _, state, kind, name, *_ = exchange.received.path.split("/")
    if state == "well":
        await exchange.send(200, json.dumps(ANSWERS[kind]).encode())
    else:
        await ROWS[name].behaviours[kind](exchange)


@pytest.fixture(scope="module")
def world(sqlite_store: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Ask all cells."""
    folder = tmp_path_factory.mktemp("service")
    authority = trustme.CA()
    with ExitStack() as stack:
        meeting = asyncio.Barrier(len(KINDS))
        server, elsewhere = stack.enter_context(ScriptedBackend()), stack.enter_context(ScriptedBackend())
        moved = refuses(301, location=f"{elsewhere.root}/v1/chat/completions")
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setitem(ROWS, "301", replace(ROWS["301"], behaviours=moved))
        large = {kind: together(behave, meeting) for kind, behave in ROWS["too-large"].behaviours.items()}
        patch.setitem(ROWS, "too-large", replace(ROWS["too-large"], behaviours=large))
        server.behaviour = _behave
        certified = [
            stack.enter_context(serving(trustme.CA(), "127.0.0.1")),
            stack.enter_context(serving(authority, "127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC))),
            stack.enter_context(serving(authority, "other.example")),
        ]
        places = {
            "server": server.root,
            "refused": "http://127.0.0.1:1",
            "no such name": "http://backend.invalid",
            "unknown authority": certified[0].url,
            "expired": certified[1].url,
            "another host": certified[2].url,
            "full": stack.enter_context(full()),
        }
        catalogue = _catalogue(places, ca_file(folder, authority))
        database_url = sqlite_store.new_books(folder)
        service = stack.enter_context(
            checked(RunningService(folder, server.root, catalogue=catalogue, database_url=database_url))
        )
        [worker] = workers(service)
        before = peak_bytes(worker)
        asked = _ask_all(service)
        [(failed,)] = look(service, "SELECT sum(CASE state WHEN 'charged' THEN tries - 1 ELSE tries END) FROM requests")
        failures = service.logged("backend_failed", least=int(failed))
        log = service.log.read_text()
        addresses = [place.split("/")[2] for place in (*places.values(), elsewhere.root)]
        yield World(
            outcomes=_outcomes(service, server, asked, failures),
            log=log,
            books=b"".join(path.read_bytes() for path in folder.glob("tarazu.db*")),
            secrets=[CANARY, PROMPT, BACKEND_KEY, "Traceback", *addresses],
            elsewhere=len(elsewhere.received),
            certified=sum(each.asked for each in certified),
            grown_bytes=peak_bytes(worker) - before,
        )


Asked = dict[tuple[str, str, str], tuple[Customer, Answer, tuple[int, int]]]


def _ask_all(service: RunningService) -> Asked:
    customers = {cell: service.customer("three") for cell in CELLS}

    def ask(cell: tuple[str, str]) -> Asked:
        customer, asked = customers[cell], {}
        for shape in SHAPES:
            answer = service.chat(customer, PROMPT, model="/".join((*cell, shape)))
            asked[*cell, shape] = customer, answer, credits_left(service, customer)
        return asked

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return {key: value for asked in pool.map(ask, CELLS) for key, value in asked.items()}


def _outcomes(
    service: RunningService, server: ScriptedBackend, asked: Asked, failures: list[dict[str, Any]]
) -> dict[tuple[str, str, str], Outcome]:
    paths = [received.path for received in server.received]
    outcomes = {}
    for cell, (customer, answer, left) in asked.items():
        model = "/".join(cell)
        [row] = look(
            service,
            "SELECT state, credits, tries FROM requests WHERE account_id = :id AND model_id = :model",
            id=customer.account_id,
            model=model,
        )
        outcomes[cell] = Outcome(
            customer=customer,
            answer=answer,
            left=left,
            row=row,
            asked=(
                sum(path.startswith(f"/failing/{model}/") for path in paths),
                sum(path.startswith(f"/well/{model}/") for path in paths),
            ),
            faults=[(event["fault"], event["detail"]) for event in failures if event["model"] == model],
        )
    return outcomes


@rows("decisions.order_of_checks.17", "decisions.reply.3", "spec.codes.upstream_error", "spec.codes.rule_2")
@pytest.mark.parametrize(("kind", "name"), FAILING)
def test_a_backend_alone_that_fails_is_a_502_that_costs_nothing(world: World, kind: str, name: str) -> None:
    """It is asked once, or again where that may help; then the credits are back."""
    row, outcome = ROWS[name], world.outcomes[kind, name, "alone"]
    assert assert_domain_error(outcome.answer, 502, "upstream_error") == {}
    assert outcome.row == ("released", 1, row.tries_alone)
    assert outcome.left == (3, 0)
    assert outcome.asked == (row.tries_alone if row.place == "server" else 0, 0)
    _assert_faults(outcome, row, row.tries_alone)


@rows("decisions.order_of_checks.17")
@pytest.mark.parametrize(("kind", "name"), FAILING)
def test_a_backend_that_fails_beside_another_costs_nobody_a_reply(world: World, kind: str, name: str) -> None:
    """The other one is asked, unless it would refuse the request too; the reply is paid for once."""
    row, outcome = ROWS[name], world.outcomes[kind, name, "pair"]
    assert row.fault is not None
    _assert_faults(outcome, row, 1)
    assert outcome.asked[0] == (1 if row.place == "server" else 0)
    if row.fault.remedy is Remedy.GIVE_UP:
        assert assert_domain_error(outcome.answer, 502, "upstream_error") == {}
        assert (outcome.row, outcome.left, outcome.asked[1]) == (("released", 1, 1), (3, 0), 0)
    else:
        assert (outcome.answer.status, outcome.answer.text) == (200, "Hello there.")
        assert (outcome.row, outcome.left, outcome.asked[1]) == (("charged", 1, 2), (2, 0), 1)


def _assert_faults(outcome: Outcome, row: Row, times: int) -> None:
    assert row.fault is not None
    assert [fault for fault, _ in outcome.faults] == [row.fault.word] * times
    if row.detail is not None:
        assert [detail for _, detail in outcome.faults] == [row.detail] * times


@rows("decisions.reply.2", "spec.chat_completion.usage.credits")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("kind", "name"), VALID)
def test_nonsense_in_the_usage_becomes_an_estimate_and_moves_no_credits(
    world: World, kind: str, name: str, shape: str
) -> None:
    """The reply is served by the first backend, at the model's price."""
    outcome = world.outcomes[kind, name, shape]
    assert outcome.answer.status == 200, outcome.answer.body
    usage = outcome.answer.json["usage"]
    assert {figure: usage[figure] for figure in ESTIMATES} == ESTIMATES
    assert usage["credits"] == 1
    assert (outcome.row, outcome.asked, outcome.faults) == (("charged", 1, 1), (1, 0), [])


@rows("decisions.errors.2", "decisions.errors.3")
def test_no_secret_is_in_an_answer_in_the_log_or_in_the_books(world: World) -> None:
    """Not what a backend says, nor where it is, nor its key, nor the prompt, nor the caller's key."""
    said = [
        world.log,
        *(f"{outcome.answer.body.decode()} {outcome.answer.headers}" for outcome in world.outcomes.values()),
    ]
    secrets = [*world.secrets, *(outcome.customer.secret for outcome in world.outcomes.values())]
    assert [secret for secret in secrets if any(secret in text for text in said)] == []
    assert all(outcome.customer.account_id.encode() in world.books for outcome in world.outcomes.values())
    assert [secret for secret in secrets if secret.encode() in world.books] == []


def test_nobody_is_asked_who_was_not_to_be(world: World) -> None:
    """No host that a redirect names, nor a server whose certificate nobody trusts: so neither gets a key."""
    assert (world.elsewhere, world.certified) == (0, 0)


def test_replies_of_50_mib_take_little_memory(world: World) -> None:
    """One of each kind at once, twice, beside all else: they are read no further than the bound of one reply."""
    assert world.grown_bytes < LARGE_TOGETHER_BYTES_MAX
