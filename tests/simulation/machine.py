"""What the simulated processes run on: a database that they share, and its power."""

from random import Random
from typing import Any, Protocol

from tests.simulation.faults import FaultyEngine, Kind

ENGINES = 5
"""One for the operator, and one for each process that there may be."""


class Machine(Protocol):
    """One database, an engine for each process, and an eye that looks at the rows from outside."""

    name: str
    has_power_cuts: bool
    faults: tuple[Kind, ...]
    """What can go wrong with a transaction here."""
    engines: list[FaultyEngine]

    def begin(self) -> None:
        """Make the books new: migrated and empty."""
        ...

    def look(self, query: str) -> list[tuple[Any, ...]]:
        """Read what is committed, without any code of the product."""
        ...

    def checkpoint(self) -> None:
        """Let the database put its log into its main file."""
        ...

    def cut_power(self, random: Random) -> str:
        """Take the power away and bring it back; tell what is left. Chance decides of what was not synced yet."""
        ...

    def close(self) -> None:
        """Close everything."""
        ...
