"""The shape of every error, the specification's table of codes, and what no answer and no log ever tells."""

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.attempts import CHECKS, Check, attempt, await_books
from tests.support.backend import Behaviour, ScriptedBackend, answers, completion, resets, resets_in_body, stalls
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.rows import read_rows, rows
from tests.support.service import BACKEND_KEY, CATALOGUE, CHAT, MODELS, USAGE, Answer, Customer, RunningService
from tests.support.windows import within_one_minute

pytestmark = pytest.mark.usefixtures("backend")

CODES = {
    row.id.removeprefix("spec.codes."): int(row.text.split(" · ")[0])
    for row in read_rows()
    if row.id.startswith("spec.codes.") and "rule" not in row.id
}
"""The specification's table: the status of each code."""
DOMAIN_CHECKS = [check for check in CHECKS if check.code in CODES]
PROMPT_CANARY = "prompt-canary-7d1e"
REPLY_CANARY = "reply-canary-20c9"
NOWHERE = """
[models."test/nowhere"]
credits = 1
timeout_s = 5
[[models."test/nowhere".backends]]
kind = "openai"
url = "http://127.0.0.1:1/v1"
model = "nowhere"
api_key_env = "BACKEND_KEY"
"""


@pytest.fixture(scope="module")
def catalogue() -> str:
    """A model whose backend cannot be reached besides."""
    return CATALOGUE + NOWHERE


@rows("spec.envelope.error.code")
def test_every_code_can_be_met() -> None:
    """The checks of the chat endpoint answer with exactly the codes of the table."""
    assert {check.code: check.status for check in DOMAIN_CHECKS} == CODES
    assert len(CODES) == 12


@pytest.mark.parametrize("code", CODES, ids=lambda code: f"spec.codes.{code}")
def test_the_table(service: RunningService, backend: ScriptedBackend, code: str) -> None:
    """Each cause of a code is answered with its status, the code, a message and details."""
    for check in DOMAIN_CHECKS:
        if check.code == code:
            assert_domain_error(attempt(service, backend, check).answer, CODES[code], code)


@rows("spec.envelope.error.code", "spec.envelope.error.message", "spec.envelope.error.details", "decisions.errors.1")
@pytest.mark.parametrize("check", DOMAIN_CHECKS, ids=lambda check: f"check-{check.number}")
def test_the_envelope(service: RunningService, backend: ScriptedBackend, check: Check) -> None:
    """A domain error is one object `error`: a code of the table, a message of a few words, an object of details."""
    answer = attempt(service, backend, check).answer
    assert answer.headers["content-type"] == "application/json"
    (error,) = answer.json.values()
    assert list(answer.json) == ["error"]
    assert sorted(error) == ["code", "details", "message"]
    assert error["code"] in CODES
    assert isinstance(error["message"], str)
    assert len(error["message"].split()) >= 5
    assert isinstance(error["details"], dict)


@rows("spec.envelope.error.details", "decisions.errors.1")
def test_details_of_exhausted_credits(service: RunningService) -> None:
    """They tell period, used, limit, cost and the balance, as the specification lists them."""
    customer = service.customer("three", balance=1)
    for _ in range(2):
        assert service.chat(customer).status == 200
    details: dict[str, Any] = assert_domain_error(
        service.chat(customer, model="test/two"), 402, "api_credits_exhausted"
    )
    assert details.pop("period") == service.get(USAGE, customer).json["period"]
    assert details == {"used": 2, "limit": 3, "cost": 2, "api_credit_balance": 1}
    assert {type(figure) for figure in details.values()} == {int}


@rows("decisions.errors.1")
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("POST", "/api/v1/completions", 404), ("GET", CHAT, 405), ("PUT", USAGE, 405)],
)
def test_an_error_of_the_router(service: RunningService, method: str, path: str, status: int) -> None:
    """What is none of the specification's has a code too."""
    assert_own_error(service.request(method, path), status)


@rows("decisions.errors.1")
@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"prompt": "x", "stream": 1}', b'{"prompt": "x", "seed": "1"}', b'{"prompt": "\xff"}']
)
def test_an_error_of_the_body(service: RunningService, body: bytes) -> None:
    """A body that is wrong in itself is 400, one of another type 415."""
    customer = service.customer()
    assert_own_error(service.post(customer, body), 400)
    assert_own_error(service.post(customer, body, Content_Type="text/html"), 415)


@rows("spec.codes.rule_1")
def test_how_long_to_wait(service: RunningService) -> None:
    """A 429 carries Retry-After as a whole number of seconds, until the window that it names resets."""

    def scenario() -> tuple[Answer, float, float]:
        customer = service.customer(limit_per_minute=1)
        service.chat(customer)
        before_s = time.time()
        return service.chat(customer), before_s, time.time()

    answer, before_s, after_s = within_one_minute(scenario)
    details = assert_domain_error(answer, 429, "rate_limit_exceeded")
    resets_at = datetime.fromisoformat(details["resets_at"])
    assert resets_at.utcoffset() == timedelta()
    wait_s = int(answer.headers["retry-after"])
    assert resets_at.timestamp() - after_s <= wait_s <= resets_at.timestamp() - before_s + 1


@rows("spec.codes.rule_2", "spec.codes.upstream_error")
@pytest.mark.parametrize(("plan", "balance"), [("three", 0), ("three", 5), (None, 5)])
def test_a_502_returns_the_credits(
    service: RunningService, backend: ScriptedBackend, plan: str | None, balance: int
) -> None:
    """Quota and balance are after it as they were before, however often it happens."""
    customer = service.customer(plan, balance=balance)
    backend.behaviour = answers(b"<html>", content_type="text/html")
    for _ in range(4):
        assert_domain_error(service.chat(customer), 502, "upstream_error")
        await_books(service)
        account = service.account(customer)
        assert (account.used, account.balance) == (0, balance)
    backend.reset()
    assert service.chat(customer).json["usage"]["billing_source"] == ("plan" if plan else "api_balance")


def _indiscreet(backend: ScriptedBackend) -> list[Behaviour]:
    """Make backends that fail and tell all they know."""
    tale = f"Key {BACKEND_KEY} at {backend.url} refused {PROMPT_CANARY}: {REPLY_CANARY}".encode()
    return [
        *(answers(tale, status, Location=backend.url, X_Key=BACKEND_KEY) for status in (301, 307, 401, 403, 429, 500)),
        answers(b"<html>" + tale, content_type="text/html"),
        answers(completion(None, error=tale.decode())),
        answers(completion("")[:-1] + tale),
        answers(b"[" * 200_000 + tale),
        resets,
        resets_in_body,
    ]


def _provoked(service: RunningService, backend: ScriptedBackend, customer: Customer) -> list[Answer]:
    """Put the prompt and the whole key wherever they can stand, and let everything fail."""
    secret = customer.secret
    both = f"{PROMPT_CANARY} {secret}"
    made = []
    for behaviour in _indiscreet(backend):
        backend.behaviour = behaviour
        made.append(service.chat(customer, PROMPT_CANARY, user=secret))
    backend.behaviour = stalls
    return [
        *made,
        service.chat(customer, PROMPT_CANARY, model="test/hasty"),
        service.chat(customer, PROMPT_CANARY, model="test/nowhere"),
        service.chat(customer, PROMPT_CANARY, model="test/dear"),
        service.chat(customer, PROMPT_CANARY, model=both),
        service.chat(customer, both * 1_000),
        service.chat(customer, None),  # type: ignore[arg-type]  # no prompt
        *(service.chat(customer, both, **{name: both}) for name in ("stream", "temperature", "seed", "max_tokens")),
        service.chat(customer, both, stop=[both] * 5),
        service.post(customer, f'{{"{both}": '.encode()),
        service.post(customer, f'"{both}"'.encode()),
        service.post(customer, f'{{"prompt": "{both}\\ud83d"}}'.encode()),
        service.post(customer, f'{{"{both}": "\xff"}}'.encode("latin-1")),
        service.post(customer, both.encode(), Content_Type=f"text/{both}"),
        service.post(customer, both.encode(), Content_Encoding=both),
        service.post(customer, both.encode() * 50_000),
        service.get(f"{MODELS}/{secret}", customer),
        service.get(f"/{secret}?key={secret}", customer),
        service.get(f"{USAGE}?key={secret}"),
        service.request("DELETE", f"{USAGE}?key={secret}"),
        service.request("GET", USAGE, headers={"Authorization": f"Basic {secret}"}),
        service.request("GET", USAGE, headers=[("Authorization", f"Bearer {secret}")] * 2),
        service.request("GET", USAGE, headers={"Authorization": f"Bearer {secret[:-1]}"}),
    ]


@rows("decisions.errors.2", "decisions.errors.3")
def test_nothing_is_given_away(service: RunningService, backend: ScriptedBackend) -> None:
    """No refusal and no line of the log holds a key, a prompt, a reply, a backend's key or address, or a traceback."""
    customer = service.customer()
    made = _provoked(service, backend, customer)
    made += [attempt(service, backend, check, content=PROMPT_CANARY).answer for check in CHECKS]
    assert {answer.status for answer in made} == {*CODES.values(), 405, 415}
    service.logged("backend_failed")
    log = service.log.read_text()
    address = backend.url.removeprefix("http://").removesuffix("/v1")
    told = [answer.body.decode() + repr(answer.headers) for answer in made]
    for secret in (
        customer.secret,
        customer.secret[16:48],
        BACKEND_KEY,
        PROMPT_CANARY,
        REPLY_CANARY,
        address,
        "127.0.0.1:1/",
    ):
        assert not [answer for answer in told if secret in answer], secret
        assert secret not in log, secret
    for trace in ("Traceback", ".py", "Error(", "Exception"):
        assert not [answer for answer in told if trace in answer], trace
    assert "Traceback" not in log
    assert "request_failed" not in log


@rows("decisions.errors.1")
@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        ("POST", CHAT, {"prompt": "Hi", "stream": True}, "turn it off in your client"),
        (
            "POST",
            CHAT,
            {"prompt": "x" * 24_001},
            "prompt is too long: it would exceed context limit",
        ),  # as LiteLLM reads
        ("POST", CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "text parts alone"),
        ("POST", "/api/v1/responses", {"input": "Hi"}, "use chat completions"),
        ("POST", "/api/v1/completions", {"prompt": "Hi"}, "use chat completions"),
        ("POST", "/v1/chat/completions", {"prompt": "Hi"}, "The address of the API ends with /api/v1"),
        ("GET", f"{MODELS}/", None, "Leave the slash at the end out"),
    ],
)
def test_a_text_names_what_helps_at_a_client(
    service: RunningService, method: str, path: str, body: dict[str, Any] | None, said: str
) -> None:
    """Whoever reads it sits before a chat window, and has not written the request."""
    customer = service.customer()
    headers = {"Authorization": customer.bearer, "Content-Type": "application/json"}
    answer = service.request(method, path, None if body is None else json.dumps(body), headers)
    assert answer.status in (400, 404, 413, 422)
    assert said in answer.json["error"]["message"]


@rows("decisions.added_by_this_project.23")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"prompt": "Hi", "stream": True}),
        ("/api/v1/responses", {"input": "Hi"}),
        ("/v1/chat/completions", {"prompt": "Hi"}),
    ],
)
def test_what_a_setting_helps_leads_to_the_page_about_clients(
    service: RunningService, path: str, body: dict[str, Any]
) -> None:
    """By its whole address, at the end of the text; the page is there, and needs no key."""
    headers = {"Authorization": service.customer().bearer, "Content-Type": "application/json"}
    text: str = service.request("POST", path, json.dumps(body), headers).json["error"]["message"]
    origin, _, rest = text.rpartition(" ")[2].partition("/docs/")
    assert (origin, rest) == (service.configuration.server.base_url, "clients")
    page = service.get(f"/docs/{rest}")
    assert page.status == 200
    assert f"{origin}/api/v1" in page.body.decode()


@rows("decisions.added_by_this_project.23")
def test_what_to_do_about_a_refusal_is_told_by_no_makers_own_header(service: RunningService) -> None:
    """A stopped intake says in Retry-After when to ask again, and nothing else."""
    service.provisioning.stop_intake(retry_after_s=300)
    try:
        answer = service.chat(service.customer())
    finally:
        service.provisioning.resume_intake()
    assert (answer.status, answer.headers["retry-after"]) == (503, "300")
    assert "x-should-retry" not in answer.headers
