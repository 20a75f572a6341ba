"""The host at which the service listens: what is taken, and the address that it stands for."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.service.configuration.listening_host import NO_PORT, NO_ZONE, listening_address, listening_fault


@pytest.mark.parametrize(
    ("host", "fault"),
    [
        ("127.0.0.1", None),
        ("127.1", None),
        ("localhost", None),
        ("::1", None),
        ("::", None),
        ("127.0.0.1:80", NO_PORT),
        ("localhost:80", NO_PORT),
        ("::1:80:", NO_PORT),
        ("fe80::1%eth0", NO_ZONE),
    ],
)
def test_what_is_wrong_with_a_host(host: str, fault: str | None) -> None:
    """A port in it is told in the words of the setting."""
    assert listening_fault(host) == fault


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("localhost", "127.0.0.1"), ("::1", "::1")],
)
def test_a_host_stands_for_one_address(host: str, address: str) -> None:
    """The one of IPv4 where a name has several."""
    assert listening_address(host) == address


@pytest.mark.parametrize("host", ["nosuch.invalid", "a..b", "a" * 70, "1.2.3.4.5"])
def test_an_unknown_name_is_told(host: str) -> None:
    """By name, whatever is the matter with it."""
    with pytest.raises(LookupError, match=host.replace(".", r"\.")):
        listening_address(host)


@given(st.text("0123456789abcdefgl.:%_-", min_size=1, max_size=80))
def test_whatever_the_configuration_lets_pass_is_an_address_or_told(host: str) -> None:
    """No other error comes of a text that may stand in the file."""
    with pytest.MonkeyPatch.context() as patch:  # no name leaves this machine
        real = socket.getaddrinfo
        patch.setattr(
            socket,
            "getaddrinfo",
            lambda name, port, **rest: real(name, port, **{**rest, "flags": socket.AI_NUMERICHOST}),
        )
        if listening_fault(host) is not None:
            return
        try:
            address = listening_address(host)
        except LookupError:
            return
    ipaddress.ip_address(address)
