"""Create what has a reference once, however often it is asked for: who retries gets the same thing again."""

from collections.abc import Sequence
from hashlib import sha256

import msgspec
from msgspec import Struct
from sqlalchemy import Connection

from tarazu.service.checks import checked_text
from tarazu.service.crediting import REFERENCE_LENGTH_MAX
from tarazu.service.provisioning_errors import ConflictError
from tarazu.store.creations import Creation, find_creation, insert_creation
from tarazu.store.references import lock_reference


class Asked(Struct, frozen=True):
    """What is to be created, and its reference. `values` are all that the creation goes by, the kind of thing first."""

    reference: str
    values: Sequence[object]

    @property
    def fingerprint(self) -> bytes:
        """What the books keep of the values."""
        return sha256(msgspec.json.encode(self.values)).digest()


def asked_under(reference: str, *values: object) -> Asked:
    """Take a reference.

    Raises:
        ProvisioningError: it cannot be one.
    """
    return Asked(checked_text("reference", reference, REFERENCE_LENGTH_MAX), values)


def created_before(connection: Connection, asked: Asked) -> str | None:
    """Find the id of what the reference has created; where there is nothing, nobody else creates until we have ended.

    Raises:
        ConflictError: it has created something else.
    """
    lock_reference(connection, asked.reference)
    first = find_creation(connection, asked.reference)
    if first is None:
        return None
    if first.fingerprint != asked.fingerprint:
        raise ConflictError(
            "The reference {reference} has created {subject} before, from other values; nothing was created. "
            "Give every creation a reference of its own.",
            member="reference",
            reference=asked.reference,
            subject=first.subject,
        )
    return first.subject


def record_creation(connection: Connection, asked: Asked, subject: str, created_at_ms: int) -> None:
    """Let the reference stand for what it has created."""
    insert_creation(
        connection,
        Creation(
            reference=asked.reference,
            fingerprint=asked.fingerprint,
            subject=subject,
            created_at_ms=created_at_ms,
        ),
    )
