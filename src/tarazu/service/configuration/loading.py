"""Find the configuration, read it whole, and answer with it or with all that is wrong."""

import os
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.catalogue import Catalogue
from tarazu.service.configuration.addresses import (
    API_PATH,
    base_address_fault,
    database_fault,
    host_fault,
    network_fault,
    origin_fault,
)
from tarazu.service.configuration.catalogue import read_catalogue
from tarazu.service.configuration.listening_host import listening_address, listening_fault
from tarazu.service.configuration.opening import open_named
from tarazu.service.configuration.problems import ConfigurationError, Findings, Problem
from tarazu.service.configuration.schema import DatabaseSection, LogSettings, OperatorsSection, ServerSettings
from tarazu.service.configuration.sections import check_outermost, read_section
from tarazu.service.configuration.surroundings import Surroundings

CONFIGURATION_VARIABLE = "TARAZU_CONFIG"
DATABASE_VARIABLE = "TARAZU_DATABASE_URL"
"""Stands above [database] url; a password may be in it."""
CONFIGURATION_FILE = Path("tarazu.toml")
CONFIGURATION_BYTES_MAX = 1_048_576
KEY_PARTS_MAX = 32
"""Parts of a dotted key, as in `a.b.c`; no setting has ten."""
DIGITS_MAX = 4_300
"""Of an integer: what Python reads."""
DEMO_FILE = "demo.toml"

_TOML_PLACE = re.compile(r" \(at (?:line (?P<line>\d+), column \d+|end of document)\)$")
_NAME = r"""(?:"[^"\n]*+" | '[^'\n]*+' | (?<![A-Za-z0-9_-])[A-Za-z0-9_-]++)"""
_LONG_KEY = re.compile(rf"(?:{_NAME} [ \t]*+ \. [ \t]*+){{{KEY_PARTS_MAX}}}", re.VERBOSE)
_LONG_NUMBER = re.compile(rf"(?<![0-9_])[0-9](?:_?+[0-9]){{{DIGITS_MAX}}}")
_HEADER_FAULT = "at the end of a table declaration"


class Configuration(Struct, frozen=True, kw_only=True):
    """All that the operator decides. `path` is None for the built-in demo catalogue."""

    path: Path | None
    server: ServerSettings
    operators: OperatorsSection = OperatorsSection()
    database_url: str = "sqlite:///tarazu.db"
    books_place: str = "The books are where [database] url says."
    """What has named the database, for people."""
    catalogue: Catalogue
    logs: LogSettings = LogSettings()


def load(
    path: Path | None = None, environ: Mapping[str, str] = os.environ, *, needs_secrets: bool = True
) -> Configuration:
    """Read and check `path`, else $TARAZU_CONFIG, else ./tarazu.toml if it exists, else the demo catalogue.

    The backends' keys must be in the environment, unless `needs_secrets` is false: who works on the books alone asks no
    backend.

    Raises:
        ConfigurationError: with every problem that there is; nothing of such a configuration may be used.
    """
    path, text = _find(path, environ)
    file = DEMO_FILE if path is None else str(path)
    document = _parse(file, text)
    findings = Findings(file, text)
    surroundings = Surroundings(
        folder=Path() if path is None else path.parent, secrets=environ if needs_secrets else None
    )
    check_outermost(document, findings)
    configuration = Configuration(
        path=path,
        server=_server(document, findings),
        operators=read_section(OperatorsSection, document.get("operators", {}), ("operators",), findings),
        logs=read_section(LogSettings, document.get("logs", {}), ("logs",), findings),
        database_url=_database_url(document, environ, findings),
        books_place=_books_place(path, document, environ),
        catalogue=read_catalogue(document, surroundings, findings),
    )
    findings.raise_if_any()
    return configuration


def configuration_path(path: Path | None = None, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Name the file that `load` reads; None is the demo catalogue."""
    if path is not None:
        return path
    if named := environ.get(CONFIGURATION_VARIABLE):
        return Path(named)
    try:
        CONFIGURATION_FILE.lstat()
    except FileNotFoundError:
        return None
    except OSError:
        pass  # a folder that may not be looked into is no wish for the demo, nor is a broken link
    return CONFIGURATION_FILE


def looked_up(configuration: Configuration) -> Configuration:
    """Answer with the configuration whose host this machine knows.

    Raises:
        ConfigurationError: it knows no such name.
    """
    try:
        listening_address(configuration.server.host)
    except LookupError as error:
        file = DEMO_FILE if configuration.path is None else str(configuration.path)
        raise ConfigurationError((Problem(file, None, "server.host", str(error)),)) from None
    return configuration


def _find(path: Path | None, environ: Mapping[str, str]) -> tuple[Path | None, str]:
    found = configuration_path(path, environ)
    if found is None:
        return None, files("tarazu.service").joinpath(DEMO_FILE).read_text("utf-8")
    advice = f"check the environment variable {CONFIGURATION_VARIABLE}"
    if path is not None or found is CONFIGURATION_FILE:
        advice = "check the file" if path is None else "check the path"
    return found, _read(found, advice)


def _read(path: Path, advice: str) -> str:
    try:
        with open_named(path) as file:
            content = file.read(CONFIGURATION_BYTES_MAX + 1)
    except OSError as error:
        _fail(str(path), None, f"cannot be read ({error.strerror}), {advice}")
    if len(content) > CONFIGURATION_BYTES_MAX:
        _fail(str(path), None, f"is larger than {CONFIGURATION_BYTES_MAX:,} bytes, {advice}")
    try:
        return content.decode("utf-8-sig")  # some editors begin a file with a byte order mark
    except UnicodeDecodeError as error:
        _fail(str(path), content.count(b"\n", 0, error.start) + 1, "is not UTF-8 text, save it as UTF-8")


def _parse(file: str, text: str) -> dict[str, Any]:
    if long_key := _LONG_KEY.search(text):  # the parser's time grows with the square of its length
        line = text.count("\n", 0, long_key.start()) + 1
        _fail(file, line, f"is not usable TOML: a key has more than {KEY_PARTS_MAX} parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        _fail(file, None, "is not usable TOML: nested too deeply")
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _TOML_PLACE.search(message)
        line = text.count("\n") + 1
        if place and place["line"]:
            line = int(place["line"])
        reason = f"is not valid TOML: {_TOML_PLACE.sub('', message)}"
        if _HEADER_FAULT in message:
            reason += '; a name with a slash, colon or space in it is written in quotes, as in [models."openai/gpt-4o"]'
        _fail(file, line if place else None, reason)
    except ValueError:  # the interpreter's own, of a number that it would take long to read
        number = _LONG_NUMBER.search(text)
        line_of_number = None if number is None else text.count("\n", 0, number.start()) + 1
        _fail(file, line_of_number, f"is not usable TOML: a number has more than {DIGITS_MAX:,} digits")


def _server(document: dict[str, Any], findings: Findings) -> ServerSettings:
    server = read_section(ServerSettings, document.get("server", {}), ("server",), findings)
    for name, fault_of in (("trusted_proxies", network_fault), ("hosts", host_fault), ("cors_origins", origin_fault)):
        for place, text in enumerate(getattr(server, name)):
            if fault := fault_of(text):
                findings.add(("server", name, place), fault)
    if fault := listening_fault(server.host):
        findings.add(("server", "host"), fault)
    if server.public_url is None:
        return server
    if fault := base_address_fault(server.public_url, API_PATH):
        findings.add(("server", "public_url"), fault)
    return replace(server, public_url=server.public_url.rstrip("/"))


def _database_url(document: dict[str, Any], environ: Mapping[str, str], findings: Findings) -> str:
    url = read_section(DatabaseSection, document.get("database", {}), ("database",), findings).url
    if fault := database_fault(url):
        findings.add(("database", "url"), fault)
    named = environ.get(DATABASE_VARIABLE)
    if named and (fault := database_fault(named, may_hold_password=True)):
        findings.add_variable(DATABASE_VARIABLE, fault)
    return named or url


def _books_place(path: Path | None, document: dict[str, Any], environ: Mapping[str, str]) -> str:
    if environ.get(DATABASE_VARIABLE):
        return f"The books are where the environment variable {DATABASE_VARIABLE} says."
    if path is not None and "database" in document:
        return f"The books are where [database] url in {path} says."
    reason = "there is no configuration here" if path is None else f"{path} has no [database] url"
    return f"The books are tarazu.db in this folder, since {reason}."


def _fail(file: str, line: int | None, reason: str) -> NoReturn:
    raise ConfigurationError((Problem(file, line, None, reason),))
