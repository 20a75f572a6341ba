"""Read the URL of a PostgreSQL database as libpq does, its form for several hosts and its parameters.

What is said of the URL never repeats it: it may hold a password.
"""

import difflib
import re
from collections.abc import Mapping

import psycopg
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

PORT_MAX = 65_535
PERCENT_ADVICE = "in a user or a password each of @ : / ? # and % is written in percent form, as in %40 for @"
OF_PERCENT_FORMS = ("invalid percent-encoded token", "forbidden value %00 in percent-encoded value")
"""How libpq begins what it says of them."""
CHOICES = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": ("postgres", "direct"),
    "sslcertmode": ("disable", "allow", "require"),
    "gssencmode": ("disable", "prefer", "require"),
    "channel_binding": ("disable", "prefer", "require"),
    "load_balance_hosts": ("disable", "random"),
    "target_session_attrs": ("any", "read-write", "read-only", "primary", "standby", "prefer-standby"),
}
"""What libpq takes for the parameters that have a few words for values; it looks at them only when it connects."""

_VISIBLE = re.compile(r"postgresql://[!-~]*", re.ASCII)
_DIGITS = re.compile(r"[0-9]{1,5}", re.ASCII)
_UNKNOWN = re.compile(r'invalid URI query parameter: "(?P<name>[a-z_]{1,40})"', re.ASCII)


def postgresql_parameters(url: str) -> dict[str, str]:
    """Take the URL apart into libpq's parameters.

    Raises:
        ValueError: it is none that libpq takes; the message completes "the URL of the database: …".
    """
    if not _VISIBLE.fullmatch(url):
        raise ValueError("expected ASCII characters without spaces; others are written in percent form")
    try:
        parameters = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ValueError(_fault(str(error), url)) from None
    texts = {name: str(value) for name, value in parameters.items()}
    if any("@" in texts.get(name, "") for name in ("host", "port", "dbname")):
        raise ValueError(f"its parts cannot be told apart; {PERCENT_ADVICE}")
    if not all(_is_port(port) for port in texts.get("port", "").split(",")):
        raise ValueError(f"the host or port of the database is malformed; {PERCENT_ADVICE}")
    _pair_hosts(texts)
    for name, choices in CHOICES.items():
        if name in texts and texts[name] not in choices:
            raise ValueError(f"expected one of {', '.join(choices)} for {name}")
    return texts


def sqlalchemy_url(parameters: Mapping[str, str]) -> URL:
    """Write libpq's parameters as SQLAlchemy wants them, each a part of the query where it has no place of its own."""
    others = {name: value for name, value in parameters.items() if name not in {"user", "password", "dbname"}}
    return URL.create(
        "postgresql+psycopg",
        username=parameters.get("user"),
        password=parameters.get("password"),
        database=parameters.get("dbname"),
        query=others,
    )


def _pair_hosts(texts: dict[str, str]) -> None:
    """Give each of several hosts its port: libpq takes one for all, SQLAlchemy does not.

    Raises:
        ValueError: there is another number of ports, or of addresses, than of hosts.
    """
    hosts, addresses, ports = (texts[name].split(",") if name in texts else [] for name in ("host", "hostaddr", "port"))
    if hosts and addresses and len(hosts) != len(addresses):
        raise ValueError("expected as many addresses in hostaddr as there are hosts")
    count = len(addresses or hosts) or 1
    if len(ports) > 1 and len(ports) != count:
        raise ValueError("expected one port, or as many as there are hosts")
    if len(ports) == 1 and count > 1:
        texts["port"] = ",".join(ports * count)
    if len(ports) > 0 and count > 1 and not hosts:
        texts["host"] = texts["hostaddr"]  # SQLAlchemy counts by their names


def _is_port(text: str) -> bool:
    return not text or (_DIGITS.fullmatch(text) is not None and int(text) <= PORT_MAX)


def _fault(of_libpq: str, url: str) -> str:
    """Say in our words what libpq says: its own may quote the whole URL."""
    if of_libpq.startswith(OF_PERCENT_FORMS):
        return f"a percent form in the URL of the database is malformed; {PERCENT_ADVICE}"
    unknown = _UNKNOWN.match(of_libpq)
    if unknown is None or "@" in url.partition("?")[2]:  # what follows an early ? may be a piece of a password
        return f"the host or port of the database is malformed; {PERCENT_ADVICE}"
    known = [option.keyword.decode() for option in pq.Conninfo.get_defaults()]
    (meant, *_) = (*difflib.get_close_matches(unknown["name"], known, n=1), None)
    return f"PostgreSQL knows no parameter {unknown['name']}" + (f", did you mean {meant}?" if meant else "")
