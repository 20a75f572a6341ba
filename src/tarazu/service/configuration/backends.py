"""Read one backend of a model: where it is, and whether its secret is in the environment."""

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from tarazu.domain.catalogue import BackendSpec
from tarazu.service.configuration.addresses import COMPLETIONS_PATH, base_address_fault
from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.problems import Findings
from tarazu.service.configuration.schema import BackendSection
from tarazu.service.configuration.sections import read_section

_HEADER_TEXT = re.compile(r"[!-~]+", re.ASCII)


class Surroundings(Struct, frozen=True):
    """What a configuration refers to: the folder that its paths start in, and the secrets.

    `secrets` is the environment that must hold the backends' keys; None when they are not asked for.
    """

    folder: Path
    secrets: Mapping[str, str] | None


def read_backend(
    table: dict[str, object], key: KeyPath, surroundings: Surroundings, findings: Findings
) -> BackendSpec | None:
    """Make the backend from its table; None when its kind is none that exists, which is noted."""
    section = read_section(BackendSection, table, key, findings)
    match section.kind:
        case "openai":
            return _openai(section, key, surroundings, findings)
        case "local":
            return _local(section, key, surroundings, findings)
        case "anthropic" | "gemini":
            findings.add(
                (*key, "kind"),
                f'"{section.kind}" is not yet supported; use "openai" for a server with an OpenAI-compatible API',
            )
    return None  # what is no kind has been noted with the section


def api_key(spec: BackendSpec, environ: Mapping[str, str]) -> str | None:
    """Give the backend's secret, without white space around it, or None when it needs none.

    Raises:
        KeyError: its variable is not in `environ`; loading has checked that it was in the one given there.
    """
    return None if spec.api_key_env is None else environ[spec.api_key_env].strip()


def _openai(section: BackendSection, key: KeyPath, surroundings: Surroundings, findings: Findings) -> BackendSpec:
    url = section.url
    if url is None:
        findings.add(
            (*key, "url"),
            'is missing, expected the address of the server\'s API, as in "https://api.openai.com/v1"',
        )
    elif fault := base_address_fault(url, must_not_end_with=COMPLETIONS_PATH):
        findings.add((*key, "url"), fault)
    if section.model is None:
        findings.add((*key, "model"), "is missing, expected the name by which the server knows the model")
    _check_secret(section, key, surroundings, findings)
    return BackendSpec(
        kind="openai",
        url=None if url is None else url.rstrip("/"),
        model=section.model,
        api_key_env=section.api_key_env,
        weight=section.weight,
        priority=section.priority,
        max_concurrency=section.max_concurrency,
    )


def _local(section: BackendSection, key: KeyPath, surroundings: Surroundings, findings: Findings) -> BackendSpec:
    if section.url is not None:
        findings.add((*key, "url"), "a local model runs inside the service, leave url out")
    if section.api_key_env is not None:
        findings.add((*key, "api_key_env"), "a local model needs no key, leave api_key_env out")
    model = section.model
    if model is not None:
        path = (surroundings.folder / model).absolute()
        if not _is_file(path):
            findings.add(
                (*key, "model"),
                f"there is no file {path}; expected the path of a GGUF file, or no model for the embedded one",
            )
        model = str(path)
    return BackendSpec(
        kind="local",
        model=model,
        weight=section.weight,
        priority=section.priority,
        max_concurrency=section.max_concurrency,
    )


def _check_secret(section: BackendSection, key: KeyPath, surroundings: Surroundings, findings: Findings) -> None:
    name = section.api_key_env
    if name is None or surroundings.secrets is None:
        return
    secret = surroundings.secrets.get(name, "").strip()
    if not secret:
        findings.add(
            (*key, "api_key_env"),
            f"the environment variable {name} is not set or empty; set it to the backend's key before the start",
        )
    elif not _HEADER_TEXT.fullmatch(secret):
        findings.add(
            (*key, "api_key_env"),
            f"the environment variable {name} holds spaces or characters that no key has; set it to the key alone",
        )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be entered, a name that is too long
        return False
