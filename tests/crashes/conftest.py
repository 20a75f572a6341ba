"""What the crash tests share: the seed of their random moments, which a failure tells, and a scripted backend."""

from collections.abc import Iterator
from random import Random, SystemRandom

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.seeds import SEED_VARIABLE, given_seed


@pytest.fixture
def seed() -> int:
    """The seed from the environment, else a new one."""
    given = given_seed()
    return SystemRandom().randrange(2**32) if given is None else given


@pytest.fixture
def random(seed: int) -> Random:
    """The moments and the load. What processes and threads make of them is not in its hands."""
    print(f"To have the same moments again: {SEED_VARIABLE}={seed}")  # noqa: T201 - shown with a failure
    return Random(seed)  # noqa: S311 - to be replayed


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend
