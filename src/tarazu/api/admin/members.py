"""What members of bodies and objects have in common: how they are described, and their bounds.

A type that is wrong is refused when a body is read, a value that is wrong by whoever does the act; so the bounds of
bodies stand in the contract alone.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct, UnsetType
from msgspec.structs import asdict

from tarazu.service.checks import HISTORY_LENGTH_MAX
from tarazu.service.crediting import REFERENCE_LENGTH_MAX

_TIME = {"format": "date-time"}


def given(changes: Struct) -> dict[str, Any]:
    """Take the members of a change that were sent, null ones too; what was left out stays as it is."""
    return {name: value for name, value in asdict(changes).items() if not isinstance(value, UnsetType)}


def text(description: str, length_max: int) -> Meta:
    """Describe a text of a body; white space around it is taken off, and counts for the length."""
    return Meta(description=description, extra_json_schema={"minLength": 1, "maxLength": length_max})


def number(description: str, least: int, most: int) -> Meta:
    """Describe a whole number of a body."""
    return Meta(description=description, extra_json_schema={"minimum": least, "maximum": most})


def time(description: str) -> Meta:
    """Describe a time of an answer."""
    return Meta(description=description, extra_json_schema=_TIME)


Time = Annotated[str, Meta(extra_json_schema=_TIME)]
"""A time of an answer that may be null."""
CreationReference = Annotated[
    str | None,
    text(
        "Makes the creation safe to repeat: the same one again, with the same values, answers with what was created.",
        REFERENCE_LENGTH_MAX,
    ),
]
AskedLimit = Annotated[int, number("Show so many at most.", 1, HISTORY_LENGTH_MAX)]
Limit = Annotated[int, Meta(ge=1, description="How many the page has at most: as asked for.")]
More = Annotated[bool, Meta(description="Whether there are others beyond this page.")]
