"""Look into copies of books that are in SQLite, and spoil them."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pysqlite3.dbapi2

from tarazu.store.sqlite import connect
from tests.support.books import TABLES


def dump_of(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read everything in a file, as `Books.dump` does."""
    with closing(connect(path, "mode=ro")) as connection:
        return {table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2, 3").fetchall() for table in TABLES}  # noqa: S608 - fixed names


def change(path: Path, *statements: str) -> None:
    """Change a file behind everybody's back; foreign keys are not looked at."""
    with closing(pysqlite3.dbapi2.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).close()


def spoil(path: Path) -> None:
    """Overwrite the page with the requests, as a failing disk may."""
    with closing(connect(path, "mode=ro")) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'requests'").fetchone()
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)


def files_in(folder: Path) -> set[str]:
    """List the names in a folder."""
    return {path.name for path in folder.iterdir()}
