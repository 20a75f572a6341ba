"""Values of the domain for tests, with defaults: a test names only what its claim is about."""

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha512
from itertools import count
from typing import Any

from msgspec.structs import replace

from tarazu.domain.accounts import Account, AccountStatus, Key, Window
from tarazu.domain.admission import Asked, Decision
from tarazu.domain.catalogue import ANY_MODEL, BackendSpec, Capabilities, Catalogue, Model, Offer, Plan
from tarazu.domain.credits import Hold, Source
from tarazu.domain.errors import Refusal
from tarazu.domain.keys import PresentedKey, mint, parse
from tarazu.domain.prompt import ChatRequest, Message, Settings

HOUR_MS = 3_600_000
DAY_MS = 86_400_000
MINUTE_MS = 60_000
PERIOD = "2026-02"
DAY = "2026-02-10"

_numbers = count(1)


def instant_ms(text_: str) -> int:
    """Turn an ISO 8601 time (UTC where it names no zone) into milliseconds since the epoch."""
    moment = datetime.fromisoformat(text_)
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1_000)


NOON_MS = instant_ms("2026-02-10T12:00:00")
"""When the tests' clock starts: the beginning of a minute, on DAY in PERIOD."""


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now_ms: int = NOON_MS) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        """Tell the time, in milliseconds since the epoch."""
        return self.now_ms


def make_account(**changes: Any) -> Account:
    """Make an active account on plan `basic`, with nothing used and no balance."""
    return replace(
        Account(
            id="acc_1",
            name="Example",
            email=None,
            plan="basic",
            status=AccountStatus.ACTIVE,
            period=PERIOD,
            used=0,
            balance=0,
            window=Window(),
            created_at_ms=NOON_MS,
        ),
        **changes,
    )


def key_text(number: int = 1) -> str:
    """Write the whole of key `number`, as a caller would send it."""
    return mint(sha512(b"key %d" % number).digest()).text


def present(number: int = 1) -> PresentedKey:
    """Present key `number`."""
    presented = parse(key_text(number))
    assert presented is not None
    return presented


def make_key(number: int = 1, **changes: Any) -> Key:
    """Make key `number` of account `acc_1`: all models, no limit of its own, no end."""
    presented = present(number)
    return replace(
        Key(
            id=presented.id,
            account_id="acc_1",
            name=f"key {number}",
            digest=presented.digest,
            models=None,
            limit_per_minute=None,
            created_at_ms=NOON_MS,
            expires_at_ms=None,
            revoked_at_ms=None,
            window=Window(),
        ),
        **changes,
    )


def make_model(id_: str = "small", credits_: int = 1, **changes: Any) -> Model:
    """Make a model that costs one credit and times out after a minute."""
    return replace(
        Model(
            id=id_,
            display_name=id_.title(),
            provider="example",
            description="A model for tests.",
            credits=credits_,
            payg_amount=1_000 * credits_,
            capabilities=Capabilities(),
            max_output_tokens=None,
            timeout_s=60.0,
            backends=(BackendSpec(kind="openai", url="http://127.0.0.1:9/v1"),),
        ),
        **changes,
    )


def make_plan(name: str = "basic", monthly_credits: int = 100, **changes: Any) -> Plan:
    """Make a plan of 100 credits a month, 1,000 requests a minute and all models."""
    plan = Plan(name=name, monthly_credits=monthly_credits, models=(ANY_MODEL,), requests_per_minute=1_000)
    return replace(plan, **changes)


def make_catalogue(
    models: Sequence[Model] = (make_model(), make_model("large", 5)),
    plans: Sequence[Plan] = (make_plan(),),
    **changes: Any,
) -> Catalogue:
    """Make a catalogue of models `small` (1 credit) and `large` (5) and plan `basic`; without a plan, all as in it."""
    catalogue = Catalogue(
        models={model.id: model for model in models},
        plans={plan.name: plan for plan in plans},
        payg=Offer(models=(ANY_MODEL,), requests_per_minute=1_000),
        zone=UTC,
    )
    return replace(catalogue, **changes)


def make_asked(
    key: int | PresentedKey = 1, model: str | None = "small", *, refusal: Refusal | None = None, **changes: Any
) -> Asked:
    """Make a call with a key and a model, or with what the rows 8 to 13 have against it."""
    request = ChatRequest(model=model, messages=(Message("user", "Hello"),), settings=Settings())
    asked = Asked(
        request_id=f"req_{next(_numbers):08}",
        key=present(key) if isinstance(key, int) else key,
        request=request if refusal is None else refusal,
    )
    return replace(asked, **changes)


def make_hold(**changes: Any) -> Hold:
    """Make a hold of one credit from the plan, as the books would at NOON_MS."""
    return replace(
        Hold(
            request_id="req_1",
            account_id="acc_1",
            key_id=make_key().id,
            model_id="small",
            credits=1,
            source=Source.PLAN,
            period=PERIOD,
            day=DAY,
            created_at_ms=NOON_MS,
            deadline_ms=NOON_MS + 90_000,
        ),
        **changes,
    )


def held(decision: Decision) -> Hold:
    """Take the hold out of a decision that must be an admission."""
    assert isinstance(decision.outcome, Hold), decision.outcome
    return decision.outcome


def refused(decision: Decision) -> Refusal:
    """Take the refusal out of a decision that must be one."""
    assert isinstance(decision.outcome, Refusal), decision.outcome
    return decision.outcome
