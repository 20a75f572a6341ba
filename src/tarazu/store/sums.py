"""The requests of the books, added up once for the audit, in memory that does not grow with them."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Select,
    String,
    Table,
    case,
    delete,
    func,
    insert,
    literal,
    literal_column,
    select,
    true,
)

from tarazu.domain.credits import RequestState
from tarazu.store.schema import daily_usage, requests
from tarazu.store.snapshot import ASIDE, IN_MEMORY
from tarazu.store.telling import Tell
from tarazu.store.upsert import insert_into, resolving

SLICE = 250_000
"""Requests that are added up in one go on SQLite, which groups in memory alone."""
USAGE_KEY = ("day", "account_id", "key_id", "model_id")
USAGE_FIGURES = ("requests", "credits", "prompt_tokens", "completion_tokens")
SPLIT = ("period", "source")
CALLER_KEY = ("account_id", "key_id", *SPLIT)
BOOKED, COMPUTED = "booked_", "computed_"

sums = MetaData()

slice_sums = Table(
    "slice_sums",
    sums,
    *(Column(name, String, nullable=False) for name in (*USAGE_KEY, *SPLIT, "state")),
    *(Column(name, BigInteger) for name in USAGE_FIGURES),
    schema=IN_MEMORY,
)
"""The requests of one slice."""

usage_sums = Table(
    "usage_sums",
    sums,
    *(Column(name, String, nullable=False) for name in (*USAGE_KEY, *SPLIT)),
    Column("part", Integer, nullable=False),
    *(Column(side + name, BigInteger, nullable=False) for side in (BOOKED, COMPUTED) for name in USAGE_FIGURES),
    PrimaryKeyConstraint(*USAGE_KEY, *SPLIT, "part").ddl_if(dialect="sqlite"),
    sqlite_with_rowid=False,
    schema=ASIDE,
)
"""The daily usage as it is booked, and as the charged requests of each slice have it; either has zeros for the other.

On SQLite the rows are in the order of the key, so that they are grouped without a sort. The day comes first: requests
come in the order of their days, and each slice is added where the last one was. PostgreSQL needs no order.
"""

caller_sums = Table(
    "caller_sums",
    sums,
    *(Column(name, String, primary_key=True) for name in CALLER_KEY),
    Column("requests", BigInteger, nullable=False),
    Column("credits", BigInteger, nullable=False),
    sqlite_with_rowid=False,
    schema=ASIDE,
)
"""What each account's keys have sent: all requests, and the credits of those that are held or charged."""

_ROWID = literal_column("requests.rowid", BigInteger)
_IS_KEPT = slice_sums.c.state.in_([RequestState.HELD, RequestState.CHARGED])


def add_up(connection: Connection, tell: Tell) -> None:
    """Fill the three tables, in a snapshot that has them; `tell` hears how far it is."""
    _add_booked_usage(connection)
    for part, (is_in_slice, share) in enumerate(_slices(connection), start=1):
        tell("adding up the requests", share)
        _fill_slice(connection, is_in_slice)
        _add_usage(connection, part)
        _add_callers(connection)


def _slices(connection: Connection) -> Iterator[tuple[ColumnElement[bool], float]]:
    """Cut the requests up, each with the share that comes before it. PostgreSQL groups on disk, and needs one slice."""
    if connection.dialect.name == "postgresql":
        yield true(), 0.0
        return
    # One at a time: each is then a look at one end of the table.
    last = connection.execute(select(func.max(_ROWID)).select_from(requests)).scalar_one()
    first = start = connection.execute(select(func.min(_ROWID)).select_from(requests)).scalar_one()
    while start is not None:
        end = start + SLICE
        yield _ROWID.between(start, end - 1), (start - first) / (last - first + 1)
        beyond = select(func.min(_ROWID)).select_from(requests).where(_ROWID.between(end, last))
        start = connection.execute(beyond).scalar_one()


def _fill_slice(connection: Connection, is_in_slice: ColumnElement[bool]) -> None:
    by = [requests.c[name] for name in (*USAGE_KEY, *SPLIT, "state")]
    figures = [func.count(), *(func.sum(requests.c[name]) for name in USAGE_FIGURES[1:])]
    connection.execute(delete(slice_sums))
    connection.execute(
        insert(slice_sums).from_select(slice_sums.c.keys(), select(*by, *figures).where(is_in_slice).group_by(*by))
    )


def _add_booked_usage(connection: Connection) -> None:
    key = [daily_usage.c[name] for name in USAGE_KEY]
    booked = [daily_usage.c[name] for name in USAGE_FIGURES]
    _add_to_usage(connection, select(*key, *([literal("")] * len(SPLIT)), literal(0), *booked, *_NOTHING))


def _add_usage(connection: Connection, part: int) -> None:
    key = [slice_sums.c[name] for name in (*USAGE_KEY, *SPLIT)]
    computed = [func.coalesce(slice_sums.c[name], 0) for name in USAGE_FIGURES]
    rows = select(*key, literal(part), *_NOTHING, *computed).where(slice_sums.c.state == RequestState.CHARGED)
    _add_to_usage(connection, rows)


def _add_to_usage(connection: Connection, rows: Select[Any]) -> None:
    connection.execute(insert(usage_sums).from_select(usage_sums.c.keys(), rows))


def _add_callers(connection: Connection) -> None:
    by = [slice_sums.c[name] for name in CALLER_KEY]
    kept = func.sum(case((_IS_KEPT, slice_sums.c.credits), else_=0))
    rows = select(*by, func.sum(slice_sums.c.requests), kept).where(true()).group_by(*by)
    added = insert_into(connection, caller_sums).from_select(caller_sums.c.keys(), rows)
    connection.execute(resolving(added, caller_sums, adding=("requests", "credits")))


_NOTHING = [literal(0)] * len(USAGE_FIGURES)
