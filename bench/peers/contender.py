"""What is measured: a service that answers one question, where and how it is asked, and what it does per request."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct
from sqlalchemy import Engine

from bench.asking import conversation
from tests.support.backend import completion

MODEL = "bench"
"""What all of them are asked for, some with words of their own before it."""
OPENAI_CHAT = "/v1/chat/completions"
BODY = conversation(MODEL)
REPLY = completion(
    "Paris.",
    {"prompt_tokens": 14, "completion_tokens": 2, "total_tokens": 16},
    created=1_767_225_600,
    model=MODEL,
)
"""What the model server answers: a whole reply, so that nobody has to count its tokens or to fill its gaps."""


class Contender(Struct, frozen=True, kw_only=True):
    """Who answers at `url` when asked this with these headers, in the processes that come from `pid`.

    `does` is what it does for a request beside passing it on. `engine` leads to its books, where these can be audited.
    Over more than `most_connections` it would stop answering, so it is asked over these where others are over more.
    """

    url: str
    pid: int
    does: str
    headers: Mapping[str, str] = {}
    body: bytes = BODY
    most_connections: int | None = None
    engine: Engine | None = None


Start = Callable[[Path, str], AbstractContextManager[Contender]]
"""Start a contender on its core, with a folder and the backend's host and port; it runs until the block ends."""
