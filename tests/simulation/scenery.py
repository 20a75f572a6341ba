"""Where a world begins: a time zone, an instant near some edge, what is sold, and who buys."""

from collections.abc import Iterator
from datetime import datetime
from random import Random
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.accounts import Account, Key
from tarazu.domain.catalogue import ANY_MODEL, Catalogue, Offer, Plan
from tests.simulation.told import Payment
from tests.support.values import make_account, make_catalogue, make_key, make_model, make_plan

ZONES = ("UTC", "Asia/Tehran", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Pacific/Kiritimati")
LOCAL_TIMES = (
    "2027-06-15T12:00:00",
    "2027-12-31T23:59:30",
    "2028-02-28T23:59:50",
    "2028-02-29T23:59:00",
    "2027-03-28T01:59:30",  # clocks go forward in Berlin
    "2027-10-31T02:59:30",  # and back, on the last day of a month
    "2027-11-07T01:59:30",  # back in New York
    "2027-10-03T01:59:30",  # forward on Lord Howe, by half an hour
    "2028-03-31T23:58:59",
)
PRICES = {"free": 0, "small": 1, "large": 4, "huge": 9}
TIMEOUTS_S = {"free": 20.0, "small": 60.0, "large": 60.0, "huge": 600.0}
PLAN_NAMES = ("little", "more")


class Scenery(Struct, frozen=True, kw_only=True):
    """What a world begins with."""

    zone: ZoneInfo
    now_ms: int
    catalogue: Catalogue
    accounts: tuple[Account, ...]
    keys: tuple[Key, ...]
    payments: tuple[Payment, ...]


def make_scenery(random: Random) -> Scenery:
    """Choose one."""
    zone = ZoneInfo(random.choice(ZONES))
    start = datetime.fromisoformat(random.choice(LOCAL_TIMES)).replace(tzinfo=zone)
    now_ms = round(start.timestamp() * 1_000) + random.choice([0, 0, 29_999, 30_000, random.randrange(60_000)])
    accounts = tuple(_account(random, number, start) for number in range(1, random.randint(1, 4) + 1))
    numbers = iter(range(1, 100))
    return Scenery(
        zone=zone,
        now_ms=now_ms,
        catalogue=_catalogue(random, zone),
        accounts=accounts,
        keys=tuple(key for account in accounts for key in _keys(random, account, numbers)),
        payments=tuple(_payments(random, accounts)),
    )


def with_new_prices(random: Random, catalogue: Catalogue) -> Catalogue:
    """Change what models cost and plans hold, from the next admission on."""
    models = {
        id_: replace(model, credits=model.credits and random.randint(1, 9)) for id_, model in catalogue.models.items()
    }
    return replace(catalogue, models=models, plans={plan.name: plan for plan in _plans(random)})


def _catalogue(random: Random, zone: ZoneInfo) -> Catalogue:
    models = [make_model(id_, price, timeout_s=TIMEOUTS_S[id_]) for id_, price in PRICES.items()]
    payg_models = random.choice([(ANY_MODEL,), (ANY_MODEL,), ("free", "small")])
    return make_catalogue(
        models=models,
        plans=list(_plans(random)),
        payg=Offer(models=payg_models, requests_per_minute=random.randint(2, 8)),
        zone=zone,
        default_model=random.choice([None, "small", "huge"]),
        abandoned_per_hour=random.randint(0, 3),
    )


def _plans(random: Random) -> Iterator[Plan]:
    for name, quota_max in zip(PLAN_NAMES, (12, 40), strict=True):
        yield make_plan(
            name,
            random.randint(1, quota_max),
            requests_per_minute=random.randint(2, 12),
            models=random.choice([(ANY_MODEL,), (ANY_MODEL,), (ANY_MODEL,), ("free", "small", "large")]),
        )


def _account(random: Random, number: int, start: datetime) -> Account:
    return make_account(
        id=f"acc_{number}", plan=random.choice([*PLAN_NAMES, None]), period=start.strftime("%Y-%m"), created_at_ms=0
    )


def _keys(random: Random, account: Account, numbers: Iterator[int]) -> Iterator[Key]:
    for _ in range(random.randint(1, 2)):
        yield make_key(
            next(numbers),
            account_id=account.id,
            limit_per_minute=random.choice([None, None, random.randint(1, 5)]),
            models=random.choice([None, None, None, None, ("small", "free")]),
            created_at_ms=0,
        )


def _payments(random: Random, accounts: tuple[Account, ...]) -> Iterator[Payment]:
    for account in accounts:
        if account.plan is None or random.randrange(2):
            yield Payment(f"first of {account.id}", account.id, random.randint(1, 20))
