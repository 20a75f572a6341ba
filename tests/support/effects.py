"""What a refused call has done to the books: nothing but take its place in the minute windows."""

from tests.support.backend import ScriptedBackend
from tests.support.envelopes import RATE_LIMIT_HEADERS, rate_limit_headers
from tests.support.service import Answer, Customer, RunningService
from tests.support.windows import ONE_TAKEN, places


def assert_took_only_a_place(
    service: RunningService, backend: ScriptedBackend, customer: Customer, answer: Answer
) -> None:
    """Assert that the customer's first call took one place in each window, no credits, and asked no backend."""
    assert rate_limit_headers(answer) == RATE_LIMIT_HEADERS
    assert places(service, customer) == ONE_TAKEN
    assert service.account(customer).used == 0
    assert backend.received == []
