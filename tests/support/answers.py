"""What answers say about credits, checked whole, and what the books say."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import text

from tarazu.store.engine import transaction
from tests.support.envelopes import RATE_LIMIT_HEADERS, assert_domain_error, rate_limit_headers
from tests.support.service import USAGE, Answer, Asking, Customer, RunningService


def assert_refused(
    answer: Answer, status: int, code: str, details: Mapping[str, Any] | None = None, *, counted: bool = True
) -> None:
    """Check a domain error whole, the types of its details too. `counted`: it has reached the minute windows."""
    found = assert_domain_error(answer, status, code)
    assert found == (details or {})
    assert [type(found[name]) for name in found] == [type((details or {})[name]) for name in found]
    assert rate_limit_headers(answer) == (RATE_LIMIT_HEADERS if counted else set())


def assert_paid(answer: Answer, credits_: int, source: str) -> None:
    """Check that a completion came, what it cost, and where that was taken from."""
    assert answer.status == 200, answer.body
    usage = answer.json["usage"]
    assert (usage["credits"], type(usage["credits"]), usage["billing_source"]) == (credits_, int, source)


def is_replay(answer: Answer) -> bool:
    """Tell whether the answer is a completion that says it is a replay."""
    assert answer.status == 200, answer.body
    assert answer.headers.get("idempotent-replayed") in {None, "true"}
    return "idempotent-replayed" in answer.headers


def credits_left(service: Asking, customer: Customer) -> tuple[int, int]:
    """Tell, by GET /usage, the remaining quota and the balance. What was asked of the books before is done by then."""
    usage = read_usage(service, customer)
    return usage["api_credits"]["remaining"], usage["pay_as_you_go"]["balance"]


def read_usage(service: Asking, customer: Customer) -> dict[str, Any]:
    """GET /usage."""
    answer = service.get(USAGE, customer)
    assert answer.status == 200, answer.body
    usage: dict[str, Any] = answer.json
    return usage


def statuses(answers: Sequence[Answer]) -> list[int]:
    """List the statuses, sorted."""
    return sorted(answer.status for answer in answers)


def states_of(service: RunningService, customer: Customer) -> list[str]:
    """Read the states of a customer's requests from the books, oldest first."""
    query = "SELECT state FROM requests WHERE account_id = :id ORDER BY id"
    return [state for (state,) in look(service, query, id=customer.account_id)]


def look(service: RunningService, query: str, **values: object) -> list[tuple[Any, ...]]:
    """Read the tables of the books, for what no answer shows."""
    with transaction(service.engine, read_only=True) as connection:
        return [tuple(row) for row in connection.execute(text(query), values)]
