"""Read one state of the books for long, beside the service, with room for tables that are gone afterwards."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, MetaData

from tarazu.store.engine import books_errors
from tarazu.store.transaction_options import READ_ONLY

ASIDE = "aside"
"""The schema of tables that may grow with the books: on disk, apart from the books."""
IN_MEMORY = "temp"
"""The schema of tables that stay small."""


@contextmanager
def snapshot(engine: Engine, tables: MetaData) -> Iterator[Connection]:
    """Read in one transaction, however long it takes; `tables`, in the schemas above, can be written to.

    The service is kept from nothing. The connection is closed at the end, and everything in the tables is gone, also
    when the process is killed.

    Raises:
        BooksUnavailableError: the database failed, or a statement took longer than a long one may.
    """
    with books_errors(), engine.connect() as connection:
        connection.detach()  # it ends with us: no other transaction gets its settings or its tables
        if connection.dialect.name == "postgresql":
            from tarazu.store.postgresql import TEMPORARY, allow_long_statements  # noqa: PLC0415 - as in open_engine

            allow_long_statements(connection)
            schemas: dict[str | None, str | None] = {ASIDE: TEMPORARY, IN_MEMORY: TEMPORARY}
            connection.execution_options(schema_translate_map=schemas)
        else:
            from tarazu.store.sqlite import attach_scratch  # noqa: PLC0415 - beside the other

            attach_scratch(connection, ASIDE)
            connection.execution_options(**{READ_ONLY: True})  # the tables need no lock on the books
        with connection.begin():
            tables.create_all(connection, checkfirst=False)
        connection.execution_options(**{READ_ONLY: True})
        with connection.begin():
            yield connection
