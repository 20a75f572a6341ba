"""The completion that a call gets: each member of the object, and where its figures come from."""

import re
import time
from functools import partial
from typing import Any

import pytest

from tests.support.at_once import at_once
from tests.support.backend import ScriptedBackend, answers, completion, replies
from tests.support.envelopes import assert_domain_error, assert_own_error
from tests.support.rows import rows
from tests.support.service import CHAT, MODELS, USAGE, RunningService

pytestmark = pytest.mark.usefixtures("backend")

REPLY = 'سلام!\n\n"It\'s" <b>\\ fine\0\U0001f600 '
NO_FIGURES: tuple[Any, ...] = (None, -1, -(10**30), 10**30, 1e308, 1.5, "12", "NaN", "", True, False, [], [5], {})


def usage_of(service: RunningService, backend: ScriptedBackend, usage: object, **members: Any) -> dict[str, Any]:
    """Have the backend give these figures; answer with those that the caller gets."""
    backend.behaviour = answers(completion("Hello there.", usage))
    answer = service.chat(service.customer(), **members)
    assert answer.status == 200, answer
    figures: dict[str, Any] = answer.json["usage"]
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert type(figures[name]) is int
    assert figures["total_tokens"] == figures["prompt_tokens"] + figures["completion_tokens"]
    assert figures["credits"] == 1
    return figures


@rows(
    "spec.endpoints.1",
    "spec.chat_completion.id",
    "spec.chat_completion.object",
    "spec.chat_completion.created",
    "spec.chat_completion.model",
    "spec.chat_completion.choices",
    "spec.chat_completion.choices.index",
    "spec.chat_completion.choices.message.role",
    "spec.chat_completion.choices.message.content",
    "spec.chat_completion.choices.finish_reason",
    "spec.chat_completion.usage.prompt_tokens",
    "spec.chat_completion.usage.completion_tokens",
    "spec.chat_completion.usage.total_tokens",
    "spec.chat_completion.usage.credits",
    "spec.chat_completion.usage.billing_source",
)
def test_the_whole_object(service: RunningService, backend: ScriptedBackend) -> None:
    """A good call is answered 200 with one JSON object of exactly the members of the table."""
    backend.behaviour = replies("Paris.", {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13})
    body = {"model": "test/two", "messages": [{"role": "user", "content": "Capital?"}], "stream": False}
    answer = service.post(service.customer(), body)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    reply = answer.json
    assert isinstance(reply.pop("id"), str)
    assert type(reply.pop("created")) is int
    assert reply == {
        "object": "chat.completion",
        "model": "test/two",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Paris."}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 11,
            "completion_tokens": 2,
            "total_tokens": 13,
            "credits": 2,
            "billing_source": "plan",
        },
    }


@rows("spec.chat_completion.id", "decisions.reply.1")
def test_the_id(service: RunningService) -> None:
    """It is `chatcmpl_` and letters and digits, and ids of one call after the other sort by their time."""
    customer, another = service.customer(), service.customer()
    ids = [service.chat(each).json["id"] for each in (customer, another) * 10]
    assert all(re.fullmatch(r"chatcmpl_[0-9A-Za-z]{16,}", each) for each in ids)
    assert ids == sorted(ids)
    assert len({len(each) for each in ids}) == 1


@rows("spec.chat_completion.id", "decisions.reply.1")
def test_ids_are_unique(service: RunningService) -> None:
    """Calls at the same time get ids of their own."""
    customer = service.customer()
    ids = {answer.json["id"] for answer in at_once([partial(service.chat, customer)] * 40)}
    assert len(ids) == 40


@rows("spec.chat_completion.created", "decisions.reply.1")
def test_the_time_of_creation(service: RunningService) -> None:
    """It is the time of the call as a Unix timestamp, in whole seconds."""
    before_s = int(time.time())
    created = service.chat(service.customer()).json["created"]
    assert type(created) is int
    assert before_s <= created <= time.time()


@rows("spec.chat_completion.choices", "spec.chat_completion.choices.index", "spec.versioning.rule_2")
def test_the_main_reply_is_the_first(service: RunningService, backend: ScriptedBackend) -> None:
    """Of several choices of a backend the first is the reply, the only one, with index 0."""
    choices = [{"index": 7 - place, "message": {"role": "x", "content": f"Choice {place}"}} for place in range(3)]
    backend.behaviour = answers(completion(choices=choices))
    reply = service.chat(service.customer(), n=3).json
    assert [(each["index"], each["message"]["content"]) for each in reply["choices"]] == [(0, "Choice 0")]


@rows("spec.chat_completion.choices.message.content")
@pytest.mark.parametrize("text", [REPLY, " \n padded \n ", "x" * 1_000_000], ids=lambda text: ascii(text)[:20])
def test_the_text_is_the_models(service: RunningService, backend: ScriptedBackend, text: str) -> None:
    """What the model wrote comes unchanged, every character of it."""
    backend.behaviour = replies(text)
    assert service.chat(service.customer()).text == text


@rows("spec.chat_completion.choices.message.role")
@pytest.mark.parametrize("role", ["user", "system", "tool", None, 5])
def test_the_role_is_assistant(service: RunningService, backend: ScriptedBackend, role: object) -> None:
    """Whatever the backend calls the speaker."""
    choices = [{"message": {"role": role, "content": "Hello"}}]
    backend.behaviour = answers(completion(choices=choices))
    assert service.chat(service.customer()).json["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}


@rows("spec.chat_completion.choices.finish_reason", "decisions.reply.1", "spec.versioning.rule_2")
@pytest.mark.parametrize("reason", ["stop", "length", "content_filter", "tool_calls", "", None, 5, {}])
def test_the_finish_reason_is_stop(service: RunningService, backend: ScriptedBackend, reason: object) -> None:
    """Whatever the backend said."""
    choices = [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": reason}]
    backend.behaviour = answers(completion(choices=choices))
    assert service.chat(service.customer()).json["choices"][0]["finish_reason"] == "stop"


@rows("spec.chat_completion.object", "spec.chat_completion.model", "decisions.reply.1")
def test_the_backends_own_names_do_not_show(service: RunningService, backend: ScriptedBackend) -> None:
    """Object, id, time, model and fingerprint are ours, not the backend's, and its headers stay behind."""
    own = {"id": "theirs", "object": "text", "created": 5, "model": "theirs", "system_fingerprint": "theirs"}
    backend.behaviour = answers(completion(**own), Set_Cookie="theirs=1", X_Request_Id="theirs", OpenAI_Model="theirs")
    answer = service.chat(service.customer())
    assert (answer.json["object"], answer.json["model"]) == ("chat.completion", "test/one")
    assert answer.json["created"] > 5
    assert b"theirs" not in answer.body
    assert "theirs" not in repr(answer.headers)


@rows(
    "spec.chat_completion.usage.prompt_tokens",
    "spec.chat_completion.usage.completion_tokens",
    "spec.chat_completion.usage.total_tokens",
    "decisions.reply.2",
)
def test_the_figures_of_the_backend(service: RunningService, backend: ScriptedBackend) -> None:
    """Where the backend gives figures they are passed on; the total is their sum, whatever it says."""
    for prompt_tokens, completion_tokens, total_tokens in ((9, 4, 13), (0, 0, 0), (9, 4, 999), (9, 4, -1), (9, 4, "x")):
        figures = usage_of(
            service,
            backend,
            {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": completion_tokens,
                "total_tokens": total_tokens,
                "credits": 1_000,
                "billing_source": "theirs",
            },
        )
        assert (figures["prompt_tokens"], figures["completion_tokens"]) == (prompt_tokens, completion_tokens)
        assert figures["billing_source"] == "plan"


@rows(
    "spec.chat_completion.usage.prompt_tokens",
    "spec.chat_completion.usage.completion_tokens",
    "spec.chat_completion.usage.total_tokens",
    "decisions.reply.2",
)
def test_estimates(service: RunningService, backend: ScriptedBackend) -> None:
    """Without figures both are estimated: at least one token, more for more text, over all messages."""
    small = usage_of(service, backend, None, prompt="x")
    large = usage_of(service, backend, None, prompt="word " * 1_000)
    assert 1 <= small["prompt_tokens"] < 10
    assert 500 < large["prompt_tokens"] < 5_000
    assert small["completion_tokens"] == large["completion_tokens"] >= 1
    messages = [{"role": role, "content": "word " * 500} for role in ("system", "user")]
    assert abs(usage_of(service, backend, None, messages=messages)["prompt_tokens"] - large["prompt_tokens"]) < 10


@rows("decisions.reply.2")
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
def test_hostile_figures(service: RunningService, backend: ScriptedBackend, name: str) -> None:
    """A figure that is no sensible number of tokens becomes the estimate; the other one stands, and the price too."""
    other = {"prompt_tokens": "completion_tokens", "completion_tokens": "prompt_tokens"}[name]
    estimate = usage_of(service, backend, None)[name]
    for figure in NO_FIGURES:
        figures = usage_of(service, backend, {name: figure, other: 77})
        assert (figures[name], figures[other]) == (estimate, 77)
    assert usage_of(service, backend, {other: 77})[name] == estimate


@rows("decisions.reply.2")
@pytest.mark.parametrize("usage", [[], [1, 2], "12", 5, True, {}, {"prompt_tokens": None}, {"x": {}}], ids=repr)
def test_hostile_usage(service: RunningService, backend: ScriptedBackend, usage: object) -> None:
    """A usage that is no object, or holds no figures, is as if there were none."""
    assert usage_of(service, backend, usage) == usage_of(service, backend, None)


@rows("decisions.reply.2")
@pytest.mark.parametrize(
    "figure", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"9" * 5_000], ids=lambda each: each[:9]
)
def test_figures_that_are_no_json(service: RunningService, backend: ScriptedBackend, figure: bytes) -> None:
    """They do not spoil the reply: it comes with estimates."""
    estimates = usage_of(service, backend, None)
    body = completion("Hello there.", {"prompt_tokens": "FIGURE", "completion_tokens": "FIGURE"})
    backend.behaviour = answers(body.replace(b'"FIGURE"', figure))
    answer = service.chat(service.customer())
    assert (answer.status, answer.json["usage"]) == (200, estimates)


@rows("spec.chat_completion.usage.credits", "spec.limits.cost_per_request")
@pytest.mark.parametrize(("model", "price"), [("test/one", 1), ("test/two", 2), ("test/free", 0)])
def test_the_credits_are_the_models(service: RunningService, backend: ScriptedBackend, model: str, price: int) -> None:
    """The price is fixed by the model, whatever the length of the input and the reply, and it is what is taken."""
    customer = service.customer("large")
    for calls, (prompt, reply) in enumerate((("x", "y"), ("x" * 24_000, "y" * 100_000)), 1):
        backend.behaviour = replies(reply, {"prompt_tokens": 10**6, "completion_tokens": 10**6})
        assert service.chat(customer, prompt, model=model).json["usage"]["credits"] == price
        assert service.account(customer).used == calls * price


@rows("spec.chat_completion.usage.billing_source")
def test_the_billing_source(service: RunningService) -> None:
    """It is `plan` when the quota has paid and `api_balance` when the balance has."""
    customer = service.customer("three", balance=2)
    sources = [service.chat(customer).json["usage"]["billing_source"] for _ in range(5)]
    assert sources == ["plan"] * 3 + ["api_balance"] * 2
    account = service.account(customer)
    assert (account.used, account.balance) == (3, 0)


@rows("spec.versioning.rule_1")
@pytest.mark.parametrize("version", ["", "/v1", "/api", "/api/v2", "/api/v01", "/api/V1", "/api/v1.0", "/v1/api"])
def test_other_versions_are_not_there(service: RunningService, version: str) -> None:
    """Only under /api/v1 there are the endpoints."""
    customer = service.customer()
    for path in (CHAT, MODELS, USAGE):
        assert path.startswith("/api/v1/")
        assert_own_error(service.get(version + path.removeprefix("/api/v1"), customer), 404)
    assert service.get(USAGE, customer).status == 200


@rows("spec.versioning.rule_2")
def test_streaming_is_off(service: RunningService) -> None:
    """A stream is refused, and no model claims to have it."""
    customer = service.customer()
    assert_domain_error(service.chat(customer, stream=True), 400, "streaming_not_supported")
    models = service.get(MODELS, customer).json["data"]
    assert models
    assert not any(model["capabilities"]["streaming"] for model in models)


@rows("decisions.versioning.1")
def test_nothing_is_announced_to_be_retired(service: RunningService) -> None:
    """While v1 is whole, no answer carries Deprecation or Sunset."""
    customer = service.customer()
    for answer in (service.chat(customer), *(service.get(path, customer) for path in (MODELS, USAGE))):
        assert answer.status == 200
        assert not {"deprecation", "sunset"} & set(answer.headers)
