"""A worker's end of the connection to its parent: beats hold up nobody, no older order comes after a newer one."""

import asyncio
import pickle
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

import pytest

from tarazu.service.link import Answer, Link, Order, Stage
from tests.support.at_once import wait_until
from tests.support.patience import PATIENCE_S

BEATS = 10_000
"""Far more than a socket holds."""


@pytest.fixture
def ends() -> Iterator[tuple["Connection[Any, Any]", "Connection[Any, Any]"]]:
    """The parent's end and the worker's."""
    ours, theirs = Pipe()
    with ours, theirs:
        yield ours, theirs


Ends = tuple["Connection[Any, Any]", "Connection[Any, Any]"]


def order(number: int, setup: str) -> Order:
    """Write an order."""
    return Order(number, setup, Stage.SERVING)


def answers(parent: "Connection[Any, Any]", last: int) -> list[Answer]:
    """Read the answers up to the one with this number."""
    read: list[Answer] = []
    while not read or read[-1].number < last:
        if message := parent.recv_bytes():
            read.append(pickle.loads(message))  # noqa: S301 - of this test
    return read


def test_a_parent_that_does_not_read_holds_up_no_beat(ends: Ends) -> None:
    """The event loop, which beats, never waits for it."""
    ours, theirs = ends
    ours.send(order(1, "first"))
    link = Link(theirs, on_parent_end=lambda: None)
    assert link.begin() == "first"
    for _ in range(BEATS):
        link.beat()
    assert ours.recv_bytes() == b""


def test_orders_are_done_in_their_order_and_each_is_answered(ends: Ends) -> None:
    """What came while it started is the first to be done; an older one that comes late is not done at all."""
    ours, theirs = ends
    done: list[str] = []

    def take(given: Order) -> None:
        if given.setup == "bad":
            raise ValueError
        done.append(given.setup)

    async def follow() -> None:
        ours.send(order(1, "first"))
        link = Link(theirs, on_parent_end=lambda: None)
        link.begin()
        ours.send(order(3, "newer"))
        await asyncio.to_thread(wait_until, lambda: link.newest_number == 3)
        link.follow(take)
        for number, setup in ((2, "older"), (4, "bad"), (5, "good")):
            ours.send(order(number, setup))
        assert await asyncio.to_thread(answers, ours, 5) == [
            Answer(3, is_done=True),
            Answer(4, is_done=False),
            Answer(5, is_done=True),
        ]

    asyncio.run(follow())
    assert done == ["newer", "good"]


def test_a_worker_that_gets_no_order_ends(ends: Ends) -> None:
    """Its parent has given it up, or is no more. That is no failure."""
    ours, theirs = ends
    ours.close()
    with pytest.raises(SystemExit) as ended:
        Link(theirs, on_parent_end=lambda: None).begin()
    assert ended.value.code == 0


def test_the_end_of_the_parent_is_heard(ends: Ends) -> None:
    """Whether it says anything or not."""
    ours, theirs = ends
    ours.send(order(1, "first"))
    has_ended = threading.Event()
    Link(theirs, on_parent_end=has_ended.set).begin()
    ours.close()
    assert has_ended.wait(PATIENCE_S)
