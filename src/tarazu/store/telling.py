"""How long work on the books says how far it is."""

from collections.abc import Callable

Tell = Callable[[str, float | None], None]
"""Hears what is being done, in a few words, and how much of it is done, from 0 to 1; None where that is not known."""


def tell_nobody(_act: str, _done: float | None) -> None:
    """Hear nothing. A `Tell`."""
