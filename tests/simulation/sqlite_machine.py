"""A machine with the books in a SQLite file, whose power can be cut."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pysqlite3.dbapi2
from sqlalchemy import Engine, event

from tarazu.store.engine import open_engine
from tests.simulation.faults import FaultyEngine, Kind
from tests.simulation.machine import ENGINES
from tests.support.stores import SqliteStore

SYNCHRONOUS_FULL = 2
PAGE_BYTES = 4_096


class SqliteMachine:
    """A file and its write-ahead log, of which every byte after the last synced commit may be lost."""

    name = "sqlite"
    has_power_cuts = True
    faults = tuple(Kind)

    def __init__(self, folder: Path) -> None:
        self._template = SqliteStore(folder)
        self._folder = folder / "books"
        self._folder.mkdir()
        self._file = self._folder / "tarazu.db"
        self._log = self._folder / "tarazu.db-wal"
        self.engines = [FaultyEngine(self._open_engine(), self._note_commit, self._locked) for _ in range(ENGINES)]
        self._eye: Any = None

    def begin(self) -> None:
        """Copy the file that has been migrated."""
        self.close()
        self._start(Path(self._template.new_books(self._folder).removeprefix("sqlite:///")).read_bytes(), b"")

    def look(self, query: str) -> list[tuple[Any, ...]]:
        """Read on a connection of its own."""
        rows: list[tuple[Any, ...]] = self._eye.execute(query).fetchall()
        return rows

    def checkpoint(self) -> None:
        """Put all of the log into the main file, which syncs both."""
        assert self._eye.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        self._main = self._file.read_bytes()
        self._commits = [0]

    def cut_power(self, random: Random) -> str:
        """Keep all commits up to the last synced one, some of those after it, and perhaps a torn rest of the log."""
        log = self._log.read_bytes() if self._log.exists() else b""
        ends = self._commits
        place = random.randrange(len(ends))
        rest = _tear(
            random, log[ends[place] : ends[-1]], commit_bytes=ends[min(place + 1, len(ends) - 1)] - ends[place]
        )
        self.close()
        self._start(self._main, log[: ends[place]] + rest)
        return f"{place} of {len(ends) - 1} commits since the last synced one are left"

    def close(self) -> None:
        """Close all connections, and forget the files."""
        for faulty in self.engines:
            faulty.engine.dispose()
        if self._eye is not None:
            self._eye.close()
        for file in self._folder.iterdir():
            file.unlink()

    def _start(self, main: bytes, log: bytes) -> None:
        self._file.write_bytes(main)
        if log:
            self._log.write_bytes(log)
        self._eye = pysqlite3.dbapi2.connect(str(self._file), isolation_level=None)
        self._eye.execute("PRAGMA wal_autocheckpoint = 0")
        self.checkpoint()  # recovers the log first; what has survived is on disk

    def _open_engine(self) -> Engine:
        engine = open_engine(f"sqlite:///{self._file}")

        @event.listens_for(engine, "connect")
        def _set(connection: Any, _record: object) -> None:
            connection.execute("PRAGMA busy_timeout = 0").close()  # one thread: nobody would let go meanwhile
            connection.execute("PRAGMA wal_autocheckpoint = 0").close()

        return engine

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let the eye hold the write lock."""
        self._eye.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            self._eye.execute("ROLLBACK")

    def _note_commit(self, connection: Any) -> None:
        """Note how long the log is. Only a commit that wrote something syncs what is before it."""
        length = self._log.stat().st_size if self._log.exists() else 0
        if length == self._commits[-1]:
            return
        (synchronous,) = connection.execute("PRAGMA synchronous").fetchone()
        self._commits = [length] if synchronous == SYNCHRONOUS_FULL else [*self._commits, length]


def _tear(random: Random, lost: bytes, commit_bytes: int) -> bytes:
    """Leave something of the lost end of the log, but not the first commit in it whole: nothing after it counts."""
    if not lost:
        return lost
    beginning = lost[: random.randrange(commit_bytes)]
    without_beginning = bytes(PAGE_BYTES) + lost[PAGE_BYTES:]
    return random.choice([b"", beginning, bytes(len(lost)), without_beginning])
