"""What has ended is taken away, and nothing else."""

import pytest

from tarazu.domain.attempts import Rule
from tarazu.domain.errors import Error
from tarazu.domain.people import PersonKind
from tarazu.domain.refused import KEPT_MS, Kind, Refused
from tarazu.store.devices import DEVICE_DAYS, insert_device
from tarazu.store.ended import ENDED_MAX, take_ended_away
from tarazu.store.engine import transaction
from tarazu.store.invitations import replace_invitation
from tarazu.store.owners import Owner
from tarazu.store.pending_sign_ins import PENDING_MS, insert_pending
from tarazu.store.refused_requests import write_refused
from tarazu.store.sessions import insert_session
from tarazu.store.sign_in_failures import count_failure
from tests.support.books import Books
from tests.support.people_values import digest, make_session
from tests.support.values import DAY_MS, NOON_MS, make_account

pytestmark = pytest.mark.both_stores

TABLES = ("sessions", "invitations", "devices", "pending_sign_ins", "sign_in_failures", "refused_requests")


def taken(books: Books, now_ms: int) -> int:
    """Take away what has ended."""
    with transaction(books.engine) as connection:
        return take_ended_away(connection, now_ms)


def sizes(books: Books) -> list[int]:
    """Count the rows of each table."""
    return [books.rows(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]  # noqa: S608 - the list above


def test_what_has_ended_goes_and_what_has_not_stays(books: Books) -> None:
    """Each kind at the instant of its own end."""
    end_ms = make_session(1).expires_at_ms
    books.add(make_account(), make_account(id="acc_2"))
    with transaction(books.engine) as connection:
        for number, account_id in ((1, "acc_1"), (2, "acc_2")):
            expires_at_ms = end_ms + number - 1
            insert_session(connection, make_session(number, now_ms=NOON_MS + number - 1))
            owner = Owner(PersonKind.HOLDER, account_id)
            replace_invitation(connection, digest(number), owner, created_at_ms=0, expires_at_ms=expires_at_ms)
            insert_device(connection, digest(number), owner, expires_at_ms - DEVICE_DAYS * DAY_MS)
            insert_pending(connection, digest(number), owner, expires_at_ms - PENDING_MS)
            count_failure(connection, {digest(number): Rule(5, end_ms - NOON_MS, 1)}, NOON_MS + number - 1)
            kind = Kind(
                account_id=account_id,
                key_id="key_1",
                error=Error.ACCOUNT_UNAVAILABLE,
                model_id=None,
                slot_ms=expires_at_ms - KEPT_MS,
            )
            write_refused(connection, [Refused(kind=kind, requests=1, first_at_ms=0, last_at_ms=0)])
    assert (taken(books, end_ms - 1), sizes(books)) == (0, [2] * 6)
    assert (taken(books, end_ms), sizes(books)) == (1, [1] * 6)
    assert (taken(books, end_ms + 1), sizes(books)) == (1, [0] * 6)


def test_no_more_than_the_bound_go_at_once(books: Books) -> None:
    """It tells that there may be more."""
    rules = {digest(number): Rule(5, 1, 1) for number in range(ENDED_MAX + 1)}
    with transaction(books.engine) as connection:
        count_failure(connection, rules, NOON_MS)
    assert taken(books, NOON_MS + 1) == ENDED_MAX
    assert taken(books, NOON_MS + 1) == 1
    assert sizes(books) == [0] * 6
