"""Top-ups and adjustments: each once, never below zero, and with a row that says who, when and why."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.checks import ProvisioningError
from tarazu.service.provisioning import Provisioning
from tarazu.store.adjustments import Adjustment
from tarazu.store.credit_history import ChangeKind
from tarazu.store.topups import Topup
from tests.support.books import Books, open_books
from tests.support.stores import STORES, Store
from tests.support.values import NOON_MS, make_account, make_key

THREADS = 12
OUTCOME = tuple[Topup | Adjustment, bool] | ProvisioningError


@pytest.fixture(params=STORES)
def books(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Books]:
    """Books with one account, on either store."""
    store: Store = request.getfixturevalue(f"{request.param}_store")
    with open_books(store, tmp_path) as books:
        books.add(make_account(), make_account(id="acc_2"), make_key())
        yield books
        books.assert_balanced()


@pytest.fixture
def provisioning(books: Books) -> Provisioning:
    """Act as Ada."""
    return Provisioning(books.engine, books.catalogue, books.clock, by="ada")


def at_once(act: Callable[[], tuple[Topup | Adjustment, bool]]) -> list[OUTCOME]:
    """Do the same in many threads at the same moment."""
    start = Barrier(THREADS)

    def run() -> OUTCOME:
        start.wait()
        try:
            return act()
        except ProvisioningError as error:
            return error

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(THREADS)]]


def test_an_adjustment_says_who_when_and_why(provisioning: Provisioning, books: Books) -> None:
    """Up and down; the balance follows."""
    up, was_up = provisioning.adjust_credit("acc_1", 20, reason="outage of May 3", reference="sorry")
    down, was_down = provisioning.adjust_credit("acc_1", -5, reason="paid twice")
    assert (was_up, was_down) == (True, True)
    assert (up.credits, up.reason, up.reference) == (20, "outage of May 3", "sorry")
    assert (down.credits, down.reason, down.reference) == (-5, "paid twice", None)
    assert {(each.made_by, each.created_at_ms) for each in (up, down)} == {("ada", NOON_MS)}
    assert books.figures() == (0, 15)


def test_a_balance_is_never_adjusted_below_zero(provisioning: Provisioning, books: Books) -> None:
    """The message says how much can be taken; exactly that much can be."""
    provisioning.add_credit("acc_1", 7, reference="payment")
    with pytest.raises(ProvisioningError, match="it is 7 now, so at most 7 credits can be taken"):
        provisioning.adjust_credit("acc_1", -8, reason="a correction", reference="r")
    assert books.figures() == (0, 7)
    provisioning.adjust_credit("acc_1", -7, reason="a correction", reference="r")
    assert books.figures() == (0, 0)


def test_what_is_held_cannot_be_taken(provisioning: Provisioning, books: Books) -> None:
    """Credits of a request on its way are out of the balance already."""
    provisioning.set_account("acc_1", plan=None)
    provisioning.add_credit("acc_1", 3, reference="payment")
    books.admit(model="small")
    with pytest.raises(ProvisioningError, match="it is 2 now"):
        provisioning.adjust_credit("acc_1", -3, reason="a correction")


def test_a_balance_never_passes_what_the_books_hold(provisioning: Provisioning, books: Books) -> None:
    """Neither by a top-up nor by an adjustment."""
    provisioning.add_credit("acc_1", BALANCE_MAX, reference="payment")
    for act in (
        lambda: provisioning.add_credit("acc_1", 1, reference="more"),
        lambda: provisioning.adjust_credit("acc_1", 1, reason="more"),
    ):
        with pytest.raises(ProvisioningError, match="may not pass 1000000000000000 credits"):
            act()
    assert books.figures() == (0, BALANCE_MAX)


@pytest.mark.parametrize("amount", [0, BALANCE_MAX + 1, -BALANCE_MAX - 1])
def test_an_adjustment_by_nothing_or_by_too_much_is_refused(provisioning: Provisioning, amount: int) -> None:
    """Nothing is written."""
    with pytest.raises(ProvisioningError, match="The amount must be a whole number from"):
        provisioning.adjust_credit("acc_1", amount, reason="a correction")


@pytest.mark.parametrize("reason", ["", "  ", "a\nb", "x" * 1_001])
def test_an_adjustment_needs_a_reason(provisioning: Provisioning, reason: str) -> None:
    """One that can be read on a line."""
    with pytest.raises(ProvisioningError, match="The reason must be 1 to 1000 printable characters"):
        provisioning.adjust_credit("acc_1", 1, reason=reason)


def test_the_same_reference_adjusts_once(provisioning: Provisioning, books: Books) -> None:
    """The second time it answers with the first; another reason is no other adjustment."""
    first, done = provisioning.adjust_credit("acc_1", 9, reason="a correction", reference="r")
    again, done_again = provisioning.adjust_credit("acc_1", 9, reason="the same, sent again", reference="r")
    assert (again, done, done_again) == (first, True, False)
    assert books.figures() == (0, 9)


def test_a_reference_is_one_over_topups_and_adjustments(provisioning: Provisioning, books: Books) -> None:
    """A payment's number that comes as a correction, or the other way round, is a mistake."""
    provisioning.add_credit("acc_1", 9, reference="payment")
    provisioning.adjust_credit("acc_1", 1, reason="a correction", reference="correction")
    for act in (
        lambda: provisioning.adjust_credit("acc_1", 9, reason="a correction", reference="payment"),
        lambda: provisioning.adjust_credit("acc_1", 2, reason="a correction", reference="correction"),
        lambda: provisioning.adjust_credit("acc_2", 1, reason="a correction", reference="correction"),
        lambda: provisioning.add_credit("acc_1", 1, reference="correction"),
    ):
        with pytest.raises(ProvisioningError, match=r"was used before, .* nothing was changed"):
            act()
    assert (books.figures(), books.figures("acc_2")) == ((0, 10), (0, 0))


def test_many_who_take_at_once_take_what_is_there(provisioning: Provisioning, books: Books) -> None:
    """Of twelve that take one credit from a balance of seven, seven succeed."""
    provisioning.add_credit("acc_1", 7, reference="payment")
    outcomes = at_once(lambda: provisioning.adjust_credit("acc_1", -1, reason="a correction"))
    assert sum(not isinstance(outcome, ProvisioningError) for outcome in outcomes) == 7
    assert books.figures() == (0, 0)


@pytest.mark.parametrize("kind", ChangeKind)
def test_one_reference_sent_many_times_at_once_counts_once(
    provisioning: Provisioning, books: Books, kind: ChangeKind
) -> None:
    """Everybody gets the one row as the answer, and one of them is told that it was new."""

    def act() -> tuple[Topup | Adjustment, bool]:
        if kind is ChangeKind.TOPUP:
            return provisioning.add_credit("acc_1", 5, reference="once")
        return provisioning.adjust_credit("acc_1", 5, reason="a correction", reference="once")

    outcomes = at_once(act)
    answers = [outcome for outcome in outcomes if not isinstance(outcome, ProvisioningError)]
    assert len(answers) == THREADS
    assert len({change.id for change, _ in answers}) == 1
    assert sum(is_new for _, is_new in answers) == 1
    assert books.figures() == (0, 5)


def test_the_history_is_newest_first_page_by_page(provisioning: Provisioning, books: Books) -> None:
    """Top-ups and adjustments in one list, each once, also those of the same millisecond."""
    made = []
    for number in range(5):
        books.clock.now_ms += number % 2
        made.append(provisioning.add_credit("acc_1", 10, reference=f"payment {number}", note="thanks")[0].id)
        made.append(provisioning.adjust_credit("acc_1", -1, reason=f"correction {number}")[0].id)
    provisioning.add_credit("acc_2", 1, reference="another's")
    whole = provisioning.credit_history("acc_1", limit=100)
    assert {change.id for change in whole} == set(made)
    assert [change.created_at_ms for change in whole] == sorted((c.created_at_ms for c in whole), reverse=True)
    assert {(change.kind, change.credits, change.made_by) for change in whole} == {
        (ChangeKind.TOPUP, 10, "ada"),
        (ChangeKind.ADJUSTMENT, -1, "ada"),
    }
    assert {change.why for change in whole} == {"thanks", *(f"correction {number}" for number in range(5))}
    pages, before = [], None
    while page := provisioning.credit_history("acc_1", limit=3, before=before):
        pages += page
        before = page[-1].id
    assert pages == whole


def test_a_history_begins_only_at_a_change_of_its_account(provisioning: Provisioning) -> None:
    """Another account's change is none here."""
    other, _ = provisioning.add_credit("acc_2", 1, reference="another's")
    with pytest.raises(ProvisioningError, match=f"acc_1 has no change '{other.id}'"):
        provisioning.credit_history("acc_1", limit=3, before=other.id)


def test_whoever_acts_has_a_name(books: Books) -> None:
    """A row that says who is worth nothing with an empty name."""
    with pytest.raises(ProvisioningError, match="name of who does it"):
        Provisioning(books.engine, books.catalogue, books.clock, by=" ")
