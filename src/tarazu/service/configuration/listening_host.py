"""The host at which the service listens: a name or an address, and the one address that it stands for."""

import ipaddress
import socket

NO_PORT = "expected a host name or an address without port; the port is a setting of its own"
NO_ZONE = "expected an address without a zone (%), which cannot be listened at"


def listening_fault(host: str) -> str | None:
    """Tell what is wrong with a host; None: nothing. Names are not looked up."""
    if ":" not in host:
        return None
    if "%" in host:
        return NO_ZONE
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return NO_PORT
    return None


def listening_address(host: str) -> str:
    """Find the address that a host stands for; of several the first one of IPv4, which most callers use.

    Raises:
        LookupError: this machine knows no such name; the message says so.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise LookupError(f"no machine is known here as {host} ({error.strerror})") from None
    except UnicodeError:  # what cannot be a name, such as a..b
        raise LookupError(f"{host} cannot be the name of a machine") from None
    found.sort(key=lambda each: each[0] != socket.AF_INET)  # stable
    return str(found[0][4][0])
