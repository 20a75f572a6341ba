"""`tarazu db`: make and migrate the books, back them up, and restore them."""

# ruff: noqa: PLC0415 - configuration and database are loaded only by the commands that use them

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tarazu.cli.acts import DO_NOT_REPEAT, done
from tarazu.cli.clock import system_clock
from tarazu.cli.desk import books_errors, read_configuration
from tarazu.cli.documents import BackupDocument, MigrationDocument, RestoreDocument
from tarazu.cli.errors import CommandError, UsageError
from tarazu.cli.options import AsJson, ConfigPath, command_group
from tarazu.cli.output import confirmed, counted, print_json, progress, say
from tarazu.cli.program import command_line

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tarazu.store.restore import PreparedBackup

MIB = 1024 * 1024

database_app = command_group("db", "Look after the database.")


@database_app.command
def upgrade(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Run the migrations that are missing.

    The books are made when there are none. With SQLite `tarazu serve` does it
    too.

    For example:

        tarazu db upgrade
    """
    from tarazu.store.engine import open_engine
    from tarazu.store.migrate import upgrade as migrate

    configuration = read_configuration(config)
    with books_errors(configuration):
        engine = open_engine(configuration.database_url)
        try:
            before, after = migrate(engine)
            done(f"The database is at revision {after}.")
        finally:
            engine.dispose()
    if as_json:
        print_json(MigrationDocument(before=before, after=after))
    elif before == after:
        say(f"The database is at revision {after} already.")
    else:
        say(f"The database was {'empty' if before is None else f'at revision {before}'}, now it is at {after}.")


@database_app.command
def backup(
    file: Annotated[Path, Parameter(name="FILE", help="The file to make. One that is there is not replaced.")],
    /,
    *,
    force: Annotated[
        bool, Parameter(name="--force", negative=(), show_default=False, help="Replace the file if it is there.")
    ] = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Copy the books to one file, while the service runs.

    The file has all of one moment, is checked and on disk when the command ends,
    and can be read by its owner alone. This is for books in SQLite.

    For example:

        tarazu db backup /backup/tarazu-monday.db
        tarazu db backup /backup/tarazu.db --force
    """
    with _sqlite_books(config) as engine, progress() as tell:
        from tarazu.store.backup import back_up

        contents = back_up(engine, file, replaces=force, tell=tell)
        done(f"The backup {file} is made.")
    if as_json:
        print_json(
            BackupDocument(
                file=str(file),
                revision=contents.revision,
                accounts=contents.accounts,
                requests=contents.requests,
                bytes=contents.bytes,
            )
        )
        return
    say(
        f"{file} has the books at revision {contents.revision}: {counted(contents.accounts, 'account')} "
        f"and {counted(contents.requests, 'request')}, in {contents.bytes / MIB:,.1f} MiB."
    )


@database_app.command
def restore(
    file: Annotated[Path, Parameter(name="FILE", help="A backup; it stays as it is.")],
    /,
    *,
    yes: Annotated[
        bool, Parameter(name="--yes", negative=(), show_default=False, help="Do not ask, for programs.")
    ] = False,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Replace the books by a backup, also while the service runs.

    The backup is checked, audited and migrated before anything is replaced. The
    books as they were are kept beside the database. What was done since the
    backup is undone: keys that were revoked are valid again, top-ups are missing.
    This is for books in SQLite.

    For example:

        tarazu db restore /backup/tarazu-monday.db
        tarazu db restore /backup/tarazu-monday.db --yes --json
    """
    if not yes and not sys.stdin.isatty():
        raise UsageError("There is no terminal to ask whether the books are to be replaced.", "Say so with --yes.")
    with _sqlite_books(config) as engine:
        from tarazu.store.books_path import looked_at, require_makeable
        from tarazu.store.copies import folder_beside
        from tarazu.store.restore import prepare, put_in_place
        from tarazu.store.sqlite import books_file

        books = books_file(engine)
        if looked_at(books) is None:
            require_makeable(books)
        with folder_beside(books) as folder:
            with progress() as tell:
                prepared = prepare(engine, file, folder, tell)
            if not yes and not confirmed(_question(prepared, file, books)):
                raise CommandError("Nothing was replaced.")
            kept = books.with_name(f"{books.stem}.before-restore-{_now()}{books.suffix or '.db'}")
            with progress() as tell:
                had_books = put_in_place(engine, prepared, kept, tell)
            before = f"; as they were they are in {kept}" if had_books else ""
            done(f"The books are those of {file}{before}. {DO_NOT_REPEAT.capitalize()}.")
    contents = prepared.contents
    if as_json:
        print_json(
            RestoreDocument(
                file=str(file),
                before=prepared.backed_up.revision,
                after=contents.revision,
                accounts=contents.accounts,
                requests=contents.requests,
                kept=str(kept) if had_books else None,
            )
        )
        return
    say(f"The books are those of {file}: {_described(prepared)}.")
    if had_books:
        say(f"The books as they were are in {kept}")
        say("Keys that were revoked, accounts that were blocked and credits that were added since the backup are as")
        say("they were then. Look them through, and add what was paid, by the same references.")
    say(f"Holds of the backup are swept when their time is over. Then check: {command_line('audit', config)}")


@contextmanager
def _sqlite_books(config: Path | None) -> Iterator["Engine"]:
    """Open the books as they are, without making or migrating them.

    Raises:
        CommandError: they are not in SQLite, or what is done with them fails.
    """
    from tarazu.store.engine import open_engine

    configuration = read_configuration(config)
    with books_errors(configuration):
        engine = open_engine(configuration.database_url)
        if engine.dialect.name != "sqlite":
            raise CommandError(
                "The books are in PostgreSQL, which has tools of its own for this.",
                "Use pg_dump and pg_restore, as docs/postgresql.md tells.",
            )
        from tarazu.store.copies import BackupError

        try:
            yield engine
        except BackupError as error:
            raise CommandError(str(error), "The books are as they were.") from None
        finally:
            engine.dispose()


def _question(prepared: "PreparedBackup", file: Path, books: Path) -> str:
    return f"{file} has {_described(prepared)}. Replace the books in {books} by it?"


def _described(prepared: "PreparedBackup") -> str:
    contents, before = prepared.contents, prepared.backed_up.revision
    migrated = "" if before == contents.revision else f", migrated from {before}"
    return (
        f"{counted(contents.accounts, 'account')} and {counted(contents.requests, 'request')} "
        f"at revision {contents.revision}{migrated}"
    )


def _now() -> str:
    """Write the time as a part of a file's name, in UTC, to the millisecond."""
    now_ms = system_clock()
    return f"{datetime.fromtimestamp(now_ms // 1_000, UTC):%Y%m%dT%H%M%S}.{now_ms % 1_000:03}Z"
