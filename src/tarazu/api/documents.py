"""What explains the API, to programs and to people; no key is needed to read it."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tarazu.api.docs_page import CONTENT_SECURITY_POLICY, html
from tarazu.api.envelope import JSON
from tarazu.api.openapi import document_json


class DocumentEndpoints:
    """The contract, its page, and the way there. `api_url` is where callers reach the API."""

    def __init__(self, api_url: str) -> None:
        self._api_url = api_url

    async def contract(self, _request: Request) -> Response:
        """Show the OpenAPI document."""
        return Response(document_json(self._api_url), media_type=JSON)

    async def page(self, _request: Request) -> Response:
        """Show the page."""
        headers = {"content-security-policy": CONTENT_SECURITY_POLICY}
        return Response(html(self._api_url), media_type="text/html", headers=headers)

    async def front(self, _request: Request) -> Response:
        """Lead whoever opens the bare address to the page."""
        return RedirectResponse("/docs")
