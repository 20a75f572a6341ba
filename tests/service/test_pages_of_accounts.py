"""Accounts and keys a page at a time: found by what people know of them, and none left out."""

import pytest

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.calendar import period_of
from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tarazu.store.accounts import AccountOrder, Sought
from tests.support.books import Books
from tests.support.values import NOON_MS, instant_ms, make_account, make_key, present

pytestmark = pytest.mark.both_stores


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with some accounts; two were opened in the same moment."""
    books.add(
        make_account(id="acc_1", name="Ada Lovelace", email="ada@example.com"),
        make_account(id="acc_2", name="Grace 100%", email="grace@example.org", created_at_ms=NOON_MS + 1),
        make_account(id="acc_3", name="حسابِ آدا", email="zahra_1@example.com", created_at_ms=NOON_MS + 1),
        make_account(id="acc_4", name="acc_1 and ada@example.com", created_at_ms=NOON_MS + 2),
    )
    return books


@pytest.fixture
def provisioning(books: Books) -> Provisioning:
    """Look at the books as an operator."""
    return Provisioning(books.engine, books.catalogue, books.clock, by="tests")


def found(provisioning: Provisioning, search: str | None = None) -> list[str]:
    """List the ids of the accounts on the first page."""
    return [account.id for account in provisioning.accounts_page(search=search).accounts]


@pytest.mark.parametrize("search", [None, "", "  "])
def test_without_a_search_all_are_found(provisioning: Provisioning, search: str | None) -> None:
    """The newest first."""
    assert found(provisioning, search) == ["acc_4", "acc_3", "acc_2", "acc_1"]


@pytest.mark.parametrize(
    ("search", "ids"),
    [
        ("acc_1", ["acc_1"]),  # an id means this account alone
        (" ADA@example.com ", ["acc_1"]),  # and so does an email
        ("Love", ["acc_1"]),
        ("lOVE", ["acc_1"]),
        ("ada", ["acc_4", "acc_1"]),
        ("example.com", ["acc_4", "acc_3", "acc_1"]),
        ("آدا", ["acc_3"]),
        ("0%", ["acc_2"]),
        ("%", ["acc_2"]),  # no wildcard
        ("_1", ["acc_4", "acc_3"]),
        ("' OR 1 = 1 --", []),
        ("nobody", []),
        ("_" * 32_000, []),  # more than a database takes as a pattern
    ],
)
def test_accounts_are_found_by_what_people_know(provisioning: Provisioning, search: str, ids: list[str]) -> None:
    """The id, the email, or a part of the name or the email, in capitals or not."""
    assert found(provisioning, search) == ids


@pytest.mark.parametrize(
    ("written", "sought"),
    [
        ("Ådne Ærø", "ådne æ"),
        ("ådne", "ÅDNE"),
        ("Åsa", "A\u030aSA"),  # two characters that are one letter
        ("ΟΔΥΣΣΕΥΣ", "οδυσσευς"),
        ("Борис", "БОРИС"),
        ("İstanbul", "istanbul"),
        ("ISTANBUL", "ıstanbul"),
        ("علی", "علي"),  # Arabic letters for Persian ones
        ("علي كريمي", "علی کریمی"),
        ("علی\u200cرضا", "علیرضا"),  # with what parts letters, and without
        ("علیرضا", "علی\u200cرضا"),
        ("آرش", "ارش"),
        ("محمّد", "محمد"),  # a vowel sign
        ("فروشگاه ۱۲", "فروشگاه 12"),
        ("shop 12", "shop ۱۲"),
        ("ﻋﻠﻰ", "علی"),  # forms of letters that old programs write
        ("50% off", "50%"),
        ("a/b", "A/B"),
    ],
)
def test_a_name_is_found_however_it_is_written(
    books: Books, provisioning: Provisioning, written: str, sought: str
) -> None:
    """Capitals of any script, letters that look alike, signs that nobody reads."""
    books.add(make_account(id="acc_5", name=written, created_at_ms=NOON_MS + 9))
    assert found(provisioning, sought) == ["acc_5"]


@pytest.mark.parametrize(("search", "ids"), [(None, ["acc_4", "acc_3", "acc_2", "acc_1"]), ("a@", ["acc_4", "acc_1"])])
def test_accounts_are_paged(provisioning: Provisioning, search: str | None, ids: list[str]) -> None:
    """Each page begins after the last account of the one before; the last one says that there are no more."""
    seen: list[str] = []
    after, more = None, True
    while more:
        page = provisioning.accounts_page(search=search, limit=1, after=after)
        (account,), more = page.accounts, page.more
        seen.append(after := account.id)
    assert seen == ids


def test_nothing_comes_after_the_one_account_with_an_id(provisioning: Provisioning) -> None:
    """There is one page of it."""
    page = provisioning.accounts_page(search="acc_1", after="acc_1")
    assert (page.accounts, page.more) == ((), False)


def test_accounts_on_a_page_stand_in_this_period(books: Books, provisioning: Provisioning) -> None:
    """As each stands by itself."""
    books.clock.now_ms = instant_ms("2026-03-01")
    assert {account.period for account in provisioning.accounts_page().accounts} == {"2026-03"}


@pytest.mark.parametrize("limit", [0, 1_001])
def test_a_page_has_bounds(provisioning: Provisioning, limit: int) -> None:
    """For accounts and for keys."""
    with pytest.raises(ProvisioningError, match="limit"):
        provisioning.accounts_page(limit=limit)
    with pytest.raises(ProvisioningError, match="limit"):
        provisioning.keys_page("acc_1", limit=limit)


def test_a_page_after_what_is_not_there_is_refused(books: Books, provisioning: Provisioning) -> None:
    """A key of another account counts as none."""
    books.add(make_key(2, account_id="acc_2"))
    with pytest.raises(NotThereError, match="acc_9"):
        provisioning.accounts_page(after="acc_9")
    with pytest.raises(NotThereError, match="acc_9"):
        provisioning.keys_page("acc_9")
    with pytest.raises(NotThereError, match=present(2).id):
        provisioning.keys_page("acc_1", after=present(2).id)


def test_keys_are_paged(books: Books, provisioning: Provisioning) -> None:
    """The newest first, those of this account alone."""
    books.add(*(make_key(number, created_at_ms=NOON_MS + number) for number in (1, 2, 3)))
    books.add(make_key(4, account_id="acc_2"))
    first = provisioning.keys_page("acc_1", limit=2)
    second = provisioning.keys_page("acc_1", limit=2, after=first.keys[-1].id)
    assert [key.name for key in first.keys + second.keys] == ["key 3", "key 2", "key 1"]
    assert (first.more, second.more) == (True, False)


LISTED = {
    (Sought(), AccountOrder.NEWEST): ["acc_4", "acc_3", "acc_2", "acc_1"],
    (Sought(), AccountOrder.OLDEST): ["acc_1", "acc_2", "acc_3", "acc_4"],
    (Sought(), AccountOrder.NAME): ["acc_4", "acc_1", "acc_2", "acc_3"],
    (Sought(text="EXAMPLE.com"), AccountOrder.NEWEST): ["acc_4", "acc_3", "acc_1"],
    (Sought(text="acc_1", status=AccountStatus.BLOCKED), AccountOrder.NEWEST): ["acc_1"],
    (Sought(text="a", status=AccountStatus.BLOCKED), AccountOrder.NEWEST): [],
    (Sought(plan="no such"), AccountOrder.NEWEST): [],
    (Sought(text="_" * 32_000), AccountOrder.NEWEST): [],
}


@pytest.mark.parametrize(("sought", "order"), LISTED)
def test_accounts_are_listed_by_what_is_sought_in_an_order(
    provisioning: Provisioning, sought: Sought, order: AccountOrder
) -> None:
    """With their number; a whole id means this account alone, whatever else is sought."""
    listed = provisioning.account_list(sought, order)
    assert [account.id for account in listed.accounts] == LISTED[sought, order]
    assert listed.paging.count == len(listed.accounts)


def test_accounts_are_ordered_by_what_they_have(books: Books, provisioning: Provisioning) -> None:
    """By balance, and by what is used in this month: what was used in another is nothing."""
    now = period_of(NOON_MS, books.catalogue.zone)
    books.execute(f"UPDATE accounts SET period = '{now}', used = 0")  # noqa: S608 - ours
    for id_, used, balance, period in (("acc_1", 5, 0, now), ("acc_2", 9, 7, "2001-01"), ("acc_3", 2, 8, now)):
        books.execute(
            f"UPDATE accounts SET used = {used}, balance = {balance}, period = '{period}' WHERE id = '{id_}'"  # noqa: S608
        )
    for order, ids in {
        AccountOrder.USED: ["acc_1", "acc_3", "acc_4"],
        AccountOrder.BALANCE: ["acc_3", "acc_2"],
    }.items():
        assert [account.id for account in provisioning.account_list(Sought(), order).accounts][: len(ids)] == ids
    books.execute("UPDATE accounts SET used = 0, balance = 0")


def test_every_account_stands_on_one_page_of_a_list(provisioning: Provisioning) -> None:
    """In each order, also those that were opened in one moment or have one name."""
    for _ in range(60):
        provisioning.create_account(name="Same")
    for order in AccountOrder:
        pages = [provisioning.account_list(Sought(), order, page=number).accounts for number in (1, 2, 3)]
        ids = [account.id for page in pages for account in page]
        assert [len(page) for page in pages] == [25, 25, 14]
        assert len(set(ids)) == 64
