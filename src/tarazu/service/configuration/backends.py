"""Read one backend of a model: what it is, where it is, and how it is asked."""

import ssl
from pathlib import Path

from tarazu.backends.dialect import Dialect
from tarazu.backends.kinds import KINDS
from tarazu.domain.catalogue import LOCAL, BackendSpec
from tarazu.service.configuration.additions import check_additions
from tarazu.service.configuration.addresses import base_address_fault
from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.problems import Findings
from tarazu.service.configuration.schema import BackendSection
from tarazu.service.configuration.secrets import check_secrets
from tarazu.service.configuration.sections import read_section
from tarazu.service.configuration.surroundings import Surroundings

KEY_SETTINGS = ("api_key_env", "api_key_file", "key_header")
REMOTE_SETTINGS = ("url", *KEY_SETTINGS, "headers", "headers_env", "query", "ca_file", "omit", "rename")
"""What only a server somewhere has."""


def read_backend(
    table: dict[str, object], key: KeyPath, surroundings: Surroundings, findings: Findings
) -> BackendSpec | None:
    """Make the backend from its table; None when its kind is none that exists, which is noted."""
    section = read_section(BackendSection, table, key, findings)
    if section.kind == LOCAL:
        return _local(section, table, key, surroundings, findings)
    if section.kind in KINDS:
        return _remote(section, KINDS[section.kind], key, surroundings, findings)
    return None  # what is no kind has been noted with the section


def _remote(
    section: BackendSection, dialect: Dialect, key: KeyPath, surroundings: Surroundings, findings: Findings
) -> BackendSpec:
    _check_url(section, dialect, key, findings)
    if section.model is None:
        findings.add((*key, "model"), "is missing, expected the name by which the server knows the model")
    check_secrets(section, key, surroundings, findings)
    check_additions(section, dialect, key, findings)
    ca_file = None if section.ca_file is None else surroundings.path(section.ca_file)
    if ca_file is not None and (fault := _ca_fault(ca_file)):
        findings.add((*key, "ca_file"), fault)
    return BackendSpec(
        kind=section.kind,
        url=None if section.url is None else section.url.rstrip("/"),
        model=section.model,
        api_key_env=section.api_key_env,
        api_key_file=None if section.api_key_file is None else str(surroundings.path(section.api_key_file)),
        key_header=section.key_header,
        headers=section.headers or {},
        headers_env=section.headers_env or {},
        query=section.query or {},
        ca_file=None if ca_file is None else str(ca_file),
        omit=section.omit,
        rename=section.rename or {},
        timeout_s=section.timeout_s,
        weight=section.weight,
        priority=section.priority,
        max_concurrency=section.max_concurrency,
        enabled=section.enabled,
    )


def _local(
    section: BackendSection,
    table: dict[str, object],
    key: KeyPath,
    surroundings: Surroundings,
    findings: Findings,
) -> BackendSpec:
    for name in REMOTE_SETTINGS:
        if name in table:
            why = "a local model needs no key" if name in KEY_SETTINGS else "a local model runs inside the service"
            findings.add((*key, name), f"{why}, leave {name} out")
    model = section.model
    if model is not None:
        path = surroundings.path(model)
        if not _is_file(path):
            findings.add(
                (*key, "model"),
                f"there is no file {path}; expected the path of a GGUF file, or no model for the embedded one",
            )
        model = str(path)
    return BackendSpec(
        kind=LOCAL,
        model=model,
        timeout_s=section.timeout_s,
        weight=section.weight,
        priority=section.priority,
        max_concurrency=section.max_concurrency,
        enabled=section.enabled,
    )


def _check_url(section: BackendSection, dialect: Dialect, key: KeyPath, findings: Findings) -> None:
    if section.url is not None:
        if fault := base_address_fault(section.url, *_path_beginnings(dialect)):
            findings.add((*key, "url"), fault)
    elif dialect.url is None:
        findings.add(
            (*key, "url"),
            'is missing, expected the address of the server\'s API, as in "https://api.openai.com/v1"',
        )
    elif section.api_key_env is None and section.api_key_file is None and not section.headers_env:
        findings.add(
            (*key, "api_key_env"),
            f"is missing, expected the name of the environment variable that holds the key for {dialect.url}",
        )


def _path_beginnings(dialect: Dialect) -> list[str]:
    """List what is too much at the end of an address: the path that is added to it, and each beginning of that."""
    parts = dialect.path.split("/")[1:]
    return ["/" + "/".join(parts[:length]) for length in range(len(parts), 0, -1)]


def _ca_fault(path: Path) -> str | None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cafile=path)
    except ssl.SSLError:
        return f"the file {path} holds no certificates in PEM form"
    except OSError as error:
        return f"the file {path} cannot be read ({error.strerror}), check the path"
    return None


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be entered, a name that is too long
        return False
