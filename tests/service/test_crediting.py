"""Top-ups and adjustments: each once, never below zero, and with a row that says who, when and why."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
from msgspec.structs import replace
from sqlalchemy import text

from tarazu.domain.credits import BALANCE_MAX, Hold
from tarazu.service.crediting import record_topup
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import ProvisioningError
from tarazu.store.adjustments import Adjustment
from tarazu.store.credit_history import ChangeKind
from tarazu.store.topups import Topup
from tests.support.at_once import at_once, wait_until
from tests.support.books import Books, make_topup, release
from tests.support.values import NOON_MS, held, make_account, make_key

pytestmark = pytest.mark.both_stores

Outcome = tuple[Topup | Adjustment, bool] | ProvisioningError
Act = Callable[[], tuple[Topup | Adjustment, bool]]
_WAITING = text("SELECT count(*) FROM pg_locks WHERE NOT granted")


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with two accounts, of which one has a key."""
    books.add(make_account(), make_account(id="acc_2"), make_key())
    return books


@pytest.fixture
def provisioning(books: Books) -> Provisioning:
    """Act as Ada."""
    return Provisioning(books.engine, books.catalogue, books.clock, by="ada")


def outcome(act: Act) -> Outcome:
    """Do it; what is said against it is an outcome too."""
    try:
        return act()
    except ProvisioningError as error:
        return error


def done(outcomes: list[Outcome]) -> list[Topup | Adjustment]:
    """Take out what was done just now."""
    return [each[0] for each in outcomes if not isinstance(each, ProvisioningError) and each[1]]


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
    held(books.admit())
    with pytest.raises(ProvisioningError, match="it is 2 now"):
        provisioning.adjust_credit("acc_1", -3, reason="a correction")


def test_what_a_hold_gives_back_beyond_the_bound_can_be_taken(provisioning: Provisioning, books: Books) -> None:
    """The bound is for what is given: above it a balance can still be corrected downwards."""
    provisioning.set_account("acc_1", plan=None)
    books.add(make_topup(BALANCE_MAX))
    hold = held(books.admit())
    provisioning.adjust_credit("acc_1", 1, reason="a correction")
    books.run(release(hold))
    assert books.figures() == (0, BALANCE_MAX + 1)
    with pytest.raises(ProvisioningError, match="at most 0 credits can be given"):
        provisioning.adjust_credit("acc_1", 1, reason="a correction")
    provisioning.adjust_credit("acc_1", -1, reason="a correction")
    assert books.figures() == (0, BALANCE_MAX)


def test_a_balance_never_passes_what_the_books_hold(provisioning: Provisioning, books: Books) -> None:
    """Neither by a top-up nor by an adjustment."""
    provisioning.add_credit("acc_1", BALANCE_MAX, reference="payment")
    for act in (
        lambda: provisioning.add_credit("acc_1", 1, reference="more"),
        lambda: provisioning.adjust_credit("acc_1", 1, reason="more"),
    ):
        with pytest.raises(
            ProvisioningError, match=r"may not pass 1000000000000000 credits; .* at most 0 credits can be"
        ):
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
    with pytest.raises(ProvisioningError, match=r"The reason (is missing|must be 1 to 1000 printable characters)"):
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


def test_twenty_who_take_at_once_take_what_is_there(provisioning: Provisioning, books: Books) -> None:
    """Of twenty that take one credit from a balance of seven, seven succeed; the others are told why not."""
    provisioning.add_credit("acc_1", 7, reference="payment")
    take = partial(provisioning.adjust_credit, "acc_1", -1, reason="a correction")
    outcomes = at_once([partial(outcome, take)] * 20)
    assert len(done(outcomes)) == 7
    told = {str(each).partition(".")[0] for each in outcomes if isinstance(each, ProvisioningError)}
    assert told == {"The balance may not be below zero; it is 0 now, so at most 0 credits can be taken"}
    assert books.figures() == (0, 0)


def test_adjustments_and_requests_at_once_take_what_is_there(provisioning: Provisioning, books: Books) -> None:
    """Ten corrections and twenty requests of one credit each, on a balance of fifteen: fifteen of them have it."""
    provisioning.set_account("acc_1", plan=None)
    provisioning.add_credit("acc_1", 15, reference="payment")
    corrected: list[bool] = []
    admitted: list[bool] = []

    def correct() -> None:
        taken = outcome(partial(provisioning.adjust_credit, "acc_1", -1, reason="a correction"))
        corrected.append(not isinstance(taken, ProvisioningError))

    def ask() -> None:
        admitted.append(isinstance(books.admit().outcome, Hold))

    at_once([correct, ask, ask] * 10)
    assert (len(corrected), len(admitted)) == (10, 20)
    assert sum(corrected) + sum(admitted) == 15
    assert books.figures() == (0, 0)


def test_many_who_give_at_once_do_not_pass_what_the_books_hold(provisioning: Provisioning, books: Books) -> None:
    """Top-ups and adjustments of one credit each, three below the bound: three of them count."""
    books.add(make_topup(BALANCE_MAX - 3))
    acts: list[Act] = [
        *(partial(provisioning.add_credit, "acc_1", 1, reference=f"payment {number}") for number in range(5)),
        *[partial(provisioning.adjust_credit, "acc_1", 1, reason="a correction")] * 5,
    ]
    assert len(done(at_once([partial(outcome, act) for act in acts]))) == 3
    assert books.figures() == (0, BALANCE_MAX)


@pytest.mark.parametrize("kind", ChangeKind)
def test_one_reference_sent_ten_times_at_once_counts_once(
    provisioning: Provisioning, books: Books, kind: ChangeKind
) -> None:
    """Everybody gets the one row as the answer, and one of them is told that it was new."""

    def act() -> tuple[Topup | Adjustment, bool]:
        if kind is ChangeKind.TOPUP:
            return provisioning.add_credit("acc_1", 5, reference="once")
        return provisioning.adjust_credit("acc_1", 5, reason="a correction", reference="once")

    answers = at_once([act] * 10)
    assert len({change.id for change, _ in answers}) == 1
    assert sum(is_new for _, is_new in answers) == 1
    assert books.figures() == (0, 5)


@pytest.mark.parametrize("is_undone", [False, True])
def test_whoever_comes_second_with_a_reference_waits_for_the_first(
    provisioning: Provisioning, books: Books, *, is_undone: bool
) -> None:
    """What comes of the first decides: once it is committed it is the answer, once it is undone the second counts."""
    with ThreadPoolExecutor(1) as pool, books.engine.connect() as connection, connection.begin() as first:
        record_topup(connection, make_topup(5, reference="once"))
        second = pool.submit(provisioning.add_credit, "acc_1", 5, reference="once")
        if connection.dialect.name == "postgresql":  # SQLite does not tell, and lets it begin only afterwards
            wait_until(lambda: connection.execute(_WAITING).scalar_one() == 1)
        assert not second.done()
        if is_undone:
            first.rollback()
        else:
            first.commit()
        assert second.result()[1] is is_undone
    assert books.figures() == (0, 5)


def test_one_reference_for_different_things_at_once_is_one_of_them(provisioning: Provisioning, books: Books) -> None:
    """A top-up, another account's, and adjustments: the first has the reference, the others are told what it is for."""
    acts: list[Act] = [
        partial(provisioning.add_credit, "acc_1", 5, reference="once"),
        partial(provisioning.add_credit, "acc_2", 5, reference="once"),
        partial(provisioning.adjust_credit, "acc_1", 5, reason="a correction", reference="once"),
        partial(provisioning.adjust_credit, "acc_2", 5, reason="a correction", reference="once"),
    ]
    outcomes = at_once([partial(outcome, act) for act in acts])
    [first] = done(outcomes)
    refusals = [str(each) for each in outcomes if isinstance(each, ProvisioningError)]
    assert len(refusals) == 3
    assert all("once was used before" in text and first.account_id in text for text in refusals)
    assert books.figures("acc_1")[1] + books.figures("acc_2")[1] == 5


def test_the_history_is_newest_first_page_by_page(provisioning: Provisioning, books: Books) -> None:
    """Top-ups and adjustments in one list, each once, also those of the same millisecond."""
    made = []
    for number in range(5):
        books.clock.now_ms += number % 2
        made.append(provisioning.add_credit("acc_1", 10, reference=f"payment {number}", note="thanks")[0].id)
        made.append(provisioning.adjust_credit("acc_1", -1, reason=f"correction {number}")[0].id)
    provisioning.add_credit("acc_2", 1, reference="another's")
    history = provisioning.credit_history("acc_1", limit=10)
    assert (history.account.balance, history.more) == (45, False)
    whole = history.changes
    assert sorted(change.id for change in whole) == sorted(made)
    assert [change.created_at_ms for change in whole] == sorted((c.created_at_ms for c in whole), reverse=True)
    assert {(change.kind, change.credits, change.made_by) for change in whole} == {
        (ChangeKind.TOPUP, 10, "ada"),
        (ChangeKind.ADJUSTMENT, -1, "ada"),
    }
    assert {change.why for change in whole} == {"thanks", *(f"correction {number}" for number in range(5))}
    page = provisioning.credit_history("acc_1", limit=3)
    pages = [*page.changes]
    while page.more:
        page = provisioning.credit_history("acc_1", limit=3, before=page.changes[-1].id)
        pages += page.changes
    assert pages == [*whole]


def test_a_top_up_from_before_has_nobody_in_the_history(provisioning: Provisioning, books: Books) -> None:
    """A release that did not record who did it left no name; it is not made up."""
    books.add(replace(make_topup(5), made_by=None))
    [change] = provisioning.credit_history("acc_1").changes
    assert (change.credits, change.made_by, change.why) == (5, None, None)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_page_of_the_history_is_bounded(provisioning: Provisioning, limit: int) -> None:
    """A length out of bounds is refused, not set right."""
    with pytest.raises(ProvisioningError, match=f"The limit must be 1 to 1000, not {limit}"):
        provisioning.credit_history("acc_1", limit=limit)


def test_a_history_begins_only_at_a_change_of_its_account(provisioning: Provisioning) -> None:
    """Another account's change is none here."""
    other, _ = provisioning.add_credit("acc_2", 1, reference="another's")
    with pytest.raises(ProvisioningError, match=f"acc_1 has no change '{other.id}'"):
        provisioning.credit_history("acc_1", before=other.id)


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\udcff", "x" * 201])
def test_whoever_changes_a_balance_has_a_name(books: Books, name: str) -> None:
    """A row that says who is worth nothing with an empty name. Looking needs none."""
    nobody = Provisioning(books.engine, books.catalogue, books.clock, by=name)
    for act in (
        lambda: nobody.add_credit("acc_1", 1, reference="payment"),
        lambda: nobody.adjust_credit("acc_1", 1, reason="a correction"),
    ):
        with pytest.raises(
            ProvisioningError, match=r"The name of who does it (is missing|must be 1 to 200 printable characters)"
        ):
            act()
    assert nobody.credit_history("acc_1").changes == ()
