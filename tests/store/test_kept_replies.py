"""Replies under idempotency keys are bounded, by account and in all: the oldest go, and are never charged again."""

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from msgspec.structs import replace

from tarazu.domain.bounds import Bounds
from tarazu.domain.credits import Hold
from tarazu.domain.errors import Error
from tarazu.domain.idempotency import DROPPED, KEPT_MS, Replay, idempotency_of
from tarazu.store.batch import run_batch
from tarazu.store.engine import transaction
from tarazu.store.idempotency import drop_oldest_replies
from tarazu.store.operations import Admit, Sweep
from tests.support.books import Books, charge
from tests.support.scale import scaled
from tests.support.seeds import session_seed
from tests.support.values import held, make_account, make_asked, make_catalogue, make_key, make_plan, refused

pytestmark = pytest.mark.both_stores

ROOM_BYTES = 100
BODY = b"{}"
KEPT = "SELECT key, reply_bytes FROM idempotency_keys WHERE account_id = :id AND reply IS NOT NULL ORDER BY reply_from"


@pytest.fixture
def books(books: Books) -> Books:
    """Two accounts, each with room for 100 bytes of replies."""
    books.catalogue = make_catalogue(
        plans=[make_plan(monthly_credits=10**6, requests_per_minute=10**6)],
        bounds=Bounds(account_reply_bytes=ROOM_BYTES),
    )
    for number in (1, 2):
        books.add(make_account(id=f"acc_{number}"), make_key(number, account_id=f"acc_{number}"))
    return books


def asking(key: str, number: int = 1) -> Admit:
    """Make an admission with an idempotency key, of this account."""
    return Admit(make_asked(number, idempotency=idempotency_of(key, BODY)))


def keep(books: Books, *sizes: int, number: int = 1, named: str = "key") -> list[Hold]:
    """Have replies of so many bytes charged and kept, all in one batch, under numbered keys."""
    asked = books.run(*(asking(f"{named} {place}", number) for place in range(len(sizes))))
    holds = [held(each) for each in asked]
    books.run(*(charge(hold, reply=b"x" * size) for hold, size in zip(holds, sizes, strict=True)))
    return holds


def kept(books: Books, number: int = 1) -> list[tuple[str, int]]:
    """List the replies of an account that are kept, in the order in which they were charged."""
    return [(str(key), int(size)) for key, size in books.rows(KEPT, id=f"acc_{number}")]


def test_the_newest_replies_are_kept_as_far_as_there_is_room(books: Books) -> None:
    """Of this account; another one has room of its own."""
    keep(books, 40, 40, 20)
    keep(books, 90, number=2, named="theirs")
    assert [size for _, size in kept(books)] == [40, 40, 20]
    keep(books, 1, named="one more")
    assert kept(books) == [("key 1", 40), ("key 2", 20), ("one more 0", 1)]
    assert kept(books, 2) == [("theirs 0", 90)]


def test_a_dropped_reply_is_told_and_not_charged_again(books: Books) -> None:
    """Its key stays taken for its 24 hours, and its request is not run a second time."""
    keep(books, 60, 60)
    before = books.figures()
    for _ in range(2):
        refusal = refused(books.run(asking("key 0"))[0])
        assert (refusal.error, refusal.message) == (Error.IDEMPOTENCY_MISMATCH, DROPPED)
        assert refusal.retry_after_s is None
    assert books.run(asking("key 1"))[0].outcome == Replay(b"x" * 60)
    assert (books.figures(), books.states()) == (before, ["charged", "charged"])
    books.clock.now_ms += KEPT_MS
    held(books.run(asking("key 0"))[0])


def test_a_reply_for_which_there_is_no_room_at_all_is_not_kept(books: Books) -> None:
    """It is delivered and charged once; those before it have gone for it, as its request came last."""
    keep(books, 10, ROOM_BYTES + 1)
    assert kept(books) == []
    assert refused(books.run(asking("key 1"))[0]).message == DROPPED
    assert books.states() == ["charged", "charged"]


def test_room_comes_back_with_what_is_forgotten(books: Books) -> None:
    """After 24 hours the keys go, and newer ones have all of it."""
    keep(books, 50, 50)
    books.clock.now_ms += KEPT_MS
    books.run(Sweep())
    keep(books, 70, 30, named="new")
    assert [size for _, size in kept(books)] == [70, 30]


def test_a_reply_of_the_release_before_is_replayed(books: Books) -> None:
    """It keeps replies beside this one, without counting them: they are found, and nothing is in their way."""
    keep(books, 30)
    books.execute("UPDATE idempotency_keys SET reply_from = NULL, reply_bytes = NULL")
    keep(books, 90, named="new")
    assert books.run(asking("key 0"))[0].outcome == Replay(b"x" * 30)
    assert books.run(asking("new 0"))[0].outcome == Replay(b"x" * 90)


def test_several_processes_keep_to_one_bound(books: Books) -> None:
    """They put the replies of one account behind each other, whoever comes first."""
    batches = 10
    holds = [held(each) for each in books.run(*(asking(f"key {number}") for number in range(4 * batches)))]

    def process(part: int) -> None:
        engine = books.open_engine({})
        for hold in holds[part::4]:
            with transaction(engine) as connection:
                run_batch(connection, [charge(hold, reply=b"x" * 15)], books.catalogue, books.clock.now_ms)
        engine.dispose()

    with ThreadPoolExecutor(4) as processes:
        list(processes.map(process, range(4)))
    places = books.rows("SELECT reply_from, reply_bytes FROM idempotency_keys WHERE reply IS NOT NULL ORDER BY 1")
    ends = [start + size for start, size in places]
    assert ends[-1] == 4 * batches * 15
    assert [start for start, _ in places[1:]] == ends[:-1]
    assert len(places) == ROOM_BYTES // 15


def test_beyond_the_bound_for_all_the_oldest_of_any_account_go(books: Books) -> None:
    """Until what is left fits; what is dropped is answered as beyond an account's own bound."""
    for round_ in range(3):
        for number in (1, 2):
            keep(books, 30, number=number, named=f"round {round_}")
        books.clock.now_ms += 1_000

    def drop(bytes_max: int) -> int:
        with transaction(books.engine) as connection:
            return drop_oldest_replies(connection, bytes_max)

    assert drop(180) == 0
    assert drop(100) == 3
    assert drop(100) == 0
    left = [*kept(books), *kept(books, 2)]
    assert sum(size for _, size in left) == 90
    assert [name for name, _ in left].count("round 2 0") == 2
    assert refused(books.run(asking("round 0 0"))[0]).message == DROPPED
    books.assert_balanced()


@pytest.mark.parametrize("seed", range(scaled(5, least=2)))
def test_whatever_comes_no_more_is_kept_than_fits(books: Books, seed: int) -> None:
    """After each batch: of each account the newest replies that fit together, and no other."""
    random = Random(f"{session_seed()} {seed}")  # noqa: S311 - no secret
    room = random.randint(50, 300)
    books.catalogue = replace(books.catalogue, bounds=Bounds(account_reply_bytes=room))
    charged: dict[int, list[tuple[str, int]]] = {1: [], 2: []}
    for round_ in range(10):
        number = random.choice((1, 2))
        sizes = [random.randint(1, 120) for _ in range(random.randint(1, 6))]
        keep(books, *sizes, number=number, named=f"round {round_}")
        charged[number] += [(f"round {round_} {place}", size) for place, size in enumerate(sizes)]
        for each in (1, 2):
            assert kept(books, each) == newest_that_fit(charged[each], room)
    books.assert_balanced()


def newest_that_fit(charged: list[tuple[str, int]], room: int) -> list[tuple[str, int]]:
    """Take from the end what fits."""
    fit: list[tuple[str, int]] = []
    for name, size in reversed(charged):
        if sum(each for _, each in fit) + size > room:
            break
        fit.insert(0, (name, size))
    return fit
