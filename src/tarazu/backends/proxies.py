"""The proxies that the environment names, and which servers are asked through them."""

from base64 import b64encode
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from urllib.parse import SplitResult, unquote, urlsplit

from msgspec import Struct

HTTP_PORT = 80


class UnusableProxyError(ValueError):
    """The environment names a proxy that cannot be used. Going past it would be wrong, so there is no way out."""


class Proxy(Struct, frozen=True):
    """Where a proxy is, and the header that lets us in: empty or whole, with its end of line."""

    host: str
    port: int
    authorization: str = ""


class Proxies:
    """Chooses the proxy for a server, by `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, or in capitals."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._by_scheme = {scheme: _named(environ, scheme) or _named(environ, "all") for scheme in ("http", "https")}
        self._passed_by = [each.strip().lower() for each in _named(environ, "no").split(",") if each.strip()]

    def choose(self, scheme: str, host: str) -> Proxy | None:
        """Tell through which proxy a server is asked; None: straight.

        Raises:
            UnusableProxyError: it is of a kind that is not known here.
        """
        address = self._by_scheme[scheme]
        if not address or any(_covers(entry, host.lower()) for entry in self._passed_by):
            return None
        return _proxy(address)


def _named(environ: Mapping[str, str], name: str) -> str:
    return environ.get(f"{name}_proxy") or environ.get(f"{name}_proxy".upper()) or ""


def _covers(entry: str, host: str) -> bool:
    """Tell whether an entry of `no_proxy` covers a host: a name with all below it, an address, a network, or `*`."""
    domain = entry.lstrip(".")
    if entry == "*" or host == domain or host.endswith(f".{domain}"):
        return True
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return False


def _proxy(address: str) -> Proxy:
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        port = parts.port or HTTP_PORT
    except ValueError:
        raise UnusableProxyError from None
    if parts.scheme != "http" or not parts.hostname:
        raise UnusableProxyError
    return Proxy(parts.hostname, port, _authorization(parts))


def _authorization(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"proxy-authorization: Basic {b64encode(credentials.encode()).decode()}\r\n"
