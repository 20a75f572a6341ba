"""The proxies of the environment: which is asked, for whom, and with what."""

import asyncio

import pytest

from tarazu.backends.http_client import HttpClient
from tarazu.backends.port import BackendError, Fault
from tarazu.backends.proxies import Proxies, Proxy, UnusableProxyError
from tests.support.answering import answering

ENVIRON = {
    "http_proxy": "http://proxy:3128",
    "HTTPS_PROXY": "other",
    "no_proxy": "local.example, .inner.example,10.0.0.0/8 ,::1",
}


@pytest.mark.parametrize(
    ("scheme", "host", "proxy"),
    [
        ("http", "example.com", Proxy("proxy", 3128)),
        ("https", "example.com", Proxy("other", 80)),
        ("http", "local.example", None),
        ("http", "a.LOCAL.example", None),
        ("http", "notlocal.example", Proxy("proxy", 3128)),
        ("https", "inner.example", None),
        ("http", "10.1.2.3", None),
        ("http", "11.1.2.3", Proxy("proxy", 3128)),
        ("http", "::1", None),
    ],
)
def test_the_environment_names_the_proxy(scheme: str, host: str, proxy: Proxy | None) -> None:
    """By scheme, but for the names, addresses and networks in no_proxy."""
    assert Proxies(ENVIRON).choose(scheme, host) == proxy


def test_one_proxy_may_be_for_all_and_a_star_for_none() -> None:
    """The general variables stand behind the others."""
    assert Proxies({"ALL_PROXY": "http://p:1"}).choose("https", "a") == Proxy("p", 1)
    assert Proxies({"all_proxy": "http://p:1", "no_proxy": "*"}).choose("https", "a") is None


@pytest.mark.parametrize("address", ["socks5://p:1", "https://p:1", "http://", "http://p:x"])
def test_a_proxy_that_cannot_be_used_is_not_passed_by(address: str) -> None:
    """Where the way out leads through it, there is no other."""
    with pytest.raises(UnusableProxyError):
        Proxies({"http_proxy": address}).choose("http", "a")


async def _heads(url: str, answer: bytes) -> tuple[list[bytes], BackendError | None]:
    async with answering(answer) as proxy:
        address = f"http://user:p%40ss@127.0.0.1:{proxy.port}"
        client = HttpClient({"http_proxy": address, "https_proxy": address})
        failure = None
        try:
            await client.post_json(url, b"{}", headers={"authorization": "Bearer k"}, timeout_s=5)
        except BackendError as error:
            failure = error
        finally:
            client.close()
        return proxy.heads, failure


def test_a_proxy_gets_its_credentials() -> None:
    """Those in its address, decoded."""
    [head], _ = asyncio.run(_heads("http://model.invalid/v1", b"HTTP/1.1 204 OK\r\n\r\n"))
    assert head.startswith(b"POST http://model.invalid/v1 HTTP/1.1\r\nhost: model.invalid\r\n")
    assert b"\r\nproxy-authorization: Basic dXNlcjpwQHNz\r\n" in head


def test_a_proxy_that_refuses_a_tunnel_learns_no_key() -> None:
    """It is told where to, and with what right; nothing of the request."""
    [head], failure = asyncio.run(_heads("https://model.invalid/v1", b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"))
    assert head.startswith(b"CONNECT model.invalid:443 HTTP/1.1\r\n")
    assert b"\r\nproxy-authorization: Basic dXNlcjpwQHNz\r\n" in head
    assert b"Bearer" not in head
    assert failure is not None
    assert (failure.fault, failure.detail) == (Fault.UNREACHABLE, "refused by the proxy")
