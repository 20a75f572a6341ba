"""What the address of a list asks for."""

from typing import Generic, TypeVar

from msgspec import Struct

S = TypeVar("S")
"""Says what is looked for."""


class Narrowed(Struct, Generic[S], frozen=True, kw_only=True):
    """What is looked for, and the parameters by which the address asks for it.

    Where those cannot be, all is looked for, and `refusal` says what is wrong.
    """

    sought: S
    query: dict[str, str]
    refusal: str | None = None

    @property
    def is_narrowed(self) -> bool:
        """Tell whether anything is asked for."""
        return any(self.query.values())
