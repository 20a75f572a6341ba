"""The audit: every figure that its rows do not bear out is named, with its account, and nothing else is."""

from typing import Any

import pytest
from sqlalchemy import event

from tarazu.store.audit import Difference, audit
from tarazu.store.operations import Sweep
from tests.support.books import Books, charge, make_topup, release, sqlite_only
from tests.support.values import DAY, DAY_MS, NOON_MS, held, make_account, make_key

pytestmark = pytest.mark.both_stores


@pytest.fixture
def books(books: Books) -> Books:
    """Two accounts with a request of each state, from the plan and from the balance; they balance."""
    books.add(make_account(), make_key(1))
    books.add(make_account(id="acc_2", plan=None), make_key(2, account_id="acc_2"), make_topup(50, account_id="acc_2"))
    swept = [held(books.admit(number, "large")) for number in (1, 2)]
    books.clock.now_ms = swept[0].deadline_ms + 1
    books.run(Sweep())
    books.clock.now_ms = NOON_MS
    for number in (1, 2):
        books.run(charge(held(books.admit(number, "large"))), release(held(books.admit(number, "large"))))
        held(books.admit(number, "small"))
    assert sorted(books.states()) == sorted(["swept", "charged", "released", "held"] * 2)
    books.assert_balanced()
    return books


def difference(account_id: str, figure: str, subject: str, booked: int, computed: int) -> Difference:
    """Name a difference."""
    return Difference(account_id=account_id, figure=figure, subject=subject, booked=booked, computed=computed)


def released_request(books: Books) -> str:
    """Tell the request of `acc_1` that was released: it is in no figure."""
    [(request_id,)] = books.rows("SELECT id FROM requests WHERE state = 'released' AND account_id = 'acc_1'")
    return str(request_id)


def test_balanced_books_have_no_differences_and_are_counted(books: Books) -> None:
    """How much was compared is part of the report."""
    report = books.audit()
    assert (report.accounts, report.requests, report.found, report.differences) == (2, 8, 0, ())
    assert {rule.found for rule in report.rules} == {0}


def test_empty_books_balance(books: Books) -> None:
    """Nothing is no difference."""
    for table in ("daily_usage", "requests", "topups", "keys", "accounts"):
        books.execute(f"DELETE FROM {table}")  # noqa: S608 - the names above
    report = books.audit()
    assert (report.accounts, report.requests, report.differences) == (0, 0, ())


# Used quota.


def test_a_used_figure_that_is_off_is_named(books: Books) -> None:
    """Used quota = credits of the period's plan requests, held or charged."""
    books.execute("UPDATE accounts SET used = used + 1 WHERE id = 'acc_1'")
    assert books.audit().differences == (difference("acc_1", "used", "2026-02", 7, 6),)


def test_used_quota_without_any_request_is_named(books: Books) -> None:
    """Also where there are no rows at all to add up."""
    books.execute("UPDATE accounts SET used = 3 WHERE id = 'acc_2'")
    assert books.audit().differences == (difference("acc_2", "used", "2026-02", 3, 0),)


def test_a_hold_that_was_lost_is_named(books: Books) -> None:
    """A row that is gone took credits that nobody can give back."""
    books.execute("DELETE FROM requests WHERE state = 'held' AND account_id = 'acc_1'")
    assert books.audit().differences == (difference("acc_1", "used", "2026-02", 6, 5),)


def test_a_state_that_was_changed_by_hand_is_named(books: Books) -> None:
    """A hold that was ended without giving back."""
    books.execute("UPDATE requests SET state = 'released', ended_at_ms = 1 WHERE state = 'held' AND source = 'plan'")
    assert books.audit().differences == (difference("acc_1", "used", "2026-02", 6, 5),)


def test_requests_of_another_period_are_not_in_used(books: Books) -> None:
    """Only those of the account's page count."""
    books.execute("UPDATE accounts SET period = '2026-03', used = 0 WHERE id = 'acc_1'")
    books.assert_balanced()
    books.execute("UPDATE accounts SET period = '2026-03', used = 6 WHERE id = 'acc_1'")
    assert books.audit().differences == (difference("acc_1", "used", "2026-03", 6, 0),)


# Balance.


def test_a_balance_that_is_off_is_named(books: Books) -> None:
    """Balance = top-ups - credits of its requests from the balance, held or charged."""
    books.execute("UPDATE accounts SET balance = balance + 100 WHERE id = 'acc_2'")
    assert books.audit().differences == (difference("acc_2", "balance", "", 144, 44),)


def test_a_balance_without_a_top_up_is_named(books: Books) -> None:
    """Money that came in by no top-up."""
    books.execute("UPDATE accounts SET balance = 9 WHERE id = 'acc_1'")
    assert books.audit().differences == (difference("acc_1", "balance", "", 9, 0),)


def test_a_top_up_that_was_not_added_is_named(books: Books) -> None:
    """The row alone does not make the balance."""
    books.execute("INSERT INTO topups VALUES ('top_x', 'acc_2', 6, 'payment x', NULL, 1, 'tests')")
    assert books.audit().differences == (difference("acc_2", "balance", "", 44, 50),)


def test_a_request_booked_to_the_wrong_source_is_named_twice(books: Books) -> None:
    """The quota and the balance are both off."""
    books.execute("UPDATE requests SET source = 'api_balance' WHERE state = 'charged' AND account_id = 'acc_1'")
    assert books.audit().differences == (
        difference("acc_1", "used", "2026-02", 6, 1),
        difference("acc_1", "balance", "", 0, -5),
    )


@sqlite_only
def test_a_balance_below_zero_is_named_even_if_its_rows_bear_it_out(books: Books) -> None:
    """Overdrawn is a difference of its own; the CHECK that forbids it is put aside here."""
    books.execute("UPDATE topups SET credits = 1 WHERE account_id = 'acc_2'")
    books.execute_unguarded("UPDATE accounts SET balance = -5 WHERE id = 'acc_2'")
    assert books.audit().differences == (difference("acc_2", "balance", "", -5, -5),)


# Daily usage.


@pytest.mark.parametrize(
    ("column", "computed"), [("requests", 1), ("credits", 5), ("prompt_tokens", 10), ("completion_tokens", 20)]
)
def test_a_usage_figure_that_is_off_is_named(books: Books, column: str, computed: int) -> None:
    """Daily usage = the charged requests of that day, by account, key and model."""
    books.execute(f"UPDATE daily_usage SET {column} = {column} + 2 WHERE account_id = 'acc_2'")  # noqa: S608
    subject = f"{DAY} {make_key(2).id} large"
    assert books.audit().differences == (
        difference("acc_2", f"daily usage: {column}", subject, computed + 2, computed),
    )


@pytest.mark.parametrize(
    "change", ["day = '2026-02-11'", f"key_id = '{make_key(2).id}'", "model_id = 'small'", "account_id = 'acc_2'"]
)
def test_usage_booked_in_the_wrong_place_is_named_in_both(books: Books, change: str) -> None:
    """One row too many, and one that is missing, each with its four figures."""
    books.execute(f"UPDATE daily_usage SET {change} WHERE account_id = 'acc_1'")  # noqa: S608 - the list above
    differences = books.audit().differences
    assert len(differences) == 8
    assert {each.subject for each in differences} >= {f"{DAY} {make_key(1).id} large"}
    assert sorted((each.booked, each.computed) for each in differences if each.figure == "daily usage: credits") == [
        (0, 5),
        (5, 0),
    ]


def test_usage_that_is_missing_is_named(books: Books) -> None:
    """A charge that was not added up."""
    books.execute("DELETE FROM daily_usage WHERE account_id = 'acc_1'")
    subject = f"{DAY} {make_key(1).id} large"
    assert books.audit().differences == (
        difference("acc_1", "daily usage: requests", subject, 0, 1),
        difference("acc_1", "daily usage: credits", subject, 0, 5),
        difference("acc_1", "daily usage: prompt_tokens", subject, 0, 10),
        difference("acc_1", "daily usage: completion_tokens", subject, 0, 20),
    )


@pytest.mark.parametrize(("column", "booked"), [("prompt_tokens", 10), ("completion_tokens", 20)])
def test_a_charge_of_nobody_knows_how_many_tokens_is_named(books: Books, column: str, booked: int) -> None:
    """The daily usage is compared with what the other charges have."""
    [(request_id,)] = books.rows("SELECT id FROM requests WHERE state = 'charged' AND account_id = 'acc_1'")
    books.execute(f"UPDATE requests SET {column} = NULL WHERE id = :id", id=request_id)  # noqa: S608 - the list above
    assert books.audit().differences == (
        difference("acc_1", f"daily usage: {column}", f"{DAY} {make_key(1).id} large", booked, 0),
        difference("acc_1", "charged request without its tokens", request_id, 1, 0),
    )


def test_a_row_of_daily_usage_for_no_request_is_named(books: Books) -> None:
    """Its figures are right, but there is no reason for it."""
    key_id = make_key(1).id
    books.execute(f"INSERT INTO daily_usage VALUES ('acc_1', '{DAY}', '{key_id}', 'none', 0, 0, 0, 0)")  # noqa: S608
    assert books.audit().differences == (
        difference("acc_1", "daily usage without a request", f"{DAY} {key_id} none", 1, 0),
    )


# Overdue holds.


def test_a_hold_older_than_allowed_is_named(books: Books) -> None:
    """Before that, none is: a hold may be as old as its deadline plus the sweep interval."""
    [(request_id, deadline_ms)] = books.rows(
        "SELECT id, deadline_ms FROM requests WHERE state = 'held' AND account_id = 'acc_1'"
    )
    books.execute("UPDATE requests SET deadline_ms = deadline_ms + 9 WHERE account_id = 'acc_2'")
    assert books.audit(deadline_ms).differences == ()
    assert books.audit(deadline_ms + 1).differences == (
        difference("acc_1", "overdue hold: deadline_ms", request_id, deadline_ms, deadline_ms + 1),
    )


def test_ended_requests_are_never_overdue(books: Books) -> None:
    """Whatever their deadlines were."""
    books.clock.now_ms += DAY_MS
    books.run(Sweep())
    assert books.audit(books.clock.now_ms).differences == ()


# Requests by themselves.


def test_a_request_in_a_period_before_its_day_is_named(books: Books) -> None:
    """It would count for a month that was over."""
    request_id = released_request(books)
    books.execute("UPDATE requests SET period = '2026-01' WHERE id = :id", id=request_id)
    assert books.audit().differences == (difference("acc_1", "request in a period before its day", request_id, 1, 0),)


def test_a_request_in_a_later_period_than_its_day_is_none(books: Books) -> None:
    """Releases before 0002 turned no page back: a clock that stepped back over a month's edge left such rows."""
    books.execute("UPDATE accounts SET period = '2026-03'")
    books.execute("UPDATE requests SET period = '2026-03'")
    books.assert_balanced()


@sqlite_only
@pytest.mark.parametrize(
    "change", ["ended_at_ms = NULL WHERE state = 'released'", "ended_at_ms = 1 WHERE state = 'held'"]
)
def test_a_state_that_its_end_belies_is_named(books: Books, change: str) -> None:
    """Ended without a time, or held with one; the CHECK that forbids it is put aside here."""
    books.execute_unguarded(f"UPDATE requests SET {change}")  # noqa: S608 - the list above
    report = books.audit()
    assert {each.figure for each in report.differences} == {"request whose state and time of its end disagree"}
    assert [each.account_id for each in report.differences] == ["acc_1", "acc_2"]


# Owners of rows.


def test_requests_of_no_account_are_named(books: Books) -> None:
    """Nor the keys and top-ups that an account has left behind; foreign keys are put aside here."""
    books.execute_unguarded("DELETE FROM accounts WHERE id = 'acc_2'")
    key_id = make_key(2).id
    [(topup_id,)] = books.rows("SELECT id FROM topups")
    assert books.audit().differences == (
        difference("acc_2", "requests of an account that does not exist", key_id, 4, 0),
        difference("acc_2", "keys of an account that does not exist", key_id, 1, 0),
        difference("acc_2", "topups of an account that does not exist", topup_id, 1, 0),
    )


def test_requests_with_no_key_are_named(books: Books) -> None:
    """The key is gone; foreign keys are put aside here."""
    key_id = make_key(2).id
    books.execute_unguarded(f"DELETE FROM keys WHERE id = '{key_id}'")  # noqa: S608
    assert books.audit().differences == (
        difference("acc_2", "requests with a key that is not the account's", key_id, 4, 0),
    )


def test_requests_with_the_key_of_another_account_are_named(books: Books) -> None:
    """Whoever has used the key, another paid."""
    key_id = make_key(2).id
    books.execute("UPDATE requests SET key_id = :key_id WHERE id = :id", key_id=key_id, id=released_request(books))
    assert books.audit().differences == (
        difference("acc_1", "requests with a key that is not the account's", key_id, 1, 0),
    )


# All together.


def test_all_differences_are_reported_at_once(books: Books) -> None:
    """Whoever mends the books sees the whole of it."""
    books.execute("UPDATE accounts SET used = 99, balance = 99")
    books.execute("UPDATE daily_usage SET requests = 99")
    figures = [(each.account_id, each.figure) for each in books.audit(10**15).differences]
    assert figures == [
        ("acc_1", "used"),
        ("acc_2", "used"),
        ("acc_1", "balance"),
        ("acc_2", "balance"),
        ("acc_1", "daily usage: requests"),
        ("acc_2", "daily usage: requests"),
        ("acc_1", "overdue hold: deadline_ms"),
        ("acc_2", "overdue hold: deadline_ms"),
    ]


def test_of_very_many_differences_the_first_are_listed_and_all_counted(
    books: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Books that are broken through and through fill neither the memory nor the screen, and no rule hides another."""
    monkeypatch.setattr("tarazu.store.audit.LISTED_MAX", 3)
    monkeypatch.setattr("tarazu.store.audit.ROWS_AT_ONCE", 2)
    books.execute("UPDATE accounts SET used = 99, balance = 99 WHERE id = 'acc_1'")
    books.execute("DELETE FROM daily_usage")
    report = books.audit()
    found = {rule.name: (rule.found, rule.listed) for rule in report.rules if rule.found}
    assert found == {"used quotas": (1, 1), "balances": (1, 1), "daily usage": (8, 3)}
    assert (report.found, len(report.differences)) == (10, 5)


@pytest.mark.parametrize("slice_", [1, 3, 7, 8])
def test_requests_that_are_added_up_in_slices_are_the_same(
    books: Books, monkeypatch: pytest.MonkeyPatch, slice_: int
) -> None:
    """Wherever the cuts are, and where rows are missing between them."""
    monkeypatch.setattr("tarazu.store.sums.SLICE", slice_)
    assert (books.audit().requests, books.audit().differences) == (8, ())
    books.execute("DELETE FROM requests WHERE state IN ('released', 'swept')")
    assert (books.audit().requests, books.audit().differences) == (4, ())
    books.execute("UPDATE requests SET credits = credits + 1 WHERE state = 'charged' AND account_id = 'acc_1'")
    assert books.audit().differences == (
        difference("acc_1", "used", "2026-02", 6, 7),
        difference("acc_1", "daily usage: credits", f"{DAY} {make_key(1).id} large", 5, 6),
    )


@sqlite_only
def test_only_a_slice_is_sorted_in_memory(books: Books) -> None:
    """What grows with the books is read in the order of a key: SQLite's own sorts know no disk."""
    sorting: list[str] = []

    @event.listens_for(books.engine, "before_cursor_execute")
    def _explain(_connection: object, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        if statement.startswith(("SELECT", "INSERT")):
            plan = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            if any("TEMP B-TREE" in line[-1] for line in plan):
                sorting.append(statement)

    books.audit()
    assert ["slice_sums" in statement for statement in sorting] == [True, True]


def test_an_audit_tells_what_it_is_doing(books: Books) -> None:
    """Each step once, in its order: whoever waits sees how far it is."""
    told: list[tuple[str, float | None]] = []
    rules = audit(books.engine, overdue_before_ms=0, tell=lambda act, done: told.append((act, done))).rules
    assert told == [("adding up the requests", 0.0), *((f"comparing the {rule.name}", None) for rule in rules)]


def test_an_audit_changes_nothing_and_waits_for_nobody(books: Books) -> None:
    """It runs beside the service: while another process writes, on one state of the books."""
    before = books.dump()
    other = books.open_engine({})
    with other.connect() as connection:
        connection.exec_driver_sql("UPDATE accounts SET used = 99")
        books.assert_balanced()
    other.dispose()
    assert books.dump() == before
