"""What a test needs and this machine cannot have."""

import os
from typing import NoReturn

import pytest


def cannot_try(reason: str) -> NoReturn:
    """Skip the test, with the reason in the closing lines: what is missing, how to get it. In CI, fail it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{reason} (It may not be missing in CI.)", pytrace=False)
    pytest.skip(reason)
