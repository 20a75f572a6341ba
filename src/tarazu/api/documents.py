"""What explains the API, to programs and to people; no key is needed to read it."""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from tarazu.api.docs_page import CONTENT_SECURITY_POLICY
from tarazu.api.zipped import zipped_response

Made = Callable[[str], bytes]
"""Makes a document for the address at which callers reach the API."""


class PageEndpoint:
    """A page for people. `api_url` is where callers reach the API that it is about."""

    def __init__(self, api_url: str, page: Made) -> None:
        self._api_url = api_url
        self._page = page

    async def page(self, request: Request) -> Response:
        """Show the page."""
        headers = {"content-security-policy": CONTENT_SECURITY_POLICY, "x-content-type-options": "nosniff"}
        return zipped_response(request, self._page(self._api_url), media_type="text/html", headers=headers)


class DocumentEndpoints(PageEndpoint):
    """The contract of an API and its page."""

    def __init__(self, api_url: str, contract: Made, page: Made) -> None:
        super().__init__(api_url, page)
        self._contract = contract

    async def contract(self, request: Request) -> Response:
        """Show the OpenAPI document."""
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return zipped_response(request, self._contract(self._api_url), media_type="application/json", headers=headers)


async def front(_request: Request) -> Response:
    """Lead whoever opens the bare address to the page of the public API."""
    return RedirectResponse("/docs")
