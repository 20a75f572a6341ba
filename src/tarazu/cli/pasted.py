"""Secrets that a person pastes where none belongs: they are not repeated, for errors end in logs."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tarazu.cli.errors import UsageError

if TYPE_CHECKING:
    from cyclopts import Token

KINDS = {"trz_": ("an API key", "key_"), "tra_": ("a token of the admin API", "tok_")}
"""By what whole keys begin with: what they are, and what their ids begin with."""

_KEY = re.compile(r"(?P<prefix>trz_|tra_)(?P<public>[0-9A-Za-z]{12})[0-9A-Za-z]+")
_LINK = re.compile(r"(?<![0-9A-Za-z_])[0-9A-Za-z]{43}(?![0-9A-Za-z])")


def without_secrets(text: str) -> str:
    """Write whole keys and tokens without their secret part, and leave out what stands in a link of an invitation."""
    return _LINK.sub("…", _KEY.sub(r"\g<prefix>\g<public>…", text))


def id_of_key(_type: Any, tokens: "Sequence[Token]") -> str:
    """Read the id of a key or token.

    Raises:
        UsageError: it is the whole key; the message names its id.
    """
    text = tokens[0].value
    pasted = _KEY.fullmatch(text)
    if pasted is None:
        return text
    what, prefix = KINDS[pasted["prefix"]]
    raise UsageError(
        f"This is {what} itself, which is a secret. Its id is {prefix}{pasted['public']}",
        "Name it by its id. The shell may have kept the secret in its history.",
    )
