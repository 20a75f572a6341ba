"""GET /health, /livez and /readyz: for load balancers, supervisors and operators. They need no key, tell no secret."""

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.envelope import json_response
from tarazu.api.objects import Health, Readiness
from tarazu.service.readiness import ReadinessCheck
from tarazu.store.intake import read_intake
from tarazu.store.ledger import Ledger


class HealthEndpoints:
    """The endpoints that ask the books, the event loop, and all that a completion needs."""

    def __init__(self, ledger: Ledger, readiness: ReadinessCheck) -> None:
        self._ledger = ledger
        self._readiness = readiness

    async def health(self, _request: Request) -> Response:
        """Answer 200 when the books can be read; otherwise the same 503 that callers get."""
        await self._ledger.look(read_intake)
        return json_response(Health())

    async def live(self, _request: Request) -> Response:
        """Answer 200: the event loop turns."""
        return json_response(Health())

    async def ready(self, _request: Request) -> Response:
        """Answer 200 when completions are served here, else 503 with what is wrong."""
        problems = await self._readiness.problems()
        if problems:
            return json_response(Readiness(status="not ready", problems=problems), HTTPStatus.SERVICE_UNAVAILABLE)
        return json_response(Readiness())
