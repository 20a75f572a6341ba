"""Make the pool of each model in the catalogue."""

from collections.abc import Mapping

from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import LocalAddress
from tarazu.backends.local_backend import LocalBackend
from tarazu.backends.pool import Pool
from tarazu.backends.port import Backend
from tarazu.domain.catalogue import LOCAL, BackendSpec, Catalogue, Model
from tarazu.service.configuration import read_secrets

LocalAddresses = dict[str | None, LocalAddress]
"""By the path of the GGUF file; None for the embedded model."""


def make_pools(
    catalogue: Catalogue, http: HttpClient, environ: Mapping[str, str], local_addresses: LocalAddresses
) -> dict[str, Pool]:
    """Make a pool for each model, its backends in the order of their priority."""

    def make_backend(model: Model, place: int, spec: BackendSpec) -> Backend:
        name = f"{model.id}#{place}"
        if spec.kind == LOCAL:
            address = local_addresses[spec.model]
            return LocalBackend(http, name=name, url=address.url, api_key=address.api_key, timeout_s=spec.timeout_s)
        return HttpBackend(http, spec, name=name, secrets=read_secrets(spec, environ))

    return {
        model.id: Pool(
            model.id,
            [
                make_backend(model, place, spec)
                for place, spec in sorted(enumerate(model.backends, 1), key=lambda item: item[1].priority)
            ],
            timeout_s=model.timeout_s,
            max_output_tokens=model.max_output_tokens,
        )
        for model in catalogue.models.values()
    }
