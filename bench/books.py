"""Make large books that balance, for benchmarks: some millions of requests in a minute or two, on either store.

    python -m bench.books sqlite:////tmp/large.db --requests 10000000 --accounts 10000

Other benchmarks call `fill` on books that are new and migrated. The same size gives the same books, to the last id.
"""

import time
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from hashlib import sha512
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection, Engine, insert, text

from bench.arguments import parser_of
from tarazu.domain.accounts import Account, AccountStatus, Key, Window
from tarazu.domain.calendar import minute_of
from tarazu.domain.keys import ALPHABET, MintedKey, base62, mint
from tarazu.service.identifiers import TIME_DIGITS
from tarazu.store.engine import open_engine, transaction
from tarazu.store.migrate import upgrade
from tarazu.store.partitions import prepare_partitions
from tarazu.store.postgresql import LONG_STATEMENT_TIMEOUT_MS, WHOLE_TABLE_WAYS
from tarazu.store.rows import account_row, key_row
from tarazu.store.schema import accounts, keys

DAY_MS = 86_400_000
HOLD_UNTIL_MS = 4_102_444_800_000
"""The deadline of what is held, in the year 2100: no sweep ends it."""
SLICE = 1_000_000
"""Requests written in one transaction: it bounds the write-ahead log."""
ROWS_AT_ONCE = 10_000
"""Accounts or keys that are made before they are sent."""
BALANCE = 1_000_000
"""Credits left on each account."""


class Size(Struct, frozen=True, kw_only=True):
    """How large the books are to be. Requests are spread evenly over the days, the keys and the models.

    Three in four are paid from the plan; of a hundred, 98 are charged, one released, one swept; the last `holds` are
    held, until 2100. The last `idempotency_keys` of those that are charged came with a key. A request costs 1 credit
    with the first of the models, 2 with the second and so on. Beside one in ten, three others were refused.
    """

    requests: int = 1_000_000
    accounts: int = 10_000
    keys_per_account: int = 1
    plan: str = "bench"
    models: tuple[str, ...] = ("small", "medium", "large")
    days: int = 90
    last_day: date = date(2026, 6, 30)
    holds: int = 20
    idempotency_keys: int = 1_000

    @property
    def start_ms(self) -> int:
        """The beginning of the first day."""
        first = self.last_day - timedelta(days=self.days - 1)
        return round(datetime(first.year, first.month, first.day, tzinfo=UTC).timestamp()) * 1_000

    @property
    def end_ms(self) -> int:
        """The end of the last day."""
        return self.start_ms + self.days * DAY_MS

    @property
    def day_names(self) -> list[str]:
        """The days, YYYY-MM-DD."""
        return [(self.last_day - timedelta(days=back)).isoformat() for back in reversed(range(self.days))]


def account_id(number: int) -> str:
    """Tell the id of an account; they are counted from 0."""
    return f"acc_{base62(int.from_bytes(sha512(b'account %d' % number).digest()), 14)}"


def key_of(number: int) -> MintedKey:
    """Tell a key, with its whole text; they are counted from 0, the first account's first."""
    return mint(sha512(b"key %d" % number).digest())


def fill(engine: Engine, size: Size) -> None:
    """Fill new, migrated books; on PostgreSQL the partitions of their months are made too."""
    with transaction(engine) as connection:
        prepare_partitions(connection, sorted({day[:7] for day in size.day_names}))
        _write_accounts(connection, size)
    for first in range(0, size.requests, SLICE):
        with transaction(engine, relaxed=True) as connection:
            _execute(connection, _REQUESTS, size, first=first, end=min(first + SLICE, size.requests))
    with transaction(engine) as connection:
        for statement in (_DAILY_USAGE, _REFUSED, _TOPUPS, _FIGURES, _IDEMPOTENCY_KEYS):
            _execute(connection, statement, size)
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            take_your_time(connection)
            connection.exec_driver_sql("VACUUM ANALYZE")  # what autovacuum has done in books that have grown


def take_your_time(connection: Connection) -> None:
    """Let this PostgreSQL connection's statements read whole tables, as long as that takes on the server and here."""
    connection.exec_driver_sql("SET statement_timeout = 0")
    for way in WHOLE_TABLE_WAYS:
        connection.exec_driver_sql(f"SET enable_{way} = on")
    connection.connection.dbapi_connection.statement_timeout_ms = LONG_STATEMENT_TIMEOUT_MS  # type: ignore[union-attr]  # is ours


def _write_accounts(connection: Connection, size: Size) -> None:
    for numbers in _sliced(size.accounts):
        connection.execute(insert(accounts), [account_row(_account(number, size)) for number in numbers])
    for numbers in _sliced(size.accounts * size.keys_per_account):
        connection.execute(insert(keys), [key_row(_key(number, size)) for number in numbers])


def _sliced(count: int) -> Iterator[range]:
    """Cut the numbers up: PostgreSQL gives up a transaction in which it hears nothing for ten seconds."""
    for first in range(0, count, ROWS_AT_ONCE):
        yield range(first, min(first + ROWS_AT_ONCE, count))


def _account(number: int, size: Size) -> Account:
    return Account(
        id=account_id(number),
        name=f"Account {number}",
        email=f"account-{number}@example.com",
        plan=size.plan,
        status=AccountStatus.ACTIVE,
        period=size.day_names[-1][:7],
        used=0,
        balance=0,
        window=_window(size),
        created_at_ms=size.start_ms,
    )


def _key(number: int, size: Size) -> Key:
    minted = key_of(number)
    return Key(
        id=minted.id,
        account_id=account_id(number // size.keys_per_account),
        name=f"key {number}",
        digest=minted.digest,
        models=None,
        limit_per_minute=None,
        created_at_ms=size.start_ms,
        expires_at_ms=None,
        revoked_at_ms=None,
        window=_window(size),
    )


def _window(size: Size) -> Window:
    """Everybody has sent a request in the last minute."""
    return Window(minute_of(size.end_ms - 1), 1)


def _execute(connection: Connection, statement: str, size: Size, **values: Any) -> None:
    """Run one of the statements below, which say `{days}` and `{models}` for tables of the size's lists.

    `{time_digits}` is how the id of a completion tells its time.
    """
    if connection.dialect.name == "postgresql":
        take_your_time(connection)
        connection.exec_driver_sql("SET LOCAL session_replication_role = replica")  # all references are right
    else:
        connection.exec_driver_sql("PRAGMA cache_size = -1000000")  # KiB: indexes are filled out of their order
    values |= {
        "requests": size.requests,
        "start_ms": size.start_ms,
        "span_ms": size.end_ms - size.start_ms,
        "hold_until_ms": HOLD_UNTIL_MS,
        "keys": size.accounts * size.keys_per_account,
        "models": len(size.models),
        "first_hold": size.requests - size.holds,
        "balance": BALANCE,
        "idempotency_keys": size.idempotency_keys,
        "reply": b"{}",
        "fingerprint": bytes(32),
    }
    query = text(
        statement.format(days=_numbered(size.day_names), models=_numbered(size.models), time_digits=_TIME_DIGITS)
    )
    connection.execute(query, {name: values[name] for name in query.compile().params})


def _base62(number: str, length: int) -> str:
    """Write SQL that does what the function of this name does to a number, and to one that is not negative."""
    bases = (len(ALPHABET) ** place for place in reversed(range(length)))
    return " || ".join(
        f"substr('{ALPHABET}', CAST({number} / {base} % {len(ALPHABET)} AS INTEGER) + 1, 1)" for base in bases
    )


_TIME_DIGITS = _base62("at_ms", TIME_DIGITS)


def _numbered(names: Iterable[str]) -> str:
    return ", ".join(f"({number}, '{name}')" for number, name in enumerate(names))


_REQUESTS = """
WITH RECURSIVE
    numbers(number) AS (SELECT CAST(:first AS BIGINT) UNION ALL SELECT number + 1 FROM numbers WHERE number + 1 < :end),
    days(number, name) AS (VALUES {days}),
    models(number, name) AS (VALUES {models}),
    callers(number, account_id, key_id) AS MATERIALIZED
        (SELECT row_number() OVER (ORDER BY id) - 1, account_id, id FROM keys),
    made(number, model, caller, at_ms, state) AS (
        SELECT
            number,
            number % 7919 % :models,
            number * 2654435761 % :keys,
            :start_ms + number * :span_ms / :requests,
            CASE WHEN number >= :first_hold THEN 'held'
                WHEN number % 100 = 7 THEN 'released' WHEN number % 100 = 57 THEN 'swept' ELSE 'charged' END
        FROM numbers
    )
INSERT INTO requests (id, period, account_id, key_id, model_id, credits, source, state, day, created_at_ms, deadline_ms,
    ended_at_ms, tries, prompt_tokens, completion_tokens)
SELECT
    'chatcmpl_' || {time_digits} || substr(CAST(100000000000000 + made.number AS VARCHAR), 2),
    substr(days.name, 1, 7),
    account_id,
    key_id,
    models.name,
    model + 1,
    CASE WHEN made.number % 4 = 0 THEN 'api_balance' ELSE 'plan' END,
    state,
    days.name,
    at_ms,
    CASE state WHEN 'held' THEN CAST(:hold_until_ms AS BIGINT) ELSE at_ms + 90000 END,
    CASE WHEN state <> 'held' THEN at_ms + 1500 END,
    CASE WHEN state <> 'held' THEN 1 END,
    CASE state WHEN 'charged' THEN 20 + made.number % 400 WHEN 'held' THEN NULL ELSE 0 END,
    CASE state WHEN 'charged' THEN 50 + made.number % 800 WHEN 'held' THEN NULL ELSE 0 END
FROM made
JOIN days ON days.number = (at_ms - :start_ms) / 86400000
JOIN models ON models.number = model
JOIN callers ON callers.number = caller
ORDER BY made.number
"""

_DAILY_USAGE = """
INSERT INTO daily_usage (account_id, day, key_id, model_id, requests, credits, prompt_tokens, completion_tokens)
SELECT account_id, day, key_id, model_id, count(*), sum(credits), sum(prompt_tokens), sum(completion_tokens)
FROM requests
WHERE state = 'charged'
GROUP BY day, account_id, key_id, model_id
"""

_REFUSED = """
INSERT INTO refused_requests
    (id, account_id, key_id, code, model_id, requests, first_at_ms, last_at_ms, expires_at_ms)
SELECT 'refused_' || id, account_id, key_id, 'rate_limit_exceeded', model_id, 3,
    created_at_ms, created_at_ms, created_at_ms + 2592000000
FROM requests WHERE created_at_ms % 10 = 0
"""

_TOPUPS = """
INSERT INTO topups (id, account_id, credits, reference, created_at_ms)
SELECT 'top_' || substr(accounts.id, 5), accounts.id, :balance + coalesce(spent.credits, 0), 'payment ' || accounts.id,
    :start_ms
FROM accounts
LEFT JOIN (
    SELECT account_id, sum(credits) AS credits
    FROM requests
    WHERE source = 'api_balance' AND state IN ('held', 'charged')
    GROUP BY account_id
) AS spent ON spent.account_id = accounts.id
"""

_FIGURES = """
UPDATE accounts
SET balance = :balance, used = coalesce(spent.credits, 0)
FROM (
    SELECT of_period.id, sum(requests.credits) AS credits
    FROM accounts AS of_period
    LEFT JOIN requests ON requests.account_id = of_period.id AND requests.period = of_period.period
        AND source = 'plan' AND state IN ('held', 'charged')
    GROUP BY of_period.id
) AS spent
WHERE spent.id = accounts.id
"""

_IDEMPOTENCY_KEYS = """
INSERT INTO idempotency_keys (account_id, key, fingerprint, request_id, period, created_at_ms, reply)
SELECT account_id, id, :fingerprint, id, period, created_at_ms, :reply
FROM requests
WHERE state = 'charged'
ORDER BY id DESC
LIMIT :idempotency_keys
"""


def main() -> None:
    """Make books as the arguments say."""
    size = Size()
    parser = parser_of("bench.books", __doc__)
    parser.add_argument("database_url")
    for name in ("requests", "accounts", "keys_per_account", "days", "holds", "idempotency_keys"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(size, name))
    arguments = vars(parser.parse_args())
    started_s = time.monotonic()
    engine = open_engine(arguments.pop("database_url"))
    upgrade(engine)
    size = Size(**arguments)
    fill(engine, size)
    engine.dispose()
    print(f"{size.requests:,} requests in {time.monotonic() - started_s:.0f} s")


if __name__ == "__main__":
    main()
