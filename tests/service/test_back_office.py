"""The back office: what is no completion, beside the ledger and within bounds."""

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, select

from tarazu.service.back_office import (
    OF_KNOWN_MAX,
    OF_STRANGER_MAX,
    STRANGERS_WAITING_MAX,
    WAITING_MAX,
    Asker,
    BackOffice,
    BackOfficeFullError,
    current_asker,
)
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.schema import accounts
from tarazu.store.trail import Via
from tests.support.books import Books
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.both_stores


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


@pytest.mark.parametrize("name", ["", " ", "\u200c", "\u200d\u200c", "\u3164", "\u2800 \u200c", "\x00", "a\x1b"])
def test_an_act_that_cannot_be_done_says_why(office: BackOffice, name: str) -> None:
    """The error is that of the act, such as a name that nobody can see, and nothing is changed."""

    async def run() -> None:
        with pytest.raises(ProvisioningError, match=r"The name (must be|is missing)"):
            await office.act(opens(name), by="grace", via=Via.OPERATOR)
        assert await office.look(names) == []

    asyncio.run(run())


def ask(
    office: BackOffice, line: str, look: Callable[[Connection], object], *, is_known: bool = True
) -> "asyncio.Task[object]":
    """Begin a look for one who asks."""
    current_asker.set(Asker(line, is_known))
    return asyncio.create_task(office.look(look))


async def crowd(
    office: BackOffice, look: Callable[[Connection], object], *, is_known: bool = True
) -> list["asyncio.Task[object]"]:
    """Fill a room by many who ask, each for as much as one may, and the thread by one more."""
    waiting, of_one = (WAITING_MAX, OF_KNOWN_MAX) if is_known else (STRANGERS_WAITING_MAX, OF_STRANGER_MAX)
    tasks = [ask(office, f"asker {number // of_one}", look, is_known=is_known) for number in range(waiting + 1)]
    await asyncio.sleep(0)
    return tasks


class Held:
    """A look that takes until it is let go on, and notes who was served."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.served: list[str] = []

    def by(self, name: str) -> Callable[[Connection], bool]:
        """Make the look of one who asks."""

        def look(_connection: Connection) -> bool:
            self.served.append(name)
            return self.go_on.wait(PATIENCE_S)

        return look


def test_one_more_than_may_wait_is_refused_at_once(office: BackOffice) -> None:
    """Of one who asks; the others are served, also those whose caller has left; then there is room again."""
    held = Held()

    async def run() -> None:
        waiting = [ask(office, "greedy", held.by("greedy")) for _ in range(1 + OF_KNOWN_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(BackOfficeFullError):
            await ask(office, "greedy", names)
        waiting.pop(0).cancel()
        held.go_on.set()
        await asyncio.gather(*waiting)
        assert await ask(office, "greedy", names) == []

    asyncio.run(run())


def test_whoever_asks_for_much_delays_each_other_by_one_call(office: BackOffice) -> None:
    """Whoever comes is served next but one, however many calls of another wait."""
    held = Held()

    async def run() -> None:
        tasks = [ask(office, "greedy", held.by("greedy")) for _ in range(1 + OF_KNOWN_MAX)]
        await asyncio.sleep(0)
        tasks.append(ask(office, "modest", held.by("modest")))
        await asyncio.sleep(0)
        held.go_on.set()
        await asyncio.gather(*tasks)
        assert held.served[:3] == ["greedy", "greedy", "modest"]
        assert len(held.served) == OF_KNOWN_MAX + 2

    asyncio.run(run())


def test_a_crowd_of_strangers_delays_nobody_who_is_known(office: BackOffice) -> None:
    """Nor does a crowd of those who are known shut out a stranger, who may be one who signs in."""
    held = Held()

    async def run() -> None:
        tasks = await crowd(office, held.by("stranger"), is_known=False)
        tasks.append(ask(office, "one who is known", held.by("known")))
        await asyncio.sleep(0)
        tasks += await crowd(office, held.by("crowd"))
        tasks.append(ask(office, "another stranger", held.by("newcomer"), is_known=False))
        await asyncio.sleep(0)
        held.go_on.set()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        assert held.served.index("known") <= 2
        assert "newcomer" in held.served
        # The newcomer has the place of one of a longer line; so have the last two of those who are known.
        assert [isinstance(outcome, BackOfficeFullError) for outcome in outcomes].count(True) == 3

    asyncio.run(run())


def test_whoever_was_let_in_is_no_stranger_at_a_crowded_address(office: BackOffice) -> None:
    """Whose cookie or token was good when it was shown last has a line of their own: one for all that they have."""
    office.meet("the cookie", "192.0.2.1")
    assert current_asker.get() == Asker("192.0.2.1", is_known=False)
    office.note("the cookie", "acc_1")
    assert current_asker.get() == Asker("acc_1")
    office.meet("another cookie", "2001:db8:1:2::1")
    assert current_asker.get() == Asker("2001:db8:1::/48", is_known=False)
    office.note("a second cookie", "acc_1")
    office.meet("the cookie", "192.0.2.1")
    assert current_asker.get() == Asker("acc_1")
    office.note("the cookie", None)
    office.note("a cookie that nobody has seen", None)
    office.meet("the cookie", "192.0.2.1")
    assert current_asker.get() == Asker("192.0.2.1", is_known=False)
    office.meet("a second cookie", "192.0.2.1")
    assert current_asker.get() == Asker("acc_1")


def test_an_office_remembers_so_many(office: BackOffice, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were let in last."""
    monkeypatch.setattr("tarazu.service.back_office.MET_MAX", 2)
    for secret in ("a", "b", "a", "c"):
        office.note(secret, f"acc_{secret}")
    known = []
    for secret in "abc":
        office.meet(secret, "192.0.2.1")
        known.append(current_asker.get().is_known)
    assert known == [True, False, True]


def test_nothing_begins_after_the_end(office: BackOffice) -> None:
    """Whoever asks then is told that the books are not to be had."""
    office.close()
    with pytest.raises(BooksUnavailableError, match="stopping"):
        asyncio.run(office.look(names))


def test_a_crowd_of_holders_delays_no_operator_and_no_program(books: Books, office: BackOffice) -> None:
    """While as many of them wait as may, operators and programs are served; neither of these fills the other's room."""
    operators = BackOffice(books.engine, books.catalogue, books.clock)
    programs = BackOffice(books.engine, books.catalogue, books.clock, beside=operators)
    held = Held()

    async def run() -> None:
        tasks = await crowd(office, held.by("holder"))
        with pytest.raises(BackOfficeFullError):
            await ask(office, "asker 0", names)
        assert await operators.look(names) == await programs.look(names) == []
        tasks += await crowd(programs, held.by("program"))
        with pytest.raises(BackOfficeFullError):
            await ask(programs, "asker 0", names)
        look = ask(operators, "asker 0", names)
        await asyncio.sleep(0)
        held.go_on.set()
        assert await look == []
        assert all(await asyncio.gather(*tasks))

    asyncio.run(run())
    operators.close()
