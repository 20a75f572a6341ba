"""The HTTP application: its routes, and the answer to what no route takes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount
from starlette.types import ASGIApp

from tarazu.api.access_log import AccessLog
from tarazu.api.admin.call import Desk
from tarazu.api.admin.endpoint import admin_routes
from tarazu.api.admin.openapi import admin_document_json, admin_html
from tarazu.api.body import BodyReader
from tarazu.api.chat import ChatEndpoint
from tarazu.api.cross_origin import CrossOrigin
from tarazu.api.docs_page import clients_html, html
from tarazu.api.documents import DocumentEndpoints, PageEndpoint, front
from tarazu.api.envelope import naming_clients, refusal_response
from tarazu.api.head import EarlyAnswers, Heads
from tarazu.api.health import HealthEndpoints
from tarazu.api.models import ModelEndpoints
from tarazu.api.openapi import document_json
from tarazu.api.refused_keys import RefusedKeys
from tarazu.api.request_id import RequestIds
from tarazu.api.routing import ExactRoute, ShortCut
from tarazu.api.usage import UsageEndpoint
from tarazu.domain.errors import Error, Refusal, RefusedError
from tarazu.panel.app import holder_pages, operator_pages
from tarazu.panel.sites import HOLDERS, OPERATORS
from tarazu.service.completion import books_unavailable
from tarazu.service.configuration.addresses import ADMIN_API_PATH, API_PATH, CLIENTS_PATH, PANEL_PATH
from tarazu.service.crowds import Crowds
from tarazu.service.link import Link
from tarazu.service.own_connections import Peer
from tarazu.service.running import Service, Setup
from tarazu.store.availability import BooksUnavailableError

log = structlog.get_logger()

CHAT_PATH = f"{API_PATH}/chat/completions"
ENCODED = tuple(f"{path}/models/".encode() for path in (API_PATH, PANEL_PATH))
"""Before the ids of models, which alone may be percent-encoded."""


def make_application(setup: Setup, link: Link | None = None, crowds: Crowds | None = None) -> ASGIApp:
    """Make the application of one worker process.

    `link` leads to its parent; `crowds` watches over its connections.

    Raises:
        BooksUnavailableError: the database cannot be used.
    """
    service = Service(setup, link)
    models = ModelEndpoints(service.ledger, service.pools)
    usage = UsageEndpoint(service.ledger, service.clock)
    base_url = setup.configuration.server.base_url
    documents = DocumentEndpoints(base_url + API_PATH, document_json, html)
    clients = PageEndpoint(base_url + API_PATH, clients_html)
    clients_url = base_url + CLIENTS_PATH
    admin_documents = DocumentEndpoints(base_url + ADMIN_API_PATH, admin_document_json, admin_html)
    refused_keys = RefusedKeys(service.forwarding)
    bodies = BodyReader(service.completions.account_of)
    asking, unserved = (crowds.asking, crowds.unserved) if crowds else (dict[Peer, object](), dict[Peer, float]())
    chat = ChatEndpoint(service.completions, bodies, service.clock, refused_keys, asking, unserved, clients_url)
    health = HealthEndpoints(service.ledger, service.readiness)
    desk = Desk(service.program_office, service.auditor, service.forwarding, base_url)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await service.start()
        log.info("worker_started")
        try:
            yield
        finally:
            await service.stop()

    app = Starlette(
        routes=[
            ExactRoute(CHAT_PATH, chat, methods=["POST"]),
            ExactRoute(f"{API_PATH}/models", models.list),
            ExactRoute(f"{API_PATH}/models/{{model_id:path}}", models.retrieve),
            ExactRoute(f"{API_PATH}/usage", usage.show),
            ExactRoute(f"{API_PATH}/openapi.json", documents.contract),
            ExactRoute("/docs", documents.page),
            ExactRoute(CLIENTS_PATH, clients.page),
            ExactRoute("/", front),
            ExactRoute("/health", health.health),
            ExactRoute("/livez", health.live),
            ExactRoute("/readyz", health.ready),
            ExactRoute(HOLDERS.path, _to_first_page),
            Mount(HOLDERS.path, holder_pages(service, base_url)),
            ExactRoute(OPERATORS.path, _to_first_page),
            Mount(OPERATORS.path, operator_pages(service, base_url)),
            *admin_routes(ADMIN_API_PATH, desk, BodyReader()),
            ExactRoute(f"{ADMIN_API_PATH}/openapi.json", admin_documents.contract),
            ExactRoute("/docs/admin", admin_documents.page),
        ],
        exception_handlers={
            HTTPException: partial(_no_route, clients_url),
            RefusedError: partial(_refused, refused_keys),
            BooksUnavailableError: _books_unavailable,
        },
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    heads: ASGIApp = Heads(ShortCut(EarlyAnswers(app, crowds.see_off if crowds else _stay), CHAT_PATH, chat), ENCODED)
    if origins := setup.configuration.server.cors_origins:
        heads = CrossOrigin(heads, origins)
    numbered = RequestIds(heads, setup.clock, is_https=base_url.startswith("https://"), unserved=unserved)
    service.on_drain = numbered.close_connections
    has_access_log = setup.configuration.logs.access
    return AccessLog(numbered, service.forwarding, CHAT_PATH) if has_access_log else numbered


async def _to_first_page(request: Request) -> Response:
    """Lead whoever leaves out the last slash on."""
    return RedirectResponse(request.scope["path"] + "/")


def _stay(_peer: Peer) -> None:
    """Let a connection be, where nobody watches over them."""


def _no_route(clients_url: str, _request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    not_allowed = error.status_code == HTTPStatus.METHOD_NOT_ALLOWED
    refusal = Refusal(error=Error.METHOD_NOT_ALLOWED if not_allowed else Error.NOT_FOUND)
    response = refusal_response(naming_clients(refusal, clients_url))
    response.headers.update(error.headers or {})
    return response


def _refused(refused_keys: RefusedKeys, request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    refused_keys.note(error.refusal, request.scope)
    return refusal_response(error.refusal)


def _books_unavailable(_request: Request, _error: Exception) -> Response:
    return refusal_response(books_unavailable())
