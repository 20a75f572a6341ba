"""The newest setup comes to all workers, to slow ones and late ones too."""

import threading
from collections.abc import Iterator
from contextlib import closing
from queue import SimpleQueue

import pytest

from tarazu.service import broadcast
from tarazu.service.broadcast import Broadcast, follow
from tests.support.at_once import wait_until
from tests.support.patience import PATIENCE_S


class Worker:
    """One that follows. It takes what it is told unless that is in `refused`, once `is_free`; `taken` tells what."""

    def __init__(self, parent: Broadcast, *refused: str) -> None:
        self.taken: SimpleQueue[str] = SimpleQueue()
        self.is_free = threading.Event()
        self.is_free.set()
        self._refused = refused
        self.thread = threading.Thread(target=follow, args=(parent.channel, self._take), daemon=True)
        self.thread.start()

    def next_taken(self) -> str:
        """Wait for the next setup that it takes."""
        return self.taken.get(timeout=PATIENCE_S)

    def _take(self, setup: str) -> bool:
        assert self.is_free.wait(PATIENCE_S)
        if setup in self._refused:
            return False
        self.taken.put(setup)
        return True


@pytest.fixture
def parent() -> Iterator[Broadcast]:
    """A parent that begins with the setup `first`."""
    with closing(Broadcast()) as parent:
        parent.start("first")
        yield parent


def test_each_worker_is_told_the_newest_at_once_and_what_follows(parent: Broadcast) -> None:
    """One that starts later begins with what is in force then."""
    early = Worker(parent)
    assert early.next_taken() == "first"
    wait_until(lambda: repr(parent) == "<Broadcast to 1 workers>")
    assert parent.publish("second") == 1
    late = Worker(parent)
    assert (early.next_taken(), late.next_taken()) == ("second", "second")


def test_a_worker_that_cannot_take_a_setup_is_not_counted_and_hears_of_the_next(parent: Broadcast) -> None:
    """It serves on as it did."""
    worker = Worker(parent, "bad")
    assert worker.next_taken() == "first"
    wait_until(lambda: repr(parent) == "<Broadcast to 1 workers>")
    assert parent.publish("bad") == 0
    assert parent.publish("good") == 1
    assert worker.next_taken() == "good"


def test_a_worker_that_was_too_slow_comes_again(parent: Broadcast, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is let go so that it holds nobody up, and then is told the newest, not left behind for ever."""
    worker = Worker(parent)
    assert worker.next_taken() == "first"
    wait_until(lambda: repr(parent) == "<Broadcast to 1 workers>")
    worker.is_free.clear()
    with monkeypatch.context() as hasty:
        hasty.setattr(broadcast, "ANSWER_TIMEOUT_S", 0.05)
        assert parent.publish("second") == 0
    worker.is_free.set()
    wait_until(lambda: repr(parent) == "<Broadcast to 1 workers>")
    assert parent.publish("third") == 1
    wait_until(lambda: worker.next_taken() == "third")


def test_following_ends_with_the_parent() -> None:
    """No thread looks for one that is no more."""
    parent = Broadcast()
    parent.start("first")
    worker = Worker(parent)
    assert worker.next_taken() == "first"
    wait_until(lambda: repr(parent) == "<Broadcast to 1 workers>")
    parent.close()
    for connection in parent._workers:
        connection.close()
    worker.thread.join(PATIENCE_S)
    assert not worker.thread.is_alive()
