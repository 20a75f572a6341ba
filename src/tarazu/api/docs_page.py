"""The page that explains the API to people, rendered from the contract. It loads nothing, from anywhere."""

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tarazu.api.contract.operations import UNROUTED_ERRORS
from tarazu.api.contract.structure import OpenApi, Operation, Reference
from tarazu.api.openapi import DOCUMENTS_KEPT, document
from tarazu.api.prose import block, inline, sections
from tarazu.api.schema_text import body_text, members, parameters, type_text
from tarazu.service.configuration.addresses import API_PATH

STYLE = (files("tarazu.api") / "templates" / "docs.css").read_text(encoding="utf-8")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
"""Lets the page use its own style sheet and nothing else; the browser holds it to that."""


@lru_cache(maxsize=DOCUMENTS_KEPT)
def html(base_url: str = API_PATH) -> bytes:
    """Make the page, once for each base address (see `openapi.document`)."""
    return page_of(document(base_url), home=("/panel/", "Panel"))


def page_of(contract: OpenApi, *, home: tuple[str, str]) -> bytes:
    """Make the page of a contract; `home` is the address and the name of the pages beside it."""
    introduction, guide = sections(contract.info.description)
    page = (
        _environment()
        .get_template("docs.html")
        .render(
            contract=contract,
            home=home,
            introduction=introduction,
            guide=guide,
            style=Markup(STYLE),  # noqa: S704 - the package's own file
            content_security_policy=CONTENT_SECURITY_POLICY,
        )
    )
    return page.encode()


def _environment() -> Environment:
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("tarazu.api"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        block=block, inline=inline, json=_json, type_text=type_text, body_text=body_text, needs_key=_needs_key
    )
    environment.globals.update(members=members, parameters=parameters, component=_component_name, status_of=_status_of)
    return environment


def _json(value: Any) -> str:
    """Write an example as it is read best."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _status_of(name: str) -> str:
    """Tell the status of an answer that belongs to no operation."""
    return str(UNROUTED_ERRORS[name].value.status)


def _needs_key(operation: Operation) -> bool:
    return operation.security is None


def _component_name(reference: Reference) -> str:
    return reference.ref.rpartition("/")[2]
