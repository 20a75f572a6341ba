"""What tarazu.toml may hold: one Struct for each kind of table, with a type for each setting.

A type's `description` completes the sentence "expected …". Its `extra` may say what was expected of a value that is
too large, and that the value must never be shown, since a secret may stand there by mistake.
"""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from tarazu.backends.kinds import KINDS
from tarazu.domain.bounds import MIB, Bounds
from tarazu.domain.catalogue import LOCAL

CREDITS_MAX = 10**12
"""Far above any price or quota, and every sum of them fits the books and the numbers of JSON's readers."""
COUNT_MAX = 10**9
MIB_MAX = 1024 * 1024
PORT_MAX = 65_535
WORKERS_MAX = 256
TIMEOUT_S_MAX = 600
NETWORKS_MAX = 256
PROXIES_MAX = 16
HOSTS_MAX = 64
ORIGINS_MAX = 64
ADDITIONS_MAX = 32
"""Headers, or parameters in the query, that a backend's requests may be given."""
_COUNT_TOO_LARGE = {"too_large": f"an integer of at most {COUNT_MAX:,}"}

REQUIRED_WORD = "required"

BACKEND_KINDS = (*KINDS, LOCAL)

REQUIRED: Any = UNSET
"""The default of a setting that has none. It stands in for the missing value only until the problem is raised."""

Text = Annotated[
    str, Meta(pattern=r"\A(?=.*\S)[^\x00-\x1f\x7f]{1,500}\Z", description="a line of text of 1 to 500 characters")
]
AnyText = Annotated[str, Meta(max_length=2_000, description="a text of at most 2,000 characters")]
Credits = Annotated[
    int,
    Meta(
        ge=0,
        le=CREDITS_MAX,
        description="an integer of at least 0",
        extra={"too_large": f"an integer of at most {CREDITS_MAX:,}"},
    ),
]
Count = Annotated[int, Meta(ge=1, le=COUNT_MAX, description="an integer of at least 1", extra=_COUNT_TOO_LARGE)]
Mebibytes = Annotated[int, Meta(ge=1, le=MIB_MAX, description=f"a number of MiB from 1 to {MIB_MAX:,}")]
Switch = Annotated[bool, Meta(description="true or false")]
Priority = Annotated[int, Meta(ge=0, le=COUNT_MAX, description="an integer of at least 0", extra=_COUNT_TOO_LARGE)]
Workers = Annotated[int, Meta(ge=1, le=WORKERS_MAX, description=f"an integer from 1 to {WORKERS_MAX}")]
Port = Annotated[int, Meta(ge=0, le=PORT_MAX, description=f"a port from 0 (any free one) to {PORT_MAX}")]
Seconds = Annotated[
    float, Meta(gt=0, le=TIMEOUT_S_MAX, description=f"a number of seconds above 0, at most {TIMEOUT_S_MAX}")
]
Host = Annotated[
    str, Meta(pattern=r"\A[A-Za-z0-9.:%_-]{1,255}\Z", description="a host name or an address without port")
]
HostNames = Annotated[
    tuple[str, ...], Meta(max_length=HOSTS_MAX, description='a list of host names, as in ["ai.example.com"]')
]
Origins = Annotated[
    tuple[str, ...], Meta(max_length=ORIGINS_MAX, description='a list of origins, as in ["https://app.example.com"]')
]
Networks = Annotated[
    tuple[str, ...],
    Meta(max_length=NETWORKS_MAX, description='a list of addresses and networks, as in ["10.0.0.0/8"]'),
]
ProxyCount = Annotated[int, Meta(ge=0, le=PROXIES_MAX, description=f"a number of proxies from 0 to {PROXIES_MAX}")]
Url = Annotated[str, Meta(description="an http:// or https:// address", extra={"hidden": True})]
DatabaseUrl = Annotated[str, Meta(description='a URL such as "sqlite:///tarazu.db"', extra={"hidden": True})]
Currency = Annotated[str, Meta(pattern=r"\A[A-Z]{3}\Z", description="a currency code of three capital letters")]
Abandoned = Annotated[str, Meta(pattern=r"\A(?:free|charged)\Z", description='"free" or "charged"')]
VariableName = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Z_][A-Z0-9_]{0,127}\Z",
        description="the name of an environment variable (capital letters, digits and _), never the key itself",
        extra={"hidden": True},
    ),
]
SecretPath = Annotated[
    str,
    Meta(
        pattern=r"\A(?=.*\S)[^\x00-\x1f\x7f]{1,500}\Z",
        description="the path of a file that holds the key, never the key itself",
        extra={"hidden": True},
    ),
]
ModelIds = Annotated[tuple[str, ...], Meta(description='a list of model ids, or ["*"] for all')]
SomeModelIds = Annotated[
    tuple[str, ...], Meta(min_length=1, description='a list of one or more model ids, or ["*"] for all')
]
CapabilityNames = Annotated[tuple[str, ...], Meta(description='a list of names such as ["chat", "reasoning"]')]
BackendTables = Annotated[
    tuple[dict[str, Any], ...],
    Meta(min_length=1, description='one or more tables, each headed [[models."ID".backends]]'),
]
Kind = Annotated[
    str,
    Meta(
        pattern=rf"\A(?:{'|'.join(BACKEND_KINDS)})\Z",
        description=" or ".join((", ".join(f'"{kind}"' for kind in KINDS), f'"{LOCAL}"')),
    ),
]
SecondFactor = Annotated[
    str, Meta(pattern=rf"\A(?:optional|{REQUIRED_WORD})\Z", description='"optional" or "required"')
]
HeaderName = Annotated[
    str,
    Meta(
        pattern=r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}\Z",
        description='the name of a header, as in "api-key", never the key itself',
        extra={"hidden": True},
    ),
]
Headers = Annotated[
    dict[str, str],
    Meta(
        max_length=ADDITIONS_MAX,
        description=f'a table of at most {ADDITIONS_MAX} headers, as in {{ "X-Title" = "Shop" }}',
        extra={"hidden": True},
    ),
]
HeaderVariables = Annotated[
    dict[str, VariableName],
    Meta(
        max_length=ADDITIONS_MAX,
        description=f"a table of at most {ADDITIONS_MAX} headers with the names of environment variables (capital "
        'letters, digits and _), as in { "X-Gateway-Key" = "GATEWAY_KEY" }',
        extra={"hidden": True},
    ),
]
Query = Annotated[
    dict[str, str],
    Meta(
        max_length=ADDITIONS_MAX,
        description=f'a table of at most {ADDITIONS_MAX} texts, as in {{ api-version = "2024-10-21" }}',
        extra={"hidden": True},
    ),
]
SettingNames = Annotated[tuple[str, ...], Meta(description='a list of settings, as in ["seed"]')]
NewNames = Annotated[
    dict[str, Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]{0,63}\Z")]],
    Meta(description='a table of names, as in { max_tokens = "max_completion_tokens" }'),
]

LogLevel = Annotated[
    str,
    Meta(pattern=r"\A(?:debug|info|warning|error)\Z", description='"debug", "info", "warning" or "error"'),
]
LogFormat = Annotated[str, Meta(pattern=r"\A(?:auto|json|text)\Z", description='"auto", "json" or "text"')]


class ServerSettings(Struct, frozen=True):
    """[server]: how the service listens. `max_in_flight` bounds the completions at once in one worker process.

    Above it the answer is 503. Port 0 is any free port. `public_url` is the address that callers use, without a
    slash at its end. `hosts` are more names under which browsers may open the pages. Pages of
    `cors_origins` may call the API. The connections of `trusted_proxies` are not counted by address, and what they tell
    of a request's origin is believed.
    """

    host: Host = "127.0.0.1"
    port: Port = 8080
    workers: Workers = 1
    public_url: Url | None = None
    max_in_flight: Count = 512
    max_in_flight_per_account: Count | None = None
    connections_per_address: Count = 512
    trusted_proxies: Networks = ("127.0.0.0/8", "::1/128")
    forwarded_for: ProxyCount = 1
    hosts: HostNames = ()
    cors_origins: Origins = ()

    @property
    def in_flight_of_account(self) -> int:
        """The completions at once that one account may have: a quarter of all, where the file does not say."""
        return self.max_in_flight_per_account or max(1, self.max_in_flight // 4)

    @property
    def reachable_host(self) -> str:
        """The address at which this machine reaches the service, also where it listens at all of them."""
        return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - reads the setting

    @property
    def own_url(self) -> str:
        """The address on this machine."""
        host = self.reachable_host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def base_url(self) -> str:
        """The address that callers use: the public one, or else the one on this machine."""
        return self.public_url or self.own_url


class LogSettings(Struct, frozen=True):
    """[logs]: what is written to standard error, and how. `auto` is text on a terminal, and JSON elsewhere.

    With `access` there is a line for each request too.
    """

    level: LogLevel = "info"
    format: LogFormat = "auto"
    access: Switch = False


class DatabaseSection(Struct, frozen=True):
    """[database]: where the books are."""

    url: DatabaseUrl = "sqlite:///tarazu.db"


class BillingSection(Struct, frozen=True):
    """[billing]: what holds for all that is sold."""

    timezone: Text = "UTC"
    currency: Currency = "IRT"
    default_model: Text | None = None
    abandoned: Abandoned = "free"
    abandoned_per_hour: Count = 60


class ShopSection(Struct, frozen=True):
    """[shop]: whose service it is, where its customers pay, and where they ask."""

    name: Text | None = None
    payment_url: Url | None = None
    contact: Text | None = None


class OperatorsSection(Struct, frozen=True):
    """[operators]: what is asked of the operators who sign in to their pages."""

    second_factor: SecondFactor = "optional"

    @property
    def need_second_factor(self) -> bool:
        """Whether an operator without a second factor must set one up before anything else."""
        return self.second_factor == REQUIRED_WORD


class KeysSection(Struct, frozen=True):
    """[keys]: how many API keys a holder may have, those that have ended left out, and make in an hour."""

    per_account: Count = Bounds().keys
    per_hour: Count = Bounds().new_keys_hourly


class IdempotencySection(Struct, frozen=True):
    """[idempotency]: how much of the replies to requests with an Idempotency-Key is kept, for an account and in all."""

    per_account_mib: Mebibytes = Bounds().account_reply_bytes // MIB
    total_mib: Mebibytes = Bounds().reply_bytes // MIB


class PaygSection(Struct, frozen=True):
    """[payg]: what accounts without a plan may use while they have a balance."""

    requests_per_minute: Count = 20
    models: ModelIds = ("*",)


class PlanSection(Struct, frozen=True):
    """[plans.NAME]: one subscription."""

    monthly_credits: Credits = REQUIRED
    requests_per_minute: Count = 60
    models: SomeModelIds = ("*",)


class ModelSection(Struct, frozen=True):
    """[models."ID"]: one model on sale. `backends` are read one by one, as BackendSection."""

    display_name: Text | None = None
    provider: Text | None = None
    description: AnyText = ""
    credits: Credits = REQUIRED
    payg_amount: Credits = 0
    capabilities: CapabilityNames = ("chat",)
    max_output_tokens: Count | None = None
    timeout_s: Seconds = 60.0
    backends: BackendTables = REQUIRED


class BackendSection(Struct, frozen=True):
    """[[models."ID".backends]]: one server of a model."""

    kind: Kind = REQUIRED
    url: Url | None = None
    model: Text | None = None
    api_key_env: VariableName | None = None
    api_key_file: SecretPath | None = None
    key_header: HeaderName | None = None
    headers: Headers | None = None
    headers_env: HeaderVariables | None = None
    query: Query | None = None
    ca_file: Text | None = None
    omit: SettingNames = ()
    rename: NewNames | None = None
    timeout_s: Seconds | None = None
    weight: Count = 1
    priority: Priority = 0
    max_concurrency: Count | None = None
    enabled: Switch = True


SECTIONS: dict[str, type[Struct]] = {
    "server": ServerSettings,
    "logs": LogSettings,
    "database": DatabaseSection,
    "operators": OperatorsSection,
    "shop": ShopSection,
    "billing": BillingSection,
    "payg": PaygSection,
    "keys": KeysSection,
    "idempotency": IdempotencySection,
    "plans": PlanSection,
    "models": ModelSection,
}
"""The names of the file's outermost tables; under `plans` and `models` there is one table for each name or id."""
