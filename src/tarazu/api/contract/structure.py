"""The objects of an OpenAPI 3.1 document, as far as the contract uses them."""

from typing import Any

from msgspec import Struct, field

Schema = dict[str, Any]
"""A JSON Schema: an open format, so it stays as it is written."""


class License(Struct, frozen=True, omit_defaults=True):
    """Under which terms the document may be used."""

    name: str
    identifier: str


class Info(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the API is; `description` is CommonMark, and so are all others."""

    title: str
    version: str
    summary: str
    description: str
    license: License


class Server(Struct, frozen=True, omit_defaults=True):
    """The base address of all paths."""

    url: str


class Tag(Struct, frozen=True, omit_defaults=True):
    """A group of operations."""

    name: str
    description: str


class Reference(Struct, frozen=True, omit_defaults=True):
    """Stands for an object of the document's components."""

    ref: str = field(name="$ref")


class Example(Struct, frozen=True, omit_defaults=True):
    """One value, as it can be sent or answered."""

    summary: str
    value: Any


class MediaType(Struct, frozen=True, omit_defaults=True):
    """A body: its schema, and examples by name."""

    schema: Schema
    examples: dict[str, Example]


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A header of an answer."""

    description: str
    required: bool = False
    schema: Schema
    example: str | int


class Link(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What to call next with a value of an answer."""

    operation_id: str = field(name="operationId")
    parameters: dict[str, str]
    description: str


class Response(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One status that an operation answers with, and what comes with it."""

    description: str
    headers: dict[str, Reference]
    content: dict[str, MediaType]
    links: dict[str, Link] = {}


class Parameter(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of the path or of the query, or a header."""

    name: str
    location: str = field(name="in")
    description: str
    required: bool
    schema: Schema
    examples: dict[str, Example]


class RequestBody(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The body of a request."""

    description: str
    required: bool
    content: dict[str, MediaType]


class CodeSample(Struct, frozen=True, omit_defaults=True):
    """How a caller writes the request; `lang` names the language for highlighting, `label` for people."""

    lang: str
    label: str
    source: str


class Operation(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One method of one path. `security` is the document's own where it is None; empty: no key is needed."""

    operation_id: str = field(name="operationId")
    tags: tuple[str, ...]
    summary: str
    description: str
    parameters: tuple[Parameter, ...] = ()
    request_body: RequestBody | None = field(default=None, name="requestBody")
    responses: dict[str, Response]
    security: tuple[dict[str, tuple[str, ...]], ...] | None = None
    code_samples: tuple[CodeSample, ...] = field(default=(), name="x-codeSamples")


class PathItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The methods of one path."""

    get: Operation | None = None
    put: Operation | None = None
    post: Operation | None = None
    patch: Operation | None = None

    def operations(self) -> dict[str, Operation]:
        """List the operations by method, in capital letters."""
        methods = {"GET": self.get, "PUT": self.put, "POST": self.post, "PATCH": self.patch}
        return {method: operation for method, operation in methods.items() if operation is not None}


class SecurityScheme(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a caller proves who it is."""

    type: str
    scheme: str
    bearer_format: str = field(name="bearerFormat")
    description: str


class Components(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What other parts of the document refer to."""

    schemas: dict[str, Schema]
    headers: dict[str, Header]
    responses: dict[str, Response]
    security_schemes: dict[str, SecurityScheme] = field(name="securitySchemes")


class OpenApi(Struct, frozen=True, kw_only=True):
    """The whole document."""

    openapi: str = "3.1.0"
    info: Info
    servers: tuple[Server, ...]
    security: tuple[dict[str, tuple[str, ...]], ...]
    tags: tuple[Tag, ...]
    paths: dict[str, PathItem]
    components: Components
