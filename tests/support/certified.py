"""Model servers with certificates: TLS on loopback."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from tests.support.dialects import ANSWERS
from tests.support.patience import PATIENCE_S


class CertifiedServer(ThreadingHTTPServer):
    """A model server with a certificate for these names.

    It offers HTTP/2 beside HTTP/1.1, as the makers' do, but speaks only the latter. `asked` counts the requests that
    have reached it; `keys` holds what stood in their Authorization, `agreed` the protocols that were agreed on.
    """

    def __init__(self, authority: trustme.CA, *names: str, not_after: datetime | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked = 0
        self.keys: set[str | None] = set()
        self.agreed: set[str | None] = set()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.set_alpn_protocols(["h2", "http/1.1"])
        authority.issue_cert(*names, not_after=not_after).configure_cert(tls)
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)

    @property
    def url(self) -> str:
        """The address for `url` in tarazu.toml."""
        return f"https://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing when a client has not trusted the certificate."""


class Answering(BaseHTTPRequestHandler):
    """Gives the same good answer to all."""

    server: CertifiedServer
    connection: ssl.SSLSocket

    def do_POST(self) -> None:
        """Count the request and answer it."""
        self.server.asked += 1
        self.server.keys.add(self.headers["authorization"])
        self.server.agreed.add(self.connection.selected_alpn_protocol())
        self.rfile.read(int(self.headers["content-length"]))
        body = json.dumps(ANSWERS["openai"]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the library gives it
        """Write nothing."""


@contextmanager
def serving(authority: trustme.CA, *names: str, not_after: datetime | None = None) -> Iterator[CertifiedServer]:
    """Run a server."""
    with CertifiedServer(authority, *names, not_after=not_after) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE_S)


def ca_file(folder: Path, authority: trustme.CA) -> str:
    """Write the authority's certificate."""
    path = folder / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return str(path)
