"""The narrow port through which every model server is asked, and what each way of failing means."""

from enum import Enum, StrEnum
from typing import Protocol

from msgspec import Struct

from tarazu.domain.prompt import ChatRequest


class Reply(Struct, frozen=True, kw_only=True):
    """What a backend answered: a text that is not blank, and its token figures where it gave sensible ones."""

    text: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Remedy(StrEnum):
    """What is to be done about a failed try."""

    ELSEWHERE = "elsewhere"
    """The backend's fault: it counts against its health, and another may do better."""
    WAIT = "wait"
    """The backend is well but has no room: it rests for as long as it says, and another may have room."""
    GIVE_UP = "give up"
    """The request's fault: another backend would refuse it too, and this one is well."""
    OURS = "ours"
    """Our own fault: no backend was asked, and none can be now."""


class Fault(Enum):
    """Why a try failed: the word for the log, and the remedy."""

    UNREACHABLE = "unreachable", Remedy.ELSEWHERE
    TIMEOUT = "timeout", Remedy.ELSEWHERE
    STATUS = "status", Remedy.ELSEWHERE
    """A status that is no other fault: 5xx, redirects, a path or a model that is not there."""
    INVALID_REPLY = "invalid_reply", Remedy.ELSEWHERE
    """A 2xx without a valid reply in it."""
    KEY_REFUSED = "key_refused", Remedy.ELSEWHERE
    """The backend does not take the operator's key, or it is not paid for: 401, 402, 403, and others that say so."""
    BUSY = "busy", Remedy.WAIT
    """The backend has no room now: 429, and 503 or 529 with a Retry-After."""
    REQUEST_REFUSED = "request_refused", Remedy.GIVE_UP
    """The backend does not take the request's content: 400, 413, 422; or its `max_tokens` or `stop` leave no text."""
    REFUSAL = "refusal", Remedy.GIVE_UP
    """The model, or a filter before it, declines to answer: a refusal or a safety block without a text."""

    NO_OPEN_FILE = "no_open_file", Remedy.OURS
    """The system lets this process open no more files, and so no connection."""

    def __init__(self, word: str, remedy: Remedy) -> None:
        self.word = word
        self.remedy = remedy


class BackendError(Exception):
    """A failed try. `detail` says more for the operator; it never holds an address, a key, a prompt or a reply.

    `retry_after_s` is how long a busy backend asks to be left alone, where it says.
    """

    def __init__(self, fault: Fault, detail: str = "", *, retry_after_s: float | None = None) -> None:
        super().__init__(f"{fault.word}: {detail}" if detail else fault.word)
        self.fault = fault
        self.detail = detail
        self.retry_after_s = retry_after_s


class Backend(Protocol):
    """One model server. `name` tells it apart in logs, without its address."""

    name: str

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply within `timeout_s`; cancelling the call ends it at the server too.

        Raises:
            BackendError: anything but a valid reply.
        """
        ...
