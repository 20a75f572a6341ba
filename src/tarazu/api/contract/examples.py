"""Requests that succeed, and the answers to them."""

from typing import Any

import msgspec
from msgspec import Struct

from tarazu.api.contract.samples import MODEL
from tarazu.api.contract.structure import Example
from tarazu.api.objects import (
    ApiCredits,
    CallingKey,
    ChatCompletion,
    Choice,
    CompletionMessage,
    CompletionUsage,
    ModelCapabilities,
    ModelList,
    ModelObject,
    PayAsYouGo,
    Pricing,
    RateLimitState,
    UsageObject,
)

REPLY = "The capital of France is Paris."

CHAT_REQUESTS = {
    "conversation": Example(
        "A conversation, with settings",
        {
            "model": MODEL,
            "messages": [
                {"role": "system", "content": "Reply in one sentence."},
                {"role": "user", "content": "What is the capital of France?"},
            ],
            "temperature": 0.2,
            "max_tokens": 64,
        },
    ),
    "follow_up": Example(
        "A conversation that goes on",
        {
            "messages": [
                {"role": "user", "content": "What is the capital of France?"},
                {"role": "assistant", "content": REPLY},
                {"role": "user", "content": "And of Italy?"},
            ],
        },
    ),
    "prompt": Example("A single text to the default model", {"prompt": "What is the capital of France?"}),
}


def chat_completions() -> dict[str, Example]:
    """Make replies that were paid from either source."""
    return {
        "paid_by_plan": Example("Paid from the monthly quota", _plain(_completion())),
        "paid_by_balance": Example(
            "Paid from the pay-as-you-go balance",
            _plain(msgspec.structs.replace(_completion(), usage=_usage("api_balance"))),
        ),
    }


def model_lists() -> dict[str, Example]:
    """Make lists of models."""
    return {
        "two_models": Example("Two models, one of them not ready", _plain(ModelList(data=(_SMALL, _LARGE)))),
        "none": Example("No plan and no balance", _plain(ModelList(data=()))),
    }


def models() -> dict[str, Example]:
    """Make single models."""
    return {"model": Example("A model that is ready", _plain(_SMALL))}


def usages() -> dict[str, Example]:
    """Make states of an account."""
    return {
        "with_plan": Example("An account with a plan and a balance", _plain(_USAGE)),
        "without_plan": Example(
            "An account with a balance alone",
            _plain(
                msgspec.structs.replace(_USAGE, plan="none", api_credits=ApiCredits(used=0, limit=0, remaining=0)),
            ),
        ),
    }


def _plain(value: Struct) -> Any:
    return msgspec.to_builtins(value)


def _completion() -> ChatCompletion:
    return ChatCompletion(
        id="chatcmpl_0V2yJ8kQmZ4tB7wXc1NfRpL",
        created=1_773_480_387,
        model=MODEL,
        choices=(Choice(message=CompletionMessage(content=REPLY)),),
        usage=_usage("plan"),
    )


def _usage(billing_source: Any) -> CompletionUsage:
    return CompletionUsage(
        prompt_tokens=24, completion_tokens=8, total_tokens=32, credits=1, billing_source=billing_source
    )


def _model(model_id: str, name: str, description: str, *, credits_per_request: int, available: bool) -> ModelObject:
    return ModelObject(
        id=model_id,
        display_name=name,
        provider=model_id.partition("/")[0],
        description=description,
        credits_per_request=credits_per_request,
        capabilities=ModelCapabilities(
            chat=True, reasoning=False, vision=False, streaming=False, tools=False, json_output=False
        ),
        pricing=Pricing(credits=credits_per_request, payg_amount=10 * credits_per_request, currency="IRT"),
        available=available,
        status="available" if available else "unavailable",
    )


_SMALL = _model(
    MODEL, "SmolLM2 135M", "A very small model, for trying things out.", credits_per_request=1, available=True
)
_LARGE = _model(
    "openai/gpt-4o-mini", "GPT-4o mini", "Fast, for everyday questions.", credits_per_request=5, available=False
)
_USAGE = UsageObject(
    plan="pro",
    period="2026-03",
    api_credits=ApiCredits(used=1_250, limit=100_000, remaining=98_750),
    pay_as_you_go=PayAsYouGo(balance=500),
    rate_limit=RateLimitState(limit_per_minute=600, remaining=597, resets_at="2026-03-14T09:27:00Z"),
    key=CallingKey(id="key_7Hq2Zt9LmXw4", name="production"),
)
