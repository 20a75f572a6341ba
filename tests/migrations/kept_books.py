"""Books as the release of a revision has left them, kept in files: rows of all tables, whatever the database."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct
from sqlalchemy import Connection, Engine, MetaData, Table, inspect, select

from tarazu.store.engine import transaction

FOLDER = Path(__file__).with_name("books")
ALEMBIC = "alembic_version"
PARTITION_PREFIX = "requests_"

Rows = dict[str, list[dict[str, Any]]]
"""By the name of their table."""


class KeptBooks(Struct, frozen=True):
    """What a file holds: when the books were left, the keys that are known whole, by what they are, and the rows."""

    left_at: str
    secrets: dict[str, str]
    tables: Rows


def read(revision: str) -> KeptBooks:
    """Read the books that the release of this revision has left."""
    path = FOLDER / f"{revision}.json"
    if not path.exists():
        pytest.fail(
            f"There are no books of revision {revision}: {path} is missing. Let its release make them, and commit the "
            "file: python -m tests.migrations.make"
        )
    kept = json.loads(path.read_text(encoding="utf-8"), object_hook=_from_json)
    return KeptBooks(kept["left_at"], kept["secrets"], kept["tables"])


def write(revision: str, books: KeptBooks) -> Path:
    """Keep books in the file of this revision, one row a line; answer with the file."""
    tables = ",\n".join(
        f'"{name}": [' + ",".join(f"\n{_as_json(row)}" for row in found) + "]" for name, found in books.tables.items()
    )
    path = FOLDER / f"{revision}.json"
    path.write_text(
        f'{{"left_at": "{books.left_at}",\n"secrets": {_as_json(books.secrets)},\n"tables": {{\n{tables}}}}}\n',
        encoding="utf-8",
    )
    return path


def rows_of(engine: Engine) -> Rows:
    """Read all rows of all tables, in the order of their keys, whatever their revision."""
    with transaction(engine, read_only=True) as connection:
        return {
            table.name: [
                dict(row._mapping) for row in connection.execute(select(table).order_by(*table.primary_key.columns))
            ]
            for table in _tables(connection)
        }


def fill(engine: Engine, books: KeptBooks) -> None:
    """Put the books into a database that is at their revision, in place of what its migrations have put there."""
    with transaction(engine) as connection:
        tables = _tables(connection)
        assert {table.name for table in tables} == set(books.tables)
        for table in reversed(tables):
            connection.execute(table.delete())
        for table in tables:
            if books.tables[table.name]:
                connection.execute(table.insert(), books.tables[table.name])


def _tables(connection: Connection) -> list[Table]:
    """List the tables that the database has, those first that others refer to."""
    names = [
        name
        for name in inspect(connection).get_table_names()
        if name != ALEMBIC and not name.startswith(PARTITION_PREFIX)
    ]
    metadata = MetaData()
    metadata.reflect(connection, only=names)
    return metadata.sorted_tables


def _as_json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, default=lambda value: {"hex": value.hex()})


def _from_json(found: dict[str, Any]) -> Any:
    return bytes.fromhex(found["hex"]) if set(found) == {"hex"} else found
