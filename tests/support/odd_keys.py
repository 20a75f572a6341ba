"""Well-formed keys that are no good, and keys that are not well-formed."""

import os

from tarazu.domain.keys import ALPHABET, API_KEY, ENTROPY_BYTES, SECRET_LENGTH, mint
from tarazu.service.provisioning import Provisioning
from tests.support.service import Customer, RunningService

HOUR_MS = 3_600_000


def unknown_key() -> str:
    """Make a well-formed key that was never issued."""
    return mint(os.urandom(ENTROPY_BYTES)).text


def key_with_another_secret(customer: Customer) -> str:
    """Make a well-formed key with the public id of the customer's key and another secret."""
    number = 0
    for digit in customer.key_id.removeprefix(API_KEY.id_prefix):
        number = number * len(ALPHABET) + ALPHABET.index(digit)
    minted = mint((number * len(ALPHABET) ** SECRET_LENGTH + 1).to_bytes(ENTROPY_BYTES, "big"))
    assert minted.id == customer.key_id
    return minted.text


def expired_key(service: RunningService, customer: Customer) -> str:
    """Issue one more key of the account, which expired almost an hour ago."""
    then = Provisioning(service.engine, service.configuration.catalogue, lambda: service.clock() - HOUR_MS, by="tests")
    return then.create_key(customer.account_id, name="old key", expires_in_s=1).secret


def mistyped(secret: str, place: int = -1) -> str:
    """Change one character."""
    letters = list(secret)
    letters[place] = "x" if letters[place] != "x" else "y"
    return "".join(letters)
