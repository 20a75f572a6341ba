"""What the tests of the admin API share: a program whose token may do everything."""

import pytest

from tests.support.admin import AdminClient, admin_client
from tests.support.service import RunningService


@pytest.fixture(scope="module")
def admin(service: RunningService) -> AdminClient:
    """A program that may do everything."""
    return admin_client(service)
