"""A machine with the books in PostgreSQL, which keeps its power: what is committed stays."""

from pathlib import Path
from random import Random
from typing import Any

import psycopg
from sqlalchemy import Engine, event, make_url

from tarazu.store.engine import open_engine
from tests.simulation.faults import FaultyEngine, Kind
from tests.simulation.machine import ENGINES
from tests.support.books import empty_books
from tests.support.stores import PostgresqlStore


class PostgresqlMachine:
    """A database of a server that keeps its power. A process that dies leaves a closed connection."""

    name = "postgresql"
    has_power_cuts = False
    faults: tuple[Kind, ...] = tuple(kind for kind in Kind if kind is not Kind.LOCKED)
    """The real lock is waited for by the clock."""

    def __init__(self, store: PostgresqlStore, folder: Path) -> None:
        self._url = store.new_books(folder)
        self.engines = [FaultyEngine(self._open_engine()) for _ in range(ENGINES)]
        self._eye = psycopg.connect(make_url(self._url).render_as_string(hide_password=False), autocommit=True)

    def begin(self) -> None:
        """Empty the tables."""
        empty_books(self.engines[0].engine)

    def look(self, query: str) -> list[tuple[Any, ...]]:
        """Read on a connection of its own."""
        return self._eye.execute(query.encode()).fetchall()

    def checkpoint(self) -> None:
        """Leave it to the server."""

    def cut_power(self, random: Random) -> str:
        """Never be asked."""
        raise NotImplementedError

    def close(self) -> None:
        """Close all connections."""
        for faulty in self.engines:
            faulty.engine.dispose()
        self._eye.close()

    def _open_engine(self) -> Engine:
        engine = open_engine(self._url)

        @event.listens_for(engine, "connect")
        def _set(connection: psycopg.Connection, _record: object) -> None:
            connection.execute("SET synchronous_commit = off")  # no power cut here, so nothing is waited for
            connection.commit()

        return engine
