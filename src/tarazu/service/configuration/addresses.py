"""Check the addresses in a configuration. What is said of them never repeats them: they may hold a password."""

import re
from ipaddress import ip_network
from urllib.parse import unquote, urlsplit

API_PATH = "/api/v1"
ADMIN_API_PATH = "/api/admin/v1"
PANEL_PATH = "/panel"
ADMIN_PATH = "/admin"
CLIENTS_PATH = "/docs/clients"

_VISIBLE = re.compile(r"[!-~]+", re.ASCII)
_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?", re.ASCII)
_ORIGIN = re.compile(r"https?://(?:[a-z0-9._-]{1,255}|\[[0-9a-f:.]{2,45}\])(?::[1-9][0-9]{0,4})?", re.ASCII)
_OWN_PORTS = (("http://", ":80"), ("https://", ":443"))
_EMAIL = re.compile(r"[!-~]{1,64}@[A-Za-z0-9.-]{1,255}", re.ASCII)
_NO_PAGE = "expected an address of ASCII characters without spaces and without #"
_SQLITE = re.compile(r"sqlite:///(?P<path>[^?#\x00-\x1f\x7f]+)", re.DOTALL)
_EXPECTED = 'expected "sqlite:///PATH", the path of a file, or "postgresql://USER@HOST/DATABASE"'


def base_address_fault(url: str, *endings: str) -> str | None:
    """Tell what is wrong with a base address, to which paths will be added; None: nothing.

    `endings` are those that come of writing such a path, or its beginning, into the address.
    """
    if not _VISIBLE.fullmatch(url):
        return "expected an address of ASCII characters without spaces"
    try:
        parts = urlsplit(url)
        has_port = parts.port != 0
    except ValueError:
        return "expected an http:// or https:// address, but its host or port is malformed"
    path = parts.path.rstrip("/")
    ending = next((ending for ending in endings if path.endswith(ending)), None)
    demands = (
        (parts.scheme in {"http", "https"}, 'expected an address that begins with "http://" or "https://"'),
        (
            "@" not in parts.netloc,
            "expected an address without user and password, which would be a secret in this file",
        ),
        (has_port and parts.hostname, 'expected an address with a host, as in "https://example.com"'),
        ("?" not in url and "#" not in url, "expected an address without ? and #"),
        (ending is None, f"leave {ending} out at the end of the address, the service adds it"),
    )
    return next((fault for is_met, fault in demands if not is_met), None)


def page_address_fault(url: str) -> str | None:
    """Tell what is wrong with the address of a page, which people are led to; None: nothing."""
    path, _, _ = url.partition("?")
    return base_address_fault(path) if _VISIBLE.fullmatch(url) and "#" not in url else _NO_PAGE


def contact_fault(text: str) -> str | None:
    """Tell what is wrong with where people ask: an email address, or the address of a page; None: nothing."""
    if text.startswith(("http://", "https://")):
        return page_address_fault(text)
    return None if _EMAIL.fullmatch(text) else 'expected an email address, or an address that begins with "https://"'


def network_fault(text: str) -> str | None:
    """Tell what is wrong with a network; None: nothing."""
    try:
        ip_network(text)
    except ValueError:
        return 'expected an address or a network, as in "10.0.0.7" or "10.0.0.0/8"'
    return None


def host_fault(text: str) -> str | None:
    """Tell what is wrong with a name under which browsers open the pages; None: nothing."""
    return (
        None if _HOST.fullmatch(text) else 'expected a host name, with a port or without, as in "ai.example.com:8443"'
    )


def origin_fault(text: str) -> str | None:
    """Tell what is wrong with the origin of pages, to be written as browsers send it; None: nothing."""
    if not _ORIGIN.fullmatch(text):
        return 'expected scheme and host in lower case, and no path, as in "https://app.example.com"'
    if any(text.startswith(scheme) and text.endswith(port) for scheme, port in _OWN_PORTS):
        return "leave out the port, which is the scheme's own: browsers do so too"
    return None


def database_fault(url: str, *, may_hold_password: bool = False) -> str | None:
    """Tell what is wrong with the URL of the books; None: nothing."""
    if url.startswith("postgresql://"):
        return _postgresql_fault(url, may_hold_password=may_hold_password)
    sqlite = _SQLITE.fullmatch(url)
    if sqlite is None:
        return _EXPECTED
    if "\0" in unquote(sqlite["path"]):
        return _EXPECTED
    if ":memory:" in sqlite["path"]:
        return 'expected the path of a file, as in "sqlite:///tarazu.db": books in memory are lost with the process'
    return None


def _postgresql_fault(url: str, *, may_hold_password: bool) -> str | None:
    from tarazu.store.postgresql_url import postgresql_parameters  # noqa: PLC0415 - a driver that SQLite does without

    try:
        parameters = postgresql_parameters(url)
    except ValueError as error:
        return str(error)
    if not may_hold_password and not parameters.keys().isdisjoint(("password", "sslpassword")):
        return (
            "a password must not stand in this file; leave it out and put it in the environment variable PGPASSWORD, "
            "in a file that PGPASSFILE names, or put the whole URL in TARAZU_DATABASE_URL"
        )
    return None if "dbname" in parameters else _EXPECTED
