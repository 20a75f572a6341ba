"""Reports on backends: the order in which they are asked, and the worst that a process says of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.domain.catalogue import BackendSpec, Model
from tarazu.service.backend_reports import BackendHealth, BackendReport, backend_reports
from tarazu.store.backend_rests import BackendRest, write_rests
from tarazu.store.engine import transaction
from tests.support.books import Books, open_books
from tests.support.stores import SqliteStore
from tests.support.values import NOON_MS, make_model

MODEL = make_model(
    backends=(
        BackendSpec(kind="local", priority=1),
        BackendSpec(kind="anthropic", priority=0),
        BackendSpec(kind="openai", priority=1, enabled=False),
    )
)


@pytest.fixture
def books(sqlite_store: SqliteStore, tmp_path: Path) -> Iterator[Books]:
    """Open new books; the rows of rests are tested on both stores elsewhere."""
    with open_books(sqlite_store, tmp_path) as books:
        yield books


def rest(process: str, backend: str, state: str) -> BackendRest:
    """Let a process leave a backend alone for a minute."""
    return BackendRest(
        process_id=process,
        backend=backend,
        model_id="small",
        state=state,
        fault="refused",
        since_ms=NOON_MS,
        until_ms=NOON_MS + 60_000,
    )


def reports(books: Books, *rests: BackendRest, models: tuple[Model, ...] = (MODEL,)) -> dict[str, BackendReport]:
    """Report after the processes have told of these rests."""
    with transaction(books.engine) as connection:
        for each in rests:
            write_rests(connection, each.process_id, [each], NOON_MS)
        return {report.name: report for report in backend_reports(connection, models, NOON_MS)}


def test_backends_are_told_in_the_order_in_which_they_are_asked(books: Books) -> None:
    """Model by model, the first priority first; they keep the numbers that they have in the file."""
    found = reports(books, models=(MODEL, make_model("other")))
    assert list(found) == ["small#2", "small#1", "small#3", "other#1"]
    assert [report.health for report in found.values()] == [
        BackendHealth.READY,
        BackendHealth.READY,
        BackendHealth.DISABLED,
        BackendHealth.READY,
    ]


def test_the_worst_that_a_process_says_is_the_health(books: Books) -> None:
    """Tripped is worse than busy; what rests another has nothing to do with it."""
    found = reports(books, rest("a", "small#1", "busy"), rest("b", "small#1", "tripped"), rest("c", "small#2", "busy"))
    assert (found["small#1"].health, found["small#2"].health) == (BackendHealth.TRIPPED, BackendHealth.BUSY)
    assert [each.process_id for each in found["small#1"].rests] == ["a", "b"]


def test_a_backend_that_is_disabled_has_no_rests(books: Books) -> None:
    """A process that knows the configuration before still tells of it."""
    found = reports(books, rest("a", "small#3", "tripped"))
    assert (found["small#3"].health, found["small#3"].rests) == (BackendHealth.DISABLED, ())
