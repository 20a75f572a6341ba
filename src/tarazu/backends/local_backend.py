"""Backends that run beside the service: asked like any OpenAI-compatible server, and waited for while they start."""

import asyncio

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.backends.secrets import Secrets
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import BackendSpec
from tarazu.domain.prompt import ChatRequest

MODEL = "local"
"""What the process is told as the model: it has only one."""
START_WAIT_S = 10.0
"""How long a model that is not there yet, or not there again, is waited for: a small one is back in 1 to 2 s."""
START_POLL_S = 0.1
STATUS_LOADING = "503"


class LocalBackend:
    """One local model at its process's `url`, up to and with its `/v1`."""

    def __init__(self, http: HttpClient, clock: Clock, *, name: str, url: str, api_key: str) -> None:
        self.name = name
        spec = BackendSpec(kind="openai", url=url, model=MODEL)
        self._server = HttpBackend(http, spec, clock, name=name, secrets=Secrets(api_key=api_key), direct=True)

    def __repr__(self) -> str:
        return f"<LocalBackend {self.name}>"

    async def ask(self, request: ChatRequest, *, timeout_s: float) -> Reply:
        """Get one reply within `timeout_s`. A process that is starting, or that died under the request, is asked again.

        Raises:
            BackendError: anything but a valid reply.
        """
        loop = asyncio.get_running_loop()
        deadline_s = wait_until_s = loop.time() + timeout_s
        while True:
            try:
                return await self._server.ask(request, timeout_s=deadline_s - loop.time())
            except BackendError as error:
                wait_until_s = min(wait_until_s, loop.time() + START_WAIT_S)
                if not _is_starting(error) or loop.time() + START_POLL_S >= wait_until_s:
                    raise
            await asyncio.sleep(START_POLL_S)


def _is_starting(error: BackendError) -> bool:
    return error.fault is Fault.UNREACHABLE or (error.fault is Fault.STATUS and error.detail == STATUS_LOADING)
