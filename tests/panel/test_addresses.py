"""Under which names visitors come, and where they are led to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.panel.hosts import KnownHosts
from tarazu.panel.sites import HOLDERS
from tarazu.panel.visits import csrf_of, own_address
from tarazu.service.configuration.schema import ServerSettings
from tarazu.service.forwarding import Origin


@pytest.mark.parametrize(
    ("hosts", "is_known"),
    [
        (("ai.example.com",), True),
        (("10.0.0.1:8080",), True),
        (("127.0.0.1:9",), True),
        (("[::1]:8080",), True),
        (("localhost:8080",), True),
        (("a.localhost",), True),
        (("ai.example.org",), True),
        (("ai.example.org:8443",), True),
        (("other.example.org:8443",), True),
        (("127.0.0.1:8080", "ai.example.com"), True),
        ((), False),
        (("",), False),
        (("evil.example",), False),
        (("evil.example", "127.0.0.1:8080"), False),
        (("127.0.0.1:8080", "evil.example"), False),
        (("ai.example.com.evil.example",), False),
        (("localhost.evil.example",), False),
        (("other.example.org",), False),
        (("10.0.0.1:8081",), False),
        (("ai.example.com@evil.example",), False),
    ],
)
def test_pages_are_opened_under_known_names_alone(hosts: tuple[str, ...], is_known: bool) -> None:  # noqa: FBT001 - a case
    """Each that a request names: one that leads here by a foreign DNS is none, whatever a proxy's header says."""
    server = ServerSettings(
        host="10.0.0.1", public_url="https://AI.example.com", hosts=("ai.example.org", "Other.example.org:8443")
    )
    assert KnownHosts(server).include(Origin("127.0.0.1", "http", hosts)) is is_known


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
