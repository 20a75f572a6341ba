"""A backend's secrets: checked when the configuration is loaded, read when the backend is made, never shown."""

import re
from collections.abc import Mapping
from pathlib import Path

from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.opening import open_named
from tarazu.service.configuration.problems import Findings
from tarazu.service.configuration.schema import BackendSection
from tarazu.service.configuration.surroundings import Surroundings

SECRET_BYTES_MAX = 16_384

_KEY = re.compile(r"[!-~]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[ -~]+", re.ASCII)


class _SecretError(Exception):
    """Says what is wrong with the place of a secret, without the secret."""


def check_secrets(section: BackendSection, key: KeyPath, surroundings: Surroundings, findings: Findings) -> None:
    """Note every secret that is not where the backend says; one that is not asked needs none."""
    if section.api_key_env is not None and section.api_key_file is not None:
        findings.add((*key, "api_key_file"), "the key has one place, leave out this or api_key_env")
    environ = surroundings.secrets
    if environ is None or not section.enabled:
        return
    try:
        if section.api_key_env is not None:
            _key_in_environment(section.api_key_env, environ)
    except _SecretError as error:
        findings.add((*key, "api_key_env"), str(error))
    try:
        if section.api_key_file is not None:
            _key_in_file(surroundings.path(section.api_key_file))
    except _SecretError as error:
        findings.add((*key, "api_key_file"), str(error))
    for header, variable in (section.headers_env or {}).items():
        try:
            _header_value(variable, environ)
        except _SecretError as error:
            findings.add((*key, "headers_env", header), str(error))


def read_secrets(spec: BackendSpec, environ: Mapping[str, str]) -> Secrets:
    """Get a backend's secrets, without white space around them.

    Raises:
        ValueError: one is not there any more; loading has checked that it was.
    """
    try:
        api_key = None
        if spec.api_key_env is not None:
            api_key = _key_in_environment(spec.api_key_env, environ)
        elif spec.api_key_file is not None:
            api_key = _key_in_file(Path(spec.api_key_file))
        headers = {header: _header_value(variable, environ) for header, variable in spec.headers_env.items()}
    except _SecretError as error:
        raise ValueError(str(error)) from None
    return Secrets(api_key=api_key, headers=headers)


def _key_in_environment(name: str, environ: Mapping[str, str]) -> str:
    secret = environ.get(name, "").strip()
    if not secret:
        raise _SecretError(
            f"the environment variable {name} is not set or empty; set it to the backend's key before the start"
        )
    if not _KEY.fullmatch(secret):
        raise _SecretError(
            f"the environment variable {name} holds spaces or characters that no key has; set it to the key alone"
        )
    return secret


def _key_in_file(path: Path) -> str:
    """Read a key. What is wrong never names the path: a key may stand there by mistake."""
    try:
        with open_named(path) as file:
            content = file.read(SECRET_BYTES_MAX + 1)
    except OSError as error:
        raise _SecretError(f"the file cannot be read ({error.strerror}), check its path") from None
    secret = content.decode("ascii", errors="replace").strip()
    if not secret:
        raise _SecretError("the file is empty; write the backend's key into it")
    if len(content) > SECRET_BYTES_MAX or not _KEY.fullmatch(secret):
        raise _SecretError("the file holds more than one line with a key; write the key alone into it")
    return secret


def _header_value(name: str, environ: Mapping[str, str]) -> str:
    value = environ.get(name, "").strip()
    if not value:
        raise _SecretError(
            f"the environment variable {name} is not set or empty; set it to the header's value before the start"
        )
    if not _HEADER_VALUE.fullmatch(value):
        raise _SecretError(f"the environment variable {name} holds characters that no header may have")
    return value
