"""A page of another origin calls the API in a browser, with fetch."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.backend import ScriptedBackend
from tests.support.service import RunningService, checked

ASK = """
async ([url, key]) => {
  const headers = {"Content-Type": "application/json", "Idempotency-Key": "one", "X-Stainless-Lang": "js"};
  if (key) headers.Authorization = `Bearer ${key}`;
  try {
    const answer = await fetch(url, {method: "POST", headers, body: JSON.stringify({prompt: "Hello", tools: []})});
    const ignored = answer.headers.get("X-Ignored-Parameters");
    return {status: answer.status, id: answer.headers.get("X-Request-Id"), ignored, body: await answer.json()};
  } catch (error) { return {failed: error.name}; }
}
"""


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>Another site</title>")

    def log_message(self, *_arguments: object) -> None:
        """Be silent."""


@contextmanager
def another_site() -> Iterator[str]:
    """Serve a page from an origin of its own, and tell it."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def asked(browser: Browser, site: str, service: RunningService, key: str | None) -> Any:
    """Let a page of the site call the API, and tell what it could read."""
    page = browser.new_page()
    try:
        page.goto(site)
        return page.evaluate(ASK, [f"http://127.0.0.1:{service.port}/api/v1/chat/completions", key])
    finally:
        page.close()


def test_a_page_of_a_named_origin_reads_replies_and_errors(
    browser: Browser, backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It reads bodies and headers, of an error too; a page of any other origin reads nothing."""
    with another_site() as site, another_site() as stranger:
        folder = tmp_path_factory.mktemp("shared")
        with checked(RunningService(folder, backend.url, server=f'cors_origins = ["{site}"]')) as service:
            key = service.customer().secret
            reply = asked(browser, site, service, key)
            assert (reply["status"], reply["ignored"]) == (200, "tools")
            assert reply["body"]["choices"][0]["message"]["content"]
            assert reply["id"].startswith("req_")
            error = asked(browser, site, service, None)
            assert (error["status"], error["body"]["error"]["code"]) == (401, "missing_api_key")
            assert asked(browser, stranger, service, key) == {"failed": "TypeError"}
