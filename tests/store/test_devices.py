"""Known browsers, waiting codes and second factors in the books."""

import pytest
from msgspec.structs import replace
from sqlalchemy.exc import IntegrityError

from tarazu.domain.people import PersonKind
from tarazu.domain.second_factor import SecondFactor
from tarazu.store.devices import DEVICE_DAYS, DEVICES_MAX, forget_devices, insert_device, is_known_device, renew_device
from tarazu.store.engine import transaction
from tarazu.store.operators import insert_operator
from tarazu.store.owners import Owner
from tarazu.store.pending_sign_ins import PENDING_MAX, PENDING_MS, end_pending, find_pending, insert_pending
from tarazu.store.second_factors import (
    find_second_factor,
    forget_second_factor,
    has_second_factor,
    set_second_factor,
)
from tests.support.books import Books
from tests.support.people_values import IDS, digest, make_operator
from tests.support.values import DAY_MS, NOON_MS, make_account

pytestmark = pytest.mark.both_stores

HOLDER, OPERATOR = (Owner(kind, IDS[kind]) for kind in (PersonKind.HOLDER, PersonKind.OPERATOR))


@pytest.fixture
def books(books: Books) -> Books:
    """Add a holder and an operator."""
    books.add(make_account())
    with transaction(books.engine) as connection:
        insert_operator(connection, make_operator())
    return books


@pytest.mark.parametrize(("owner", "other"), [(HOLDER, OPERATOR), (OPERATOR, HOLDER)])
def test_a_browser_is_known_to_one_person_for_half_a_year(books: Books, owner: Owner, other: Owner) -> None:
    """From its last success on."""
    end_ms = NOON_MS + DEVICE_DAYS * DAY_MS
    with transaction(books.engine) as connection:
        insert_device(connection, digest(1), owner, NOON_MS)
        assert is_known_device(connection, digest(1), owner, end_ms - 1)
        assert not is_known_device(connection, digest(1), owner, end_ms)
        assert not is_known_device(connection, digest(1), other, NOON_MS)
        assert not is_known_device(connection, digest(2), owner, NOON_MS)
        renew_device(connection, digest(1), NOON_MS + 1)
        assert is_known_device(connection, digest(1), owner, end_ms)


def test_the_browsers_that_were_used_last_stay_known(books: Books) -> None:
    """DEVICES_MAX of each person, the new one among them; one can be kept when the others are forgotten."""
    with transaction(books.engine) as connection:
        insert_device(connection, digest(99), OPERATOR, NOON_MS)
        for number in range(DEVICES_MAX + 1):
            insert_device(connection, digest(number), HOLDER, NOON_MS + number)
        known = [number for number in range(100) if is_known_device(connection, digest(number), HOLDER, NOON_MS)]
        assert known == list(range(1, DEVICES_MAX + 1))
        forget_devices(connection, HOLDER, keep=digest(2))
        known = [number for number in range(100) if is_known_device(connection, digest(number), HOLDER, NOON_MS)]
        assert known == [2]
        forget_devices(connection, HOLDER)
        assert is_known_device(connection, digest(99), OPERATOR, NOON_MS)


def test_a_code_is_waited_for_until_its_time_is_over(books: Books) -> None:
    """Of each person as many as the bound, the newest; all end at once."""
    with transaction(books.engine) as connection:
        insert_pending(connection, digest(99), OPERATOR, NOON_MS)
        for number in range(PENDING_MAX + 1):
            insert_pending(connection, digest(number), HOLDER, NOON_MS + number)
        found = [find_pending(connection, digest(number), NOON_MS) for number in range(PENDING_MAX + 1)]
        assert found == [None, *[HOLDER] * PENDING_MAX]
        assert find_pending(connection, digest(1), NOON_MS + 1 + PENDING_MS) is None
        end_pending(connection, HOLDER)
        assert find_pending(connection, digest(2), NOON_MS) is None
        assert find_pending(connection, digest(99), NOON_MS) == OPERATOR


def test_a_second_factor_reads_back_as_it_was_written(books: Books) -> None:
    """The first and another; nobody else has it."""
    factor = SecondFactor(secret=b"s" * 20, last_step=2**40, recovery=(digest(1), digest(2)))
    used = replace(factor, last_step=2**40 + 1, recovery=())
    with transaction(books.engine) as connection:
        assert find_second_factor(connection, "acc_1") is None
        for each in (factor, used):
            set_second_factor(connection, "acc_1", each, NOON_MS)
            assert find_second_factor(connection, "acc_1") == each
        assert (has_second_factor(connection, "acc_1"), has_second_factor(connection, "opr_1")) == (True, False)
        assert [forget_second_factor(connection, "acc_1") for _ in range(2)] == [True, False]


@pytest.mark.parametrize("table", ["devices", "pending_sign_ins"])
@pytest.mark.parametrize("change", ["operator_id = 'opr_1'", "account_id = NULL", "account_id = 'x'"])
def test_the_database_refuses_what_is_of_no_person(books: Books, table: str, change: str) -> None:
    """Each row is of one person, who is there."""
    with transaction(books.engine) as connection:
        insert_device(connection, digest(1), HOLDER, NOON_MS)
        insert_pending(connection, digest(1), HOLDER, NOON_MS)
    with pytest.raises(IntegrityError):
        books.execute(f"UPDATE {table} SET {change}")  # noqa: S608 - the lists above
