"""The trail is searched by what was done, by whom, when and on which account, a page at a time."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.service.provisioning import Provisioning
from tarazu.service.provisioning_errors import NotThereError
from tarazu.service.trails import TrailFilter, trail_page
from tarazu.store import trail
from tarazu.store.engine import transaction
from tarazu.store.trail import Act
from tests.support.books import Books, open_books
from tests.support.stores import Store
from tests.support.values import NOON_MS, make_account

pytestmark = pytest.mark.both_stores

ACCOUNTS = ("acc_1", "acc_2")
PEOPLE = ("Ada@example.com", "آدا يک", "payment page")
SPAN_MS = 40


@pytest.fixture(scope="module")
def books(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Books]:
    """Books in which three people have created, paused and resumed keys of two accounts, an act each millisecond."""
    instants = count(NOON_MS)
    with open_books(store, tmp_path_factory.mktemp("books")) as books:
        books.add(*(make_account(id=account_id) for account_id in ACCOUNTS))
        for turn in range(SPAN_MS // 3 // len(ACCOUNTS) + 1):
            for place, account_id in enumerate(ACCOUNTS):
                by = PEOPLE[(turn + place) % len(PEOPLE)]
                acts = Provisioning(books.engine, books.catalogue, lambda: next(instants), by=by)
                key_id = acts.create_key(account_id, name="k").key.id
                acts.pause_key(key_id)
                acts.resume_key(key_id)
        yield books


def found(books: Books, sought: TrailFilter, limit: int) -> Iterator[Act]:
    """Walk all pages."""
    before: str | None = None
    while True:
        with transaction(books.engine, read_only=True) as connection:
            page = trail_page(connection, sought, limit=limit, before=before)
        assert len(page.acts) <= limit
        yield from page.acts
        if page.before is None:
            return
        before = page.before


SOUGHT = st.builds(
    TrailFilter,
    account_id=st.none() | st.sampled_from(ACCOUNTS),
    names=st.lists(st.sampled_from(["key.create", "key.pause", "no.such"]), max_size=2).map(tuple),
    made_by=st.sampled_from(["", "ADA", "آدا یک", "page", "nobody"]),
    since_ms=st.none() | st.integers(NOON_MS - 1, NOON_MS + SPAN_MS),
    until_ms=st.none() | st.integers(NOON_MS - 1, NOON_MS + SPAN_MS),
)
READS: dict[str, Callable[[Act], bool]] = {
    "": lambda _: True,
    "ADA": lambda act: act.made_by == PEOPLE[0],
    "آدا یک": lambda act: act.made_by == PEOPLE[1],
    "page": lambda act: act.made_by == PEOPLE[2],
    "nobody": lambda _: False,
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sought=SOUGHT, limit=st.integers(1, 20), looked_at=st.integers(1, 60))
def test_the_pages_have_what_is_sought_and_nothing_else(
    books: Books, monkeypatch: pytest.MonkeyPatch, sought: TrailFilter, limit: int, looked_at: int
) -> None:
    """The newest first, each once, however few acts are gone through for a page."""
    monkeypatch.setattr(trail, "LOOKED_AT_MAX", looked_at)
    every = list(found(books, TrailFilter(), 1_000))
    assert list(found(books, sought, limit)) == [
        act
        for act in every
        if sought.account_id in (None, act.account_id)
        and (not sought.names or act.act in sought.names)
        and READS[sought.made_by](act)
        and (sought.since_ms is None or act.made_at_ms >= sought.since_ms)
        and (sought.until_ms is None or act.made_at_ms < sought.until_ms)
    ]


def test_an_act_or_account_that_is_not_there_is_told(books: Books) -> None:
    """Also beside what is sought."""
    with transaction(books.engine, read_only=True) as connection:
        for sought, before in ((TrailFilter(account_id="acc_none"), None), (TrailFilter(made_by="ada"), "act_none")):
            with pytest.raises(NotThereError):
                trail_page(connection, sought, limit=5, before=before)
