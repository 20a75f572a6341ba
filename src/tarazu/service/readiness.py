"""Whether this process serves completions: the books take a write, the local models answer, and it is not draining."""

import asyncio

from tarazu.backends.http_client import HttpClient
from tarazu.backends.http_connection import HttpError
from tarazu.backends.local import LocalAddress
from tarazu.backends.local_server import HEALTH_PATH
from tarazu.service.identifiers import new_process_id
from tarazu.service.pools import LocalAddresses
from tarazu.store.availability import BooksUnavailableError
from tarazu.store.backend_rests import try_write
from tarazu.store.ledger import Ledger

LOOK_TIMEOUT_S = 3.0
"""For each thing that is looked at."""
FRESH_S = 2.0
"""How old what was found may be. However many ask, the books take one write in this time; where none asks, none."""
HEALTH_BYTES_MAX = 4_096


class ReadinessCheck:
    """Looks when it is asked. `local_models` are those that the catalogue names."""

    def __init__(self, ledger: Ledger, http: HttpClient) -> None:
        self.is_draining = False
        self.local_models: LocalAddresses = {}
        self._ledger = ledger
        self._http = http
        self._trial = new_process_id()
        self._looking: asyncio.Task[tuple[str, ...]] | None = None
        self._fresh_until_s = 0.0

    def __repr__(self) -> str:
        return f"<ReadinessCheck{', draining' if self.is_draining else ''}>"

    async def problems(self) -> tuple[str, ...]:
        """Tell what keeps this process from serving completions."""
        if self.is_draining:
            return ("It is draining: ask another instance.",)
        loop = asyncio.get_running_loop()
        if self._looking is None or (self._looking.done() and loop.time() >= self._fresh_until_s):
            self._looking = loop.create_task(self._look())
        return await asyncio.shield(self._looking)  # others wait for the same

    async def _look(self) -> tuple[str, ...]:
        found = await asyncio.gather(self._try_books(), *map(self._try_model, self.local_models.items()))
        self._fresh_until_s = asyncio.get_running_loop().time() + FRESH_S
        return tuple(problem for problem in found if problem is not None)

    async def _try_books(self) -> str | None:
        try:
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                await self._ledger.work(lambda connection, _now_ms: try_write(connection, self._trial))
        except TimeoutError:
            return f"The books have not taken a write in {LOOK_TIMEOUT_S:g} s."
        except BooksUnavailableError:
            return "The books take no write."
        return None

    async def _try_model(self, model: tuple[str | None, LocalAddress]) -> str | None:
        path, address = model
        try:
            reply = await self._http.send(
                "GET",
                address.url + HEALTH_PATH,
                None,
                headers=address.headers,
                timeout_s=LOOK_TIMEOUT_S,
                bytes_max=HEALTH_BYTES_MAX,
                direct=True,
            )
        except (HttpError, TimeoutError):
            return f"{'The embedded' if path is None else 'A local'} model does not answer."
        is_loaded = reply.status == 200  # noqa: PLR2004 - the status of a model that is loaded
        return None if is_loaded else f"{'The embedded' if path is None else 'A local'} model is not loaded yet."
