"""The pool of each model in the catalogue."""

from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from tarazu.backends.health import unheard
from tarazu.backends.http_backend import HttpBackend
from tarazu.backends.http_client import HttpClient
from tarazu.backends.local import LocalAddress
from tarazu.backends.local_backend import LocalBackend
from tarazu.backends.members import Place
from tarazu.backends.pool import Pool
from tarazu.backends.port import Backend
from tarazu.backends.secrets import Secrets
from tarazu.domain.calendar import Clock
from tarazu.domain.catalogue import LOCAL, BackendSpec, Catalogue, Model
from tarazu.service.configuration import read_secrets

LocalAddresses = dict[str | None, LocalAddress]
"""By the path of the GGUF file; None for the embedded model."""


def local_paths(catalogue: Catalogue) -> set[str | None]:
    """Name the GGUF files of a catalogue's local models; None is the embedded one."""
    return {path for model in catalogue.models.values() for path in local_paths_of(model)}


def local_paths_of(model: Model) -> set[str | None]:
    """Name the GGUF files of one model's local backends that are enabled."""
    return {spec.model for _, spec in enabled_backends(model) if spec.kind == LOCAL}


def enabled_backends(model: Model) -> list[tuple[str, BackendSpec]]:
    """List the backends that may be asked, each with its name."""
    return [(name, spec) for name, spec in model.named_backends() if spec.enabled]


def make_backend(
    http: HttpClient, spec: BackendSpec, clock: Clock, *, name: str, secrets: Secrets, local_addresses: LocalAddresses
) -> Backend:
    """Make what asks one server.

    Raises:
        OSError: the `ca_file` is gone; loading the configuration has checked it.
    """
    if spec.kind == LOCAL:
        address = local_addresses[spec.model]
        return LocalBackend(http, clock, name=name, url=address.url, api_key=address.api_key)
    return HttpBackend(http, spec, clock, name=name, secrets=secrets)


class _Parts(Struct, frozen=True, kw_only=True):
    """All that a pool is made of. A change of anything else, such as a price, leaves it as it is."""

    backends: list[tuple[str, BackendSpec]]
    timeout_s: float
    max_output_tokens: int | None
    takes_format: bool
    secrets: list[Secrets]
    local_addresses: LocalAddresses


class Pools(Mapping[str, Pool]):
    """The pools by model id.

    A model that is sold no longer keeps its pool: a request that was admitted a moment before may still come for it.
    `on_change` is called when the health of a backend changes, and when a pool takes the place of another.
    """

    def __init__(
        self,
        http: HttpClient,
        environ: Mapping[str, str],
        clock: Clock,
        on_change: Callable[[], None] = unheard,
        pool_type: type[Pool] = Pool,
    ) -> None:
        self._http = http
        self._environ = environ
        self._clock = clock
        self._on_change = on_change
        self._pool_type = pool_type
        self._made_of: dict[str, _Parts] = {}
        self._pools: dict[str, Pool] = {}

    def __getitem__(self, model_id: str) -> Pool:
        return self._pools[model_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pools)

    def __len__(self) -> int:
        return len(self._pools)

    def adopt(self, catalogue: Catalogue, local_addresses: LocalAddresses) -> None:
        """Make the pools of new and changed models; the others stay, with all that is known of their backends.

        Raises:
            ValueError: a secret is not there any more; loading has checked that it was. Nothing has changed.
            OSError: nor is the `ca_file`.
        """
        made: dict[str, Pool] = {}
        made_of: dict[str, _Parts] = {}
        for model in catalogue.models.values():
            parts = self._parts(model, local_addresses)
            if self._made_of.get(model.id) != parts:
                made[model.id], made_of[model.id] = self._make_pool(model.id, parts), parts
        if made:
            self._pools |= made
            self._made_of |= made_of
            self._on_change()

    def _parts(self, model: Model, local_addresses: LocalAddresses) -> _Parts:
        backends = enabled_backends(model)
        for _, spec in backends:
            if spec.ca_file is not None:
                self._http.trust(spec.ca_file)
        return _Parts(
            backends=backends,
            timeout_s=model.timeout_s,
            max_output_tokens=model.max_output_tokens,
            takes_format=model.capabilities.json_output,
            secrets=[read_secrets(spec, self._environ) for _, spec in backends],
            local_addresses={path: local_addresses[path] for path in local_paths_of(model)},
        )

    def _make_pool(self, model_id: str, parts: _Parts) -> Pool:
        backends = [
            (
                make_backend(
                    self._http, spec, self._clock, name=name, secrets=secrets, local_addresses=parts.local_addresses
                ),
                _place(spec),
            )
            for (name, spec), secrets in zip(parts.backends, parts.secrets, strict=True)
        ]
        return self._pool_type(
            model_id,
            backends,
            timeout_s=parts.timeout_s,
            max_output_tokens=parts.max_output_tokens,
            takes_format=parts.takes_format,
            on_change=self._on_change,
        )


def _place(spec: BackendSpec) -> Place:
    return Place(
        priority=spec.priority,
        weight=spec.weight,
        max_concurrency=spec.max_concurrency,
        timeout_s=spec.timeout_s,
    )
