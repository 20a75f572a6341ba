"""Statements for many rows: few or many, on either store, they write the same."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Connection, Integer, LargeBinary, MetaData, String, Table, select
from sqlalchemy.exc import IntegrityError

from tarazu.store.engine import transaction
from tarazu.store.many_rows import FEW, insert_rows, update_rows
from tests.support.books import Books

pytestmark = pytest.mark.both_stores

metadata = MetaData()
things = Table(
    "things",
    metadata,
    Column("id", String, primary_key=True),
    Column("part", Integer, primary_key=True),
    Column("name", String),
    Column("number", Integer),
    Column("content", LargeBinary),
)
numbers = pytest.mark.parametrize("count", [1, FEW, FEW + 1, 200])
INSERT = insert_rows(things, ["id", "part", "name", "number"])
ODD = 'a "quoted" \\ back\\slash, {brace}\n\t\x01 – آب 🜚'
"""Text that would not survive being written into a statement, an array or JSON carelessly."""


@pytest.fixture
def connection(books: Books) -> Iterator[Connection]:
    """A transaction on a database with a table of things."""
    with transaction(books.engine) as connection:
        metadata.create_all(connection)
        yield connection


def made(count: int) -> list[dict[str, object]]:
    """Make so many things, every third without a name."""
    return [
        {"id": f"thing {place:04}", "part": 1, "name": None if place % 3 == 2 else ODD, "number": 2**31 - 1 - place}
        for place in range(count)
    ]


def stored(connection: Connection) -> list[dict[str, object]]:
    """Read all things without their contents."""
    query = select(things.c.id, things.c.part, things.c.name, things.c.number).order_by(things.c.id)
    return [dict(row) for row in connection.execute(query).mappings()]


@numbers
def test_rows_are_inserted_as_they_are(connection: Connection, count: int) -> None:
    """Text of all kinds, large numbers, and nothing."""
    INSERT.write(connection, made(count))
    assert stored(connection) == made(count)


@numbers
def test_a_row_that_is_there_already_is_an_error(connection: Connection, count: int) -> None:
    """Where nothing was said of it."""
    INSERT.write(connection, made(count))
    with pytest.raises(IntegrityError), connection.begin_nested():
        INSERT.write(connection, made(count))


@numbers
def test_figures_are_added_and_others_replaced(connection: Connection, count: int) -> None:
    """For the rows that are there; the others are new."""
    statement = insert_rows(things, ["id", "part", "name", "number"], adding=["number"], replacing=["name"])
    INSERT.write(connection, [{**row, "number": 1} for row in made(count)])
    statement.write(connection, [{**row, "name": "new", "number": 10} for row in made(count + 1)])
    added = [11] * count + [10]
    assert [(row["name"], row["number"]) for row in stored(connection)] == [("new", number) for number in added]


@numbers
def test_the_rows_that_are_told_are_updated(connection: Connection, count: int) -> None:
    """All of them and no other, where the condition is true; the answer tells how many."""
    statement = update_rows(things, by=["id", "part"], setting=["name", "number"], where=things.c.number > 0)
    INSERT.write(connection, made(count))
    others = [{**row, "part": 2} for row in made(count)] + [{"id": "zero", "part": 1, "name": "old", "number": 0}]
    INSERT.write(connection, others)
    changes = [{"of_id": row["id"], "of_part": 1, "name": f"new {row['id']}", "number": 7} for row in made(count)]
    result = statement.write(connection, [*changes, {"of_id": "zero", "of_part": 1, "name": "new", "number": 7}])
    assert result == count
    expected = [{"id": each["of_id"], "part": 1, "name": each["name"], "number": 7} for each in changes]
    assert [row for row in stored(connection) if row["part"] == 1] == [*expected, others[-1]]
    assert [row for row in stored(connection) if row["part"] == 2] == others[:-1]


@numbers
def test_bytes_are_written_as_they_are(connection: Connection, count: int) -> None:
    """JSON could not carry them."""
    statement = insert_rows(things, ["id", "part", "content"])
    statement.write(connection, [{"id": str(place), "part": 1, "content": bytes([0, place])} for place in range(count)])
    contents = connection.execute(select(things.c.content).order_by(things.c.content)).scalars()
    assert list(contents) == [bytes([0, place]) for place in range(count)]
