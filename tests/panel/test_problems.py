"""What a page says when it cannot be made: that the service is busy, or that something went wrong, and nothing else."""

import asyncio
from contextlib import suppress
from datetime import UTC
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.responses import Response
from starlette.types import Message

from tarazu.domain.catalogue import Shop
from tarazu.panel.app import _pages
from tarazu.panel.frame import Frame
from tarazu.panel.hosts import KnownHosts
from tarazu.panel.sites import HOLDERS
from tarazu.panel.visits import Visit
from tarazu.service.back_office import BackOfficeFullError
from tarazu.service.configuration.schema import ServerSettings
from tarazu.service.forwarding import Forwarding
from tarazu.service.identifiers import REQUEST_PREFIX, current_request
from tarazu.store.availability import BooksUnavailableError
from tests.support.visitor import Html

CATALOGUE = SimpleNamespace(zone=UTC, shop=Shop())
OFFICE: Any = SimpleNamespace(catalogue=CATALOGUE, clock=lambda: 0, meet=lambda *_: None, note=lambda *_: None)
HERE = "http://127.0.0.1:8080"
FORWARDING = Forwarding((), 0, HERE)
PEOPLE = SimpleNamespace(signing_in=None, own_access=None)
SERVICE: Any = SimpleNamespace(people={HOLDERS.kind: PEOPLE}, forwarding=FORWARDING)
"""A page that breaks at once asks neither for anything."""
CANARY = "secret-canary-7"


def answer_to(error: Exception) -> tuple[int, dict[str, str], Html]:
    """Open a page that breaks by this error; answer with status, headers and page."""

    async def breaks(_visit: Visit) -> Response:
        raise error

    frame = Frame(HOLDERS, PEOPLE.signing_in, PEOPLE.own_access, OFFICE, KnownHosts(ServerSettings()), None)
    app = _pages(frame, SERVICE, [frame.route("/broken", get=breaks, is_open=True)])
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {
        "type": "http",
        "method": "GET",
        "path": "/broken",
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8080"), (b"accept-language", b"en")],
    }
    with suppress(RuntimeError):  # it goes on to where it is logged
        asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]  # it is a coroutine
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, Html(b"".join(message.get("body", b"") for message in sent).decode())


@pytest.mark.parametrize("error", [BooksUnavailableError(CANARY), BackOfficeFullError(CANARY)])
def test_while_the_books_are_away_the_service_is_busy(error: Exception) -> None:
    """503, and when to come back: what has happened, and a way to try the same address again."""
    status, headers, page = answer_to(error)
    assert (status, headers["retry-after"]) == (503, "5")
    is_full = isinstance(error, BackOfficeFullError)
    assert ("The service is busy" if is_full else "cannot reach its books just now") in page.text
    assert "Try again" in page.text
    assert CANARY not in page.text


@pytest.mark.parametrize("error", [BooksUnavailableError(CANARY), RuntimeError(CANARY)])
def test_what_has_failed_names_its_request_for_support(error: Exception) -> None:
    """By the id that its answer and the log have too."""
    token = current_request.set("0V2yJ8kQmZ4tB7wXc1NfRpL")
    try:
        _, _, page = answer_to(error)
    finally:
        current_request.reset(token)
    assert f"name this request: {REQUEST_PREFIX}0V2yJ8kQmZ4tB7wXc1NfRpL" in page.text


def test_what_nobody_has_foreseen_is_told_without_its_words() -> None:
    """500, with the headers of every page."""
    status, headers, page = answer_to(RuntimeError(CANARY))
    assert (status, headers["cache-control"]) == (500, "no-store")
    assert "content-security-policy" in headers
    assert "Something went wrong on our side" in page.text
    assert CANARY not in page.text
