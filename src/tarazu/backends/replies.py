"""Judge what a model server has sent with a 2xx status; the same for all kinds, whatever it is."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from tarazu.backends.dialect import Draft
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.domain.prompt import WHITE_SPACE

TOKENS_MAX = 100_000_000
"""A token figure above this is nonsense."""


def read_reply(body: bytes, read: Callable[[Any], Draft], *, with_stop: bool = False) -> Reply:
    """Make the reply of a body in one dialect: one with a text that is not blank, or BackendError.

    A blank text is the backend's fault, unless it says that it declined to answer, or that `max_tokens` left it no
    room, or that it ended and may have done so at a `stop` that was sent (`with_stop`): then another would do the same.
    """
    try:
        draft = read(_read_json(body))
        draft.text.encode()  # raises on a lone surrogate, which no answer of ours could carry
    except (msgspec.MsgspecError, ValueError, LookupError, RecursionError):
        raise BackendError(Fault.INVALID_REPLY, "no reply in the body") from None
    if draft.text.strip(WHITE_SPACE):
        return Reply(text=draft.text, prompt_tokens=draft.prompt_tokens, completion_tokens=draft.completion_tokens)
    if draft.is_refusal:
        raise BackendError(Fault.REFUSAL)
    if draft.is_cut:
        raise BackendError(Fault.REQUEST_REFUSED, "blank text at max_tokens")
    if draft.is_stopped and with_stop:
        raise BackendError(Fault.REQUEST_REFUSED, "blank text at stop")
    raise BackendError(Fault.INVALID_REPLY, "blank text")


def tokens(usage: object, name: str, *, plus: tuple[str, ...] = ()) -> int | None:
    """Take a figure only when it is a sensible one, and those of `plus` that are sensible with it.

    It moves no money, but it is shown and added up.
    """
    figure = _figure(usage, name)
    return None if figure is None else figure + sum(_figure(usage, other) or 0 for other in plus)


def _read_json(body: bytes) -> Any:
    """Read JSON, and leniently where that fails: NaN or a number beyond all bounds in the usage spoils no reply."""
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return json.loads(body, parse_int=float)


def _figure(usage: object, name: str) -> int | None:
    figure = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(figure, int | float) and not isinstance(figure, bool) and 0 <= figure <= TOKENS_MAX:
        return int(figure) if figure == int(figure) else None
    return None
