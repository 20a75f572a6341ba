"""What people see of an account: its overview, keys and requests, all of them its own."""

from collections.abc import Callable
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis.strategies import builds, integers, lists, none, sampled_from, tuples
from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import KeyState, Window
from tarazu.domain.credits import Hold, Reason, Source
from tarazu.domain.errors import Error, Sender
from tarazu.domain.rate_limit import Scope
from tarazu.domain.refused import SLOT_MS, RefusedSums
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.service.reports import (
    Cause,
    History,
    HistoryEntry,
    HistoryFilter,
    KeyList,
    Outcome,
    Overview,
    UsageLine,
    history,
    history_of_one,
    key_list,
    overview,
)
from tarazu.store.engine import transaction
from tarazu.store.keys import SoughtKeys
from tarazu.store.operations import End, Sweep
from tarazu.store.refused_requests import RefusedRow, write_refused
from tarazu.store.request_history import Ending
from tarazu.store.usage import Usage
from tests.support.asking import TOOK_MS, ask
from tests.support.books import Books, charge, empty_books, make_topup, release
from tests.support.values import (
    DAY_MS,
    MINUTE_MS,
    NOON_MS,
    instant_ms,
    make_account,
    make_catalogue,
    make_key,
    make_model,
    make_plan,
    present,
)

pytestmark = pytest.mark.both_stores

T = TypeVar("T")
TEHRAN = ZoneInfo("Asia/Tehran")
ONE = Usage(requests=1, credits=1, prompt_tokens=10, completion_tokens=20)
"""What one request for `small` leaves in the daily usage."""


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with two accounts of one key each."""
    books.add(make_account(), make_account(id="acc_2"), make_key(1), make_key(2, account_id="acc_2"))
    return books


def look(books: Books, function: Callable[[Connection], T]) -> T:
    """Look into the books as the back office does."""
    with transaction(books.engine, read_only=True) as connection:
        return function(connection)


def overview_of(books: Books, account_id: str = "acc_1") -> Overview:
    """Show an account as it is now."""
    return look(books, lambda connection: overview(connection, account_id, books.catalogue, books.clock()))


def history_of(books: Books, account_id: str = "acc_1", **asked: object) -> History:
    """List an account's requests."""
    zone = books.catalogue.zone
    return look(books, lambda connection: history(connection, account_id, zone, **asked))  # type: ignore[arg-type]


def admitted(books: Books) -> list[HistoryEntry]:
    """List all requests of the first account, none of which was refused."""
    entries = history_of(books).entries
    assert all(isinstance(entry, HistoryEntry) for entry in entries)
    return [entry for entry in entries if isinstance(entry, HistoryEntry)]


def keys_of(books: Books, account_id: str = "acc_1") -> KeyList:
    """List an account's keys."""
    zone, sought = books.catalogue.zone, SoughtKeys(with_ended=True)
    return look(books, lambda connection: key_list(connection, account_id, zone, books.clock(), sought))


def ids(found: History) -> list[str]:
    """List the ids of requests."""
    return [entry.id for entry in found.entries]


def test_an_overview_tells_quota_balance_and_this_minute(books: Books) -> None:
    """As GET /usage does: what is held counts as used."""
    books.catalogue = make_catalogue(plans=[make_plan(requests_per_minute=10)])
    books.add(make_topup(7))
    ask(books, NOON_MS, model="large", end=charge)
    ask(books, NOON_MS + 2_000)
    seen = overview_of(books)
    assert (seen.account.used, seen.limit, seen.remaining, seen.account.balance) == (6, 100, 94, 7)
    assert seen.plan is not None
    assert seen.plan.name == "basic"
    window = (seen.window.scope, seen.window.limit_per_minute, seen.window.remaining, seen.window.resets_at_ms)
    assert window == (Scope.ACCOUNT, 10, 8, NOON_MS + MINUTE_MS)


def test_an_overview_of_a_new_month_begins_at_nothing(books: Books) -> None:
    """Also before the first request of the month turns the page."""
    ask(books, NOON_MS, end=charge)
    books.clock.now_ms = instant_ms("2026-03-01T00:00:00")
    seen = overview_of(books)
    assert (seen.account.period, seen.account.used, seen.window.remaining) == ("2026-03", 0, 1_000)


def test_an_account_without_a_plan_has_no_quota(books: Books) -> None:
    """Nor has one whose plan is sold no longer; its window is that of paying as you go."""
    books.execute("UPDATE accounts SET plan = 'gone' WHERE id = 'acc_1'")
    seen = overview_of(books)
    assert (seen.plan, seen.limit, seen.remaining, seen.window.limit_per_minute) == (None, 0, 0, 1_000)


def test_usage_is_told_for_each_of_thirty_days(books: Books) -> None:
    """Days without any are there too; the day before the first is not, and nobody else's usage is."""
    ask(books, NOON_MS - 30 * DAY_MS, end=charge)
    ask(books, NOON_MS - 29 * DAY_MS, end=charge)
    ask(books, NOON_MS - DAY_MS, end=charge)
    ask(books, NOON_MS - DAY_MS, end=charge)
    ask(books, NOON_MS, key=2, end=charge)
    usage = overview_of(books).usage
    days = {line.id: line.usage for line in usage.days if line.usage != Usage()}
    assert days == {"2026-01-12": ONE, "2026-02-09": ONE + ONE}
    assert [usage.days[0].id, usage.days[-1].id, len(usage.days)] == ["2026-01-12", "2026-02-10", 30]
    assert usage.total == ONE + ONE + ONE


def test_days_turn_in_the_time_zone_of_the_catalogue(books: Books) -> None:
    """Half past eight in the evening in UTC is the next day in Tehran."""
    books.catalogue = make_catalogue(zone=TEHRAN)
    ask(books, instant_ms("2026-02-10T20:29:59"), end=charge, took_ms=0)
    ask(books, instant_ms("2026-02-10T20:30:00"), end=charge)
    assert [line.usage for line in overview_of(books).usage.days[-2:]] == [ONE, ONE]
    assert overview_of(books).usage.days[-1].id == "2026-02-11"


def test_only_what_was_charged_is_used(books: Books) -> None:
    """A hold is not yet, a release no longer."""
    ask(books, NOON_MS)
    ask(books, NOON_MS, end=release)
    assert overview_of(books).usage.total == Usage()


def test_usage_is_told_by_model_and_by_key_the_dearest_first(books: Books) -> None:
    """With the names that people know, and by id for a model that is sold no longer."""
    books.add(make_key(3))
    for _ in range(2):
        ask(books, NOON_MS, end=charge)
    ask(books, NOON_MS, key=3, model="large", end=charge)
    books.catalogue = make_catalogue([make_model("large", 5)])
    usage = overview_of(books).usage
    large = Usage(requests=1, credits=5, prompt_tokens=10, completion_tokens=20)
    assert usage.models == (
        UsageLine(id="large", name="Large", usage=large),
        UsageLine(id="small", name="small", usage=ONE + ONE),
    )
    assert usage.keys == (
        UsageLine(id=present(3).id, name="key 3", usage=large),
        UsageLine(id=present(1).id, name="key 1", usage=ONE + ONE),
    )


def test_keys_are_listed_with_their_state_and_last_use(books: Books) -> None:
    """The newest first; one that has never been used says so."""
    books.add(
        make_key(3, created_at_ms=NOON_MS + 1, window=Window(NOON_MS // MINUTE_MS, 1), revoked_at_ms=NOON_MS + 2),
        make_key(4, created_at_ms=NOON_MS + 2, expires_at_ms=NOON_MS + DAY_MS),
    )
    books.clock.now_ms = NOON_MS + DAY_MS
    seen = keys_of(books)
    assert [(key.id, key.state, key.last_used_ms) for key in seen.keys] == [
        (present(4).id, KeyState.EXPIRED, None),
        (present(3).id, KeyState.REVOKED, NOON_MS),
        (present(1).id, KeyState.ACTIVE, None),
    ]


def test_the_last_use_of_a_key_is_the_minute_of_its_last_request(books: Books) -> None:
    """Whatever came of that request."""
    ask(books, NOON_MS, end=charge)
    ask(books, NOON_MS + 90_000, end=release)
    assert keys_of(books).keys[0].last_used_ms == NOON_MS + MINUTE_MS


def test_keys_are_paged_and_those_that_have_ended_are_hidden(books: Books) -> None:
    """Each once, by pages; hidden ones are counted, and found where they are asked for. So is a name or an id."""
    books.add(*(make_key(number, name=f"Job {number}", created_at_ms=NOON_MS + number) for number in range(3, 40)))
    books.add(make_key(40, revoked_at_ms=NOON_MS), make_key(41, paused_at_ms=NOON_MS))
    zone = books.catalogue.zone

    def found(page: int, *, text: str = "", with_ended: bool = False) -> KeyList:
        return look(
            books,
            lambda connection: key_list(
                connection, "acc_1", zone, books.clock(), SoughtKeys(text=text, with_ended=with_ended), page=page
            ),
        )

    first, second = found(1), found(2)
    assert (first.paging.count, first.ended) == (39, 1)
    seen = [key.id for key in first.keys + second.keys]
    assert len(set(seen)) == len(seen) == 39
    assert present(40).id not in seen
    assert present(41).id in seen
    everything = found(1, with_ended=True)
    assert (everything.paging.count, everything.ended) == (40, 0)
    assert [key.id for key in found(1, text="JOB ۳۰").keys] == [present(30).id]
    by_letters = "trz_" + present(30).id[4:10]
    assert [key.id for key in found(1, text=by_letters).keys] == [present(30).id]


def test_a_key_tells_what_it_has_used_this_month(books: Books) -> None:
    """Requests that were charged, and their credits; another key's are its own."""
    books.add(make_key(3))
    ask(books, NOON_MS, end=charge)
    ask(books, NOON_MS + 1, end=charge)
    ask(books, NOON_MS + 2, end=release)
    used = {key.id: (key.usage.requests, key.usage.credits) for key in keys_of(books).keys}
    assert used == {present(1).id: (2, 2), present(3).id: (0, 0)}


def test_a_request_is_told_with_all_but_its_content(books: Books) -> None:
    """When it has ended, how long it took; what it cost, and from where."""
    id_ = ask(books, NOON_MS, model="large", end=charge)
    (entry,) = admitted(books)
    assert (entry.id, entry.key_id, entry.key_name, entry.model_id) == (id_, present().id, "key 1", "large")
    assert (entry.price, entry.credits, entry.source, entry.outcome) == (5, 5, Source.PLAN, Outcome.CHARGED)
    assert (entry.cause, entry.ending) == (None, Ending.SUCCEEDED)
    assert (entry.created_at_ms, entry.duration_ms) == (NOON_MS, TOOK_MS)
    assert (entry.tries, entry.prompt_tokens, entry.completion_tokens) == (1, 10, 20)


def test_every_outcome_is_told(books: Books) -> None:
    """With why there was no reply, and with what it has cost; of one that runs or was lost nobody knows how long."""
    books.catalogue = make_catalogue(abandoned_per_hour=1)
    ask(books, NOON_MS)
    books.clock.now_ms = NOON_MS + DAY_MS
    assert books.run(Sweep()) == [1]
    ask(books, NOON_MS + DAY_MS, end=lambda hold: replace(release(hold), tries=2))
    ask(books, NOON_MS + DAY_MS + 1, end=release)
    for number in range(2):  # the first is free in this hour, the second is not
        ask(books, NOON_MS + DAY_MS + 2 + number, end=lambda hold: release(hold, Reason.ABANDONED))
    ask(books, NOON_MS + 2 * DAY_MS)
    assert [(entry.outcome, entry.cause, entry.credits, entry.duration_ms) for entry in admitted(books)] == [
        (Outcome.RUNNING, None, 1, None),
        (Outcome.CHARGED, Cause.ABANDONED, 1, TOOK_MS),
        (Outcome.RELEASED, Cause.ABANDONED, 0, TOOK_MS),
        (Outcome.RELEASED, Cause.NOT_ASKED, 0, TOOK_MS),
        (Outcome.RELEASED, Cause.BACKEND_FAILED, 0, TOOK_MS),
        (Outcome.SWEPT, Cause.LOST, 0, None),
    ]
    endings = [entry.ending for entry in history_of(books).entries]
    assert endings == [Ending.RUNNING, *[Ending.FAILED] * 5]


ENDS: list[Callable[[Hold], End] | None] = [
    charge,
    release,
    lambda hold: release(hold, Reason.TIMED_OUT),
    lambda hold: release(hold, Reason.ABANDONED),
    None,
]
REFUSED = Error.API_CREDITS_EXHAUSTED


@given(asked=lists(tuples(sampled_from(["small", "large"]), sampled_from(ENDS)), max_size=12))
def test_the_credits_of_a_history_add_up_to_what_is_used(
    module_books: Books, asked: list[tuple[str, Callable[[Hold], End] | None]]
) -> None:
    """Whatever becomes of requests: of the quota and of the balance so much is gone as the column says."""
    books = module_books
    empty_books(books.engine)
    plan = make_plan(monthly_credits=12, requests_per_minute=1_000)
    books.catalogue = make_catalogue(plans=[plan], abandoned_per_hour=1)
    books.add(make_account(), make_key(), make_topup(20))
    for number, (model, end) in enumerate(asked):
        books.clock.now_ms = NOON_MS + number
        outcome = books.admit(model=model).outcome
        if isinstance(outcome, Hold) and end is not None:
            books.run(end(outcome))
    entries = admitted(books)
    spent = {source: sum(entry.credits for entry in entries if entry.source is source) for source in Source}
    account = books.account()
    assert spent == {Source.PLAN: account.used, Source.BALANCE: 20 - account.balance}


def test_a_history_is_paged_from_the_newest_on(books: Books) -> None:
    """Also over requests of one instant, none is left out or told twice."""
    asked = [ask(books, NOON_MS + at_ms) for at_ms in (0, 1, 1, 1, 2)]
    expected = [asked[4], *sorted(asked[1:4], reverse=True), asked[0]]
    first = history_of(books, limit=2)
    second = history_of(books, limit=2, before=ids(first)[-1])
    third = history_of(books, limit=2, before=ids(second)[-1])
    assert ids(first) + ids(second) + ids(third) == expected
    assert (first.before, second.before, third.before) == (ids(first)[-1], ids(second)[-1], None)


def test_a_history_can_be_of_some_days(books: Books) -> None:
    """From the first instant of the first to the last of the last in the catalogue's time zone; page by page too."""
    books.catalogue = make_catalogue(zone=TEHRAN)
    edges = ["2026-01-31T20:29:59.999", "2026-01-31T20:30:00", "2026-02-28T20:29:59.999", "2026-02-28T20:30:00"]
    asked = [ask(books, instant_ms(edge), end=charge, took_ms=0) for edge in edges]
    february = HistoryFilter(first_day="2026-02-01", last_day="2026-02-28")
    assert ids(history_of(books, sought=february)) == [asked[2], asked[1]]
    assert ids(history_of(books, sought=february, before=asked[2])) == [asked[1]]
    assert ids(history_of(books, sought=HistoryFilter(first_day="2026-03-01"))) == [asked[3]]
    assert ids(history_of(books, sought=HistoryFilter(last_day="2026-01-31"))) == [asked[0]]
    assert history_of(books, sought=HistoryFilter(first_day="2026-04-01")).entries == ()


@given(
    asked=lists(tuples(sampled_from([1, 3]), sampled_from(["small", "large"]), sampled_from([*ENDS, REFUSED]))),
    sought=builds(
        HistoryFilter,
        key_id=none() | sampled_from([present(1).id, present(3).id]),
        model_id=none() | sampled_from(["small", "large"]),
        ending=none() | sampled_from(Ending),
    ),
    looked_at=integers(1, 5),
    limit=integers(1, 5),
)
def test_a_narrowed_history_has_what_is_sought_and_all_of_it(
    module_books: Books,
    asked: list[tuple[int, str, Callable[[Hold], End] | Error | None]],
    sought: HistoryFilter,
    looked_at: int,
    limit: int,
) -> None:
    """By key, model and ending, however the pages are cut and however few requests are looked at for one.

    What was refused has its place among them; many requests are of one instant.
    """
    books = module_books
    empty_books(books.engine)
    books.catalogue = make_catalogue(plans=[make_plan(monthly_credits=10_000)])
    books.add(make_account(), make_key(), make_key(3))
    for number, (key, model, end) in enumerate(asked):
        at_ms = NOON_MS + number // 2 * SLOT_MS // 2
        if isinstance(end, Error):
            refuse(books, at_ms, key, model, end)
        else:
            ask(books, at_ms, key=key, model=model, end=end, took_ms=0)
    whole = history_of(books, limit=1_000).entries
    ages = [entry.first_at_ms if isinstance(entry, RefusedRow) else entry.created_at_ms for entry in whole]
    assert ages == sorted(ages, reverse=True)
    assert sum(entry.requests if isinstance(entry, RefusedRow) else 1 for entry in whole) == len(asked)
    found: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tarazu.store.newest.LOOKED_AT_MAX", looked_at)
        page = history_of(books, sought=sought, limit=limit)
        while page.before is not None:
            found += ids(page)
            page = history_of(books, sought=sought, limit=limit, before=page.before)
    assert found + ids(page) == [
        entry.id
        for entry in whole
        if sought.key_id in {None, entry.key_id}
        and sought.model_id in {None, entry.model_id}
        and sought.ending in {None, entry.ending}
    ]


def refuse(
    books: Books, at_ms: int, key: int = 1, model: str | None = None, error: Error = Error.MODEL_NOT_FOUND
) -> None:
    """Let a process tell that it has refused a request."""
    account_id = "acc_2" if key == 2 else "acc_1"
    sums = RefusedSums()
    sums.note(Sender(account_id, present(key).id), error, model, at_ms)
    with transaction(books.engine) as connection:
        write_refused(connection, sums.take())


def test_refused_requests_are_in_the_history(books: Books) -> None:
    """Those that are alike in one row, from the first to the last, at the time of the first; they have cost nothing."""
    before = ask(books, NOON_MS, end=charge)
    for at_ms in (1, 2, 1_000):
        refuse(books, NOON_MS + at_ms, model="gpt-4o")
    refuse(books, NOON_MS + 3, error=Error.RATE_LIMIT_EXCEEDED)
    refuse(books, NOON_MS + SLOT_MS, model="gpt-4o")
    after = ask(books, NOON_MS + SLOT_MS, end=charge)
    found = history_of(books).entries
    assert [entry.id for entry in found if isinstance(entry, HistoryEntry)] == [after, before]
    assert found[0].id == after
    refused = [entry for entry in found if isinstance(entry, RefusedRow)]
    assert [found.index(entry) for entry in refused] == [1, 2, 3]
    assert [(row.code, row.model_id, row.requests, row.first_at_ms, row.last_at_ms) for row in refused] == [
        ("model_not_found", "gpt-4o", 1, NOON_MS + SLOT_MS, NOON_MS + SLOT_MS),
        ("rate_limit_exceeded", None, 1, NOON_MS + 3, NOON_MS + 3),
        ("model_not_found", "gpt-4o", 3, NOON_MS + 1, NOON_MS + 1_000),
    ]
    assert {(row.key_id, row.key_name, row.ending) for row in refused} == {(present().id, "key 1", Ending.REFUSED)}


def test_nobody_sees_what_was_refused_to_another(books: Books) -> None:
    """Neither in the list nor as the end of a page."""
    refuse(books, NOON_MS, key=2)
    assert history_of(books).entries == ()
    (theirs,) = history_of(books, "acc_2").entries
    with pytest.raises(NotThereError, match=theirs.id):
        history_of(books, before=theirs.id)


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_page_has_bounds(books: Books, limit: int) -> None:
    """Whatever is asked for."""
    with pytest.raises(ProvisioningError, match="limit"):
        history_of(books, limit=limit)


def test_a_request_is_found_by_its_whole_id(books: Books) -> None:
    """A part of it finds nothing."""
    id_ = ask(books, NOON_MS, end=charge)
    assert look(books, lambda connection: history_of_one(connection, "acc_1", id_)) == history_of(books)
    assert look(books, lambda connection: history_of_one(connection, "acc_1", id_[:-1])).entries == ()


def test_nobody_sees_another_accounts_requests(books: Books) -> None:
    """Neither in a list, nor by id, nor as the end of a page: each answers as if there were none."""
    id_ = ask(books, NOON_MS, key=2, end=charge)
    assert history_of(books).entries == ()
    assert look(books, lambda connection: history_of_one(connection, "acc_1", id_)).entries == ()
    with pytest.raises(NotThereError, match=id_):
        history_of(books, before=id_)


@pytest.mark.parametrize("report", [overview_of, history_of, keys_of])
def test_an_account_that_is_not_there_has_no_reports(books: Books, report: Callable[[Books, str], object]) -> None:
    """It says so."""
    with pytest.raises(NotThereError, match="acc_9"):
        report(books, "acc_9")
