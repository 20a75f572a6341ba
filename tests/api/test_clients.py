"""docs/clients.md: its programs do what they show, with the clients' own releases, and so do its refusals.

In `make test` those that need nothing but what the other tests have; all in `make nightly`.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from tarazu.api.contract.samples import DEFAULT_ORIGIN, QUESTION
from tarazu.domain.accounts import Intake
from tests.support.backend import ScriptedBackend
from tests.support.books import sqlite_only
from tests.support.clients import (
    ALONE,
    CATALOGUE,
    NEWEST,
    NODE_PACKAGES,
    OLDER,
    ROOT,
    TESTS,
    Client,
    Ran,
    answer_as_asked,
    page,
    read_clients,
    rows,
    run,
)
from tests.support.recorder import Passed, Recorder
from tests.support.service import CHAT, RunningService
from tests.support.set_clock import SetClock

CLIENTS = read_clients()
ENVIRONMENT_OF = {
    "OpenAI for Python": TESTS,
    "OpenAI for JavaScript": TESTS,
    "AI SDK": TESTS,
    "LangChain for JavaScript": TESTS,
    "LangChain for Python": NEWEST,
    "Pydantic AI": NEWEST,
    "LiteLLM": NEWEST,
    "smolagents": NEWEST,
    "OpenAI Agents": NEWEST,
    "Haystack": NEWEST,
    "DSPy": NEWEST,
    "AutoGen": NEWEST,
    "llm": NEWEST,
    "LlamaIndex": OLDER,
    "Instructor": OLDER,
    "CrewAI": OLDER,
    "aider": ALONE,
}
FIRST, SECOND = QUESTION[:16], QUESTION[17:]
IN_PARTS = f'[{{"type": "text", "text": "{FIRST}"}}, {{"type": "text", "text": "{SECOND}"}}]'
AS_MESSAGE = f'[{{"role": "user", "content": {IN_PARTS}}}]'
WITH_PARTS = {
    "OpenAI for Python": (f'"{QUESTION}"', IN_PARTS),
    "OpenAI for JavaScript": (f'"{QUESTION}"', IN_PARTS),
    "AI SDK": (f'prompt: "{QUESTION}"', f"messages: {AS_MESSAGE}"),
    "LangChain for JavaScript": (f'"{QUESTION}"', AS_MESSAGE),
    "LangChain for Python": (f'"{QUESTION}"', AS_MESSAGE),
    "Pydantic AI": (f'"{QUESTION}"', f'["{FIRST}", "{SECOND}"]'),
    "LiteLLM": (f'"{QUESTION}"', IN_PARTS),
    "smolagents": (f'agent.run("{QUESTION}")', f"model.generate({AS_MESSAGE}).content"),
}
"""The official SDKs and what is used most: where their programs have the question, and how they send it in parts."""
ONCE = {
    "smolagents": (
        (f'agent.run("{QUESTION}")', f'model.generate([{{"role": "user", "content": "{QUESTION}"}}]).content'),
        ("    model_id=", "    retry=False,\n    model_id="),
    ),
}
"""Where an agent writes around the question, and asks for minutes on a 429: its model asks in its place, and once."""
WAIT_S = 3
"""What Retry-After says of a minute that is full."""
WAITS_LONG = "DSPy"


def _some(titles: list[str]) -> list[object]:
    """Leave those that need more than the tests have for the night."""
    at_night = pytest.mark.nightly
    return [pytest.param(title, marks=() if ENVIRONMENT_OF[title] == TESTS else at_night) for title in titles]


@pytest.fixture(scope="module")
def catalogue() -> str:
    """The model of the page, and plans that refuse it."""
    return CATALOGUE


@pytest.fixture(scope="module")
def service(service_by_clock: RunningService) -> RunningService:
    """A running service whose minute turns when told."""
    return service_by_clock


@pytest.fixture(scope="module")
def module_recorder(service: RunningService) -> Iterator[Recorder]:
    """What clients reach the service through."""
    with Recorder(service.port) as recorder:
        yield recorder


@pytest.fixture
def recorder(module_recorder: Recorder, service: RunningService, backend: ScriptedBackend) -> Iterator[Recorder]:
    """The same, with nothing in it, and a model that answers as it is asked."""
    module_recorder.reset()
    backend.behaviour = answer_as_asked
    yield module_recorder
    service.provisioning.resume_intake()


def _full_minute(service: RunningService) -> str:
    customer = service.customer("narrow")
    assert service.chat(customer).status == 200
    return customer.secret


def _stopped(service: RunningService) -> str:
    """Stop it as `tarazu intake stop` does that is told nothing."""
    service.provisioning.stop_intake(retry_after_s=Intake().retry_after_s)
    return service.customer().secret


class Way(Struct, frozen=True, kw_only=True):
    """How to meet a refusal: the key to send, what is asked, and where."""

    status: int
    key: Callable[[RunningService], str] = lambda service: service.customer().secret
    question: str = QUESTION
    path: str = "/api/v1"


WAYS = {
    "no such key": Way(status=401, key=lambda _service: "trz_wrong"),
    "no credits": Way(status=402, key=lambda service: service.customer("nothing").secret),
    "no such model": Way(status=404, key=lambda service: service.customer("other").secret),
    "another address": Way(status=404, path="/v1"),
    "too long": Way(status=413, question="x" * 24_001),
    "nothing asked": Way(status=422, question=" "),
    "full minute": Way(status=429, key=_full_minute),
    "stopped": Way(status=503, key=_stopped),
}


def _met(way: Way, client: Client, service: RunningService, recorder: Recorder, folder: Path) -> Ran:
    """Run a client's first program into a refusal."""
    return _run_into(way, client, client.blocks[0], service, recorder, folder)


def _run_into(way: Way, client: Client, source: str, service: RunningService, recorder: Recorder, folder: Path) -> Ran:
    return run(
        client,
        source,
        environment=ENVIRONMENT_OF[client.title],
        base_url=recorder.origin + way.path,
        api_key=way.key(service),
        question=way.question,
        folder=folder,
    )


def _asked(recorder: Recorder) -> list[Passed]:
    return [passed for passed in recorder.passed if passed.method == "POST"]


def test_every_client_with_a_program_is_tried() -> None:
    """None is left out, and each is in both tables of the page."""
    assert set(CLIENTS) == set(ENVIRONMENT_OF)
    for heading in ("Client", "Refused client"):
        linked = {found[1] for cells in rows(heading) if (found := re.match(r"\[(.+?)\]\(#", cells[0]))}
        assert set(CLIENTS) <= linked


def test_the_releases_are_those_that_are_tried() -> None:
    """Each that the page names, of a client with a program, is installed to be tried in this release."""
    pinned = {
        TESTS: (ROOT / "requirements" / "test.txt").read_text("utf-8"),
        **{name: (ROOT / "requirements" / f"clients-{name}.txt").read_text("utf-8") for name in (NEWEST, OLDER, ALONE)},
    }
    npm: dict[str, str] = json.loads((NODE_PACKAGES / "package.json").read_text("utf-8"))["dependencies"]
    tried = 0
    for client, releases, _ in rows("Client"):
        title = client.strip("[").partition("]")[0]
        if title not in CLIENTS:
            continue
        for name, number in re.findall(r"`([^`]+)` ([\d.]+)", releases):
            is_npm = CLIENTS[title].language == "javascript"
            if is_npm:
                assert npm[name] == number
            else:
                assert re.search(
                    rf"^{re.escape(name)}=={re.escape(number)} ", pinned[ENVIRONMENT_OF[title]], re.MULTILINE
                )
            tried += 1
    assert tried >= len(CLIENTS)


def test_every_address_of_the_page_is_the_services() -> None:
    """The page of a service has its own in place of each."""
    assert page().count(f"{DEFAULT_ORIGIN}/api/v1") >= len(CLIENTS)
    assert page().replace(f"{DEFAULT_ORIGIN}/api/v1", "").count("127.0.0.1") == 0


@sqlite_only
@pytest.mark.parametrize("title", _some(list(CLIENTS)))
def test_a_program_does_what_it_shows(title: str, service: RunningService, recorder: Recorder, tmp_path: Path) -> None:
    """All of a client's programs, pasted as they stand, get their replies, the forms that are asked for included."""
    client = CLIENTS[title]
    key = service.customer().secret
    ran = run(
        client,
        client.program,
        environment=ENVIRONMENT_OF[title],
        base_url=f"{recorder.origin}/api/v1",
        api_key=key,
        folder=tmp_path,
    )
    assert (ran.status, ran.out.count("Paris") >= len(client.blocks)) == (0, True), ran
    asked = _asked(recorder)
    assert {(passed.path, passed.status) for passed in asked} == {(CHAT, 200)}
    assert sum(b'"response_format"' in passed.sent for passed in asked) >= len(client.blocks) - 1


@sqlite_only
@pytest.mark.parametrize("title", _some(list(WITH_PARTS)))
def test_a_question_in_parts_is_the_question(
    title: str, service: RunningService, recorder: Recorder, backend: ScriptedBackend, tmp_path: Path
) -> None:
    """As each client sends them: the model gets all of it."""
    client = CLIENTS[title]
    assert client.blocks[0].count(WITH_PARTS[title][0]) == 1
    ran = run(
        client,
        client.blocks[0].replace(*WITH_PARTS[title]),
        environment=ENVIRONMENT_OF[title],
        base_url=f"{recorder.origin}/api/v1",
        api_key=service.customer().secret,
        folder=tmp_path,
    )
    assert ran.status == 0, ran
    assert "Paris" in ran.out
    assert isinstance(json.loads(_asked(recorder)[-1].sent)["messages"][-1]["content"], list)
    assert backend.received[-1].body["messages"][-1]["content"] == f"{FIRST}\n{SECOND}"


@sqlite_only
@pytest.mark.nightly
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("title", list(WITH_PARTS))
def test_each_refusal_can_be_read(
    title: str, way: str, service: RunningService, recorder: Recorder, clock: SetClock, tmp_path: Path
) -> None:
    """The text that the service has written stands in what the client prints, whole."""
    clock.set(f"2026-02-10T12:00:{60 - WAIT_S}Z")
    client = CLIENTS[title]
    source = client.blocks[0]
    for written, instead in ONCE.get(title, ()):
        assert source.count(written) == 1
        source = source.replace(written, instead)
    ran = _run_into(WAYS[way], client, source, service, recorder, tmp_path)
    last = _asked(recorder)[-1]
    assert last.status == WAYS[way].status
    assert ran.status != 0
    assert json.loads(last.answer)["error"]["message"] in ran.text


@sqlite_only
@pytest.mark.nightly
@pytest.mark.parametrize("title", list(CLIENTS))
def test_a_client_that_has_no_credits_asks_as_often_as_the_page_says(
    title: str, service: RunningService, recorder: Recorder, tmp_path: Path
) -> None:
    """And says why: the text can be read."""
    _met(WAYS["no credits"], CLIENTS[title], service, recorder, tmp_path)
    _compare(title, 1, recorder)


@sqlite_only
@pytest.mark.nightly
@pytest.mark.parametrize("title", list(CLIENTS))
def test_a_client_that_has_no_room_waits_for_it(
    title: str, service: RunningService, recorder: Recorder, clock: SetClock, tmp_path: Path
) -> None:
    """As long as Retry-After says: then it asks again, once, and gets its reply, as the page says of each."""
    clock.set(f"2026-02-10T12:00:{60 - WAIT_S}Z")
    recorder.on_passed = lambda passed: clock.set("2026-02-10T12:01:00Z") if passed.status == 429 else None
    ran = _met(WAYS["full minute"], CLIENTS[title], service, recorder, tmp_path)
    assert _refused_row(title)[2] == "waits"
    _has_waited(recorder, ran)


@sqlite_only
@pytest.mark.nightly
@pytest.mark.parametrize("title", [title for title in CLIENTS if title != WAITS_LONG])
def test_a_client_of_a_stopped_service_asks_as_often_as_the_page_says(
    title: str, service: RunningService, recorder: Recorder, tmp_path: Path
) -> None:
    """It does not wait for the five minutes that Retry-After says."""
    _met(WAYS["stopped"], CLIENTS[title], service, recorder, tmp_path)
    _compare(title, 3, recorder)


@sqlite_only
@pytest.mark.nightly
def test_one_client_waits_until_a_stopped_service_is_back(
    service: RunningService, recorder: Recorder, tmp_path: Path
) -> None:
    """However long: here it is told to wait for some seconds."""
    key = service.customer().secret
    service.provisioning.stop_intake(retry_after_s=WAIT_S)

    def resume(passed: Passed) -> None:
        if passed.status == 503:
            service.provisioning.resume_intake()

    recorder.on_passed = resume
    stopped = Way(status=503, key=lambda _service: key)
    ran = _met(stopped, CLIENTS[WAITS_LONG], service, recorder, tmp_path)
    assert _refused_row(WAITS_LONG)[3] == "waits"
    _has_waited(recorder, ran)


def _has_waited(recorder: Recorder, ran: Ran) -> None:
    refused, again = _asked(recorder)
    assert again.status == 200
    assert again.began_s - refused.ended_s >= WAIT_S
    assert "Paris" in ran.out


def _refused_row(title: str) -> list[str]:
    (row,) = (cells for cells in rows("Refused client") if cells[0].startswith(f"[{title}]"))
    return row


def _compare(title: str, column: int, recorder: Recorder) -> None:
    """Compare the number of requests with that of the page."""
    assert len(_asked(recorder)) == int(_refused_row(title)[column])
