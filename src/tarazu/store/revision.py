"""The revision of the schema: the one that this code works with, and the one that a database has."""

from collections.abc import Collection
from pathlib import Path

from sqlalchemy import Connection, Engine, text

from tarazu.store.availability import BooksUnavailableError
from tarazu.store.books_path import looked_at, missing_folder
from tarazu.store.engine import transaction

HEAD = "0006"
"""The newest of the migrations."""
MIGRATIONS = Path(__file__).with_name("migrations") / "versions"
VERSION_TABLE = "alembic_version"
FIRST_TABLES = frozenset({"accounts", "keys", "requests", "topups", "daily_usage", "idempotency_keys", "intake"})
"""What books have at each revision. The first one was changed until it was released: older ones lack some."""
_TABLES = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type = 'table'",
    "postgresql": "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)",
}


def current_revision(engine: Engine) -> str | None:
    """Tell the revision of the database; None where there are no books yet. Nothing is made or changed.

    Raises:
        BooksUnavailableError: it cannot be read, it is another program's, or its books are not whole.
    """
    is_sqlite = engine.dialect.name == "sqlite"
    if is_sqlite:
        from tarazu.store.sqlite import books_file  # noqa: PLC0415 - a driver that PostgreSQL does without

        if looked_at(books_file(engine)) is None:
            return None
    with transaction(engine, read_only=True) as connection:
        tables = set(connection.execute(text(_TABLES[engine.dialect.name])).scalars())
        revision = _revision(connection) if VERSION_TABLE in tables else None
    ours = FIRST_TABLES & tables
    if (revision is None and is_sqlite and tables) or (revision is not None and not ours):
        raise of_another_program(engine)
    if revision is not None and ours != FIRST_TABLES:
        raise BooksUnavailableError(
            f"The books are not whole: they lack {', '.join(sorted(FIRST_TABLES - ours))}. A state of the code from "
            "before its first release has made them, which no release can use. Keep them, and begin with new ones."
        )
    return revision


def no_books(engine: Engine) -> BooksUnavailableError:
    """Say that there are none, where they are looked for, and what makes them."""
    if engine.dialect.name == "sqlite":
        from tarazu.store.sqlite import books_file  # noqa: PLC0415 - as above

        folder = missing_folder(books_file(engine))
        missing = "" if folder is None else f", nor a folder {folder}. Make the folder first"
        problem = f"There are no books at {_place(engine)}{missing}."
    else:
        problem = "The database has no books yet."
    return BooksUnavailableError(f"{problem} Make them with: tarazu db upgrade")


def of_another_program(engine: Engine) -> BooksUnavailableError:
    """Say that the database has tables, and none of ours."""
    return BooksUnavailableError(f"{_place(engine)} is a database of another program, which stays as it is.")


def refuse_newer(revision: str | None) -> None:
    """Refuse books that no migration of this release has made.

    Raises:
        BooksUnavailableError: a newer release has migrated them.
    """
    if revision is not None and revision not in _known():
        raise BooksUnavailableError(
            f"The database is at revision {revision}, which this release does not know. "
            "Run the newer release that has written it."
        )


def _place(engine: Engine) -> str:
    if engine.dialect.name == "postgresql":
        return "The database"
    from tarazu.store.sqlite import books_file  # noqa: PLC0415 - a driver that PostgreSQL does without

    return str(books_file(engine).absolute())


def _revision(connection: Connection) -> str | None:
    revision: str | None = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar_one_or_none()  # noqa: S608 - a constant
    return revision


def _known() -> Collection[str]:
    """Read the names of the migrations' files, as in 0001_books.py: to ask Alembic takes half a second."""
    return {file.name.partition("_")[0] for file in MIGRATIONS.glob("[0-9]*.py")}
