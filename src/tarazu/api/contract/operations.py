"""The operations of the API: what each takes, and every answer that it can give."""

from http import HTTPStatus
from typing import Any

from tarazu.api.contract import examples, samples
from tarazu.api.contract.chat_request import CHAT_REQUEST
from tarazu.api.contract.errors import error_responses
from tarazu.api.contract.headers import headers_of
from tarazu.api.contract.schemas import reference
from tarazu.api.contract.structure import (
    Example,
    Link,
    MediaType,
    Operation,
    Parameter,
    PathItem,
    RequestBody,
    Response,
    Schema,
    Tag,
)
from tarazu.api.contract.texts import text
from tarazu.api.envelope import JSON
from tarazu.api.objects import ChatCompletion, ModelList, ModelObject, UsageObject
from tarazu.domain.errors import Error
from tarazu.domain.idempotency import KEY_CHARACTERS_MAX

CALLER_ERRORS = (Error.MISSING_API_KEY, Error.INVALID_API_KEY, Error.ACCOUNT_UNAVAILABLE, Error.SYSTEM_STOPPED)
"""What every operation that needs a key can answer."""
CHAT_ERRORS = (
    *CALLER_ERRORS,
    Error.RATE_LIMIT_EXCEEDED,
    Error.UNSUPPORTED_MEDIA_TYPE,
    Error.REQUEST_TIMEOUT,
    Error.INVALID_REQUEST,
    Error.IDEMPOTENCY_CONFLICT,
    Error.IDEMPOTENCY_MISMATCH,
    Error.STREAMING_NOT_SUPPORTED,
    Error.MESSAGES_REQUIRED,
    Error.INPUT_TOO_LARGE,
    Error.UPGRADE_REQUIRED,
    Error.MODEL_NOT_FOUND,
    Error.API_CREDITS_EXHAUSTED,
    Error.UPSTREAM_ERROR,
)
UNROUTED_ERRORS = {
    "NotFound": Error.NOT_FOUND,
    "MethodNotAllowed": Error.METHOD_NOT_ALLOWED,
    "HeadersTooLarge": Error.HEADERS_TOO_LARGE,
    "InternalError": Error.INTERNAL_ERROR,
}
"""What is answered outside of all operations, by the name of its response in the components."""

TAGS = (
    Tag("Chat", "Replies from a language model."),
    Tag("Models", "What the key can use, and what it costs."),
    Tag("Usage", "Quota, balance and rate limit."),
    Tag("Contract", "The API, described for machines."),
)
NO_SECURITY = ()


def paths(base_url: str) -> dict[str, PathItem]:
    """Make the operations, by path; `base_url` stands in their code samples."""
    return {
        "/chat/completions": PathItem(post=_create_chat_completion(base_url)),
        "/models": PathItem(get=_list_models(base_url)),
        "/models/{model_id}": PathItem(get=_retrieve_model(base_url)),
        "/usage": PathItem(get=_get_usage(base_url)),
        "/openapi.json": PathItem(get=get_contract(base_url)),
    }


def unrouted_responses() -> dict[str, Response]:
    """Make the answers that belong to no operation, by name."""
    return {name: response for name, error in UNROUTED_ERRORS.items() for response in error_responses([error]).values()}


def _create_chat_completion(base_url: str) -> Operation:
    answer = _success(
        "The reply, paid for.",
        reference(ChatCompletion.__name__),
        examples.chat_completions(),
        counts_requests=True,
        links={"model": _link_to_model("$response.body#/model", "The model that replied.")},
    )
    idempotency_key = Parameter(
        name="Idempotency-Key",
        location="header",
        description=(
            "Makes a retry safe: for 24 hours the same key with the same body gets the first reply again, "
            "and is charged once."
        ),
        required=False,
        schema={"type": "string", "minLength": 1, "maxLength": KEY_CHARACTERS_MAX, "pattern": "^[!-~]([ -~]*[!-~])?$"},
        examples={"random": Example("A random identifier", "2c5ea4c0-4067-11e9-8bad-9b1deb4d3b7d")},
    )
    return Operation(
        operation_id="createChatCompletion",
        tags=("Chat",),
        summary="Create a chat completion",
        description=text("create_chat_completion"),
        parameters=(idempotency_key,),
        request_body=RequestBody(
            description="A JSON object in UTF-8, at most 1 MiB, with a Content-Type that says so.",
            required=True,
            content={JSON: MediaType(reference(CHAT_REQUEST), examples.CHAT_REQUESTS)},
        ),
        responses=answer | error_responses(CHAT_ERRORS, counts_requests=True),
        code_samples=samples.chat_samples(base_url),
    )


def _list_models(base_url: str) -> Operation:
    answer = _success(
        "The usable models.",
        reference(ModelList.__name__),
        examples.model_lists(),
        links={"first": _link_to_model("$response.body#/data/0/id", "The first model of the list.")},
    )
    return Operation(
        operation_id="listModels",
        tags=("Models",),
        summary="List the models",
        description=text("list_models"),
        responses=answer | error_responses(CALLER_ERRORS),
        code_samples=samples.list_samples(base_url),
    )


def _retrieve_model(base_url: str) -> Operation:
    answer = _success("The model.", reference(ModelObject.__name__), examples.models())
    model_id = Parameter(
        name="model_id",
        location="path",
        description="The model's `id`, as it is or percent-encoded.",
        required=True,
        schema={"type": "string", "minLength": 1},
        examples={"with_a_slash": Example("An id that holds a slash", samples.MODEL)},
    )
    return Operation(
        operation_id="retrieveModel",
        tags=("Models",),
        summary="Retrieve a model",
        description=text("retrieve_model"),
        parameters=(model_id,),
        responses=answer | error_responses((*CALLER_ERRORS, Error.MODEL_NOT_FOUND)),
        code_samples=samples.retrieve_samples(base_url),
    )


def _get_usage(base_url: str) -> Operation:
    return Operation(
        operation_id="getUsage",
        tags=("Usage",),
        summary="Get usage and limits",
        description=text("get_usage"),
        responses=_success("The state as it is now.", reference(UsageObject.__name__), examples.usages())
        | error_responses(CALLER_ERRORS),
        code_samples=samples.usage_samples(base_url),
    )


def get_contract(base_url: str) -> Operation:
    """Make the operation by which the document itself is read."""
    schema: Schema = {
        "type": "object",
        "properties": {
            "openapi": {"description": "Version of the OpenAPI Specification.", "type": "string"},
            "info": {"description": "What the API is.", "type": "object"},
            "paths": {"description": "The operations, by path.", "type": "object"},
        },
        "required": ["openapi", "info", "paths"],
    }
    shortened: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "Tarazu", "version": "1"}, "paths": {}}
    return Operation(
        operation_id="getContract",
        tags=("Contract",),
        summary="Get this contract",
        description=text("get_contract"),
        responses=_success("The document.", schema, {"shortened": Example("The document, shortened", shortened)}),
        security=NO_SECURITY,
        code_samples=samples.contract_samples(base_url),
    )


def _success(
    description: str,
    schema: Schema,
    named: dict[str, Example],
    *,
    counts_requests: bool = False,
    links: dict[str, Link] | None = None,
) -> dict[str, Response]:
    return {
        str(HTTPStatus.OK): Response(
            description=description,
            headers=headers_of(HTTPStatus.OK, counts_requests=counts_requests),
            content={JSON: MediaType(schema, named)},
            links=links or {},
        )
    }


def _link_to_model(expression: str, description: str) -> Link:
    return Link(operation_id="retrieveModel", parameters={"model_id": expression}, description=description)
