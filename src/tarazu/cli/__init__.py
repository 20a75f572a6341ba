"""The commands that operators and callers type."""

import gc
from typing import NoReturn

COLLECT_AFTER_OBJECTS = 20_000
"""New objects that may be garbage in cycles. Python's usual 700 take a sixth of a start, for imports leave none.

As many as in a worker, which `service/serving.py` sees to where none of this runs: one that takes a dead one's place.
"""


def main() -> NoReturn:
    """Run the command that the process's arguments name."""
    gc.set_threshold(COLLECT_AFTER_OBJECTS)
    from tarazu.cli.running import main as run_command  # noqa: PLC0415 - the imports are what is to be quick

    run_command()


__all__ = ["main"]
