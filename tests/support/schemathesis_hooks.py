"""What schemathesis is told: each good request that it makes up is another one, so its Idempotency-Key must be new."""

from typing import Any
from uuid import uuid4

import hypothesis
import schemathesis

NAME = "Idempotency-Key"


@schemathesis.hook
def before_call(_context: schemathesis.HookContext, case: schemathesis.Case[Any], _kwargs: dict[str, Any]) -> None:
    """Put something random before the key, and keep it to 255 characters; leave what is to be refused as it is."""
    if NAME in case.headers and not (case.meta and case.meta.generation.mode.is_negative):
        case.headers[NAME] = (uuid4().hex + str(case.headers[NAME]))[:255].rstrip()


def _undirected(observation: float, *, label: str = "") -> float:  # noqa: ARG001 - as Hypothesis has it
    return observation


# Schemathesis would lead Hypothesis towards requests that are accepted. Working out where to go from each of them took
# five sixths of the time, and bodies are made both as the contract has them and otherwise without it.
hypothesis.target = _undirected
