"""The narrow port through which every model server is asked."""

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from tarazu.domain.prompt import ChatRequest


class Reply(Struct, frozen=True, kw_only=True):
    """What a backend answered: a text that is not blank, and its token figures where it gave sensible ones."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Fault(StrEnum):
    """Why a try failed."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    STATUS = "status"
    INVALID_REPLY = "invalid_reply"


class BackendError(Exception):
    """A failed try. `detail` says more for the operator; it never holds an address, a key, a prompt or a reply."""

    def __init__(self, fault: Fault, detail: str = "") -> None:
        super().__init__(f"{fault}: {detail}" if detail else str(fault))
        self.fault = fault
        self.detail = detail


class Backend(Protocol):
    """One model server. `name` tells it apart in logs, without its address."""

    name: str

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply within `timeout_s`; cancelling the call ends it at the server too.

        Raises:
            BackendError: anything but a valid reply.
        """
        ...
