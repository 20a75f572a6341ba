"""One process of the service, as it starts."""

import asyncio
import pickle
from multiprocessing import Pipe
from pathlib import Path

from msgspec.structs import replace

from tarazu.cli.clock import system_clock
from tarazu.domain.attempts import Rule
from tarazu.service.configuration import load
from tarazu.service.link import Answer, Link, Order, Stage
from tarazu.service.running import Service, Setup
from tarazu.store.sign_in_failures import count_failure, read_failures
from tests.support.at_once import wait_until
from tests.support.patience import PATIENCE_S
from tests.support.stores import SqliteStore

PRICED = """
[models.small]
credits = CREDITS
[[models.small.backends]]
kind = "openai"
url = "http://127.0.0.1:1/v1"
model = "m"
"""


def make_setup(folder: Path, credits_: int) -> Setup:
    """Make a setup in which a request has this price."""
    file = folder / "tarazu.toml"
    file.write_text(PRICED.replace("CREDITS", str(credits_)))
    return Setup(load(file, {}), system_clock)


def test_a_process_begins_with_the_newest_and_follows(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """What its parent says while it loads is in force before its first request; so is what comes later, or it tells."""
    url = sqlite_store.new_books(tmp_path)
    setups = [
        replace(setup, configuration=replace(setup.configuration, database_url=url))
        for setup in (make_setup(tmp_path, credits_) for credits_ in (1, 7, 8))
    ]
    ours, theirs = Pipe()

    async def prices() -> list[int]:
        ours.send(Order(1, setups[0], Stage.SERVING))
        link = Link(theirs, on_parent_end=lambda: None)
        service = Service(link.begin(), link, environ={})
        ours.send(Order(2, setups[1], Stage.SERVING))
        await asyncio.to_thread(wait_until, lambda: link.newest_number == 2)
        await service.start()
        try:
            seen = [service.ledger.catalogue.models["small"].credits]
            ours.send(Order(3, setups[2], Stage.SERVING))
            await asyncio.to_thread(await_answer, 3)
            return [*seen, service.ledger.catalogue.models["small"].credits]
        finally:
            await service.stop()

    def await_answer(number: int) -> None:
        while (message := ours.recv_bytes()) == b"" or pickle.loads(message) != Answer(number, is_done=True):  # noqa: S301
            pass

    with ours, theirs:
        assert asyncio.run(prices()) == [7, 8]


def test_a_process_takes_away_what_has_ended_of_signing_in(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """From its start on."""
    url = sqlite_store.new_books(tmp_path)
    setup = make_setup(tmp_path, 1)
    configuration = replace(setup.configuration, database_url=url)

    async def run() -> None:
        service = Service(replace(setup, configuration=configuration), environ={})
        await service.program_office.change(lambda connection: count_failure(connection, {b"x" * 32: Rule(5, 1, 1)}, 0))
        await service.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while await service.program_office.look(lambda connection: read_failures(connection, [b"x" * 32])):
                    pass
        finally:
            await service.stop()

    asyncio.run(run())
