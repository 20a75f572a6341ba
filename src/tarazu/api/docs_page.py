"""The pages that explain the API and its clients to people. They load nothing, from anywhere."""

from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tarazu.api.contract.operations import UNROUTED_ERRORS
from tarazu.api.contract.samples import DEFAULT_ORIGIN, absolute
from tarazu.api.contract.structure import Info, OpenApi, Operation, Reference
from tarazu.api.openapi import DOCUMENTS_KEPT, document
from tarazu.api.prose import block, inline, sections
from tarazu.api.schema_text import body_text, members, parameters, type_text
from tarazu.service.configuration.addresses import API_PATH, CLIENTS_PATH

STYLE = (files("tarazu.api") / "templates" / "docs.css").read_text(encoding="utf-8")
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
    f"style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
)
"""Lets the page use its own style sheet and nothing else; the browser holds it to that."""
Link = tuple[str, str]
"""The address and the name of a page."""


@lru_cache(maxsize=DOCUMENTS_KEPT)
def html(base_url: str = API_PATH) -> bytes:
    """Make the page, once for each base address (see `openapi.document`)."""
    return page_of(document(base_url), ("/panel/", "Panel"), (CLIENTS_PATH, "Clients"))


@lru_cache(maxsize=DOCUMENTS_KEPT)
def clients_html(base_url: str = API_PATH) -> bytes:
    """Make the page about clients of docs/clients.md, once for each base address, which its snippets then have."""
    written = (files("tarazu.api") / "texts" / "clients.md").read_text(encoding="utf-8")
    title, _, text = written.removeprefix("# ").partition("\n")
    summary, _, text = text.strip().partition(".\n")
    info = document(base_url).info
    return _rendered(
        "clients.html",
        text.replace(DEFAULT_ORIGIN + API_PATH, absolute(base_url)),
        info,
        ("/docs", info.title),
        ("/panel/", "Panel"),
        title=title,
        summary=summary,
    )


def page_of(contract: OpenApi, *links: Link) -> bytes:
    """Make the page of a contract; `links` lead to the pages beside it."""
    info = contract.info
    return _rendered(
        "docs.html", info.description, info, *links, contract=contract, title=info.title, summary=info.summary
    )


def _rendered(template: str, text: str, info: Info, *links: Link, **values: Any) -> bytes:
    introduction, guide = sections(text)
    page = (
        _environment()
        .get_template(template)
        .render(
            links=links,
            introduction=introduction,
            guide=guide,
            version=info.version,
            license=info.license.name,
            style=Markup(STYLE),  # noqa: S704 - the package's own file
            content_security_policy=CONTENT_SECURITY_POLICY,
            **values,
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
