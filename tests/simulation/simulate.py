"""Run the world of a seed, and tell how to see it again where something in it did not hold."""

import shlex
import sys
from hashlib import sha256

from tests.simulation.machine import Machine
from tests.simulation.world import World

LINES_SHOWN = 25
"""So many last lines of the trace are shown with a failure."""


class SimulationError(AssertionError):
    """A world in which something did not hold. The message says what, what had happened, and how to see it again."""


def simulate(seed: int, machine: Machine) -> list[str]:
    """Run a world to its end; answer with its trace.

    Raises:
        SimulationError: something did not hold.
    """
    world = World(seed, machine)
    try:
        world.run()
    except Exception as error:
        reason = error if isinstance(error, AssertionError) else repr(error)
        raise SimulationError(
            f"seed {seed} on {machine.name}: {reason}\n"
            + "\n".join(world.trace[-LINES_SHOWN:])
            + f"\nThe whole trace: {shlex.quote(sys.executable)} -m tests.simulation {seed} {machine.name}"
        ) from error
    return world.trace


def hash_of(trace: list[str]) -> str:
    """Make one word of a trace."""
    return sha256("\n".join(trace).encode()).hexdigest()
