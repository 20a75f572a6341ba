"""What benchmarks sell, and how it is asked for."""

import json
from collections.abc import Mapping

from tests.support.service import CHAT

PLAN = "bench"
"""A plan that nobody comes to the end of."""
QUESTION = "What is the capital of France?"


def catalogue(backends: Mapping[str, str]) -> str:
    """Write a catalogue of models for one credit each, all in the plan; each has one backend, at this address."""
    models = "".join(
        f"""
[models.{model}]
credits = 1
timeout_s = 30
[[models.{model}.backends]]
kind = "openai"
url = "{url}"
model = "{model}"
"""
        for model, url in backends.items()
    )
    return f"""
[plans.{PLAN}]
monthly_credits = 1_000_000_000
requests_per_minute = 1_000_000_000
models = {json.dumps(list(backends))}
{models}"""


def conversation(model: str) -> bytes:
    """Write the body of a request as all services that speak OpenAI's language read it."""
    return json.dumps({"model": model, "messages": [{"role": "user", "content": QUESTION}]}).encode()


def prompt_request(key: str, model: str) -> bytes:
    """Write a whole request, with a prompt for its body."""
    body = json.dumps({"model": model, "prompt": QUESTION}).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body
