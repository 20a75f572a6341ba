"""Print the trace of one world: `python -m tests.simulation SEED [sqlite|postgresql]`. Where it fails, it says why."""

import sys

from tests.simulation.machines import MACHINES
from tests.simulation.world import World


def main(seed: int, store: str = "sqlite") -> None:
    """Run it."""
    with MACHINES[store]() as machine:
        world = World(seed, machine)
        try:
            world.run()
        finally:
            print("\n".join(world.trace), flush=True)  # noqa: T201 - what it is for


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
