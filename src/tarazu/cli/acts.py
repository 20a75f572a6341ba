"""What a command has done so far, so that a person learns of it also where the command fails later."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

DO_NOT_REPEAT = "do not repeat the command"
"""Of an act that is done once more by the same command."""

_ACTS: ContextVar[list[str] | None] = ContextVar("acts", default=None)


@contextmanager
def acts_noted() -> Iterator[list[str]]:
    """Note what is done in the block, a sentence each."""
    acts: list[str] = []
    token = _ACTS.set(acts)
    try:
        yield acts
    finally:
        _ACTS.reset(token)


def done(sentence: str) -> None:
    """Note an act as soon as it is committed. Where the command then fails, even by its output, this is said too."""
    acts = _ACTS.get()
    if acts is not None:
        acts.append(sentence)
