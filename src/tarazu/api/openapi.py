"""The contract of the public API as an OpenAPI 3.1 document."""

from functools import lru_cache
from importlib.metadata import version

import msgspec

from tarazu.api.contract.chat_request import request_schemas
from tarazu.api.contract.errors import NOTES, body_example, errors_table
from tarazu.api.contract.headers import HEADERS
from tarazu.api.contract.operations import TAGS, paths, unrouted_responses
from tarazu.api.contract.samples import absolute, chat_samples
from tarazu.api.contract.schemas import answer_schemas
from tarazu.api.contract.structure import Components, Info, License, OpenApi, SecurityScheme, Server
from tarazu.api.contract.texts import text
from tarazu.domain.errors import Error
from tarazu.service.configuration.addresses import API_PATH, CLIENTS_PATH

SECURITY_SCHEME = "ApiKey"
DOCUMENTS_KEPT = 4


def document(base_url: str = API_PATH) -> OpenApi:
    """Make the document. `base_url` is where callers reach the API: a whole address, or a path on the same server."""
    sample_url = absolute(base_url)
    return OpenApi(
        info=Info(
            title="Tarazu API",
            version=version("tarazu"),
            summary="Chat completions at a fixed price in credits",
            description=_introduction(sample_url),
            license=License("Apache 2.0", "Apache-2.0"),
        ),
        servers=(Server(base_url),),
        security=({SECURITY_SCHEME: ()},),
        tags=TAGS,
        paths=paths(sample_url),
        components=Components(
            schemas=request_schemas() | answer_schemas(),
            headers=HEADERS,
            responses=unrouted_responses(),
            security_schemes={
                SECURITY_SCHEME: SecurityScheme(
                    type="http",
                    scheme="bearer",
                    bearer_format="trz_ and 50 letters and digits",
                    description="An API key: `Authorization: Bearer <API_KEY>`.",
                )
            },
        ),
    )


@lru_cache(maxsize=DOCUMENTS_KEPT)
def document_json(base_url: str = API_PATH) -> bytes:
    """Make the document as JSON, once for each base address."""
    return msgspec.json.encode(document(base_url))


def _introduction(base_url: str) -> str:
    python_sample = next(sample for sample in chat_samples(base_url) if sample.lang == "python")
    return text(
        "introduction",
        base_url=base_url,
        clients_url=base_url.removesuffix(API_PATH) + CLIENTS_PATH,
        first_sample=python_sample.source,
        domain_error=body_example(Error.MODEL_NOT_FOUND, NOTES),
        errors_table=errors_table(NOTES),
    )
