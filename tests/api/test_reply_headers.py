"""The headers that answers carry, each on every answer that it belongs to and on no other."""

import asyncio
import re
import time
from datetime import datetime
from pathlib import Path

import pytest
from starlette.types import Message, Receive, Scope, Send

from tarazu.api.request_id import RequestIds
from tarazu.cli.clock import system_clock
from tarazu.service.identifiers import completion_id_of
from tarazu.store.request_history import find_request
from tests.support.at_once import wait_until
from tests.support.attempts import CHECKS, WINDOWS_CHECK, Check, attempt
from tests.support.backend import ScriptedBackend, answers
from tests.support.envelopes import RATE_LIMIT_HEADERS, rate_limit_headers
from tests.support.routes import Place, all_places
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, USAGE, Answer, RunningService
from tests.support.windows import within_one_minute
from tests.support.wire import Wire, chat_head

pytestmark = pytest.mark.usefixtures("backend")

SAFE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
REQUEST_ID = r"req_[0-9A-Za-z]{23}"
BESIDE_THE_CHAT = {
    ("GET", "/nothing"): 404,
    ("GET", "/favicon.ico"): 404,
    ("GET", "/health"): 200,
    ("GET", "/docs"): 200,
    ("GET", "/docs/clients"): 200,
    ("GET", "/api/v1/openapi.json"): 200,
    ("GET", MODELS): 200,
    ("HEAD", MODELS): 200,
    ("GET", f"{MODELS}/test/one"): 200,
    ("GET", f"{MODELS}/no/such"): 404,
    ("GET", f"{MODELS}/"): 404,
    ("GET", USAGE): 200,
    ("HEAD", USAGE): 200,
    ("OPTIONS", USAGE): 405,
    ("DELETE", MODELS): 405,
    ("GET", CHAT): 405,
    ("HEAD", CHAT): 405,
    ("POST", f"{CHAT}/"): 404,
    ("GET", "/api/v1/%ff%00"): 404,
}


@rows("decisions.reply.5")
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"check-{check.number}")
def test_headers_of_a_refused_call(service: RunningService, backend: ScriptedBackend, check: Check) -> None:
    """X-Request-Id always, X-RateLimit from row 7 on, WWW-Authenticate with 401, Retry-After with 429 and 503."""
    answer = attempt(service, backend, check).answer
    assert answer.status == check.status
    assert re.fullmatch(REQUEST_ID, answer.headers["x-request-id"])
    assert rate_limit_headers(answer) == (RATE_LIMIT_HEADERS if check.number >= WINDOWS_CHECK else set())
    assert answer.headers.get("www-authenticate") == ("Bearer" if check.status == 401 else None)
    if check.status in {429, 503}:
        assert re.fullmatch(r"[1-9][0-9]*", answer.headers["retry-after"])
    else:
        assert "retry-after" not in answer.headers


@rows("decisions.reply.5")
def test_headers_of_a_served_call(service: RunningService) -> None:
    """A completion carries X-Request-Id and X-RateLimit."""
    answer = service.chat(service.customer())
    assert answer.status == 200
    assert re.fullmatch(REQUEST_ID, answer.headers["x-request-id"])
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS
    assert not {"www-authenticate", "retry-after"} & set(answer.headers)


@rows("decisions.reply.5")
@pytest.mark.parametrize(("method", "path"), BESIDE_THE_CHAT)
def test_headers_beside_the_chat_endpoint(service: RunningService, method: str, path: str) -> None:
    """Every other answer, good or bad, carries X-Request-Id, and none of them X-RateLimit: it was not counted."""
    answer = service.request(method, path, headers={"Authorization": service.customer().bearer})
    assert answer.status == BESIDE_THE_CHAT[method, path]
    assert re.fullmatch(REQUEST_ID, answer.headers["x-request-id"])
    assert rate_limit_headers(answer) == set()


@rows("decisions.reply.5")
@pytest.mark.parametrize("path", [MODELS, f"{MODELS}/test/one", USAGE])
@pytest.mark.parametrize("authorization", ["", "Bearer x"])
def test_headers_of_a_get_that_is_not_let_in(service: RunningService, path: str, authorization: str) -> None:
    """A 401 of the GET endpoints carries WWW-Authenticate and X-Request-Id."""
    answer = service.request("GET", path, headers={"Authorization": authorization})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert re.fullmatch(REQUEST_ID, answer.headers["x-request-id"])


@rows("decisions.reply.5", "decisions.order_of_checks.10")
@pytest.mark.parametrize("body", [b"{}", b"zz\r\n{}\r\n", b"-2\r\n{}\r\n0\r\n\r\n"])
def test_headers_of_a_call_whose_chunks_are_broken(service: RunningService, body: bytes) -> None:
    """A chunked body that cannot be taken apart is a 400 of ours with all that belongs to it."""
    with Wire(service.port) as wire:
        wire.send(chat_head(service.customer(), "Transfer-Encoding: chunked") + body)
        answer = wire.answer()
    assert answer.status == 400
    assert answer.code == "invalid_request"
    assert re.fullmatch(REQUEST_ID, answer.headers["x-request-id"])
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS


@rows("decisions.reply.5")
def test_request_ids_are_unique(service: RunningService) -> None:
    """Each answer has an id of its own, whatever id the request brings along."""
    customer = service.customer()
    made = [service.post(customer, {"prompt": "Hello"}, X_Request_Id="mine") for _ in range(10)]
    made += [service.get(path, customer) for path in (USAGE, "/nothing", MODELS) * 10]
    assert len({answer.headers["x-request-id"] for answer in made}) == len(made)


@rows("decisions.reply.1", "decisions.reply.5")
def test_the_id_of_an_answer_leads_to_its_row(service: RunningService, backend: ScriptedBackend) -> None:
    """It is that of the completion but for its beginning, where there is a reply and where there is none."""
    customer = service.customer()
    served = service.chat(customer)
    backend.behaviour = answers(b"{}", 500)
    failed = service.chat(customer)
    assert (served.status, failed.status) == (200, 502)
    assert served.json["id"] == completion_id_of(served.headers["x-request-id"])

    def state() -> str | None:
        with service.engine.connect() as books:
            row = find_request(books, customer.account_id, completion_id_of(failed.headers["x-request-id"]))
        return None if row is None else row.state.value

    wait_until(lambda: state() == "released")


@rows("decisions.reply.5")
def test_the_figures_of_the_limit(service: RunningService) -> None:
    """The limit that binds tighter, what is left of it after this call, and the seconds until it is whole again."""

    def scenario() -> tuple[list[Answer], Answer, float, float]:
        customer = service.customer(limit_per_minute=2)
        before_s = time.time()
        made = [service.chat(customer), service.chat(customer, stream=True), service.chat(customer)]
        return made, service.get(USAGE, customer), before_s, time.time()

    made, usage, before_s, after_s = within_one_minute(scenario)
    assert [answer.status for answer in made] == [200, 400, 429]
    assert [answer.headers["x-ratelimit-limit"] for answer in made] == ["2", "2", "2"]
    assert [answer.headers["x-ratelimit-remaining"] for answer in made] == ["1", "0", "0"]
    resets_at_s = datetime.fromisoformat(usage.json["rate_limit"]["resets_at"]).timestamp()
    assert resets_at_s == (int(before_s) // 60 + 1) * 60
    for answer in made:
        reset_s = answer.headers["x-ratelimit-reset"]
        assert re.fullmatch(r"[1-9][0-9]?", reset_s)
        assert resets_at_s - after_s <= int(reset_s) <= resets_at_s - before_s + 1
    assert made[2].headers["retry-after"] == made[2].headers["x-ratelimit-reset"]


@rows("decisions.added_by_this_project.20")
def test_no_answer_of_the_api_is_kept_or_taken_for_a_page(
    service: RunningService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each route of both APIs and of health, each method, with a key and without: refusals and answers alike."""
    monkeypatch.chdir(tmp_path)
    places = [place for place in all_places() if place.path.startswith(("/api/", "/health", "/livez", "/readyz"))]
    assert len(places) >= 20
    bearer = service.customer().bearer
    for place in (*places, Place("/api/v1/nothing", "GET"), Place("/api/v1/usage", "DELETE")):
        for headers in ({}, {"Authorization": bearer}):
            answer = service.request(place.method, re.sub(r"\{\w+(:path)?\}", "x", place.path), headers=headers)
            found = {name: answer.headers.get(name) for name in SAFE}
            assert found == SAFE, (place, answer)


def test_the_pages_of_documents_are_taken_for_what_they_are(service: RunningService) -> None:
    """No browser guesses another type."""
    for path in ("/docs", "/docs/clients", "/docs/admin"):
        assert service.get(path).headers["x-content-type-options"] == "nosniff"


def test_what_was_cut_off_is_not_served() -> None:
    """No application sees it; where somebody is there after all, the answer says to come back."""

    async def unheard(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise AssertionError

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    sent: list[Message] = []
    numbered = RequestIds(unheard, system_clock, is_https=False, unserved={("192.0.2.1", "4711")})
    scope = {"type": "http", "client": ("192.0.2.1", "4711"), "path": "/docs"}
    asyncio.run(numbered(scope, receive, send))
    assert [message["type"] for message in sent] == ["http.response.start", "http.response.body"]
    assert sent[0]["status"] == 503
    headers = dict(sent[0]["headers"])
    assert headers[b"retry-after"] == b"1"
    assert headers[b"connection"] == b"close"
    assert re.fullmatch(REQUEST_ID.encode(), headers[b"x-request-id"])
    assert b"system_stopped" in sent[1]["body"]
