"""Servers with certificates: who is trusted, and that nobody else is told anything."""

import asyncio
import contextlib
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tests.support.certified import CertifiedServer, ca_file, serving
from tests.support.dialects import ask, asked
from tests.support.patience import PATIENCE_S
from tests.support.values import Clock


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """An authority of the operator's own."""
    return trustme.CA()


def test_a_server_is_trusted_for_the_operators_own_authority(tmp_path: Path, authority: trustme.CA) -> None:
    """Its certificate needs no other."""
    with serving(authority, "127.0.0.1") as server:
        reply = ask(BackendSpec(kind="openai", url=server.url, ca_file=ca_file(tmp_path, authority)))
    assert (reply.text, server.asked) == ("Hello there.", 1)


def test_a_server_that_offers_http_2_is_asked_by_http_1(tmp_path: Path, authority: trustme.CA) -> None:
    """Each call has a connection: on a shared one, those beyond the server's bound of streams would wait unseen."""
    with serving(authority, "127.0.0.1") as server:
        ask(BackendSpec(kind="openai", url=server.url, ca_file=ca_file(tmp_path, authority)))
    assert server.agreed in ({"http/1.1"}, {None})


def assert_not_asked(server: CertifiedServer, ca_file: str | None) -> None:
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

    async def scenario(server: CertifiedServer) -> str:
        with contextlib.closing(HttpClient()) as http:
            backend = HttpBackend(
                http, BackendSpec(kind="openai", url=server.url, model="m", ca_file=path), Clock(), name="test#1"
            )
            with pytest.raises(BackendError):
                await backend.ask(asked(), timeout_s=PATIENCE_S)
            http.trust(ca_file(tmp_path, authority))
            return (await backend.ask(asked(), timeout_s=PATIENCE_S)).text

    with serving(authority, "127.0.0.1") as server:
        assert asyncio.run(scenario(server)) == "Hello there."


def test_a_server_under_another_name_is_not_asked(tmp_path: Path, authority: trustme.CA) -> None:
    """The certificate must be for the host of the address."""
    with serving(authority, "other.example") as server:
        assert_not_asked(server, ca_file(tmp_path, authority))


def test_a_server_with_an_expired_certificate_is_not_asked(tmp_path: Path, authority: trustme.CA) -> None:
    """Nobody vouches for it any more."""
    with serving(authority, "127.0.0.1", not_after=datetime(2020, 1, 1, tzinfo=UTC)) as server:
        assert_not_asked(server, ca_file(tmp_path, authority))


async def _through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Let one connection through to where it wants to."""
    host, port = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode().rsplit(":", 1)
    there, to = await asyncio.open_connection(host, int(port))
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

    async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while part := await source.read(65_536):
                target.write(part)
        target.close()

    await asyncio.gather(copy(reader, to), copy(there, writer))
    for each in (writer, to):
        with contextlib.suppress(ConnectionError):
            await each.wait_closed()


@pytest.mark.parametrize(("name", "status"), [("127.0.0.1", 200), ("other.example", None)])
def test_a_server_behind_a_proxy_must_have_its_own_certificate(
    tmp_path: Path, authority: trustme.CA, name: str, status: int | None
) -> None:
    """The proxy lets the connection through, and TLS is spoken with the server."""
    details: list[str] = []

    async def scenario(url: str) -> int | None:
        done = asyncio.Event()

        async def let_through(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _through(reader, writer)
            done.set()

        proxy = await asyncio.start_server(let_through, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        path = ca_file(tmp_path, authority)
        answered: int | None = None
        async with proxy:
            with contextlib.closing(HttpClient({"https_proxy": f"http://127.0.0.1:{port}"})) as http:
                http.trust(path)
                try:
                    reply = await http.post_json(url, b"{}", headers={}, timeout_s=PATIENCE_S, ca_file=path)
                    answered = reply.status
                except BackendError as error:
                    details.append(error.detail)
            await done.wait()
        return answered

    with serving(authority, name) as server:
        assert asyncio.run(scenario(server.url)) == status
        assert server.asked == (0 if status is None else 1)
    assert details == (["certificate not trusted"] if status is None else [])
