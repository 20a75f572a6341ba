"""GET /health: whether this process can serve, for load balancers and operators. Needs no key, tells nothing."""

from starlette.requests import Request
from starlette.responses import Response

from tarazu.api.envelope import json_response
from tarazu.api.objects import Health
from tarazu.store.intake import read_intake
from tarazu.store.ledger import Ledger


class HealthEndpoint:
    """The endpoint that asks the books."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def show(self, _request: Request) -> Response:
        """Answer 200 when the books can be read; otherwise the same 503 that callers get."""
        await self._ledger.work(lambda connection, _now_ms: read_intake(connection))
        return json_response(Health())
