"""The pool of each model in the catalogue."""

from collections.abc import Iterator, Mapping

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


def local_paths(catalogue: Catalogue) -> set[str | None]:
    """Name the GGUF files of a catalogue's local models; None is the embedded one."""
    return {path for model in catalogue.models.values() for path in local_paths_of(model)}


def local_paths_of(model: Model) -> set[str | None]:
    """Name the GGUF files of one model's local backends."""
    return {spec.model for spec in model.backends if spec.kind == "local"}


class Pools(Mapping[str, Pool]):
    """The pools by model id.

    A model that is sold no longer keeps its pool: a request that was admitted a moment before may still come for it.
    """

    def __init__(self, http: HttpClient, environ: Mapping[str, str]) -> None:
        self._http = http
        self._environ = environ
        self._models: dict[str, tuple[Model, LocalAddresses]] = {}
        self._pools: dict[str, Pool] = {}

    def __getitem__(self, model_id: str) -> Pool:
        return self._pools[model_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pools)

    def __len__(self) -> int:
        return len(self._pools)

    def adopt(self, catalogue: Catalogue, local_addresses: LocalAddresses) -> None:
        """Make the pools of new and changed models; the others stay, with all that is known of their backends."""
        for model in catalogue.models.values():
            addresses = {path: local_addresses[path] for path in local_paths_of(model)}
            if self._models.get(model.id) != (model, addresses):
                self._pools[model.id] = self._make_pool(model, addresses)
                self._models[model.id] = (model, addresses)

    def _make_pool(self, model: Model, local_addresses: LocalAddresses) -> Pool:
        return Pool(
            model.id,
            [
                (self._make_backend(f"{model.id}#{number}", spec, local_addresses), _place(spec))
                for number, spec in enumerate(model.backends, 1)
            ],
            timeout_s=model.timeout_s,
            max_output_tokens=model.max_output_tokens,
        )

    def _make_backend(self, name: str, spec: BackendSpec, local_addresses: LocalAddresses) -> Backend:
        if spec.kind == "local":
            address = local_addresses[spec.model]
            return LocalBackend(self._http, name=name, url=address.url, api_key=address.api_key)
        assert spec.url is not None
        assert spec.model is not None
        key = api_key(spec, self._environ)
        return OpenAIBackend(self._http, name=name, url=spec.url, model=spec.model, api_key=key)


def _place(spec: BackendSpec) -> Place:
    return Place(priority=spec.priority, weight=spec.weight, max_concurrency=spec.max_concurrency)
