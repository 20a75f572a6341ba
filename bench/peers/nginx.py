"""nginx at both ends of what is measured: as a model server with one reply, and as the proxy that does nothing more."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from bench.peers.servers import running
from tests.support.service import free_port

COMMAND = "/usr/sbin/nginx"
"""Debian keeps it where only root's PATH leads."""

_CONFIGURATION = """
worker_processes 1;
daemon off;
pid nginx.pid;
error_log error.log;
events { worker_connections 4096; }
http {
    access_log off;
    default_type application/json;
    keepalive_requests 1000000000;
    keepalive_timeout 1h;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    UPSTREAM
    server {
        listen 127.0.0.1:PORT backlog=4096;
        location / { LOCATION }
    }
}
"""
_UPSTREAM = "upstream backend { server ADDRESS; keepalive 256; keepalive_requests 1000000000; keepalive_timeout 1h; }"
_KEEPING = 'proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection "";'


class Nginx(Struct, frozen=True):
    """A running nginx, of one worker, at a host and port."""

    pid: int
    address: str


@contextmanager
def fixed_reply(folder: Path, reply: bytes) -> Iterator[Nginx]:
    """Answer every request with this JSON, which holds neither `'` nor `$`."""
    with _running(folder, upstream="", location=f"return 200 '{reply.decode()}';") as nginx:
        yield nginx


@contextmanager
def bare_proxy(folder: Path, backend: str, *, keeps_connections: bool) -> Iterator[Nginx]:
    """Pass every request on to this address; without `keeps_connections` as nginx does by default, each on its own."""
    upstream = _UPSTREAM if keeps_connections else "upstream backend { server ADDRESS; }"
    location = _KEEPING if keeps_connections else "proxy_pass http://backend;"
    with _running(folder, upstream=upstream.replace("ADDRESS", backend), location=location) as nginx:
        yield nginx


@contextmanager
def _running(folder: Path, *, upstream: str, location: str) -> Iterator[Nginx]:
    folder.mkdir()
    port = free_port()
    text = _CONFIGURATION.replace("UPSTREAM", upstream).replace("PORT", str(port)).replace("LOCATION", location)
    (folder / "nginx.conf").write_text(text, "utf-8")
    command = [COMMAND, "-p", str(folder), "-e", "error.log", "-c", "nginx.conf"]
    with running(command, port, log=folder / "output.log") as process:
        yield Nginx(process.pid, f"127.0.0.1:{port}")


def version() -> str:
    """Name the installed release."""
    ended = subprocess.run([COMMAND, "-v"], capture_output=True, text=True, check=True)
    return ended.stderr.strip().rpartition(" ")[2].replace("/", " ")
