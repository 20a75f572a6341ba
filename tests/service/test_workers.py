"""The workers are all told of what changes, or none is; those that die, hang or cannot hear are replaced."""

import errno
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from tarazu.service import workers as module
from tarazu.service.link import Stage
from tarazu.service.shortages import NO_PROCESSES
from tarazu.service.workers import Published, Workers
from tests.support.at_once import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.played_worker import Setup, start_played
from tests.support.processes import has_ended

COUNT = 2
ALL = Published(COUNT, COUNT)
TAKES: Setup = {0: "takes", 1: "takes"}


@contextmanager
def kept(count: int = COUNT, setup: Setup = TAKES, start: Any = start_played) -> Iterator[Workers]:
    """Workers that play, kept alive in a thread; at the end all are stopped, and no process is left."""
    workers = Workers(count, start, setup)
    workers.start()
    keeper = threading.Thread(target=workers.keep)
    keeper.start()
    try:
        yield workers
    finally:
        workers.leave()
        keeper.join(PATIENCE_S)
        processes = workers.process_ids
        workers.stop(PATIENCE_S)
        assert all(map(has_ended, processes))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the parent take its turns sooner."""
    monkeypatch.setattr(module, "TURN_S", 0.1)


def test_all_are_told_and_one_that_starts_meanwhile_too() -> None:
    """A change is published when all that there are serve by it, however late they have started."""
    with kept() as workers:
        assert workers.publish({0: "takes", 5: "x"}) == ALL
        os.kill(workers.process_ids[0], signal.SIGKILL)
        assert workers.publish({1: "takes", 6: "x"}) == ALL
        assert workers.setup == {1: "takes", 6: "x"}


@pytest.mark.usefixtures("hasty")
def test_one_that_does_not_answer_is_replaced_by_one_that_has_the_newest() -> None:
    """It beats, so it is not stuck; but it may serve by what was before. The one in its place begins with the new."""
    with kept() as workers, capture_logs() as logs:
        assert workers.publish(TAKES) == ALL
        deaf, other = workers.process_ids
        assert workers.publish({0: "ignores"}) == ALL
        assert has_ended(deaf)
        assert other in workers.process_ids
    assert "worker_does_not_answer" in {line["event"] for line in logs}


def test_where_one_cannot_take_it_all_go_back() -> None:
    """A setup is in force in all workers or in none, and the outcome says so."""
    with kept() as workers:
        assert workers.publish(TAKES) == ALL
        before = workers.process_ids
        published = workers.publish({1: "refuses"})
        assert (published.is_undone, published.is_done) == (True, False)
        assert (workers.setup, workers.process_ids) == (TAKES, before)
        assert workers.publish({0: "takes"}) == ALL


@pytest.mark.usefixtures("hasty")
def test_a_stuck_one_is_replaced_and_the_others_are_left_alone() -> None:
    """Without a beat for so many turns of the parent: it is killed, and said."""
    with kept() as workers, capture_logs() as logs:
        assert workers.publish(TAKES) == ALL
        stuck, other = workers.process_ids
        os.kill(stuck, signal.SIGSTOP)
        wait_until(lambda: has_ended(stuck) and len(workers.process_ids) == COUNT)
        assert other in workers.process_ids
    assert [line["worker_pid"] for line in logs if line["event"] == "worker_stuck"] == [stuck]


@pytest.mark.usefixtures("hasty")
def test_nobody_is_blamed_for_what_the_parent_has_not_heard_while_it_stood_still() -> None:
    """However long the pause: it counts as one turn, for the parent's clock is no measure of the workers' time."""
    turn = threading.Event()

    class Paused(Workers):
        def _turn(self) -> None:
            if turn.is_set():
                turn.clear()
                time.sleep(module.TURN_S * module.STUCK_TURNS * 2)
            super()._turn()

    workers = Paused(COUNT, start_played, TAKES)
    workers.start()
    assert workers.publish(TAKES) == ALL
    before = workers.process_ids
    turn.set()
    wait_until(lambda: not turn.is_set())
    assert workers.publish({0: "takes"}) == ALL
    assert workers.process_ids == before
    workers.stop(PATIENCE_S)


@pytest.mark.parametrize("missing", ["process", "thread"])
@pytest.mark.usefixtures("hasty")
def test_without_room_for_one_more_the_others_serve_and_it_is_tried_again(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever there is no room for; and nothing is left of a try. The log tells what to do."""
    tries, began = list[int](), list[int]()
    start_thread = threading.Thread.start

    def start(index: int) -> Any:
        tries.append(index)
        if missing == "process" and COUNT < len(tries) <= COUNT + 2:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        process_id, connection = start_played(index)
        began.append(process_id)
        return process_id, connection

    def begin(thread: threading.Thread) -> None:
        if missing == "thread" and thread.name.startswith("worker") and COUNT < len(tries) <= COUNT + 2:
            raise RuntimeError("can't start new thread")
        start_thread(thread)

    monkeypatch.setattr(threading.Thread, "start", begin)
    with kept(start=start) as workers, capture_logs() as logs:
        assert workers.publish(TAKES) == ALL
        killed, other = workers.process_ids
        os.kill(killed, signal.SIGKILL)
        assert workers.publish({0: "takes"}) == ALL
        assert workers.process_ids == [began[-1], other]
        assert all(has_ended(process_id) for process_id in began if process_id not in workers.process_ids)
    reasons = [line["reason"] for line in logs if line["event"] == "worker_not_started"]
    assert reasons == [NO_PROCESSES] * 2


def test_one_that_starts_during_a_drain_drains_too() -> None:
    """What is told of the stage is told to those that come later."""
    told = list[Any]()

    class Told(Workers):
        def _start(self, index: int) -> None:
            told.append(self._order.stage)
            super()._start(index)

    workers = Told(1, start_played, TAKES)
    workers.start()
    workers.enter(Stage.DRAINING, PATIENCE_S)
    os.kill(workers.process_ids[0], signal.SIGKILL)
    workers._start(0)
    assert told == [Stage.SERVING, Stage.DRAINING]
    workers.stop(PATIENCE_S)


@pytest.mark.parametrize("count", [1, 3])
def test_workers_that_keep_dying_end_the_service(count: int) -> None:
    """However many there are: when a few more than there are die young within a minute. It is said."""
    workers = Workers(count, start_played, dict.fromkeys(range(count), "dies"))
    with capture_logs() as logs:
        workers.start()
        assert workers.keep() is False
    assert [line["deaths"] for line in logs if line["event"] == "workers_keep_dying"] == [
        count + module.DEATHS_MORE + 1
    ]
    assert {line["ending"] for line in logs if line["event"] == "worker_ended"} == {"exit status 3"}
    workers.stop(PATIENCE_S)


@pytest.mark.usefixtures("hasty")
def test_where_another_one_outlives_them_those_that_keep_dying_end_nothing() -> None:
    """There may be no room for them. They are started again, more slowly, and it is said."""
    with kept() as workers, capture_logs() as logs:
        assert workers.publish(TAKES) == ALL
        dies, serves = workers._living()
        workers._tell(setup={dies.index: "dies"})
        wait_until(lambda: [line["event"] for line in logs].count("workers_keep_dying") > 1)
        assert workers.publish(TAKES) == ALL
        assert serves.process_id in workers.process_ids


def test_who_stops_by_itself_when_all_are_to_leave_has_not_died() -> None:
    """As when Ctrl-C in a terminal reaches all processes at once. One that is killed then has died."""
    with capture_logs() as logs:
        workers = Workers(COUNT, start_played, TAKES)
        workers.start()
        workers.enter(Stage.SERVING, PATIENCE_S)
        workers.leave()
        stops, dies = workers._living()
        stops.hang_up()
        wait_until(lambda: stops.has_ended)
        dies.send_signal(signal.SIGKILL)
        wait_until(lambda: dies.has_ended)
        workers.stop(PATIENCE_S)
        assert workers.keep() is True
    assert [(line["worker"], line["ending"]) for line in logs if line["event"] == "worker_ended"] == [(2, "SIGKILL")]


def test_one_that_does_not_stop_in_time_is_killed() -> None:
    """The others have stopped by then."""
    with capture_logs() as logs:
        workers = Workers(COUNT, start_played, {1: "holds on"})
        workers.start()
        workers.enter(Stage.SERVING, PATIENCE_S)
        processes = workers.process_ids
        workers.stop(1.0)
    assert all(map(has_ended, processes))
    assert [line["worker"] for line in logs if line["event"] == "worker_killed"] == [2]


def test_workers_that_have_served_for_a_while_may_die_as_often_as_they_like(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is replaced: what kills them now and then would only be worse with none of them."""
    monkeypatch.setattr(module, "YOUNG_S", 0.0)
    with kept(1) as workers:
        for _ in range(module.DEATHS_MORE + 3):
            assert workers.publish({}) == Published(1, 1)
            os.kill(workers.process_ids[0], signal.SIGKILL)
        assert workers.publish({}) == Published(1, 1)
