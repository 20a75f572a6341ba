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
from tests.support.dialects import TIMEOUT_S, ask, asked
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
                await backend.ask(asked(), timeout_s=TIMEOUT_S)
            http.trust(ca_file(tmp_path, authority))
            return (await backend.ask(asked(), timeout_s=TIMEOUT_S)).text

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
