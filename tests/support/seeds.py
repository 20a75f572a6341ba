"""The seed in the environment, by which a test with moments of chance has the same ones again."""

import os

SEED_VARIABLE = "TARAZU_SEED"


def given_seed() -> int | None:
    """Read it; None when every test is to take its own."""
    given = os.environ.get(SEED_VARIABLE)
    return None if given is None else int(given)
