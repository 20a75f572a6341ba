"""Where a request comes from and how it was asked for, by its connection and by what proxies say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from tarazu.service.forwarding import FORWARDING, WARNING_EVERY_S, Forwarding, Origin

LOOPBACK = ("127.0.0.0/8", "::1/128")
PUBLIC = "https://ai.example.com"
HERE = "http://127.0.0.1:8080"
CALLER = "198.51.100.1"
PEER = "203.0.113.9"


def origin(
    peer: str, *headers: tuple[str, str], trusted: tuple[str, ...] = LOOPBACK, depth: int = 1, base_url: str = HERE
) -> Origin:
    """Tell the origin of a request with these headers."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers]
    return Forwarding(trusted, depth, base_url).origin({"client": (peer, 1), "scheme": "http", "headers": raw})


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        (PEER, [], PEER),
        (PEER, [CALLER], PEER),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", [CALLER], CALLER),
        ("::ffff:127.0.0.1", [CALLER], CALLER),
        ("::1", [f"1.1.1.1, {CALLER}"], CALLER),
        ("127.0.0.1", ["1.1.1.1", "2001:db8::7"], "2001:db8::7"),
        ("127.0.0.1", [f"{CALLER}:4711"], CALLER),
        ("127.0.0.1", ["[2001:db8::7]:4711"], "2001:db8::7"),
        ("127.0.0.1", ["nonsense"], "127.0.0.1"),
        ("127.0.0.1", [f"{CALLER},"], "127.0.0.1"),
    ],
)
def test_a_proxy_is_believed_only_where_it_is_trusted(peer: str, forwarded: list[str], address: str) -> None:
    """And only for whom it has spoken with itself: what stands before that anybody may have written."""
    assert origin(peer, *(("x-forwarded-for", value) for value in forwarded)).address == address


@pytest.mark.parametrize(
    ("depth", "address"), [(0, "10.1.2.3"), (1, "192.0.2.7"), (2, CALLER), (3, "6.6.6.6"), (4, "6.6.6.6")]
)
def test_as_many_addresses_are_the_proxies_own_as_there_are_proxies(depth: int, address: str) -> None:
    """Counted from the end; where fewer are there, the first of them."""
    headers = ("x-forwarded-for", f"6.6.6.6, {CALLER}, 192.0.2.7")
    assert origin("10.1.2.3", headers, trusted=("10.0.0.0/8",), depth=depth).address == address


@given(
    st.text("0123456789abcdef:., x[]", max_size=40),
    st.sampled_from(["1.2.3.4", "2001:db8::9"]),
    st.integers(min_value=1, max_value=3),
)
def test_nothing_that_a_caller_writes_changes_the_address_that_the_proxies_have_seen(
    written: str, seen: str, depth: int
) -> None:
    """However odd it is: what the first trusted proxy adds stands behind it."""
    line = ", ".join([written, seen, *(f"10.0.0.{number}" for number in range(1, depth))])
    assert origin("127.0.0.1", ("x-forwarded-for", line), depth=depth).address == seen


@pytest.mark.parametrize("name", sorted(FORWARDING))
def test_what_a_stranger_says_is_ignored(name: bytes) -> None:
    """Each of the headers, as if it were not there."""
    for value in (CALLER, "https", "evil.example", f"for={CALLER};proto=https;host=evil.example"):
        with_it = origin(PEER, ("host", "ai.example.com:8080"), (name.decode(), value))
        assert with_it == Origin(PEER, "http", ("ai.example.com:8080",))


def test_forwarded_is_believed_of_nobody() -> None:
    """Most proxies pass on what the caller has written there."""
    header = ("forwarded", f"for={CALLER};proto=https;host=evil.example")
    assert origin("127.0.0.1", ("host", "a"), header) == Origin("127.0.0.1", "http", ("a",))


@pytest.mark.parametrize(
    ("base_url", "host", "proto", "scheme"),
    [
        (HERE, "127.0.0.1:8080", None, "http"),
        (HERE, "ai.example.com", None, "http"),
        (HERE, "ai.example.com", "https", "https"),
        (HERE, "ai.example.com", "HTTPS", "https"),
        (HERE, "ai.example.com", "http, https", "https"),
        (HERE, "ai.example.com", "gopher", "http"),
        (PUBLIC, "ai.example.com", None, "https"),
        (PUBLIC, "AI.example.com", None, "https"),
        (PUBLIC, "ai.example.com", "http", "http"),
        (PUBLIC, "127.0.0.1:8080", None, "http"),
    ],
)
def test_the_scheme_is_the_proxys_word_or_that_of_the_public_address(
    base_url: str, host: str, proto: str | None, scheme: str
) -> None:
    """A proxy that says nothing of it is in front of the public address alone."""
    told = () if proto is None else (("x-forwarded-proto", proto),)
    assert origin("127.0.0.1", ("host", host), *told, base_url=base_url).scheme == scheme


def test_each_host_that_was_named_is_told() -> None:
    """A page in a browser can write X-Forwarded-Host, so it never hides the Host that the browser has written."""
    found = origin("127.0.0.1", ("host", "Evil.example"), ("x-forwarded-host", "127.0.0.1:8080"))
    assert (found.hosts, found.host) == (("evil.example", "127.0.0.1:8080"), "127.0.0.1:8080")
    assert origin("127.0.0.1").host == ""


@pytest.mark.parametrize(
    ("scheme", "host", "is_secure"),
    [
        ("http", "127.0.0.1:8080", False),
        ("http", "[::1]:8080", False),
        ("http", "localhost", False),
        ("http", "tarazu.localhost:1", False),
        ("http", "ai.example.com", True),
        ("http", "192.168.1.7:8080", True),
        ("http", "localhost.example.com", True),
        ("https", "ai.example.com", True),
        ("https", "127.0.0.1", True),
        ("http", "", True),
    ],
)
def test_cookies_go_over_https_alone_but_on_one_machine(scheme: str, host: str, is_secure: bool) -> None:  # noqa: FBT001
    """Plain HTTP is for a machine that is asked by itself."""
    assert Origin("127.0.0.1", scheme, (host,)).is_secure is is_secure


def test_a_header_of_a_stranger_is_told_once_an_hour() -> None:
    """With the peer and the names of the headers, not with what they say."""
    moments = iter([0.0, 1.0, WARNING_EVERY_S])
    forwarding = Forwarding(LOOPBACK, 1, HERE, monotonic=lambda: next(moments))
    scope = {"client": (PEER, 1), "scheme": "http", "headers": [(b"x-forwarded-for", CALLER.encode())]}
    with capture_logs() as logs:
        for _ in range(3):
            forwarding.origin(scope)
    assert [(line["event"], line["log_level"], line["address"], line["headers"]) for line in logs] == [
        ("forwarding_ignored", "warning", PEER, ["x-forwarded-for"])
    ] * 2
    assert CALLER not in str(logs)
