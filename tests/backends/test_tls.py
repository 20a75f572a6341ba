"""Servers with certificates: who is trusted, and that nobody else is told anything."""

import asyncio
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import trustme

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tests.support.dialects import ANSWERS, TIMEOUT_S, ask, asked
from tests.support.values import Clock

JOIN_TIMEOUT_S = 10


class Server(ThreadingHTTPServer):
    """A model server with a certificate for these names. `asked` counts the requests that have reached it."""

    def __init__(self, authority: trustme.CA, *names: str) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked = 0
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(*names).configure_cert(tls)
        self.socket = tls.wrap_socket(self.socket, server_side=True)

    @property
    def url(self) -> str:
        """The address for `url` in tarazu.toml."""
        return f"https://127.0.0.1:{self.server_port}/v1"


class Answering(BaseHTTPRequestHandler):
    """Gives the same good answer to all."""

    server: Server

    def do_POST(self) -> None:
        """Count the request and answer it."""
        self.server.asked += 1
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWERS["openai"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Write nothing."""


@contextmanager
def serving(authority: trustme.CA, *names: str) -> Iterator[Server]:
    """Run a server."""
    with Server(authority, *names) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(JOIN_TIMEOUT_S)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority of the operator's own."""
    return trustme.CA()


def ca_file(folder: Path, authority: trustme.CA) -> str:
    """Write the authority's certificate."""
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)


def test_a_server_is_trusted_for_the_operators_own_authority(tmp_path: Path, authority: trustme.CA) -> None:
    """Its certificate needs no other."""
    with serving(authority, "127.0.0.1") as server:
        reply = ask(BackendSpec(kind="openai", url=server.url, ca_file=ca_file(tmp_path, authority)))
    assert (reply.text, server.asked) == ("Hello there.", 1)


def assert_not_asked(server: Server, ca_file: str | None) -> None:
    """Ask a server that must not be trusted: it gets no request, and so no key."""
    with pytest.raises(BackendError) as caught:
        ask(BackendSpec(kind="openai", url=server.url, ca_file=ca_file), secrets=Secrets(api_key="k"))
    assert (caught.value.fault, server.asked) == (Fault.UNREACHABLE, 0)


def test_a_server_of_an_unknown_authority_is_not_asked(authority: trustme.CA) -> None:
    """Without a `ca_file`, those that everybody trusts decide."""
    with serving(authority, "127.0.0.1") as server:
        assert_not_asked(server, None)


def test_a_server_of_another_authority_is_not_asked(tmp_path: Path, authority: trustme.CA) -> None:
    """With a `ca_file`, the authorities in it decide."""
    with serving(authority, "127.0.0.1") as server:
        assert_not_asked(server, ca_file(tmp_path, trustme.CA()))


def test_an_authority_that_is_replaced_is_in_force_when_it_is_read_again(tmp_path: Path, authority: trustme.CA) -> None:
    """A reload needs no new path."""
    path = ca_file(tmp_path, trustme.CA())

    async def scenario(server: Server) -> str:
        with contextlib.closing(HttpClient()) as http:
            backend = HttpBackend(
                http, BackendSpec(kind="openai", url=server.url, model="m", ca_file=path), Clock(), name="test#1"
            )
            with pytest.raises(BackendError):
                await backend.ask(asked(), timeout_s=TIMEOUT_S)
            http.trust(ca_file(tmp_path, authority))
            return (await backend.ask(asked(), timeout_s=TIMEOUT_S)).text

    with serving(authority, "127.0.0.1") as server:
        assert asyncio.run(scenario(server)) == "Hello there."


def test_a_server_under_another_name_is_not_asked(tmp_path: Path, authority: trustme.CA) -> None:
    """The certificate must be for the host of the address."""
    with serving(authority, "other.example") as server:
        assert_not_asked(server, ca_file(tmp_path, authority))
