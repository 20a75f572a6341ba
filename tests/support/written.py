"""All that a service has written, byte for byte: for what must not be in it."""

from collections.abc import Iterator
from contextlib import closing

import psycopg

from tarazu.store.schema import metadata
from tests.support.service import RunningService


def written(service: RunningService) -> bytes:
    """Read the log and the books: SQLite's database and journal, or PostgreSQL's tables."""
    files = {path.name: path.read_bytes() for path in service.folder.iterdir() if path.is_file()}
    if service.engine.dialect.name == "postgresql":
        return b"".join([files["serve.log"], *_tables(service)])
    assert {"tarazu.db", "tarazu.db-wal", "serve.log"} <= set(files)
    return b"".join(files.values())


def _tables(service: RunningService) -> Iterator[bytes]:
    with closing(service.engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert isinstance(connection, psycopg.Connection)
        for name in metadata.tables:
            query = f"COPY (SELECT * FROM {name}) TO STDOUT (FORMAT binary)"  # noqa: S608 - a table of the schema
            with connection.cursor().copy(query.encode()) as copy:
                yield from map(bytes, copy)
