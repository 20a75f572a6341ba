"""What the crash tests share: their random moments, and a scripted backend."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.seeds import session_seed


@pytest.fixture
def random() -> Random:
    """The moments and the load. What processes and threads make of them is not in its hands."""
    return Random(session_seed())  # noqa: S311 - to be replayed


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend
