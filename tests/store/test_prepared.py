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
    event,
    insert,
    select,
)
from sqlalchemy import update as update_of
from sqlalchemy.exc import IntegrityError

from tarazu.store.among import among
from tarazu.store.engine import transaction
from tarazu.store.prepared import Prepared
from tests.support.books import Books

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
    found = Prepared(FEW_THINGS).run(connection, VALUES).all()
    assert [tuple(row) for row in found] == [tuple(row) for row in connection.execute(FEW_THINGS, VALUES)]
    assert [tuple(row) for row in found] == [tuple(row.values()) for row in ROWS[:2]]


def test_it_writes_row_after_row(connection: Connection) -> None:
    """The columns are those that it was told; bytes are bytes; it tells how many rows there were to change."""
    new = [{"id": f"new {place}", "number": place, "content": bytes([place])} for place in range(5)]
    Prepared(insert(things), ("id", "number", "content")).run_many(connection, new)
    renumber = Prepared(update_of(things).where(things.c.id == bindparam("of_id")), ("of_id", "number"))
    changed = renumber.run_many(connection, [{"of_id": f"new {place}", "number": 9} for place in (1, 3, 7)])
    stored = connection.execute(select(things).where(things.c.id.like("new %")).order_by(things.c.id))
    assert changed.rowcount == 2
    assert [(row.number, row.content) for row in stored] == [
        (9 if place in (1, 3) else place, bytes([place])) for place in range(5)
    ]


def test_its_text_is_made_once(books: Books, connection: Connection) -> None:
    """However often it runs, and with whatever values."""
    prepared = Prepared(FEW_THINGS)
    texts: list[str] = []

    @event.listens_for(connection, "before_cursor_execute")
    def _note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        texts.append(statement)

    for count in range(4):
        prepared.run(connection, {"ids": ["b"] * count, "least": count})
    with transaction(books.engine, read_only=True) as another:
        assert [text is texts[0] for text in texts] == [True] * 4
        assert prepared._text(another.dialect) is prepared._text(connection.dialect)


def test_a_broken_rule_is_the_error_that_it_always_is(connection: Connection) -> None:
    """A driver's own error would pass by all who tell the database's failures from ours."""
    with pytest.raises(IntegrityError), connection.begin_nested():
        Prepared(insert(things), ("id", "number")).run_many(connection, [{"id": "b", "number": 1}])


def test_a_list_that_expands_is_refused(connection: Connection) -> None:
    """Its text would be another for each number of values: a wrong answer for all but the first."""
    prepared = Prepared(select(things).where(things.c.id.in_(bindparam("ids", expanding=True))))
    with pytest.raises(AssertionError, match="ids"):
        prepared.run(connection, {"ids": ["b"]})
