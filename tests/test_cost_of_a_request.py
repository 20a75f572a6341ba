"""What a request costs, counted and not timed (`make bench` does that): the guard of the hot path.

The bounds are a fifth above what was counted, so that they speak up when something costly comes into every request, and
not when a line does; half of a bound is the least that is believed. Who has made the path shorter lowers them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp, Message

from bench.asking import PLAN, catalogue, conversation
from tarazu.application import make_application
from tarazu.cli.clock import system_clock
from tarazu.service.configuration import load
from tarazu.service.running import Setup
from tarazu.store.accounts import insert_account
from tarazu.store.engine import open_engine, transaction
from tarazu.store.keys import insert_key
from tarazu.store.ledger import Ledger
from tarazu.store.operations import Admit, Operation
from tests.support.backend import ScriptedBackend
from tests.support.books import charge, open_books
from tests.support.calls import calls_of, counted
from tests.support.service import CHAT
from tests.support.stores import SqliteStore
from tests.support.values import held, key_text, make_account, make_asked, make_catalogue, make_key, make_plan

CALLS_MAX = 405
"""Of the event loop's thread, for one request alone: the application and its HTTP client."""
BATCH_CALLS_MAX = 145
"""Of the ledger's thread, for one more request in a batch: its admission and its charge."""
EMPTY_BATCH_CALLS_MAX = 360
"""Beside those of its requests: of a transaction and its dozen statements."""
REQUESTS = 20
MODEL = "small"
BODY = conversation(MODEL)
HEADERS = [
    (b"host", b"test"),
    (b"authorization", f"Bearer {key_text()}".encode()),
    (b"content-type", b"application/json"),
    (b"content-length", str(len(BODY)).encode()),
]


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """Run on uvloop, as the service does."""
    return "asyncio", {"use_uvloop": True}


@pytest.mark.anyio
async def test_a_request_makes_few_calls_in_the_event_loop(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """From its head to its reply."""
    with ScriptedBackend() as backend:
        async with application(tmp_path, sqlite_store, backend.url) as app:
            for _ in range(REQUESTS):  # connections are made, statements and headers written for the first time
                await ask(app)
            with counted() as calls:
                for _ in range(REQUESTS):
                    await ask(app)
    assert CALLS_MAX / 2 <= calls.number / REQUESTS <= CALLS_MAX


def test_a_request_makes_few_calls_in_the_ledger(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """Those of a whole batch are shared by its requests."""
    with open_books(sqlite_store, tmp_path) as books:
        catalogue = make_catalogue(plans=[make_plan(monthly_credits=10**6, requests_per_minute=10**6)])
        books.add(make_account(), make_key(1))
        ledger = Ledger(books.engine, catalogue, books.clock)  # what its thread would do is done here
        batch_calls(ledger, 32)  # statements are written for the first time
        # The least of three: a collection of garbage may call what other tests have left behind.
        small, large = (min(batch_calls(ledger, size) for _ in range(3)) for size in (32, 64))
        ledger._connection.close()
    of_request = (large - small) / 32
    assert BATCH_CALLS_MAX / 2 <= of_request <= BATCH_CALLS_MAX
    assert EMPTY_BATCH_CALLS_MAX / 2 <= small - 32 * of_request <= EMPTY_BATCH_CALLS_MAX


def batch_calls(ledger: Ledger, size: int) -> int:
    """Count the calls of a batch of so many admissions, and as many charges."""
    holds = [held(answer) for answer in ledger._transact([Admit(make_asked()) for _ in range(size)])]
    operations: list[Operation] = [*map(charge, holds), *(Admit(make_asked()) for _ in range(size))]
    return calls_of(lambda: ledger._transact(operations))


async def ask(app: ASGIApp) -> None:
    """Ask for a completion as a server hands a request over, by a client that stays until it is answered."""
    scope = {
        "type": "http",
        "client": ("127.0.0.1", "4711"),
        "method": "POST",
        "path": CHAT,
        "raw_path": CHAT.encode(),
        "headers": HEADERS,
        "query_string": b"",
    }
    parts: list[Message] = [{"type": "http.request", "body": BODY, "more_body": False}]
    sent: list[Message] = []
    is_answered = asyncio.Event()

    async def receive() -> Message:
        if not parts:
            await is_answered.wait()
            return {"type": "http.disconnect"}
        return parts.pop()

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    is_answered.set()
    assert sent[0]["status"] == 200, sent


@asynccontextmanager
async def application(folder: Path, store: SqliteStore, backend_url: str) -> AsyncIterator[ASGIApp]:
    """Run the whole application of a worker, without its HTTP server."""
    url = store.new_books(folder)
    engine = open_engine(url)
    with transaction(engine) as connection:
        insert_account(connection, make_account(plan=PLAN))
        insert_key(connection, make_key())
    engine.dispose()
    file = folder / "tarazu.toml"
    file.write_text(catalogue({MODEL: backend_url}))
    app = make_application(Setup(replace(load(file, {}), database_url=url), system_clock))
    states: asyncio.Queue[Message] = asyncio.Queue()
    told: asyncio.Queue[Message] = asyncio.Queue()
    living = asyncio.create_task(run_lifespan(app, states, told))
    await states.put({"type": "lifespan.startup"})
    assert (await told.get())["type"] == "lifespan.startup.complete"
    yield app
    await states.put({"type": "lifespan.shutdown"})
    await living


async def run_lifespan(app: ASGIApp, states: "asyncio.Queue[Message]", told: "asyncio.Queue[Message]") -> None:
    """Let the application live between the two states that a server tells it."""
    await app({"type": "lifespan"}, states.get, told.put)
