"""What is sold: plans, models with their prices and backends, and the section for pay-as-you-go accounts."""

from collections.abc import Iterator
from datetime import tzinfo

from msgspec import Struct

from tarazu.domain.bounds import Bounds

ANY_MODEL = "*"
NO_PLAN = "none"
"""What GET /usage calls the plan of an account without one; no plan may have this name."""

LOCAL = "local"
"""The kind of a model that runs beside the service; the other kinds are servers somewhere."""


class BackendSpec(Struct, frozen=True, kw_only=True):
    """One server of a model. `model` is the name that server knows it by; for LOCAL, the path of a GGUF file.

    - `url`: the base address; None is where the maker of this kind of server runs it.
    - `api_key_env`, `api_key_file`: the environment variable or the file that holds the key. Neither: it needs none.
    - `key_header`: the header that carries the key; None is the one of the kind.
    - `headers`, `query`: what is added to every request; `headers_env` names the variables that hold such values.
    - `ca_file`: a PEM file with the authorities that vouch for the server; None: those that everybody trusts.
    - `omit`: settings of a request that are not sent. `rename`: the server's own names for some of them.
    - `timeout_s`: how long one try may take; None: as long as the model's own time-out.
    - `priority`: 0 is asked first.
    - `enabled`: False is never asked.
    """

    kind: str
    url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    api_key_file: str | None = None
    key_header: str | None = None
    headers: dict[str, str] = {}
    headers_env: dict[str, str] = {}
    query: dict[str, str] = {}
    ca_file: str | None = None
    omit: tuple[str, ...] = ()
    rename: dict[str, str] = {}
    timeout_s: float | None = None
    weight: int = 1
    priority: int = 0
    max_concurrency: int | None = None
    enabled: bool = True


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a model can do, for the reader of GET /models. Streaming is off in v1 whatever the model could do."""

    chat: bool = True
    reasoning: bool = False
    vision: bool = False
    streaming: bool = False
    tools: bool = False
    json_output: bool = False


class Model(Struct, frozen=True, kw_only=True):
    """One model on offer: `credits` a request, `payg_amount` the same price in `currency`, for the reader."""

    id: str
    display_name: str
    provider: str
    description: str
    credits: int
    payg_amount: int
    capabilities: Capabilities
    max_output_tokens: int | None
    timeout_s: float
    backends: tuple[BackendSpec, ...]

    def named_backends(self) -> list[tuple[str, BackendSpec]]:
        """List the backends with their names: the model's id, and the place in the file from 1 on."""
        return [(f"{self.id}#{number}", spec) for number, spec in enumerate(self.backends, 1)]

    def timeout_of(self, backend: BackendSpec) -> float:
        """Tell how long, in seconds, one try at a backend may take at most."""
        return min(backend.timeout_s or self.timeout_s, self.timeout_s)


class Offer(Struct, frozen=True, kw_only=True):
    """What an account may use: model ids (or `*`) and requests a minute over all its keys together."""

    models: tuple[str, ...]
    requests_per_minute: int

    def includes(self, model_id: str) -> bool:
        """Tell whether the offer holds the model."""
        return ANY_MODEL in self.models or model_id in self.models


class Plan(Offer, frozen=True, kw_only=True):
    """A monthly subscription with a quota of `monthly_credits`."""

    name: str
    monthly_credits: int


class Shop(Struct, frozen=True, kw_only=True):
    """Whose service it is, the page on which its customers pay, and where they ask: an email address or a page."""

    name: str | None = None
    payment_url: str | None = None
    contact: str | None = None

    @property
    def contact_url(self) -> str | None:
        """The address that leads to the contact."""
        is_email = self.contact is not None and not self.contact.startswith(("http://", "https://"))
        return f"mailto:{self.contact}" if is_email else self.contact


class Catalogue(Struct, frozen=True, kw_only=True):
    """Everything on sale, in the order of the file. `zone` is the time zone in which days and months turn.

    So many requests of an account that have no reply by its own doing are free in an hour: `abandoned_per_hour`.
    """

    models: dict[str, Model]
    plans: dict[str, Plan]
    payg: Offer
    zone: tzinfo
    currency: str = "IRT"
    default_model: str | None = None
    bounds: Bounds = Bounds()
    abandoned_per_hour: int = 60
    shop: Shop = Shop()

    def plan(self, name: str | None) -> Plan | None:
        """Find a plan; an account whose plan is no longer on sale counts as one without a plan."""
        return None if name is None else self.plans.get(name)

    def offer(self, plan_name: str | None) -> Offer:
        """Tell what an account of this plan may use: its plan, or without one the pay-as-you-go section."""
        return self.plan(plan_name) or self.payg

    def unbounded_models(self) -> tuple[str, ...]:
        """List the models that have a price and no bound on what it buys."""
        return tuple(model.id for model in self.models.values() if model.credits and model.max_output_tokens is None)

    def usable_models(self, offer: Offer, key_models: tuple[str, ...] | None) -> Iterator[Model]:
        """List the models that both the offer and the key allow, in catalogue order."""
        return (model for model in self.models.values() if self._allows(model.id, offer, key_models))

    def usable_model(self, model_id: str | None, offer: Offer, key_models: tuple[str, ...] | None) -> Model | None:
        """Find the model that is asked for, or with None the default one; None when it may not be used.

        The default is `default_model` if this key may use it, else the first usable model (decisions, Input).
        """
        wanted = self.default_model if model_id is None else model_id
        if wanted is not None and self._allows(wanted, offer, key_models):
            return self.models.get(wanted)
        return next(self.usable_models(offer, key_models), None) if model_id is None else None

    def _allows(self, model_id: str, offer: Offer, key_models: tuple[str, ...] | None) -> bool:
        return (
            model_id in self.models
            and offer.includes(model_id)
            and (key_models is None or ANY_MODEL in key_models or model_id in key_models)
        )
