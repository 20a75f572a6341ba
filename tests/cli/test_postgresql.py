"""Commands and a PostgreSQL that is not as it should be: one line with what to do, and no piece of a password."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import pq
from sqlalchemy import make_url

from tests.cli.commands import Commands
from tests.support.stores import PostgresqlStore

pytestmark = pytest.mark.postgresql

_numbers = itertools.count(1)


@pytest.fixture
def server(postgresql_store: PostgresqlStore) -> Iterator[psycopg.Connection]:
    """Speak with the server as its administrator."""
    with psycopg.connect(postgresql_store.new_database(f"odd_{next(_numbers)}"), autocommit=True) as connection:
        yield connection


def _url(server: psycopg.Connection, *, user: str | None = None, database: str | None = None) -> str:
    info = server.info
    return f"postgresql://{user or info.user}@{quote(info.host, safe='')}:{info.port}/{database or info.dbname}"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "EUC_JP"])
def test_another_encoding_is_refused(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, server: psycopg.Connection, encoding: str
) -> None:
    """By every command, those that make books too, with the line that makes a database of the right one."""
    name = f"encoded_{encoding.lower()}"
    server.execute(
        f"CREATE DATABASE {name} TEMPLATE template0 ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'".encode()
    )
    monkeypatch.setenv("TARAZU_DATABASE_URL", _url(server, database=name))
    for command in (("db", "upgrade"), ("account", "list"), ("serve",)):
        ran = tarazu(*command)
        assert (ran.status, ran.out) == (1, "")
        assert told_by_check(tarazu) == ran.err.splitlines()[0].removeprefix("tarazu: ")
        assert ran.err.startswith(f"tarazu: The database's encoding is {encoding}, which cannot hold every text.")
        assert "ENCODING 'UTF8'" in ran.err
    server.execute(f"DROP DATABASE {name}".encode())


def told_by_check(tarazu: Commands) -> str:
    """Run `check`, which passes; answer with its one warning."""
    document = tarazu.json("check")
    (warning,) = document["warnings"]
    assert document["ok"]
    return str(warning)


def test_the_check_tells_what_a_service_would_refuse(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, server: psycopg.Connection, postgresql_store: PostgresqlStore
) -> None:
    """A database that is not there or has no books, and a server that is away: a warning, in the service's words."""
    monkeypatch.setattr("tarazu.service.books.AWAY_S", 0)
    for url in (
        _url(server, database="none_such"),
        _url(server),
        "postgresql://u@%2Fnowhere/d",
        postgresql_store.new_database(f"odd_{next(_numbers)}"),
    ):
        monkeypatch.setenv("TARAZU_DATABASE_URL", url)
        refused = tarazu("serve")
        assert refused.status == 1
        assert told_by_check(tarazu) == refused.err.splitlines()[0].removeprefix("tarazu: ")


def test_whatever_a_parameter_is_the_check_tells_what_a_command_would(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, postgresql_store: PostgresqlStore, tmp_path: Path
) -> None:
    """Each that libpq knows, with a value that is none: a command works and nothing is told, or both refuse it."""
    url = postgresql_store.new_books(tmp_path)
    refusals = 0
    for option in pq.Conninfo.get_defaults():
        name = option.keyword.decode()
        if name in {"host", "user", "password", "dbname"}:
            continue
        monkeypatch.setenv("TARAZU_DATABASE_URL", f"{url}{'&' if '?' in url else '?'}{name}=nonsense")
        ran, checked = tarazu("account", "list"), tarazu("check")
        refusals += ran.status
        assert ran.status == (checked.status or "Warning: " in checked.out), name
    assert refusals > 9


def test_the_environments_encoding_changes_nothing(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, postgresql_store: PostgresqlStore
) -> None:
    """PGCLIENTENCODING is for other programs."""
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("TARAZU_DATABASE_URL", postgresql_store.new_database(f"odd_{next(_numbers)}"))
    assert tarazu("db", "upgrade").status == 0
    assert tarazu.json("account", "create", "--name", "سارا €")["name"] == "سارا €"


def test_missing_rights_are_told(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, server: psycopg.Connection, postgresql_store: PostgresqlStore
) -> None:
    """A role that may only connect, and one that may not use the tables: one line, and what to grant."""
    server.execute(b"CREATE ROLE shop LOGIN")
    server.execute(f"GRANT ALL ON DATABASE {server.info.dbname} TO shop".encode())
    try:
        monkeypatch.setenv("TARAZU_DATABASE_URL", _url(server, user="shop"))
        told = tarazu("db", "upgrade")
        assert told.err.startswith("tarazu: The database refuses: permission denied for schema public. Make the role")
        books = str(make_url(postgresql_store.new_books(None)).database)  # type: ignore[arg-type]  # has a folder itself
        monkeypatch.setenv("TARAZU_DATABASE_URL", _url(server, user="shop", database=books))
        for command in (("account", "list"), ("account", "create", "--name", "A"), ("audit",), ("serve",)):
            told = tarazu(*command)
            assert (told.status, told.out) == (1, "")
            problem, _ = told.err.splitlines()
            assert problem.startswith("tarazu: The database refuses: permission denied for table ")
            assert "Make the role the owner" in problem
    finally:
        server.execute(b"DROP OWNED BY shop CASCADE")
        server.execute(b"DROP ROLE shop")


@pytest.mark.parametrize("place", ["file", "environment"])
def test_several_hosts_in_libpqs_form(
    tarazu: Commands, monkeypatch: pytest.MonkeyPatch, server: psycopg.Connection, place: str
) -> None:
    """The first host that may be written to is taken, wherever the URL stands."""
    info = server.info
    host = quote(info.host, safe="")
    url = f"postgresql://{info.user}@%2Fnowhere:1,{host}:{info.port}/{info.dbname}?target_session_attrs=read-write"
    options: tuple[str, ...] = ()
    if place == "environment":
        monkeypatch.setenv("TARAZU_DATABASE_URL", url)
    else:
        options = ("--config", "other.toml")
        with open("tarazu.toml", encoding="utf-8") as old, open("other.toml", "w", encoding="utf-8") as new:  # noqa: PTH123
            new.write(f'[database]\nurl = "{url}"\n{old.read()}')
    assert tarazu("check", *options).status == 0
    assert tarazu("db", "upgrade", *options).status == 0
    assert tarazu.json("account", "list", *options) == []
