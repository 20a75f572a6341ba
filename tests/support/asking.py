"""Requests as the service puts them into the books: with ids that tell their time, and with an end."""

from collections.abc import Callable

from tarazu.domain.credits import Hold
from tarazu.service.identifiers import COMPLETION_PREFIX, new_unique_part
from tarazu.store.operations import End
from tests.support.books import Books
from tests.support.values import held

TOOK_MS = 1_500


def ask(
    books: Books,
    at_ms: int,
    *,
    key: int = 1,
    model: str = "small",
    end: Callable[[Hold], End] | None = None,
    took_ms: int = TOOK_MS,
) -> str:
    """Let a key ask for a model, and end the request after `took_ms`, or leave it held; answer with its id."""
    books.clock.now_ms = at_ms
    hold = held(books.admit(key, model, request_id=COMPLETION_PREFIX + new_unique_part(at_ms)))
    if end is not None:
        books.clock.now_ms = at_ms + took_ms
        assert books.run(end(hold)) == [True]
    return hold.request_id
