"""Pages of a list: each thing stands on exactly one, and every page can be reached."""

from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.paging import Paging

COUNTS, LENGTHS = st.integers(0, 10_000), st.integers(1, 100)


@given(COUNTS, LENGTHS)
def test_everything_stands_on_one_page(count: int, length: int) -> None:
    """In order, none twice, none left out, and only the last page may be shorter."""
    first = Paging.of(count, 1, length=length)
    pages = [Paging.of(count, number, length=length) for number in range(1, first.last + 1)]
    assert [place for page in pages for place in range(page.offset, page.end)] == list(range(count))
    assert all(page.end - page.offset == length for page in pages[:-1])


@given(COUNTS, LENGTHS, st.none() | st.integers(-5, 10**20))
def test_any_number_means_a_page(count: int, length: int, asked: int | None) -> None:
    """Before the first it is the first, beyond the last the last."""
    page = Paging.of(count, asked, length=length)
    assert page.number == max(1, min(asked or 1, page.last))


@given(COUNTS, LENGTHS, st.integers(1, 10_000))
def test_the_first_and_the_last_page_are_always_one_link_away(count: int, length: int, asked: int) -> None:
    """So are those next to this one; what is left out is more than one page, and the links are few."""
    page = Paging.of(count, asked, length=length)
    numbers = [number for number in page.named if number is not None]
    assert numbers == sorted(set(numbers))
    assert (numbers[0], numbers[-1]) == (1, page.last)
    assert {page.number, min(page.last, page.number + 1), max(1, page.number - 1)} <= set(numbers)
    assert len(page.named) <= 9
    for before, gap, after in zip(page.named, page.named[1:], page.named[2:], strict=False):
        if gap is None:
            assert before is not None
            assert after is not None
            assert after - before > 2
        elif before is not None:
            assert gap - before == 1
