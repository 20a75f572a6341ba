"""What an operator adds to a backend's requests: headers, parameters, other names. No secret may stand among it."""

import re
from collections.abc import Iterable, Mapping

from tarazu.backends.dialect import Dialect
from tarazu.domain.prompt import Settings
from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.problems import Findings, did_you_mean, listed, shown
from tarazu.service.configuration.schema import BackendSection

OWN_HEADERS = frozenset(
    {
        "accept",
        "accept-encoding",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "expect",
        "host",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "user-agent",
    }
)
"""Those that the HTTP client sets."""
SECRET_WORDS = ("auth", "cookie", "credential", "key", "passw", "secret", "signature", "token")
"""A header or parameter with one of these in its name is taken for a secret."""

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}", re.ASCII)
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]{0,998}[!-~])?", re.ASCII)
_CREDENTIALS = re.compile(r"(?:basic|bearer|token) ", re.ASCII | re.IGNORECASE)
_PARAMETER = re.compile(r"[!-~]{1,1000}", re.ASCII)


def check_additions(section: BackendSection, dialect: Dialect, key: KeyPath, findings: Findings) -> None:
    """Note everything that cannot be added, or that must not stand in the file."""
    headers, variables = section.headers or {}, section.headers_env or {}
    key_header = (section.key_header or dialect.key_header).lower()
    has_key = section.api_key_env is not None or section.api_key_file is not None
    _check_header_names(headers, (*key, "headers"), {}, findings)
    _check_header_names(variables, (*key, "headers_env"), headers, findings)
    for name, value in headers.items():
        if _looks_secret(name) or _CREDENTIALS.match(value):
            reason = (
                "looks like a secret, which must not stand in this file; put the value in an environment variable, "
                f'as in headers_env = {{ {shown(name)} = "SOME_VARIABLE" }}'
            )
            findings.add((*key, "headers", name), reason)
        elif not _HEADER_VALUE.fullmatch(value):
            findings.add((*key, "headers", name), "expected 1 to 1,000 printable ASCII characters")
    for place, names in (("headers", headers), ("headers_env", variables)):
        for name in names:
            if has_key and name.lower() == key_header:
                findings.add((*key, place, name), "carries the backend's key already, leave it out")
    _check_query(section.query or {}, (*key, "query"), findings)
    _check_names(section, dialect, key, findings)


def _check_header_names(names: Iterable[str], key: KeyPath, others: Iterable[str], findings: Findings) -> None:
    seen = {other.lower() for other in others}
    for name in names:
        if not _HEADER_NAME.fullmatch(name):
            findings.add((*key, name), "expected the name of a header")
        elif name.lower() in OWN_HEADERS:
            findings.add((*key, name), "is set by the service, leave it out")
        elif name.lower() in seen:
            findings.add((*key, name), "stands here twice, leave one out")
        seen.add(name.lower())


def _check_query(query: Mapping[str, str], key: KeyPath, findings: Findings) -> None:
    for name, value in query.items():
        if _looks_secret(name):
            findings.add(
                (*key, name),
                "looks like a secret, which must not stand in this file nor in an address; name the variable that "
                "holds it with api_key_env, and the header that carries it with key_header",
            )
        elif not _PARAMETER.fullmatch(name) or not _PARAMETER.fullmatch(value):
            findings.add((*key, name), "expected 1 to 1,000 ASCII characters without spaces")


def _check_names(section: BackendSection, dialect: Dialect, key: KeyPath, findings: Findings) -> None:
    """Check the settings of requests that are left out or called otherwise."""
    for place, name in enumerate(section.omit):
        if fault := _setting_fault(name, section.kind, dialect):
            findings.add((*key, "omit", place), fault)
    for name in section.rename or {}:
        if fault := _setting_fault(name, section.kind, dialect):
            findings.add((*key, "rename", name), fault)
        elif name in section.omit:
            findings.add((*key, "rename", name), "is in omit too, so it is not sent; leave one out")
    new_names = list((dialect.names | (section.rename or {})).values())
    for name, new_name in (section.rename or {}).items():
        if new_names.count(new_name) > 1:
            findings.add((*key, "rename", name), f"{shown(new_name)} is the name of another setting")


def _setting_fault(name: str, kind: str, dialect: Dialect) -> str | None:
    if name in dialect.names:
        return None
    if name in Settings.__struct_fields__:
        return f"{shown(name)} is never sent to a backend of kind {kind}, leave it out"
    meant = did_you_mean(name, dialect.names)
    advice = f"did you mean {shown(meant)}?" if meant else f"there are {listed(dialect.names)}"
    return f"there is no setting {shown(name)}, {advice}"


def _looks_secret(name: str) -> bool:
    return any(word in name.lower() for word in SECRET_WORDS)
