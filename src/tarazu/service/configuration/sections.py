"""Turn one table of the file into its Struct, noting everything that is wrong with it."""

from collections.abc import Iterable
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.structs import FieldInfo, fields

from tarazu.service.configuration.lines import KeyPath
from tarazu.service.configuration.problems import Findings, did_you_mean, dotted, listed, quoted_key, shown
from tarazu.service.configuration.schema import SECTIONS

SECRET_NAMES = frozenset({"api_key", "apikey", "auth", "authorization", "key", "passwd", "password", "secret", "token"})
_USE_ANOTHER_PLACE = (
    "a secret must not stand in this file; put it in an environment variable and name that with api_key_env, "
    'as in api_key_env = "OPENAI_API_KEY", or in a file and name that with api_key_file'
)
_NAMED_SECTIONS = ("plans", "models")
_NAME_DEPTH = 2
"""How long the key of a named section is: `plans.NAME`, `models."ID"`."""

SectionT = TypeVar("SectionT", bound=Struct)


def read_section(kind: type[SectionT], table: object, key: KeyPath, findings: Findings) -> SectionT:
    """Make the section from its table. A setting that is wrong is noted and has its default in the answer.

    So the checks that follow can go on and find more; the answer is good once `findings` has raised nothing.
    """
    if not isinstance(table, dict):
        findings.add(key, f"expected a table, which begins with the line [{dotted(key)}], got {shown(table)}")
        return kind()
    known = {field.name: field for field in fields(kind)}
    unknown = [name for name in table if name not in known]
    for name in unknown:
        findings.add((*key, name), _unknown(name, table[name], key, known))
    values: dict[str, Any] = {}
    for name, field in known.items():
        if name in table:
            _convert(field, table[name], key, findings, values)
        elif field.default is UNSET and not any(_is_cut_name(table[other], key) for other in unknown):
            findings.add((*key, name), f"is missing, expected {_meta(field.type).description}")
    return kind(**values)


def read_tables(document: dict[str, Any], name: str, findings: Findings) -> dict[str, object]:
    """Read a section that holds one table for each name."""
    tables = document.get(name, {})
    if isinstance(tables, dict):
        return tables
    findings.add((name,), f"expected tables, each headed [{name}.NAME], got {shown(tables)}")
    return {}


def check_outermost(document: dict[str, Any], findings: Findings) -> None:
    """Note every outermost key that is no section."""
    for name in document:
        if name in SECTIONS:
            continue
        homes = [section for section, kind in SECTIONS.items() if name in kind.__struct_fields__]
        meant = did_you_mean(name, SECTIONS)
        if _is_secret(name):
            reason = _USE_ANOTHER_PLACE
        elif homes and homes[0] not in _NAMED_SECTIONS:
            reason = f"stands outside its section, move it under [{homes[0]}]"
        elif meant:
            reason = f"unknown section, did you mean {meant}?"
        else:
            reason = f"unknown section, there are {listed(SECTIONS)}"
        findings.add((name,), reason)


def _unknown(name: str, value: object, key: KeyPath, known: Iterable[str]) -> str:
    if _is_secret(name):
        return _USE_ANOTHER_PLACE
    if _is_cut_name(value, key):
        header = f"{key[0]}.{quoted_key(f'{key[1]}.{name}')}"
        return f"unknown setting; a name with a dot in it is written in quotes, as in [{header}]"
    meant = did_you_mean(name, known)
    if meant:
        return f"unknown setting, did you mean {meant}?"
    return f"unknown setting, there are {listed(known)}"


def _is_secret(name: str) -> bool:
    return name.casefold().replace("-", "_") in SECRET_NAMES


def _is_cut_name(value: object, key: KeyPath) -> bool:
    """Tell whether a table is likely the second half of a name with a dot: [models.gpt-4.1] without quotes."""
    return isinstance(value, dict) and len(key) == _NAME_DEPTH and key[0] in _NAMED_SECTIONS


def _convert(field: FieldInfo, value: object, key: KeyPath, findings: Findings, values: dict[str, Any]) -> None:
    try:
        values[field.name] = msgspec.convert(value, field.type)
    except msgspec.ValidationError:
        findings.add((*key, field.name), _mismatch(_meta(field.type), value))


def _mismatch(meta: Meta, value: object) -> str:
    extra = meta.extra or {}
    if extra.get("hidden"):
        return f"expected {meta.description}; what stands there is not shown, since it may be a secret"
    if isinstance(value, int | float) and meta.le is not None and value > meta.le:
        return f"expected {extra.get('too_large', meta.description)}, got {shown(value)}"
    return f"expected {meta.description}, got {shown(value)}"


def _meta(annotation: Any) -> Meta:
    """Find the one Meta of a setting's type, `Annotated[…]` or `Annotated[…] | None`."""
    if get_origin(annotation) is Annotated:
        return next(part for part in annotation.__metadata__ if isinstance(part, Meta))
    return next(_meta(member) for member in get_args(annotation) if member is not type(None))
