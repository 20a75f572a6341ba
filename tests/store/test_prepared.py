"""Statements that run by a text that was made once."""

from collections.abc import Iterator

import pytest
from sqlalchemy import (
    Column,
    Connection,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy import update as update_of
from sqlalchemy.exc import IntegrityError

from tarazu.store.among import among
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.engine import transaction
from tarazu.store.prepared import Prepared, write_together
from tests.support.books import Books, postgresql_only
from tests.support.statements import seen

pytestmark = pytest.mark.both_stores

metadata = MetaData()
things = Table(
    "things",
    metadata,
    Column("id", String, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("content", LargeBinary),
)
ROWS = [
    {"id": "100 % :a ?", "number": 1, "content": b"\x00\xff"},
    {"id": "b", "number": 2, "content": None},
    {"id": "c", "number": 3, "content": b""},
]
FEW_THINGS = (
    select(things)
    .where(among(things.c.id, "ids"))
    .where(things.c.number > bindparam("least"))
    .where(things.c.number != 3)
    .where(things.c.id != "100 % :b ?")
    .order_by(things.c.id)
)
INSERT = Prepared(insert(things), ("id", "number"))
VALUES = {"ids": ["100 % :a ?", "b", "c", "d"], "least": 0}


@pytest.fixture
def connection(books: Books) -> Iterator[Connection]:
    """A transaction on a database with a table of things, and some of them."""
    with transaction(books.engine) as connection:
        metadata.create_all(connection)
        connection.execute(insert(things), ROWS)
        yield connection


def test_it_reads_what_the_statement_reads(connection: Connection) -> None:
    """With its own constants among the values, and every sign that a driver may take for a parameter."""
    found = Prepared(FEW_THINGS).read(connection, VALUES)
    assert [tuple(row) for row in found] == [tuple(row) for row in connection.execute(FEW_THINGS, VALUES)]
    assert [tuple(row) for row in found] == [tuple(row.values()) for row in ROWS[:2]]


def test_it_writes_row_after_row(connection: Connection) -> None:
    """The columns are those that it was told; bytes are bytes; it tells how many rows there were to change."""
    new = [{"id": f"new {place}", "number": place, "content": bytes([place])} for place in range(5)]
    insert_whole = Prepared(insert(things), ("id", "number", "content"))
    renumber = Prepared(update_of(things).where(things.c.id == bindparam("of_id")), ("of_id", "number"))
    renumbered = [{"of_id": f"new {place}", "number": 9} for place in (1, 3, 7)]
    inserted, changed = write_together(connection, [(insert_whole, new), (renumber, renumbered)])
    stored = connection.execute(select(things).where(things.c.id.like("new %")).order_by(things.c.id))
    assert (inserted, changed) == (5, 2)
    assert [(row.number, row.content) for row in stored] == [
        (9 if place in (1, 3) else place, bytes([place])) for place in range(5)
    ]


def test_its_text_is_made_once(books: Books, connection: Connection) -> None:
    """However often it runs, and with whatever values."""
    prepared = Prepared(FEW_THINGS)
    with seen(books.engine) as texts:
        for count in range(4):
            prepared.read(connection, {"ids": ["b"] * count, "least": count})
    assert [text is texts[0] for text in texts] == [True] * 4


def test_a_broken_rule_is_the_error_that_it_always_is(connection: Connection) -> None:
    """A driver's own error would pass by all who tell the database's failures from ours."""
    with pytest.raises(IntegrityError), connection.begin_nested():
        write_together(connection, [(INSERT, [{"id": "b", "number": 1}])])


def test_an_error_carries_no_values(connection: Connection) -> None:
    """PostgreSQL quotes the row, and an error's text may reach a log."""
    with pytest.raises(IntegrityError) as raised, connection.begin_nested():
        write_together(connection, [(INSERT, [{"id": ROWS[0]["id"], "number": 1}])])
    assert "100 %" not in str(raised.value) + repr(raised.value.orig)


@pytest.mark.parametrize("place", range(3))
def test_of_several_statements_the_one_that_breaks_is_the_error(connection: Connection, place: int) -> None:
    """Wherever it stands among those of one message, which has no effect then; and the transaction goes on."""
    writes = [(INSERT, [{"id": f"new {number}", "number": 1}]) for number in range(3)]
    writes[place] = (INSERT, [{"id": ROWS[0]["id"], "number": 1}])
    with pytest.raises(IntegrityError) as raised, connection.begin_nested():
        write_together(connection, writes)
    assert "100 %" not in str(raised.value) + repr(raised.value.orig)
    assert connection.execute(select(func.count()).select_from(things)).scalar_one() == len(ROWS)


@postgresql_only
def test_a_connection_that_is_cut_is_not_lent_again(books: Books) -> None:
    """As with SQLAlchemy's own execution: the next transaction has a new one."""
    pid = Prepared(select(func.pg_backend_pid()))
    used: list[int] = []

    def use(*, cut: bool) -> None:
        with transaction(books.engine) as connection:
            used.append(pid.read(connection, {})[0][0])
            if cut:
                with transaction(books.engine) as another:
                    another.execute(select(func.pg_terminate_backend(used[-1], 5_000)))
                pid.read(connection, {})

    with pytest.raises(BooksUnavailableError):
        use(cut=True)
    use(cut=False)
    assert used[0] != used[1]


def test_a_list_that_expands_is_refused(connection: Connection) -> None:
    """Its text would be another for each number of values: a wrong answer for all but the first."""
    prepared = Prepared(select(things).where(things.c.id.in_(bindparam("ids", expanding=True))))
    with pytest.raises(AssertionError, match="ids"):
        prepared.read(connection, {"ids": ["b"]})
