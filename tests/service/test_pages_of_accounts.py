"""Accounts and keys a page at a time: found by what people know of them, and none left out."""

from collections.abc import Iterator

import pytest

from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import NotThereError, ProvisioningError
from tests.support.books import Books, empty_books, open_books
from tests.support.stores import Store
from tests.support.values import NOON_MS, instant_ms, make_account, make_key, present

pytestmark = pytest.mark.both_stores


@pytest.fixture(scope="module")
def module_books(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Open books for the whole module."""
    with open_books(store, tmp_path_factory.mktemp("books")) as books:
        yield books


@pytest.fixture
def books(module_books: Books) -> Iterator[Books]:
    """Open books with some accounts; two were opened in the same moment."""
    empty_books(module_books.engine)
    module_books.clock.now_ms = NOON_MS
    module_books.add(
        make_account(id="acc_1", name="Ada Lovelace", email="ada@example.com"),
        make_account(id="acc_2", name="Grace 100%", email="grace@example.org", created_at_ms=NOON_MS + 1),
        make_account(id="acc_3", name="حسابِ آدا", email="zahra_1@example.com", created_at_ms=NOON_MS + 1),
        make_account(id="acc_4", name="acc_1 and ada@example.com", created_at_ms=NOON_MS + 2),
    )
    yield module_books
    module_books.assert_balanced()


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
