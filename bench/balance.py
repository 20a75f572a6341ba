"""Books after a benchmark: they must balance, and hold the charges of what was served."""

from sqlalchemy import Engine, func, select

from tarazu.cli.clock import system_clock
from tarazu.domain.credits import RequestState
from tarazu.service.auditing import audit_books
from tarazu.store.engine import transaction
from tarazu.store.schema import requests


class BooksDifferError(Exception):
    """The books are not what the requests should have made them."""


def assert_balanced(engine: Engine) -> None:
    """Audit the books.

    Raises:
        BooksDifferError: a figure is not the sum of its parts.
    """
    if differences := audit_books(engine, system_clock).differences:
        raise BooksDifferError(f"The books do not balance: {differences}")


def charged_requests(engine: Engine) -> int:
    """Count the requests that are charged."""
    with transaction(engine, read_only=True) as connection:
        query = select(func.count()).select_from(requests).where(requests.c.state == RequestState.CHARGED)
        return connection.execute(query).scalar_one()
