"""What the errors of acts are answered with, where no request can bring them about at will."""

import pytest

from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.refusals import REFUSED, refusal_of
from tarazu.api.envelope import refusal_response
from tarazu.service.back_office import BackOfficeFullError
from tarazu.service.completion import BOOKS_RETRY_AFTER_S, BUSY_RETRY_AFTER_S
from tarazu.store.availability import BooksUnavailableError


@pytest.mark.parametrize(
    ("error", "retry_after_s"),
    [
        (BackOfficeFullError("64 wait for canary"), BUSY_RETRY_AFTER_S),
        (BooksUnavailableError("The database failed: canary."), BOOKS_RETRY_AFTER_S),
    ],
)
def test_books_that_cannot_be_used(error: BooksUnavailableError, retry_after_s: int) -> None:
    """503 with the time to wait, shorter where only others are in the way; no word of the database."""
    response = refusal_response(refusal_of(error))
    assert response.status_code == AdminError.UNAVAILABLE.value.status == 503
    assert response.headers["retry-after"] == str(retry_after_s)
    assert b"canary" not in response.body


def test_a_fault_of_ours_is_none_of_them() -> None:
    """It is answered 500, as everywhere, and written into the log."""
    assert not issubclass(ValueError, REFUSED)
    assert not issubclass(AssertionError, REFUSED)
