"""Ask backends once, for real, as requests ask them: without a pool, without the books, for no credits."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from contextlib import closing

from msgspec import Struct
from msgspec.structs import replace

from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import LOAD_TIMEOUT_S, LocalModels
from tarazu.backends.local_model import LocalModelError
from tarazu.backends.port import Backend, BackendError, Reply
from tarazu.backends.secrets import Secrets
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import LOCAL, BackendSpec, Model
from tarazu.domain.prompt import ChatRequest, Message, Settings, capped
from tarazu.service.configuration import read_secrets
from tarazu.service.logs import without_logs
from tarazu.service.pools import LocalAddresses, make_backend

PROMPT = "Say hello in one short sentence."
AT_ONCE_MAX = 16
"""Servers that are asked at the same time."""

OK = "ok"
DISABLED = "disabled"
SECRET_MISSING = "secret_missing"  # noqa: S105 - a word for it
NOT_LOADED = "not_loaded"


class TriedBackend(Struct, frozen=True, kw_only=True):
    """What came of asking one backend.

    - `timeout_s`: how long it was given.
    - `outcome`: OK, DISABLED, SECRET_MISSING or NOT_LOADED, where it was not asked, or the word of a Fault.
    - `detail`: more for the operator; no key, no prompt, no reply.
    - `seconds`: from the request to the reply or the fault; `load_s`: before that, a local model's.
    """

    model: Model
    name: str
    spec: BackendSpec
    timeout_s: float
    outcome: str = DISABLED
    detail: str = ""
    seconds: float | None = None
    load_s: float | None = None
    reply: Reply | None = None

    @property
    def failed(self) -> bool:
        """Tell whether it was to be asked and gave no reply."""
        return self.outcome not in {OK, DISABLED}


async def try_backends(
    models: Iterable[Model],
    clock: Clock,
    *,
    prompt: str = PROMPT,
    timeout_s: float | None = None,
    environ: Mapping[str, str] = os.environ,
) -> list[TriedBackend]:
    """Ask every backend of the models; answer in the order of the file.

    Each has as long as a request would give it, or `timeout_s`. Servers are asked at the same time, up to AT_ONCE_MAX
    of them. Local models follow one another, so that none slows another down, each in a process of its own that ends.
    """
    backends = [
        TriedBackend(
            model=model,
            name=name,
            spec=spec,
            timeout_s=timeout_s or model.timeout_of(spec),
        )
        for model in models
        for name, spec in model.named_backends()
    ]
    servers, processes = asyncio.Semaphore(AT_ONCE_MAX), asyncio.Semaphore(1)
    with without_logs(), closing(HttpClient()) as http:
        tries = _Tries(http, clock, prompt, environ)

        async def in_turn(backend: TriedBackend) -> TriedBackend:
            async with processes if backend.spec.kind == LOCAL else servers:
                return await tries.make(backend)

        return await asyncio.gather(*map(in_turn, backends))


class _Tries:
    def __init__(self, http: HttpClient, clock: Clock, prompt: str, environ: Mapping[str, str]) -> None:
        self._http = http
        self._clock = clock
        self._request = ChatRequest(model=None, messages=(Message("user", prompt),), settings=Settings())
        self._environ = environ

    async def make(self, backend: TriedBackend) -> TriedBackend:
        if not backend.spec.enabled:
            return backend
        if backend.spec.kind == LOCAL:
            return await self._ask_process(backend)
        try:
            secrets = read_secrets(backend.spec, self._environ)
        except ValueError as error:
            return replace(backend, outcome=SECRET_MISSING, detail=str(error))
        return await self._ask(backend, secrets=secrets)

    async def _ask_process(self, backend: TriedBackend) -> TriedBackend:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        try:
            process = LocalModels([backend.spec.model])
        except LocalModelError as error:
            return replace(backend, outcome=NOT_LOADED, detail=str(error))
        try:
            process.start()
            await asyncio.to_thread(process.wait_ready, LOAD_TIMEOUT_S)
            return await self._ask(replace(backend, load_s=loop.time() - begin_s), addresses=process.addresses)
        except LocalModelError as error:
            return replace(backend, outcome=NOT_LOADED, detail=str(error))
        finally:
            process.stop()

    async def _ask(
        self, backend: TriedBackend, *, secrets: Secrets | None = None, addresses: LocalAddresses | None = None
    ) -> TriedBackend:
        server = make_backend(
            self._http,
            backend.spec,
            self._clock,
            name=backend.name,
            secrets=secrets or Secrets(),
            local_addresses=addresses or {},
        )
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        done = await self._outcome(backend, server)
        return replace(done, seconds=loop.time() - begin_s)

    async def _outcome(self, backend: TriedBackend, server: Backend) -> TriedBackend:
        request = capped(self._request, backend.model.max_output_tokens)
        try:
            reply = await server.ask(request, timeout_s=backend.timeout_s)
        except BackendError as error:
            return replace(backend, outcome=error.fault.word, detail=error.detail)
        return replace(backend, outcome=OK, reply=reply)
