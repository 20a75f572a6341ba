"""One process of the service, as it starts."""

import asyncio
import contextlib
from pathlib import Path

from msgspec.structs import replace

from tarazu.cli.clock import system_clock
from tarazu.domain.attempts import Rule
from tarazu.service.broadcast import Broadcast
from tarazu.service.configuration import load
from tarazu.service.running import Service, Setup
from tarazu.store.sign_in_failures import count_failure, read_failures
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


def test_a_process_that_starts_late_begins_with_the_newest(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """Not with what was in force when the service began: its first request already has today's price."""
    url = sqlite_store.new_books(tmp_path)
    old, newest = (make_setup(tmp_path, credits_) for credits_ in (1, 7))

    async def first_price(broadcast: Broadcast) -> int:
        configuration = replace(old.configuration, database_url=url)
        service = Service(replace(old, configuration=configuration, channel=broadcast.channel), {})
        await service.start()
        try:
            return service.ledger.catalogue.models["small"].credits
        finally:
            await service.stop()

    with contextlib.closing(Broadcast()) as broadcast:
        broadcast.start(newest)
        assert asyncio.run(first_price(broadcast)) == 7


def test_a_process_takes_away_what_has_ended_of_signing_in(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    """From its start on."""
    url = sqlite_store.new_books(tmp_path)
    setup = make_setup(tmp_path, 1)
    configuration = replace(setup.configuration, database_url=url)

    async def run() -> None:
        service = Service(replace(setup, configuration=configuration), {})
        await service.back_office.change(lambda connection: count_failure(connection, {b"x" * 32: Rule(5, 1)}, 0))
        await service.start()
        try:
            async with asyncio.timeout(PATIENCE_S):
                while await service.back_office.look(lambda connection: read_failures(connection, [b"x" * 32])):
                    pass
        finally:
            await service.stop()

    asyncio.run(run())
