"""A worker process that plays: it does with each order what the order's setup says for its place.

`python -m tests.support.played_worker INDEX` has the connection to its parent as its open file CONNECTION.
"""

import os
import signal
import sys
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from tarazu.service.link import BEAT, Answer, Order

CONNECTION = 100
BEAT_S = 0.02

Setup = dict[int, str]
"""For each place what the worker there does: `takes` the order, `refuses` it, `ignores` all but its first, or `dies`.

One that is told `holds on` takes it, and does not hear SIGTERM from then on.
"""


def start_played(index: int) -> tuple[int, "Connection[Any, Any]"]:
    """Start one; answer with its process id and our end of the connection."""
    ours, theirs = Pipe()
    with theirs:
        process_id = os.posix_spawn(
            sys.executable,
            [sys.executable, "-m", "tests.support.played_worker", str(index)],
            {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), CONNECTION)],
        )
    return process_id, ours


def main() -> None:
    """Play until the parent is no more."""
    index, parent = int(sys.argv[1]), Connection(CONNECTION)
    has_answered = False
    while True:
        if not parent.poll(BEAT_S):
            os.write(CONNECTION, BEAT)
            continue
        order: Order = parent.recv()
        match order.setup.get(index, "takes"):
            case "dies":
                sys.exit(3)
            case "ignores" if has_answered:
                pass
            case play:
                if play == "holds on":
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                has_answered = True
                parent.send(Answer(order.number, is_done=play != "refuses"))


if __name__ == "__main__":
    try:
        main()
    except (EOFError, OSError):
        sys.exit(0)
