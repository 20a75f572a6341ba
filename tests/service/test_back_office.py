"""The back office: what is no completion, beside the ledger and within bounds."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from tarazu.service.back_office import CALLS_MAX, THREADS, BackOffice, BackOfficeFullError
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


def test_one_more_than_may_wait_is_refused_at_once(office: BackOffice) -> None:
    """The others are served, also those whose caller has left; then there is room again."""
    go_on = threading.Event()

    def wait(_connection: Connection) -> None:
        assert go_on.wait(PATIENCE_S)

    async def run() -> None:
        waiting = [asyncio.ensure_future(office.look(wait)) for _ in range(CALLS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(BackOfficeFullError):
            await office.look(names)
        left = waiting.pop(0)
        left.cancel()
        go_on.set()
        await asyncio.gather(*waiting)
        assert await asyncio.gather(*(office.look(names) for _ in range(THREADS))) == [[]] * THREADS

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
        crowd = [asyncio.create_task(office.look(waits)) for _ in range(CALLS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(BackOfficeFullError):
            await office.look(names)
        assert await operators.look(names) == await programs.look(names) == []
        crowd += [asyncio.create_task(programs.look(waits)) for _ in range(CALLS_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(BackOfficeFullError):
            await programs.look(names)
        look = asyncio.create_task(operators.look(names))
        await asyncio.sleep(0)
        go_on.set()
        assert await look == []
        assert all(await asyncio.gather(*crowd))

    asyncio.run(run())
    operators.close()
