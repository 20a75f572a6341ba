"""Credits over HTTP: how many, from which source, when they come back, and when the month turns."""

import http.client
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tarazu.service.provisioning_errors import ProvisioningError
from tests.support.answers import assert_paid, assert_refused, credits_left, look, read_usage
from tests.support.at_once import held
from tests.support.backend import ScriptedBackend, answers
from tests.support.rows import rows
from tests.support.service import CATALOGUE, MODELS, RunningService
from tests.support.set_clock import SetClock, service_by
from tests.support.stores import Store

WITH_FREE_PAYG = CATALOGUE.replace(
    'models = ["test/one", "test/two"]\n', 'models = ["test/one", "test/two", "test/free"]\n'
)
LAST_OF_FEBRUARY = "2026-02-28T23:59:59.999Z"
FIRST_OF_MARCH = "2026-03-01T00:00:00Z"
HOLD_S = 5 + 30
"""How long after its admission a hold may be swept: the model's time-out, and the time to settle."""

pytestmark = [pytest.mark.both_stores, pytest.mark.usefixtures("noon")]


@pytest.fixture(scope="module")
def service(
    store: Store, module_backend: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory, clock: SetClock
) -> Iterator[RunningService]:
    """A running service whose process lives in a time zone half a day before that of its books."""
    folder = tmp_path_factory.mktemp("service")
    environ = {"TZ": "Pacific/Kiritimati"}
    with service_by(
        clock,
        folder,
        module_backend.url,
        catalogue=WITH_FREE_PAYG,
        environ=environ,
        database_url=store.new_books(folder),
    ) as running:
        yield running


# The source


@rows("decisions.credits.2", "spec.limits.cost_per_request", "spec.limits.monthly_api_credits")
def test_the_plan_pays_while_it_covers_the_whole_cost(service: RunningService, backend: ScriptedBackend) -> None:
    """The quota is used to its last credit before the balance is touched."""
    customer = service.customer("basic", balance=5)
    for _ in range(5):
        assert_paid(service.chat(customer, model="test/two"), 2, "plan")
    assert credits_left(service, customer) == (0, 5)
    assert len(backend.received) == 5


@rows("decisions.credits.2", "spec.limits.cost_per_request", "spec.limits.monthly_api_credits")
def test_the_balance_pays_the_whole_cost_when_the_quota_is_short(service: RunningService) -> None:
    """A request is never split; the rest of the quota waits for one that it covers."""
    customer = service.customer("three", balance=2)
    assert_paid(service.chat(customer, model="test/two"), 2, "plan")
    assert_paid(service.chat(customer, model="test/two"), 2, "api_balance")
    assert credits_left(service, customer) == (1, 0)
    assert_paid(service.chat(customer, model="test/one"), 1, "plan")
    assert credits_left(service, customer) == (0, 0)


@rows("decisions.credits.2", "spec.limits.cost_per_request")
def test_without_a_plan_the_balance_pays(service: RunningService) -> None:
    """Down to its last credit."""
    customer = service.customer(None, balance=3)
    assert_paid(service.chat(customer, model="test/two"), 2, "api_balance")
    assert_paid(service.chat(customer, model="test/one"), 1, "api_balance")
    assert credits_left(service, customer) == (0, 0)


@rows(
    "decisions.credits.2",
    "decisions.credits.5",
    "spec.limits.monthly_api_credits",
    "spec.codes.api_credits_exhausted",
)
def test_quota_and_balance_are_not_added_up(service: RunningService, backend: ScriptedBackend) -> None:
    """One credit here and one there do not pay for two: 402, with both told, and nothing moves."""
    customer = service.customer("three", balance=1)
    service.chat(customer, model="test/two")
    answer = service.chat(customer, model="test/two")
    details = {"period": "2026-02", "used": 2, "limit": 3, "cost": 2, "api_credit_balance": 1}
    assert_refused(answer, 402, "api_credits_exhausted", details)
    assert credits_left(service, customer) == (1, 1)
    assert len(backend.received) == 1


@rows("decisions.credits.5", "spec.codes.api_credits_exhausted")
def test_without_a_plan_the_limit_in_the_details_is_0(service: RunningService, backend: ScriptedBackend) -> None:
    """A balance that is too small is told with a quota of 0."""
    customer = service.customer(None, balance=1)
    answer = service.chat(customer, model="test/two")
    details = {"period": "2026-02", "used": 0, "limit": 0, "cost": 2, "api_credit_balance": 1}
    assert_refused(answer, 402, "api_credits_exhausted", details)
    assert credits_left(service, customer) == (0, 1)
    assert backend.received == []


@rows("decisions.credits.5", "spec.codes.api_credits_exhausted")
def test_what_a_plan_that_was_taken_away_has_paid_stays_used(service: RunningService) -> None:
    """The details tell the month's used quota beside a limit of 0."""
    customer = service.customer("three", balance=1)
    service.chat(customer, model="test/two")
    service.provisioning.set_account(customer.account_id, plan=None)
    details = {"period": "2026-02", "used": 2, "limit": 0, "cost": 2, "api_credit_balance": 1}
    assert_refused(service.chat(customer, model="test/two"), 402, "api_credits_exhausted", details)


@rows("spec.codes.api_credits_exhausted", "spec.limits.monthly_api_credits")
def test_topping_up_ends_exhaustion(service: RunningService) -> None:
    """The remedy of the table works, from the next request on."""
    customer = service.customer("three")
    for _ in range(3):
        service.chat(customer)
    assert service.chat(customer).code == "api_credits_exhausted"
    service.provisioning.add_credit(customer.account_id, 1, reference=f"more for {customer.account_id}")
    assert_paid(service.chat(customer), 1, "api_balance")
    assert service.chat(customer).code == "api_credits_exhausted"


@rows("spec.codes.upgrade_required")
def test_neither_plan_nor_balance(service: RunningService, backend: ScriptedBackend) -> None:
    """402 upgrade_required, whatever the model, one that does not exist too."""
    customer = service.customer(None)
    for model in ("test/one", "test/free", "test/dear", "no/such-model"):
        assert_refused(service.chat(customer, model=model), 402, "upgrade_required")
    assert backend.received == []


@rows("spec.codes.upgrade_required")
def test_a_spent_balance_is_none(service: RunningService) -> None:
    """When the last credit of an account without a plan is gone, it is to upgrade."""
    customer = service.customer(None, balance=1)
    assert_paid(service.chat(customer), 1, "api_balance")
    assert_refused(service.chat(customer), 402, "upgrade_required")


@rows("spec.codes.upgrade_required")
@pytest.mark.parametrize("remedy", ["plan", "api_balance"])
def test_a_plan_or_credit_is_the_upgrade(service: RunningService, remedy: str) -> None:
    """Either remedy of the table works, from the next request on."""
    customer = service.customer(None)
    assert service.chat(customer).code == "upgrade_required"
    if remedy == "plan":
        service.provisioning.set_account(customer.account_id, plan="three")
    else:
        service.provisioning.add_credit(customer.account_id, 1, reference=f"first of {customer.account_id}")
    assert_paid(service.chat(customer), 1, remedy)


# Models of 0 credits


@rows("decisions.credits.3")
def test_a_free_model_needs_no_remaining_quota(service: RunningService) -> None:
    """An exhausted account still gets its replies, and nothing is taken for them."""
    customer = service.customer("three")
    for _ in range(3):
        service.chat(customer)
    assert_paid(service.chat(customer, model="test/free"), 0, "plan")
    assert credits_left(service, customer) == (0, 0)


@rows("decisions.credits.3")
def test_a_free_model_needs_no_remaining_quota_after_a_change_to_a_smaller_plan(service: RunningService) -> None:
    """Not even when more is used than the new plan has."""
    customer = service.customer("basic")
    for _ in range(2):
        service.chat(customer, model="test/two")
    service.provisioning.set_account(customer.account_id, plan="three")
    assert_paid(service.chat(customer, model="test/free"), 0, "plan")


@rows("decisions.credits.3")
def test_a_free_model_is_had_with_a_balance_alone(service: RunningService) -> None:
    """Without a plan a balance is needed, and stays whole."""
    customer = service.customer(None, balance=1)
    assert_paid(service.chat(customer, model="test/free"), 0, "api_balance")
    assert credits_left(service, customer) == (0, 1)


@rows("decisions.credits.3", "spec.codes.upgrade_required")
def test_a_free_model_needs_a_plan_or_a_balance(service: RunningService, backend: ScriptedBackend) -> None:
    """With neither it is refused like any other."""
    assert_refused(service.chat(service.customer(None), model="test/free"), 402, "upgrade_required")
    assert backend.received == []


# Whole credits


@rows("decisions.credits.1")
def test_the_balance_is_counted_in_credits(service: RunningService) -> None:
    """A request takes its credits from the balance, not its price in toman; the price is there to read, in IRT."""
    customer = service.customer(None, balance=7)
    pricing = service.get(f"{MODELS}/test/two", customer).json["pricing"]
    assert (pricing["credits"], pricing["payg_amount"], pricing["currency"]) == (2, 300, "IRT")
    assert_paid(service.chat(customer, model="test/two"), 2, "api_balance")
    assert read_usage(service, customer)["pay_as_you_go"] == {"balance": 5}


@rows("decisions.credits.1")
def test_credits_are_whole_numbers_everywhere(service: RunningService) -> None:
    """Every figure of credits is a JSON integer."""
    customer = service.customer("three", balance=2)
    service.chat(customer, model="test/two")
    usage = read_usage(service, customer)
    figures = [*usage["api_credits"].values(), usage["pay_as_you_go"]["balance"]]
    for model in service.get(MODELS, customer).json["data"]:
        figures += [model["credits_per_request"], model["pricing"]["credits"], model["pricing"]["payg_amount"]]
    assert len(figures) > 4
    assert {type(figure) for figure in figures} == {int}


@rows("decisions.credits.1")
@pytest.mark.parametrize("amount", ["1.5", "0", "-3", "1e3", "NaN"])
def test_a_top_up_that_is_no_whole_positive_number_is_refused(service: RunningService, amount: str) -> None:
    """With a message that says so; the balance stays."""
    customer = service.customer(None, balance=7)
    done = service.run("credit", "add", customer.account_id, amount, "--reference", f"{customer.key_id} {amount}")
    assert done.returncode != 0
    assert "whole number" in done.stderr
    assert "Traceback" not in done.stderr
    assert credits_left(service, customer) == (0, 7)


@rows("decisions.credits.1")
def test_a_price_that_is_no_whole_number_is_refused(service: RunningService) -> None:
    """`tarazu check` says where it stands."""
    config = service.folder / "fraction.toml"
    config.write_text(service.config.read_text().replace("credits = 2\n", "credits = 2.5\n"))
    done = service.run("check", config=config)
    assert done.returncode == 1
    assert "credits" in done.stderr + done.stdout
    assert "2.5" in done.stderr + done.stdout


def test_the_same_top_up_posted_twice_counts_once(service: RunningService) -> None:
    """The reference of a payment is unique: the second time adds nothing and says so."""
    customer = service.customer(None)
    command = ("credit", "add", customer.account_id, "40", "--reference", f"once {customer.key_id}", "--json")
    assert [service.run(*command).returncode for _ in range(2)] == [0, 0]
    assert credits_left(service, customer) == (0, 40)


# Adjustments


@rows("decisions.credits.7")
def test_an_adjustment_counts_from_the_next_request_on(service: RunningService) -> None:
    """Taken and given, to the last credit."""
    customer = service.customer(None, balance=5)
    service.provisioning.adjust_credit(customer.account_id, -4, reason="paid twice")
    assert_paid(service.chat(customer), 1, "api_balance")
    assert_refused(service.chat(customer), 402, "upgrade_required")
    service.provisioning.adjust_credit(customer.account_id, 2, reason="outage")
    assert_paid(service.chat(customer), 1, "api_balance")
    assert credits_left(service, customer) == (0, 1)


@rows("decisions.credits.7")
def test_an_adjustment_takes_nothing_that_a_request_holds(service: RunningService, backend: ScriptedBackend) -> None:
    """Of three credits two are held: one can be taken, two cannot, and the request is paid as it was promised."""
    customer = service.customer(None, balance=3)
    take = partial(service.provisioning.adjust_credit, customer.account_id, reason="paid twice")
    with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
        with pytest.raises(ProvisioningError, match="it is 1 now, so at most 1 credits can be taken"):
            take(-2)
        take(-1)
    assert_paid(asked.result(), 2, "api_balance")
    assert credits_left(service, customer) == (0, 0)


@rows("decisions.credits.7")
def test_a_reference_counts_once_over_top_ups_and_adjustments(service: RunningService) -> None:
    """Again it changes nothing; for something else it is refused."""
    customer = service.customer(None)
    reference = f"once {customer.key_id}"
    words = (customer.account_id, "40", "--reference", reference, "--json")
    again = [service.run("credit", "adjust", *words, "--reason", "outage").returncode for _ in range(2)]
    assert (again, service.run("credit", "add", *words).returncode) == ([0, 0], 1)
    assert credits_left(service, customer) == (0, 40)


# Coming back


@rows("spec.codes.rule_2")
@pytest.mark.parametrize("source", ["plan", "api_balance"])
def test_on_502_the_reserved_credits_are_returned(
    service: RunningService, backend: ScriptedBackend, source: str
) -> None:
    """They are taken while the model is asked, and back when it has failed."""
    customer = service.customer("three") if source == "plan" else service.customer(None, balance=3)
    before = credits_left(service, customer)
    backend.behaviour = answers(b"broken", status=500)
    with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
        reserved = credits_left(service, customer)
    assert_refused(asked.result(), 502, "upstream_error")
    assert sum(reserved) == sum(before) - 2
    assert credits_left(service, customer) == before


def test_reading_usage_and_models_changes_nothing(service: RunningService) -> None:
    """No credit, no window, no row of the books is another after it."""
    customer = service.customer("three", balance=2)
    service.chat(customer)

    def everything() -> list[list[tuple[object, ...]]]:
        tables = ("accounts", "keys", "requests", "topups", "adjustments", "daily_usage", "intake")
        return [look(service, f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]  # noqa: S608 - our own names

    before = everything()
    for path in ("/api/v1/usage", MODELS, f"{MODELS}/test/one", f"{MODELS}/no/such-model"):
        service.get(path, customer)
    assert everything() == before


# The month


@rows("decisions.credits.4", "spec.limits.monthly_api_credits")
def test_the_first_call_of_the_month_works_at_once(service: RunningService, clock: SetClock) -> None:
    """The quota is whole again in the first instant of the month in UTC, whatever the time zone of the process."""
    customer = service.customer("three")
    clock.set(LAST_OF_FEBRUARY)
    for _ in range(3):
        assert_paid(service.chat(customer), 1, "plan")
    details = {"period": "2026-02", "used": 3, "limit": 3, "cost": 1, "api_credit_balance": 0}
    assert_refused(service.chat(customer), 402, "api_credits_exhausted", details)
    clock.set(FIRST_OF_MARCH)
    assert_paid(service.chat(customer), 1, "plan")
    usage = read_usage(service, customer)
    assert usage["period"] == "2026-03"
    assert usage["api_credits"] == {"used": 1, "limit": 3, "remaining": 2}


@rows("decisions.credits.4", "spec.limits.monthly_api_credits")
def test_unused_quota_does_not_carry_over(service: RunningService, clock: SetClock) -> None:
    """The new month has its own quota and no credit more."""
    customer = service.customer("three")
    service.chat(customer)
    clock.set(FIRST_OF_MARCH)
    for _ in range(3):
        assert_paid(service.chat(customer), 1, "plan")
    details = {"period": "2026-03", "used": 3, "limit": 3, "cost": 1, "api_credit_balance": 0}
    assert_refused(service.chat(customer), 402, "api_credits_exhausted", details)


def test_the_balance_carries_over(service: RunningService, clock: SetClock) -> None:
    """It is no monthly thing."""
    customer = service.customer(None, balance=2)
    service.chat(customer)
    clock.set(FIRST_OF_MARCH)
    assert credits_left(service, customer) == (0, 1)
    assert_paid(service.chat(customer), 1, "api_balance")


@rows("decisions.credits.4")
def test_the_period_is_the_month_in_the_configured_time_zone(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """In Tehran March begins at half past eight in the evening, UTC."""
    catalogue = CATALOGUE.replace("[billing]\n", '[billing]\ntimezone = "Asia/Tehran"\n')
    with service_by(
        clock, tmp_path, backend.url, catalogue=catalogue, database_url=store.new_books(tmp_path)
    ) as service:
        customer = service.customer("three")
        clock.set("2026-02-28T20:29:59.999Z")
        assert_paid(service.chat(customer, model="test/two"), 2, "plan")
        details = {"period": "2026-02", "used": 2, "limit": 3, "cost": 2, "api_credit_balance": 0}
        assert_refused(service.chat(customer, model="test/two"), 402, "api_credits_exhausted", details)
        clock.set("2026-02-28T20:30:00Z")
        assert_paid(service.chat(customer, model="test/two"), 2, "plan")
        usage = read_usage(service, customer)
        assert (usage["period"], usage["api_credits"]["used"]) == ("2026-03", 2)


@rows("decisions.credits.4")
def test_a_return_after_the_month_has_turned_leaves_the_new_quota_alone(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """The quota of a month that has passed is past."""
    customer = service.customer("three")
    clock.set(LAST_OF_FEBRUARY)
    with held(backend, partial(service.chat, customer, "Late", model="test/two"), only="Late") as (late,):
        clock.set(FIRST_OF_MARCH)
        assert_paid(service.chat(customer, model="test/two"), 2, "plan")
        backend.behaviour = answers(b"broken", status=500)
    assert_refused(late.result(), 502, "upstream_error")
    assert read_usage(service, customer)["api_credits"] == {"used": 2, "limit": 3, "remaining": 1}


@rows("decisions.credits.4")
def test_a_return_to_the_balance_knows_no_month(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """What came from the balance goes back to it, in the next month too."""
    customer = service.customer(None, balance=3)
    clock.set(LAST_OF_FEBRUARY)
    with held(backend, partial(service.chat, customer, "Late", model="test/two"), only="Late") as (late,):
        clock.set(FIRST_OF_MARCH)
        assert_paid(service.chat(customer), 1, "api_balance")
        backend.behaviour = answers(b"broken", status=500)
    assert_refused(late.result(), 502, "upstream_error")
    assert credits_left(service, customer) == (0, 2)


@rows("decisions.credits.4")
def test_a_reply_after_the_month_has_turned_is_paid_by_the_old_month(
    service: RunningService, backend: ScriptedBackend, clock: SetClock
) -> None:
    """A request belongs to the month of its admission."""
    customer = service.customer("three")
    clock.set(LAST_OF_FEBRUARY)
    with held(backend, partial(service.chat, customer, model="test/two")) as (late,):
        clock.set(FIRST_OF_MARCH)
    assert_paid(late.result(), 2, "plan")
    assert read_usage(service, customer)["api_credits"] == {"used": 0, "limit": 3, "remaining": 3}


# The price


@rows("decisions.credits.6", "spec.limits.cost_per_request")
def test_a_price_change_touches_no_request_that_is_served_meanwhile(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """One that was admitted at 2 is charged 2, while the file says 5 and the service stops for it."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer("basic")
        with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
            _price(service, "test/two", 5)
            service.process.send_signal(signal.SIGTERM)
        assert_paid(asked.result(), 2, "plan")
        assert service.stop() == 0
        service.start()
        assert read_usage(service, customer)["api_credits"]["used"] == 2
        assert_paid(service.chat(customer, model="test/two"), 5, "plan")
        assert read_usage(service, customer)["api_credits"]["used"] == 7


@rows("decisions.credits.6")
def test_a_hold_of_a_killed_process_comes_back_at_the_price_of_its_admission(
    store: Store, backend: ScriptedBackend, tmp_path: Path, clock: SetClock
) -> None:
    """Held at 2 by a process that died, it is swept after its deadline, as 2, by one that knows the price as 5."""
    with service_by(clock, tmp_path, backend.url, database_url=store.new_books(tmp_path)) as service:
        customer = service.customer(None, balance=10)
        with held(backend, partial(service.chat, customer, model="test/two")) as (asked,):
            service.kill()
            with pytest.raises((OSError, http.client.HTTPException)):
                asked.result()
        assert service.account(customer).balance == 8
        _price(service, "test/two", 5)
        clock.advance(HOLD_S + 1)
        service.start()
        assert credits_left(service, customer) == (0, 10)
        assert_paid(service.chat(customer, model="test/two"), 5, "api_balance")
        assert credits_left(service, customer) == (0, 5)


def _price(service: RunningService, model_id: str, credits_: int) -> None:
    """Change the price of a model that costs 2 in the file; it holds from the next start on."""
    text = service.config.read_text()
    old, new = (f'[models."{model_id}"]\ncredits = {figure}\n' for figure in (2, credits_))
    assert text.count(old) == 1
    service.config.write_text(text.replace(old, new))
