"""Make the pool of each model in the catalogue."""

from collections.abc import Mapping

from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import LocalAddress
from tarazu.backends.local_backend import LocalBackend
from tarazu.backends.members import Place
from tarazu.backends.openai import OpenAIBackend
from tarazu.backends.pool import Pool
from tarazu.backends.port import Backend
from tarazu.domain.catalogue import BackendSpec, Catalogue, Model
from tarazu.service.configuration import api_key

LocalAddresses = dict[str | None, LocalAddress]
"""By the path of the GGUF file; None for the embedded model."""


def make_pools(
    catalogue: Catalogue, http: HttpClient, environ: Mapping[str, str], local_addresses: LocalAddresses
) -> dict[str, Pool]:
    """Make a pool for each model."""

    def make_backend(model: Model, number: int, spec: BackendSpec) -> Backend:
        name = f"{model.id}#{number}"
        if spec.kind == "local":
            address = local_addresses[spec.model]
            return LocalBackend(http, name=name, url=address.url, api_key=address.api_key)
        assert spec.url is not None
        assert spec.model is not None
        return OpenAIBackend(http, name=name, url=spec.url, model=spec.model, api_key=api_key(spec, environ))

    return {
        model.id: Pool(
            model.id,
            [(make_backend(model, number, spec), _place(spec)) for number, spec in enumerate(model.backends, 1)],
            timeout_s=model.timeout_s,
            max_output_tokens=model.max_output_tokens,
        )
        for model in catalogue.models.values()
    }


def _place(spec: BackendSpec) -> Place:
    return Place(priority=spec.priority, weight=spec.weight, max_concurrency=spec.max_concurrency)
