"""Whether a process serves completions: found when it is asked, once for all who ask, and with the reason."""

import asyncio
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sqlalchemy import event

from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import LocalAddress
from tarazu.service import readiness
from tarazu.service.pools import LocalAddresses
from tarazu.service.readiness import ReadinessCheck
from tests.support.books import open_books
from tests.support.ledgers import running
from tests.support.service import free_port
from tests.support.stores import SqliteStore

NO_ANSWER = "http://127.0.0.1:{}/v1"


class Model(BaseHTTPRequestHandler):
    """A local model that is there, and not loaded yet."""

    def do_GET(self) -> None:
        """Say so."""
        self.send_response(503)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - its name there
        """Say nothing of it."""


def problems(
    store: SqliteStore, folder: Path, models: LocalAddresses, *, askers: int = 1, again: int = 1
) -> tuple[list[tuple[str, ...]], int]:
    """Ask so often at once, and again; answer with what was said, and how many writes the books took for it."""

    async def ask() -> tuple[list[tuple[str, ...]], int]:
        with open_books(store, folder) as books, closing(HttpClient()) as http:
            writes: list[str] = []
            event.listen(books.engine, "before_cursor_execute", lambda *given: writes.append(given[2]))
            async with running(books) as ledger:
                check = ReadinessCheck(ledger, http)
                check.local_models = models
                found: list[tuple[str, ...]] = []
                for _ in range(again):
                    found += await asyncio.gather(*(check.problems() for _ in range(askers)))
            return found, sum(statement.startswith("INSERT INTO backend_rests") for statement in writes)

    return asyncio.run(ask())


def test_where_all_is_well_there_is_no_problem_and_many_cost_one_write(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    """However many ask, at once or soon after."""
    assert problems(sqlite_store, tmp_path, {}, askers=20, again=3) == ([()] * 60, 1)


def test_what_was_found_is_not_believed_for_long(
    sqlite_store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next who asks later has it looked at again."""
    monkeypatch.setattr(readiness, "FRESH_S", 0.0)
    assert problems(sqlite_store, tmp_path, {}, again=3) == ([()] * 3, 3)


def test_a_local_model_that_does_not_answer_or_is_not_loaded_is_a_problem(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    """Each is named by its kind, never by its address or its file."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        threading.Thread(target=server.serve_forever).start()
        models: LocalAddresses = {
            None: LocalAddress(NO_ANSWER.format(free_port()), "secret"),
            "/models/big.gguf": LocalAddress(NO_ANSWER.format(server.server_address[1]), "secret"),
        }
        [found], _ = problems(sqlite_store, tmp_path, models)
        server.shutdown()
    assert found == ("The embedded model does not answer.", "A local model is not loaded yet.")
