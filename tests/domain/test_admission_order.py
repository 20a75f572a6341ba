"""Admission: of two checks that fail, the earlier row answers. Every pair of rows, in every variant."""

from collections.abc import Callable
from itertools import combinations

import pytest
from msgspec import Struct
from msgspec.structs import replace

from tarazu.domain.accounts import Account, AccountStatus, Intake, Key, Window
from tarazu.domain.admission import Asked, Caller, Decision, admit
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.errors import Error, Refusal
from tests.support.values import (
    MINUTE_MS,
    NOON_MS,
    held,
    make_account,
    make_asked,
    make_catalogue,
    make_key,
    make_plan,
    present,
    refused,
)

MINUTE = NOON_MS // MINUTE_MS
FULL = Window(MINUTE, 10)


class World(Struct, frozen=True, kw_only=True):
    """All that one admission looks at. As it is made here, it admits."""

    key: Key = make_key(limit_per_minute=10)
    account: Account = make_account(used=95, balance=1)
    known: bool = True
    intake: Intake = Intake()
    asked: Asked = make_asked(model="large")
    catalogue: Catalogue = make_catalogue(plans=[make_plan(requests_per_minute=10)])

    def decide(self) -> Decision:
        """Decide in this world."""
        caller = Caller(self.key, self.account) if self.known else None
        return admit(self.asked, caller, self.intake, self.catalogue, NOON_MS)


class Fault(Struct, frozen=True):
    """One way to fail the check of a row."""

    row: int
    name: str
    error: Error
    happen: Callable[[World], World]


def _key(**changes: object) -> Callable[[World], World]:
    return lambda world: replace(world, key=replace(world.key, **changes))


def _account(**changes: object) -> Callable[[World], World]:
    return lambda world: replace(world, account=replace(world.account, **changes))


def _body(error: Error) -> Callable[[World], World]:
    return lambda world: replace(world, asked=replace(world.asked, request=Refusal(error=error)))


def _secret(world: World) -> World:
    return replace(world, asked=replace(world.asked, key=replace(present(2), id=present(1).id)))


def _unknown_model(world: World) -> World:
    if isinstance(world.asked.request, Refusal):
        return world  # no body, no model
    return replace(world, asked=replace(world.asked, request=replace(world.asked.request, model="unknown")))


def _no_plan_and_no_balance(world: World) -> World:
    return _account(plan=None, balance=0)(world)


def _plan_without_the_model(world: World) -> World:
    plans = {name: replace(plan, models=("small",)) for name, plan in world.catalogue.plans.items()}
    payg = replace(world.catalogue.payg, models=("small",))
    return replace(world, catalogue=replace(world.catalogue, plans=plans, payg=payg))


def _full_account(world: World) -> World:
    plans = {name: replace(plan, requests_per_minute=10) for name, plan in world.catalogue.plans.items()}
    payg = replace(world.catalogue.payg, requests_per_minute=10)
    catalogue = replace(world.catalogue, plans=plans, payg=payg)
    return replace(_account(window=FULL)(world), catalogue=catalogue)


FAULTS = [
    Fault(4, "unknown key", Error.INVALID_API_KEY, lambda world: replace(world, known=False)),
    Fault(4, "wrong secret", Error.INVALID_API_KEY, _secret),
    Fault(4, "revoked key", Error.INVALID_API_KEY, _key(revoked_at_ms=NOON_MS - 1)),
    Fault(4, "paused key", Error.INVALID_API_KEY, _key(paused_at_ms=NOON_MS - 1)),
    Fault(4, "expired key", Error.INVALID_API_KEY, _key(expires_at_ms=NOON_MS)),
    Fault(5, "unverified", Error.ACCOUNT_UNAVAILABLE, _account(status=AccountStatus.UNVERIFIED)),
    Fault(5, "inactive", Error.ACCOUNT_UNAVAILABLE, _account(status=AccountStatus.INACTIVE)),
    Fault(5, "blocked", Error.ACCOUNT_UNAVAILABLE, _account(status=AccountStatus.BLOCKED)),
    Fault(6, "traffic stopped", Error.SYSTEM_STOPPED, lambda world: replace(world, intake=Intake(stopped=True))),
    Fault(7, "account's window full", Error.RATE_LIMIT_EXCEEDED, _full_account),
    Fault(7, "key's window full", Error.RATE_LIMIT_EXCEEDED, _key(window=FULL)),
    Fault(8, "content type", Error.UNSUPPORTED_MEDIA_TYPE, _body(Error.UNSUPPORTED_MEDIA_TYPE)),
    Fault(9, "body too long", Error.INPUT_TOO_LARGE, _body(Error.INPUT_TOO_LARGE)),
    Fault(10, "no JSON object", Error.INVALID_REQUEST, _body(Error.INVALID_REQUEST)),
    Fault(11, "stream", Error.STREAMING_NOT_SUPPORTED, _body(Error.STREAMING_NOT_SUPPORTED)),
    Fault(12, "no message", Error.MESSAGES_REQUIRED, _body(Error.MESSAGES_REQUIRED)),
    Fault(13, "input too long", Error.INPUT_TOO_LARGE, _body(Error.INPUT_TOO_LARGE)),
    Fault(14, "neither plan nor balance", Error.UPGRADE_REQUIRED, _no_plan_and_no_balance),
    Fault(15, "unknown model", Error.MODEL_NOT_FOUND, _unknown_model),
    Fault(15, "not in the plan", Error.MODEL_NOT_FOUND, _plan_without_the_model),
    Fault(15, "not in the key's list", Error.MODEL_NOT_FOUND, _key(models=("small",))),
    Fault(16, "quota and balance short", Error.API_CREDITS_EXHAUSTED, _account(used=96)),
]


def _pairs() -> list[tuple[Fault, Fault]]:
    """All pairs of different rows, the earlier first. A request carries one finding of the rows 8 to 13 only."""
    return [
        (earlier, later)
        for earlier, later in combinations(FAULTS, 2)
        if earlier.row != later.row and not (earlier.row >= 8 and later.row <= 13)
    ]


def _assert_answered(decision: Decision, fault: Fault) -> None:
    assert refused(decision).error is fault.error
    if fault.row <= 7:
        assert decision.caller is None, "nothing may have changed"
        assert (decision.rate_limit is not None) == (fault.row == 7)
    else:
        assert decision.caller is not None
        assert decision.caller.account.window == Window(MINUTE, 1)
        assert decision.caller.key.window == Window(MINUTE, 1)
        assert decision.rate_limit is not None


def test_without_a_fault_the_request_is_admitted() -> None:
    """The world that the others change is a good one."""
    assert held(World().decide()).credits == 5


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.row} {fault.name}")
def test_each_check_alone_answers_with_its_error(fault: Fault) -> None:
    """Up to row 7 nothing changes; from row 8 on exactly one place is taken in both windows."""
    _assert_answered(fault.happen(World()).decide(), fault)


@pytest.mark.parametrize(("earlier", "later"), _pairs(), ids=lambda fault: f"{fault.row} {fault.name}")
def test_of_two_failing_checks_the_earlier_answers(earlier: Fault, later: Fault) -> None:
    """Whichever came to be first: the order of the checks decides."""
    _assert_answered(later.happen(earlier.happen(World())).decide(), earlier)
    _assert_answered(earlier.happen(later.happen(World())).decide(), earlier)


def test_with_every_check_failing_each_repair_shows_the_next() -> None:
    """Whoever mends one thing after the other meets the rows in their order."""
    one_of_each_row = list({fault.row: fault for fault in FAULTS}.values())
    for first in range(len(one_of_each_row)):
        world = World()
        for fault in reversed(one_of_each_row[first:]):
            world = fault.happen(world)
        _assert_answered(world.decide(), one_of_each_row[first])
