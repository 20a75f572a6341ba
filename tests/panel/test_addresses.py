"""Where visitors come from and are led to, and over what their cookies may go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from tarazu.panel.frame import Frame, address_of
from tarazu.panel.sites import HOLDERS
from tarazu.panel.visits import csrf_of, own_address


@pytest.mark.parametrize(
    ("base_url", "is_secure"),
    [
        ("http://127.0.0.1:8080", False),
        ("http://[::1]:8080", False),
        ("http://localhost:8080", False),
        ("http://ai.example.com", True),
        ("http://192.168.1.7:8080", True),
        ("https://ai.example.com", True),
        ("https://127.0.0.1", True),
    ],
)
def test_cookies_go_over_https_alone_but_on_one_machine(base_url: str, is_secure: bool) -> None:  # noqa: FBT001
    """Plain HTTP is for a machine that is asked by itself."""
    frame = Frame(HOLDERS, None, None, base_url)  # type: ignore[arg-type]  # of which nothing is asked here
    assert frame.is_secure is is_secure


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["198.51.100.1"], "198.51.100.1"),
        ("::1", ["1.1.1.1, 198.51.100.1"], "198.51.100.1"),
        ("127.0.0.1", ["1.1.1.1", "2001:db8::7"], "2001:db8::7"),
        ("127.0.0.1", ["nonsense"], "127.0.0.1"),
    ],
)
def test_a_proxy_is_believed_only_on_this_machine(peer: str, forwarded: list[str], address: str) -> None:
    """And only for whom it has spoken with itself: what stands before that anybody may have written."""
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    assert address_of(Request({"type": "http", "client": (peer, 1), "headers": headers})) == address


@given(st.text() | st.from_regex(r"[/\\.a-z:@%?#]{0,12}(panel)?[/\\.a-z:@%?#]{0,12}", fullmatch=True))
def test_no_address_leads_out_of_the_site(address: str) -> None:
    """Whatever it is, what comes back begins with the site's path and names no host."""
    led = own_address(HOLDERS, address)
    assert led.startswith("/panel/")
    assert "//" not in led.partition("?")[0]


def test_a_sessions_word_does_not_tell_its_secret() -> None:
    """It is always the same for one, and another for another."""
    assert csrf_of("a" * 43) == csrf_of("a" * 43) != csrf_of("b" * 43)
    assert len(csrf_of("a" * 43)) == 43
    assert "a" * 10 not in csrf_of("a" * 43)
