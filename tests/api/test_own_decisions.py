"""What this project has decided beyond the two pages it began with: the last section of decisions.md."""

import pytest
from sqlalchemy import update

from tarazu.domain.calendar import minute_of
from tarazu.store.engine import transaction
from tarazu.store.schema import accounts
from tests.support.backend import ScriptedBackend
from tests.support.rows import rows
from tests.support.service import USAGE, Customer, RunningService


def _set_account(service: RunningService, customer: Customer, **columns: object) -> None:
    with transaction(service.engine) as connection:
        connection.execute(update(accounts).where(accounts.c.id == customer.account_id).values(**columns))


@rows("decisions.added_by_this_project.1")
@pytest.mark.parametrize("setting", ["max_tokens", "seed"])
def test_an_integer_with_a_fraction_of_zero_is_passed_on_as_one(
    service: RunningService, backend: ScriptedBackend, setting: str
) -> None:
    """5.0 reaches the backend as 5."""
    assert service.post(service.customer(), {"prompt": "Hello", setting: 5.0}).status == 200
    assert repr(backend.received[-1].body[setting]) == "5"


@rows("decisions.added_by_this_project.1")
def test_a_huge_max_tokens_is_cut(service: RunningService, backend: ScriptedBackend) -> None:
    """No backend is sent a number that it could not read."""
    assert service.chat(service.customer(), max_tokens=10**30).status == 200
    assert backend.received[-1].body["max_tokens"] == 2_147_483_647


@rows("decisions.added_by_this_project.2")
def test_an_empty_stop_string_is_left_out(service: RunningService, backend: ScriptedBackend) -> None:
    """Only strings that can stop something are passed on."""
    customer = service.customer()
    assert service.chat(customer, stop=["", "END"]).status == 200
    assert backend.received[-1].body["stop"] == ["END"]
    assert service.chat(customer, stop="").status == 200
    assert "stop" not in backend.received[-1].body


@rows("decisions.added_by_this_project.2")
def test_max_completion_tokens_wins(service: RunningService, backend: ScriptedBackend) -> None:
    """Of the two names of one setting the newer one counts."""
    assert service.chat(service.customer(), max_tokens=7, max_completion_tokens=9).status == 200
    assert backend.received[-1].body["max_tokens"] == 9


@rows("decisions.added_by_this_project.5")
def test_a_plan_that_is_gone_is_no_plan(service: RunningService) -> None:
    """An account whose plan has left the catalogue is asked to get another, and shown as one without a plan."""
    customer = service.customer()
    _set_account(service, customer, plan="gone")
    answer = service.chat(customer)
    assert (answer.status, answer.code) == (402, "upgrade_required")
    assert service.get(USAGE, customer).json["plan"] == "none"


@rows("decisions.added_by_this_project.6")
def test_a_clock_that_steps_back_gives_no_place_twice(service: RunningService) -> None:
    """A window that lies ahead of the clock stays in force with the places it has given."""
    customer = service.customer("narrow")
    ahead = minute_of(service.clock()) + 5
    _set_account(service, customer, window_minute=ahead, window_taken=2)
    assert service.chat(customer).headers["x-ratelimit-remaining"] == "0"
    assert service.chat(customer).code == "rate_limit_exceeded"


@rows("decisions.added_by_this_project.6")
def test_a_clock_that_steps_back_gives_no_quota_twice(service: RunningService) -> None:
    """An account that was on the page of a month ahead finds what it has used of this one."""
    customer = service.customer("three")
    for _ in range(3):
        assert service.chat(customer).status == 200
    period = service.account(customer).period
    _set_account(service, customer, period="2999-01", used=0)
    assert service.get(USAGE, customer).json["api_credits"]["used"] == 3
    answer = service.chat(customer)
    assert answer.code == "api_credits_exhausted"
    assert answer.json["error"]["details"]["period"] == period


@rows("decisions.added_by_this_project.6")
def test_a_window_far_ahead_of_the_clock_keeps_nobody_out(service: RunningService) -> None:
    """What a clock that was wrong has filled is not waited for."""
    customer = service.customer("narrow")
    _set_account(service, customer, window_minute=minute_of(service.clock()) + 60, window_taken=3)
    assert service.chat(customer).headers["x-ratelimit-remaining"] == "2"


@rows("decisions.added_by_this_project.7")
def test_the_bare_address_leads_to_the_page(service: RunningService) -> None:
    """Who opens the address in a browser is led to what explains it."""
    answer = service.get("/")
    assert (answer.status, answer.headers["location"]) == (307, "/docs")
    page = service.get("/docs")
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert f"http://127.0.0.1:{service.port}/api/v1" in page.body.decode()


@rows("decisions.added_by_this_project.8")
def test_an_invalid_setting_is_answered_before_missing_messages(service: RunningService) -> None:
    """Of a body with both faults the setting is named; of one that streams as well, the streaming."""
    customer = service.customer()
    answer = service.post(customer, {"top_p": 7})
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.json["error"]["message"] == "top_p must be a number from 0 to 1."
    assert service.post(customer, {"top_p": 7, "stream": True}).code == "streaming_not_supported"
