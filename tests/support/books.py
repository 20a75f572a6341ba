"""Books for tests: a real database with the migrated schema, and short ways to fill it and look into it."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Dialect, Engine, event, text

from tarazu.domain.accounts import Account, Intake, Key
from tarazu.domain.admission import Decision
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import Hold, Reason, RequestState
from tarazu.store.accounts import find_account, insert_account
from tarazu.store.adjustments import Adjustment
from tarazu.store.audit import AuditReport, audit
from tarazu.store.batch import run_batch
from tarazu.store.engine import open_engine, transaction
from tarazu.store.keys import find_key, insert_key
from tarazu.store.operations import Admit, End, Operation
from tarazu.store.schema import intake, metadata
from tarazu.store.topups import Topup, insert_topup
from tests.support.stores import Store
from tests.support.values import NOON_MS, Clock, make_asked, make_catalogue, present

TABLES = [table.name for table in metadata.sorted_tables]

_numbers = count(1)
_compiled: dict[str, tuple[Dialect, Any]] = {}
_EMPTYING = [
    *(f"DELETE FROM {table.name}" for table in reversed(metadata.sorted_tables) if table is not intake),  # noqa: S608 - fixed names
    f"UPDATE intake SET stopped = 0, retry_after_s = {Intake().retry_after_s}",  # noqa: S608 - a figure of ours
]

sqlite_only = pytest.mark.parametrize("store_kind", ["sqlite"], indirect=True)
"""For tests that use SQLite's own switches, or whose claim is not about the books."""
postgresql_only = pytest.mark.parametrize("store_kind", ["postgresql"], indirect=True)
"""For tests of what only PostgreSQL has."""


def make_topup(credits_: int, **changes: Any) -> Topup:
    """Make a top-up of account `acc_1` with a reference of its own."""
    number = next(_numbers)
    topup = Topup(
        id=f"top_{number:08}",
        account_id="acc_1",
        credits=credits_,
        reference=f"payment {number}",
        note=None,
        made_by="tests",
        created_at_ms=NOON_MS,
    )
    return replace(topup, **changes)


def make_adjustment(credits_: int, **changes: Any) -> Adjustment:
    """Make an adjustment of account `acc_1`."""
    adjustment = Adjustment(
        id=f"adj_{next(_numbers):08}",
        account_id="acc_1",
        credits=credits_,
        reason="a correction",
        reference=None,
        made_by="tests",
        created_at_ms=NOON_MS,
    )
    return replace(adjustment, **changes)


def charge(hold: Hold, **changes: Any) -> End:
    """Make the operation that charges a hold for 10 tokens in and 20 out."""
    end = End(
        request_id=hold.request_id,
        account_id=hold.account_id,
        period=hold.period,
        state=RequestState.CHARGED,
        tries=1,
        prompt_tokens=10,
        completion_tokens=20,
        idempotency_key=hold.idempotency_key,
    )
    return replace(end, **changes)


def release(hold: Hold, reason: Reason | None = None) -> End:
    """Make the operation that releases a hold."""
    return End(
        request_id=hold.request_id,
        account_id=hold.account_id,
        period=hold.period,
        state=RequestState.RELEASED,
        idempotency_key=hold.idempotency_key,
        reason=reason,
    )


class Books:
    """One database, its engine, and short ways to fill it, run batches on it and look into it."""

    def __init__(self, url: str, catalogue: Catalogue | None = None) -> None:
        self.url = url
        self.catalogue = catalogue or make_catalogue()
        self.clock = Clock()
        self.pragmas: dict[str, int] = {}
        self.engine = self.open_engine(self.pragmas)

    def open_engine(self, pragmas: dict[str, int]) -> Engine:
        """Open an engine. Its connections set the pragmas, as they stand then, whenever they are taken or begin.

        So a disk can become full (`max_page_count`) or write-protected (`query_only`), and well again. On PostgreSQL
        they are settings of the session.
        """
        engine = open_engine(self.url)
        _compile_once(engine)
        set_ = "SET" if engine.dialect.name == "postgresql" else "PRAGMA"

        def set_pragmas(driver: Any) -> None:
            for name, value in pragmas.items():
                driver.execute(f"{set_} {name} = {value}").close()

        event.listen(engine, "checkout", lambda driver, _record, _proxy: set_pragmas(driver))
        # The ledger keeps a connection. Before the engine's own way to begin, which may have to wait for others.
        event.listen(engine, "begin", lambda begun: set_pragmas(begun.connection.dbapi_connection), insert=True)
        return engine

    def add(self, *values: Account | Key | Topup) -> None:
        """Write accounts, keys and top-ups, in one transaction."""
        with transaction(self.engine) as connection:
            for value in values:
                if isinstance(value, Account):
                    insert_account(connection, value)
                elif isinstance(value, Key):
                    insert_key(connection, value)
                else:
                    insert_topup(connection, value)

    def run(self, *operations: Operation) -> list[Any]:
        """Run one batch now."""
        with transaction(self.engine) as connection:
            return run_batch(connection, operations, self.catalogue, self.clock())

    def admit(self, key: int = 1, model: str | None = "small", **changes: Any) -> Decision:
        """Run a batch of one admission."""
        decision: Decision = self.run(Admit(make_asked(key, model, **changes)))[0]
        return decision

    def execute(self, statement: str, **values: Any) -> None:
        """Run a statement in a transaction of its own."""
        with transaction(self.engine) as connection:
            connection.execute(text(statement), values)

    def execute_unguarded(self, statement: str) -> None:
        """Run a statement without foreign keys, and on SQLite without CHECKs, as hands do that put guards aside."""
        with self.engine.connect() as connection:
            connection.detach()
            if connection.dialect.name == "postgresql":
                guards = ["SET session_replication_role = replica"]
            else:
                guards = ["PRAGMA foreign_keys = OFF", "PRAGMA ignore_check_constraints = ON"]
            cursor = connection.connection.cursor()  # below SQLAlchemy, which would begin a transaction first
            for each in (*guards, statement):
                cursor.execute(each)
            connection.connection.commit()

    def rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        """Run a query."""
        with transaction(self.engine, read_only=True) as connection:
            found = connection.execute(text(query), values).all()
            return [tuple(row) for row in found]

    def account(self, id_: str = "acc_1") -> Account:
        """Read an account."""
        with transaction(self.engine, read_only=True) as connection:
            account = find_account(connection, id_)
        assert account is not None
        return account

    def key(self, number: int = 1) -> Key:
        """Read a key."""
        with transaction(self.engine, read_only=True) as connection:
            key = find_key(connection, present(number).id)
        assert key is not None
        return key

    def multiply_holds(self, times: int, *, later_ms: str) -> None:
        """Add `times` copies of each hold to the books, at no cost; `later_ms` is added to their deadlines in turn.

        `later_ms` is an SQL expression; `number` counts from 1.
        """
        self.execute(
            "WITH RECURSIVE numbers(number) AS"  # noqa: S608 - the tests' own words
            " (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < :times)"
            " INSERT INTO requests"
            " (id, period, account_id, key_id, model_id, credits, source, state, day, created_at_ms, deadline_ms)"
            " SELECT requests.id || CAST(number AS VARCHAR), period, account_id, key_id, model_id, 0, source,"
            f" state, day, created_at_ms, deadline_ms + {later_ms} FROM requests, numbers WHERE state = 'held'",
            times=times,
        )

    def states(self) -> list[str]:
        """Read the states of all requests, in the order of their ids."""
        return [state for (state,) in self.rows("SELECT state FROM requests ORDER BY id")]

    def figures(self, id_: str = "acc_1") -> tuple[int, int]:
        """Read what an account has used of its quota, and its balance."""
        account = self.account(id_)
        return account.used, account.balance

    def audit(self, overdue_before_ms: int = 0) -> AuditReport:
        """Audit the books."""
        return audit(self.engine, overdue_before_ms=overdue_before_ms)

    def assert_balanced(self) -> None:
        """Fail with the differences that an audit finds."""
        assert self.audit().differences == ()

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        """Read everything, to tell that nothing has changed."""
        return {table: self.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3") for table in TABLES}  # noqa: S608 - fixed names


def _compile_once(engine: Engine) -> None:
    """Let all engines for one kind of database keep the statements that they have compiled together.

    Each would compile all of them anew, which was a quarter of what the tests of the books and of the service took.
    """
    if engine.name not in _compiled:
        engine.connect().close()  # the dialect asks the server what it can
        _compiled[engine.name] = engine.dialect, engine._compiled_cache
    engine.dialect, engine._compiled_cache = _compiled[engine.name]


def empty_books(engine: Engine) -> None:
    """Make books new again, faster than by new ones, and than by TRUNCATE, which makes new files."""
    is_postgresql = engine.dialect.name == "postgresql"  # SQLite's driver takes one statement at a time
    with transaction(engine, relaxed=True) as connection:
        for statement in ["; ".join(_EMPTYING)] if is_postgresql else _EMPTYING:
            connection.exec_driver_sql(statement)


@contextmanager
def open_books(store: Store, folder: Path, catalogue: Catalogue | None = None) -> Iterator[Books]:
    """Open new books; a store that keeps them in files does so in the folder."""
    books = Books(store.new_books(folder), catalogue)
    try:
        yield books
    finally:
        books.engine.dispose()
