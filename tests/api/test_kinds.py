"""A backend of each kind behind the whole service: served and charged, or failed and free; its key stays secret."""

import json

import pytest

from tests.support.answers import credits_left
from tests.support.backend import ScriptedBackend, answers
from tests.support.dialects import ANSWERS, PATHS, anthropic_answer, gemini_answer, openai_answer
from tests.support.envelopes import assert_domain_error
from tests.support.rows import rows
from tests.support.service import BACKEND_KEY, CATALOGUE, RunningService

MODELS = "".join(
    f"""
[models."kind/{kind}"]
credits = 1
timeout_s = 5
[[models."kind/{kind}".backends]]
kind = "{kind}"
url = "BACKEND/base"
model = "m"
api_key_env = "BACKEND_KEY"
"""
    for kind in PATHS
)
REFUSALS = {
    "openai": openai_answer(None, finish_reason="content_filter"),
    "anthropic": {**anthropic_answer(stop_reason="refusal"), "content": []},
    "gemini": gemini_answer({"text": ""}, finish_reason="SAFETY"),
}


@pytest.fixture(scope="module")
def catalogue() -> str:
    """Sell a model of each kind, too."""
    return CATALOGUE + MODELS


@rows("decisions.reply.2", "decisions.reply.3")
@pytest.mark.parametrize("kind", PATHS)
def test_a_reply_of_each_kind_is_served_and_charged(
    service: RunningService, backend: ScriptedBackend, kind: str
) -> None:
    """In the one form that callers know, whatever server wrote it."""
    backend.behaviour = answers(json.dumps(ANSWERS[kind]).encode())
    customer = service.customer("three")
    answer = service.chat(customer, model=f"kind/{kind}")
    assert (answer.status, answer.text) == (200, "Hello there.")
    assert answer.json["model"] == f"kind/{kind}"
    assert (answer.json["usage"]["prompt_tokens"], answer.json["usage"]["completion_tokens"]) == (11, 7)
    assert credits_left(service, customer) == (2, 0)
    (received,) = backend.received
    assert received.path == f"/v1/base{PATHS[kind]}"
    assert any(BACKEND_KEY in value for value in received.headers.values())


@rows("decisions.errors.3", "spec.codes.upstream_error")
@pytest.mark.parametrize("kind", PATHS)
def test_a_refusal_of_each_kind_costs_nothing(service: RunningService, backend: ScriptedBackend, kind: str) -> None:
    """It is a 502 like every failed try; the log tells the operator what it was, and not the key."""
    backend.behaviour = answers(json.dumps(REFUSALS[kind]).encode())
    customer, log_before = service.customer("three"), len(service.log.read_text())
    assert_domain_error(service.chat(customer, model=f"kind/{kind}"), 502, "upstream_error")
    assert credits_left(service, customer) == (3, 0)
    (line,) = service.logged("backend_failed", since=log_before)
    assert line["fault"] == "refusal"
    assert BACKEND_KEY not in service.log.read_text()[log_before:]


@rows("decisions.added_by_this_project.10")
def test_settings_that_a_kind_has_not_are_dropped(service: RunningService, backend: ScriptedBackend) -> None:
    """Callers send the same settings whatever server is behind a model."""
    backend.behaviour = answers(json.dumps(ANSWERS["anthropic"]).encode())
    answer = service.chat(service.customer(), model="kind/anthropic", seed=7, presence_penalty=1, temperature=2)
    assert answer.status == 200
    (received,) = backend.received
    assert received.body["temperature"] == 1
    assert not {"seed", "presence_penalty"} & set(received.body)
