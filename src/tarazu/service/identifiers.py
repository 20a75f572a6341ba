"""Make the identifiers of what is in the books: random, and for requests in the order of their time."""

import os
import socket
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock

from tarazu.domain.keys import ALPHABET, base62

ACCOUNT_PREFIX = "acc_"
COMPLETION_PREFIX = "chatcmpl_"
TOPUP_PREFIX = "top_"
ADJUSTMENT_PREFIX = "adj_"
ACT_PREFIX = "act_"
OPERATOR_PREFIX = "opr_"
REQUEST_PREFIX = "req_"
HOST_CHARACTERS_MAX = 64
TIME_DIGITS = 9
"""Base62 digits for the milliseconds since the epoch: enough until the year 2398."""
RANDOM_CHARACTERS = 14
RANDOM_BYTES_KEPT = 1_024
_CHARACTER_OF_BYTE = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
"""Eight of the 62 stand for five bytes, the others for four: an even chance is not needed to be unique."""

current_request: ContextVar[str] = ContextVar("current_request")
"""The unique part of the HTTP request that is being served. Its answer, its row and its lines in the log carry it.

It is set before anything else is done for the request, which leads to one completion at most.
"""


def new_account_id() -> str:
    """Make an account id: `acc_` and 14 random characters."""
    return ACCOUNT_PREFIX + _random()


def new_topup_id() -> str:
    """Make a top-up id: `top_` and 14 random characters."""
    return TOPUP_PREFIX + _random()


def new_adjustment_id() -> str:
    """Make an adjustment id: `adj_` and 14 random characters."""
    return ADJUSTMENT_PREFIX + _random()


def new_operator_id() -> str:
    """Make an operator's id: `opr_` and 14 random characters."""
    return OPERATOR_PREFIX + _random()


def new_unique_part(at_ms: int) -> str:
    """Make what an id has behind its prefix: 9 characters that sort by time, 14 random ones."""
    return _time_part(at_ms) + _random()


def first_completion_id(at_ms: int) -> str:
    """Tell what sorts before the ids of all completions from this instant on, and after all earlier ones."""
    return COMPLETION_PREFIX + _time_part(at_ms)


def completion_id_of(id_: str) -> str:
    """Tell the id of the row that a request has in the books, by that id or by the `X-Request-Id` of its answer."""
    return COMPLETION_PREFIX + id_.removeprefix(REQUEST_PREFIX) if id_.startswith(REQUEST_PREFIX) else id_


def request_id_of(completion_id: str) -> str:
    """Tell the `X-Request-Id` of the answer to the request that has this row."""
    return REQUEST_PREFIX + completion_id.removeprefix(COMPLETION_PREFIX)


def new_act_id(at_ms: int) -> str:
    """Make the id of an act: `act_` and a unique part."""
    return ACT_PREFIX + new_unique_part(at_ms)


def first_act_id(at_ms: int) -> str:
    """Tell what sorts before the ids of all acts from this instant on, and after all earlier ones."""
    return ACT_PREFIX + _time_part(at_ms)


def new_process_id() -> str:
    """Name this process: its machine, its number there, and 14 random characters, since containers may share both."""
    return f"{socket.gethostname()[:HOST_CHARACTERS_MAX]}:{os.getpid()}:{_random()}"


@lru_cache(1)  # several requests come in one millisecond
def _time_part(at_ms: int) -> str:
    return base62(at_ms, TIME_DIGITS)


def _random() -> str:
    return _random_bytes(RANDOM_CHARACTERS).translate(_CHARACTER_OF_BYTE).decode("ascii")


class _RandomBytes:
    """The system's random bytes, fetched many at a time: a call of the system lets other threads in between."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._kept = b""

    def __call__(self, count: int) -> bytes:
        """Take bytes that nobody else is given; `count` is no more than RANDOM_BYTES_KEPT."""
        with self._lock:
            if len(self._kept) < count:
                self._kept = os.urandom(RANDOM_BYTES_KEPT)
            taken, self._kept = self._kept[:count], self._kept[count:]
            return taken

    def forget(self) -> None:
        """Keep nothing: a forked process has what its parent, and each that it forks, would take as well."""
        self._lock = Lock()
        self._kept = b""


_random_bytes = _RandomBytes()
os.register_at_fork(after_in_child=_random_bytes.forget)
