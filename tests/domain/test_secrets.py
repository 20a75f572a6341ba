"""What cookies and links hold."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.secrets import ENTROPY_BYTES, SECRET_LENGTH, digest_of, secret_from


@given(st.binary(min_size=ENTROPY_BYTES, max_size=ENTROPY_BYTES))
def test_a_secret_is_found_by_its_digest(entropy: bytes) -> None:
    """43 base62 characters, and 32 bytes that tell nothing of them."""
    secret = secret_from(entropy)
    assert re.fullmatch(r"[0-9A-Za-z]{43}", secret)
    digest = digest_of(secret)
    assert digest is not None
    assert len(digest) == 32


def test_different_randomness_gives_different_secrets() -> None:
    """Each byte but the first ones counts."""
    start = bytes(ENTROPY_BYTES)
    secrets = {secret_from(bytes([*start[:place], 1, *start[place + 1 :]])) for place in range(16, ENTROPY_BYTES)}
    assert len(secrets) == ENTROPY_BYTES - 16


def test_too_little_randomness_is_refused() -> None:
    """A short read of the random source makes no weak secret."""
    with pytest.raises(AssertionError):
        secret_from(b"x" * (ENTROPY_BYTES - 1))


@pytest.mark.parametrize("text", ["", "0" * (SECRET_LENGTH - 1), "0" * (SECRET_LENGTH + 1), "0" * 42 + "-", "٠" * 43])
def test_a_text_of_another_shape_is_no_secret(text: str) -> None:
    """It is not looked up."""
    assert digest_of(text) is None
