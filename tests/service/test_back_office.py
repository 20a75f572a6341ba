"""The back office: what is no completion, beside the ledger and within bounds."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from tarazu.service.back_office import CALLS_MAX, WAITING_MAX, BackOffice, BackOfficeFullError, current_asker
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.schema import accounts
from tarazu.store.trail import Via
from tests.support.books import Books, open_books
from tests.support.patience import PATIENCE_S
from tests.support.stores import Store

pytestmark = pytest.mark.both_stores


@pytest.fixture
def books(store: Store, tmp_path: Path) -> Iterator[Books]:
    """Open new, empty books; they must balance at the end."""
    with open_books(store, tmp_path) as books:
        yield books
        books.assert_balanced()


@pytest.fixture
def office(books: Books) -> Iterator[BackOffice]:
    """Open a back office over the books."""
    office = BackOffice(books.engine, books.catalogue, books.clock)
    yield office
    office.close()


def names(connection: Connection) -> list[str]:
    """Read the names of all accounts."""
    return list(connection.execute(select(accounts.c.name)).scalars())


def opens(name: str) -> Callable[[Provisioning], object]:
    """Open an account."""
    return lambda provisioning: provisioning.create_account(name=name)


def test_an_act_is_done_in_the_name_of_whoever_asks(office: BackOffice) -> None:
    """It is in the books, and in the trail with the name and the way."""

    async def run() -> None:
        await office.act(opens("Ada"), by="grace", via=Via.OPERATOR)
        assert await office.look(names) == ["Ada"]
        trail = await office.act(lambda provisioning: provisioning.trail(), by="grace", via=Via.OPERATOR)
        assert [(act.act, act.made_by, act.via) for act in trail.acts] == [("account.create", "grace", Via.OPERATOR)]

    asyncio.run(run())


def test_an_act_that_cannot_be_done_says_why(office: BackOffice) -> None:
    """The error is that of the act, and nothing is changed."""

    async def run() -> None:
        with pytest.raises(ProvisioningError, match="The name must be"):
            await office.act(opens(""), by="grace", via=Via.OPERATOR)
        assert await office.look(names) == []

    asyncio.run(run())


def ask(office: BackOffice, asker: str, look: Callable[[Connection], object]) -> "asyncio.Task[object]":
    """Begin a look for one who asks."""
    current_asker.set(asker)
    return asyncio.create_task(office.look(look))


async def crowd(office: BackOffice, look: Callable[[Connection], object]) -> list["asyncio.Task[object]"]:
    """Fill an office by many who ask, each for as much as one may."""
    tasks = [ask(office, f"asker {number // WAITING_MAX}", look) for number in range(CALLS_MAX)]
    await asyncio.sleep(0)
    return tasks


def test_one_more_than_may_wait_is_refused_at_once(office: BackOffice) -> None:
    """The others are served, also those whose caller has left; then there is room again."""
    go_on = threading.Event()

    def wait(_connection: Connection) -> None:
        assert go_on.wait(PATIENCE_S)

    async def run() -> None:
        waiting = await crowd(office, wait)
        with pytest.raises(BackOfficeFullError):
            await ask(office, "another", names)
        left = waiting.pop(0)
        left.cancel()
        go_on.set()
        await asyncio.gather(*waiting)
        assert await ask(office, "another", names) == []

    asyncio.run(run())


def test_whoever_asks_for_much_delays_each_other_by_one_call(office: BackOffice) -> None:
    """One more than one may have waiting is refused, and another is served next but one."""
    go_on = threading.Event()
    served: list[str] = []

    def call(name: str) -> Callable[[Connection], None]:
        def look(_connection: Connection) -> None:
            assert go_on.wait(PATIENCE_S)
            served.append(name)

        return look

    async def run() -> None:
        tasks = [ask(office, "greedy", call("greedy")) for _ in range(1 + WAITING_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(BackOfficeFullError):
            await ask(office, "greedy", names)
        tasks.append(ask(office, "modest", call("modest")))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*tasks)
        assert served[:3] == ["greedy", "greedy", "modest"]
        assert len(served) == WAITING_MAX + 2

    asyncio.run(run())


def test_nothing_begins_after_the_end(office: BackOffice) -> None:
    """Whoever asks then is told that the books are not to be had."""
    office.close()
    with pytest.raises(BooksUnavailableError, match="stopping"):
        asyncio.run(office.look(names))


def test_a_crowd_of_holders_delays_no_operator_and_no_program(books: Books, office: BackOffice) -> None:
    """While as many of them wait as may, operators and programs are served; neither of these fills the other's room."""
    operators = BackOffice(books.engine, books.catalogue, books.clock)
    programs = BackOffice(books.engine, books.catalogue, books.clock, beside=operators)
    go_on = threading.Event()

    def waits(_connection: Connection) -> bool:
        return go_on.wait(PATIENCE_S)

    async def run() -> None:
        tasks = await crowd(office, waits)
        with pytest.raises(BackOfficeFullError):
            await office.look(names)
        assert await operators.look(names) == await programs.look(names) == []
        tasks += await crowd(programs, waits)
        with pytest.raises(BackOfficeFullError):
            await programs.look(names)
        look = ask(operators, "operator", names)
        await asyncio.sleep(0)
        go_on.set()
        assert await look == []
        assert all(await asyncio.gather(*tasks))

    asyncio.run(run())
    operators.close()
