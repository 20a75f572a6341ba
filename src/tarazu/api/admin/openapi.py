"""The contract of the admin API as an OpenAPI 3.1 document, made from its table of operations, and its page."""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from importlib.metadata import version
from typing import Any

import msgspec
from msgspec import Struct

from tarazu.api.admin.errors import AdminError, MemberDetails, ScopeDetails
from tarazu.api.admin.notes import NOTES
from tarazu.api.admin.route import Route
from tarazu.api.admin.routes import ROUTES
from tarazu.api.contract.errors import body_example, errors_table, responses_to
from tarazu.api.contract.headers import ALLOW, HEADERS, REQUEST_ID, RETRY_AFTER, WWW_AUTHENTICATE
from tarazu.api.contract.operations import UNROUTED_ERRORS, get_contract
from tarazu.api.contract.samples import absolute
from tarazu.api.contract.schemas import TEMPLATE, always_whole, reference
from tarazu.api.contract.structure import (
    CodeSample,
    Components,
    Example,
    Info,
    License,
    Link,
    MediaType,
    OpenApi,
    Operation,
    Parameter,
    PathItem,
    Reference,
    RequestBody,
    Response,
    Schema,
    SecurityScheme,
    Server,
    Tag,
)
from tarazu.api.contract.texts import text
from tarazu.api.docs_page import page_of
from tarazu.api.envelope import JSON
from tarazu.api.objects import DomainErrorEnvelope
from tarazu.api.openapi import DOCUMENTS_KEPT
from tarazu.domain.admin_tokens import Scope
from tarazu.service.checks import HISTORY_LENGTH_MAX
from tarazu.service.configuration.addresses import ADMIN_API_PATH

SECURITY_SCHEME = "AdminToken"
TAGS = (
    Tag("Accounts", "Who buys."),
    Tag("Keys", "What accounts call the service with."),
    Tag("Credits", "What changes balances beside requests."),
    Tag("Running it", "The switch, what is sold, how the backends are, the audit, the trail."),
    Tag("Contract", "The API, described for machines."),
)
SCOPE_TEXTS = {
    Scope.READ: "Look at everything, and audit the books.",
    Scope.ACCOUNTS: "The same; open and change accounts, issue and end keys, switch intake.",
    Scope.CREDITS: "The same as `read`; add credits and correct balances.",
}
EVERYWHERE = (
    AdminError.INVALID_REQUEST,
    AdminError.MISSING_TOKEN,
    AdminError.INVALID_TOKEN,
    AdminError.UNAVAILABLE,
)
"""What every operation can answer."""
WITH_A_BODY = (AdminError.INPUT_TOO_LARGE, AdminError.REQUEST_TIMEOUT, AdminError.UNSUPPORTED_MEDIA_TYPE)
UNROUTED = {name: AdminError[error.name] for name, error in UNROUTED_ERRORS.items()}
PATH_PARAMETERS = {
    "account_id": ("The account's `id`.", "acc_9Kx2QwErTyUiOp"),
    "key_id": ("The key's `id`.", "key_7Hq2Zt9LmXw4"),
    "request_id": ("The request's `id`, or the `X-Request-Id` of its answer.", "req_0V2yJ8kQmZ4tB7wXc1NfRpL"),
}
QUERY_EXAMPLES = {
    "search": "ada@example.com",
    "limit": 100,
    "before": "act_0V2yJ8kQm4tB7wXc1NfRpL2",
    "account_id": "acc_9Kx2QwErTyUiOp",
}

_ERROR_OBJECTS = (DomainErrorEnvelope, MemberDetails, ScopeDetails)


def admin_document(base_url: str = ADMIN_API_PATH) -> OpenApi:
    """Make the document. `base_url` is where callers reach the API: a whole address, or a path on the same server."""
    return OpenApi(
        info=Info(
            title="Tarazu Admin API",
            version=version("tarazu"),
            summary="Accounts, keys and credits, for programs of whoever runs the service",
            description=_introduction(),
            license=License("Apache 2.0", "Apache-2.0"),
        ),
        servers=(Server(base_url),),
        security=({SECURITY_SCHEME: ()},),
        tags=TAGS,
        paths=_paths(absolute(base_url)),
        components=Components(
            schemas=_schemas(),
            headers={name: HEADERS[name] for name in (REQUEST_ID, RETRY_AFTER, WWW_AUTHENTICATE, ALLOW)},
            responses={
                name: response
                for name, error in UNROUTED.items()
                for response in responses_to([error], NOTES, _headers).values()
            },
            security_schemes={
                SECURITY_SCHEME: SecurityScheme(
                    type="http",
                    scheme="bearer",
                    bearer_format="tra_ and 50 letters and digits",
                    description="An admin token: `Authorization: Bearer <ADMIN_TOKEN>`.",
                )
            },
        ),
    )


@lru_cache(maxsize=DOCUMENTS_KEPT)
def admin_document_json(base_url: str = ADMIN_API_PATH) -> bytes:
    """Make the document as JSON, once for each base address."""
    return msgspec.json.encode(admin_document(base_url))


@lru_cache(maxsize=DOCUMENTS_KEPT)
def admin_html(base_url: str = ADMIN_API_PATH) -> bytes:
    """Make the page for people, once for each base address."""
    return page_of(admin_document(base_url), ("/admin/", "Operators' pages"))


def _introduction() -> str:
    scopes = "\n".join(f"| `{scope}` | {meaning} |" for scope, meaning in SCOPE_TEXTS.items())
    return text(
        "admin_introduction",
        scopes_table=f"| Scope | Allows |\n|---|---|\n{scopes}",
        page_length_max=f"{HISTORY_LENGTH_MAX:,}",
        domain_error=body_example(AdminError.INVALID_REQUEST, NOTES, "unknown_member"),
        errors_table=errors_table(NOTES),
    )


def _paths(base_url: str) -> dict[str, PathItem]:
    by_path: dict[str, dict[str, Operation]] = {}
    for route in ROUTES:
        by_path.setdefault(route.path, {})[route.method.lower()] = _operation(route, base_url)
    items = {path: PathItem(**operations) for path, operations in by_path.items()}
    return items | {"/openapi.json": PathItem(get=get_contract(base_url))}


def _operation(route: Route, base_url: str) -> Operation:
    return Operation(
        operation_id=route.operation_id,
        tags=(route.tag,),
        summary=route.summary,
        description=f"{route.description}\n\nNeeds the scope `{route.scope}`.",
        parameters=(*map(_path_parameter, re.findall(r"{(\w+)}", route.path)), *_query_parameters(route.query)),
        request_body=None if route.body is None else _request_body(route.body),
        responses=_successes(route) | responses_to(_errors(route), NOTES, _headers),
        code_samples=(_curl(route, base_url),),
    )


def _errors(route: Route) -> tuple[AdminError, ...]:
    scope = () if route.scope is Scope.READ else (AdminError.INSUFFICIENT_SCOPE,)
    return (*EVERYWHERE, *scope, *(() if route.body is None else WITH_A_BODY), *route.errors)


def _path_parameter(name: str) -> Parameter:
    description, example = PATH_PARAMETERS[name]
    return Parameter(
        name=name,
        location="path",
        description=description,
        required=True,
        schema={"type": "string", "minLength": 1},
        examples={"example": Example("An id", example)},
    )


def _query_parameters(kind: type[Struct]) -> Iterable[Parameter]:
    for name, schema in _component(kind)["properties"].items():
        rest = {key: value for key, value in schema.items() if key not in ("description", "anyOf", "default")}
        given: Schema = next(iter(schema.get("anyOf", ())), {})  # the other one is null, which no query can hold
        yield Parameter(
            name=name,
            location="query",
            description=schema["description"],
            required=False,
            schema=given | rest,
            examples={"example": Example("A value", QUERY_EXAMPLES[name])},
        )


def _request_body(body: Struct) -> RequestBody:
    return RequestBody(
        description="A JSON object in UTF-8, at most 1 MiB, with a Content-Type that says so.",
        required=True,
        content={
            JSON: MediaType(
                reference(type(body).__name__), {"example": Example("An example", msgspec.to_builtins(body))}
            )
        },
    )


def _successes(route: Route) -> dict[str, Response]:
    descriptions = {HTTPStatus.OK: "Done.", HTTPStatus.CREATED: "Created."}
    if len(route.statuses) > 1:
        descriptions[HTTPStatus.OK] = "It was created before, by the same reference; nothing was changed."
    return {
        str(status.value): Response(
            description=descriptions[status],
            headers=_headers(status),
            content={
                JSON: MediaType(
                    reference(type(route.answer).__name__),
                    {"example": Example("An example", msgspec.to_builtins(route.answer))},
                )
            },
            links={operation: _link(operation, parameter) for operation, parameter in route.leads_to.items()},
        )
        for status in route.statuses
    }


def _link(operation_id: str, parameter: str) -> Link:
    return Link(
        operation_id=operation_id,
        parameters={parameter: "$response.body#/id"},
        description="What was created.",
    )


def _headers(status: int) -> dict[str, Reference]:
    of_status = {
        HTTPStatus.UNAUTHORIZED: WWW_AUTHENTICATE,
        HTTPStatus.METHOD_NOT_ALLOWED: ALLOW,
        HTTPStatus.SERVICE_UNAVAILABLE: RETRY_AFTER,
    }
    names = [REQUEST_ID, *(name for of, name in of_status.items() if of == status)]
    return {name: Reference(f"#/components/headers/{name}") for name in names}


def _curl(route: Route, base_url: str) -> CodeSample:
    path = re.sub(r"{(\w+)}", lambda name: PATH_PARAMETERS[name[1]][1], route.path)
    method = "" if route.method == "GET" else f" -X {route.method}"
    lines = [f"curl{method} {base_url}{path}", '-H "Authorization: Bearer $TARAZU_ADMIN_TOKEN"']
    if route.body is not None:
        lines += ['-H "Content-Type: application/json"', f"-d '{msgspec.json.encode(route.body).decode()}'"]
    return CodeSample("shell", "curl", " \\\n  ".join(lines))


def _schemas() -> dict[str, Schema]:
    bodies = [type(route.body) for route in ROUTES if route.body is not None]
    answers = [*(type(route.answer) for route in ROUTES), *_ERROR_OBJECTS]
    _, of_answers = msgspec.json.schema_components(answers, ref_template=TEMPLATE)
    return {body.__name__: _component(body) for body in bodies} | {
        name: always_whole(schema) for name, schema in of_answers.items()
    }


def _component(kind: type[Struct]) -> Schema:
    """Make the schema of what is sent. An enumeration stands where it is used, since it is no object of its own."""
    _, schemas = msgspec.json.schema_components([kind], ref_template=TEMPLATE)
    enumerations = {TEMPLATE.format(name=name): schema["enum"] for name, schema in schemas.items() if "enum" in schema}
    schema = schemas[kind.__name__]
    members = {name: _inlined(member, enumerations) for name, member in schema["properties"].items()}
    return {**schema, "properties": members}


def _inlined(member: Schema, enumerations: dict[str, Any]) -> Schema:
    rest = {key: value for key, value in member.items() if key not in ("$ref", "allOf")}
    named = [member, *member.get("allOf", ())]
    values = [enumerations[each["$ref"]] for each in named if each.get("$ref") in enumerations]
    return {**rest, "enum": values[0]} if values else member
