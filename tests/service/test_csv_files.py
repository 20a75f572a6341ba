"""An account's requests, credits and usage as CSV: every line once, in parts, and none that a spreadsheet would run."""

import csv
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis.strategies import integers, lists, none, sampled_from, text, tuples

from tarazu.service import csv_files
from tarazu.service.csv_files import CsvFile, Line, credits_csv, csv_text, requests_csv, usage_csv
from tarazu.service.provisioning_errors import NotThereError
from tarazu.service.reports import HistoryFilter
from tarazu.store.engine import transaction
from tarazu.store.request_history import Ending
from tests.support.asking import ask
from tests.support.books import Books, charge, make_topup, release
from tests.support.values import DAY_MS, NOON_MS, make_account, make_key, present

pytestmark = pytest.mark.both_stores

TEHRAN = ZoneInfo("Asia/Tehran")


@pytest.fixture
def books(books: Books) -> Books:
    """Fill the books with two accounts; the first has two keys."""
    books.add(make_account(), make_account(id="acc_2"), make_key(1), make_key(3, name="=1+1"))
    books.add(make_key(2, account_id="acc_2"))
    return books


def rows(books: Books, file: CsvFile) -> list[dict[str, str]]:
    """Read a whole file, part by part, as a spreadsheet does."""
    lines: list[Line] = [file.head]
    with transaction(books.engine, read_only=True) as connection:
        part = file.read(connection, None)
        lines += part.lines
        while part.after is not None:
            part = file.read(connection, part.after)
            lines += part.lines
    return list(csv.DictReader(StringIO(csv_text(lines))))


@pytest.mark.parametrize("part_lines", [1, 2, 3, 1_000])
def test_requests_come_whole_however_they_are_cut(
    books: Books, monkeypatch: pytest.MonkeyPatch, part_lines: int
) -> None:
    """The newest first, in the shop's time and in UTC, with what they have cost; narrowed as the page is."""
    monkeypatch.setattr(csv_files, "PART_LINES", part_lines)
    asked = [
        ask(books, NOON_MS + number, key=(1, 3)[number % 2], end=(charge, release)[number % 2]) for number in range(6)
    ]
    ask(books, NOON_MS, key=2, end=charge)
    found = rows(books, requests_csv("acc_1", TEHRAN, HistoryFilter()))
    assert [row["id"] for row in found] == asked[::-1]
    assert (found[0]["time"], found[0]["time_utc"]) == ("2026-02-10 15:30:00", "2026-02-10T12:00:00Z")
    assert [(row["outcome"], row["cause"], row["credits"], row["price"]) for row in found[:2]] == [
        ("failed", "not_asked", "0", "1"),
        ("succeeded", "", "1", "1"),
    ]
    assert found[0]["key"] == "'=1+1"
    failed = rows(books, requests_csv("acc_1", TEHRAN, HistoryFilter(ending=Ending.FAILED, key_id=present(3).id)))
    assert [row["id"] for row in failed] == asked[5::-2]


@pytest.mark.parametrize("part_lines", [1, 2, 1_000])
def test_usage_is_crossed_by_day_model_and_key(books: Books, monkeypatch: pytest.MonkeyPatch, part_lines: int) -> None:
    """Each of them once, over any days; the sums are those of the charged requests."""
    monkeypatch.setattr(csv_files, "PART_LINES", part_lines)
    for day, key, model in ((0, 1, "small"), (0, 1, "large"), (0, 3, "small"), (0, 3, "small"), (400, 1, "small")):
        ask(books, NOON_MS - day * DAY_MS, key=key, model=model, end=charge)
    ask(books, NOON_MS, key=2, end=charge)
    found = rows(books, usage_csv("acc_1", None, None))
    first, third = present(1).id, present(3).id
    assert sorted(
        (row["day"], row["model"], row["key_id"], row["requests"], row["credits"]) for row in found
    ) == sorted(
        [
            ("2025-01-06", "small", first, "1", "1"),
            ("2026-02-10", "large", first, "1", "5"),
            ("2026-02-10", "small", first, "1", "1"),
            ("2026-02-10", "small", third, "2", "2"),
        ]
    )
    assert [row["day"] for row in found] == sorted(row["day"] for row in found)
    assert len(rows(books, usage_csv("acc_1", "2026-02-10", None))) == 3
    assert len(rows(books, usage_csv("acc_1", None, "2026-02-09"))) == 1


@pytest.mark.parametrize("part_lines", [1, 1_000])
def test_credits_come_whole(books: Books, monkeypatch: pytest.MonkeyPatch, part_lines: int) -> None:
    """With their references; who made them is for operators alone."""
    monkeypatch.setattr(csv_files, "PART_LINES", part_lines)
    books.add(make_topup(7), make_topup(8))
    for with_who in (False, True):
        found = rows(books, credits_csv("acc_1", TEHRAN, None, None, with_who=with_who))
        assert sorted(row["credits"] for row in found) == ["7", "8"]
        assert {"made_by" in row for row in found} == {with_who}
    assert rows(books, credits_csv("acc_1", TEHRAN, None, "2020-01-01", with_who=False)) == []


def test_an_account_that_is_not_there_has_no_file(books: Books) -> None:
    """Of no kind."""
    files = (
        requests_csv("acc_9", TEHRAN, HistoryFilter()),
        credits_csv("acc_9", TEHRAN, None, None, with_who=True),
        usage_csv("acc_9", None, None),
    )
    for file in files:
        with pytest.raises(NotThereError):
            rows(books, file)


CELLS = text(max_size=5) | sampled_from(["=1+1", "+1", "-1", "@sum", "\t=1", "\r=1", "a;=1", 'a","=1', "", "'"])


@given(lines=lists(tuples(CELLS, integers(), none(), CELLS), max_size=5))
def test_no_text_is_a_formula(lines: list[Line]) -> None:
    """A spreadsheet would carry it out on the machine of whoever opens the file; numbers stay numbers."""
    for read, line in zip(csv.reader(StringIO(csv_text(lines), newline="")), lines, strict=True):
        for cell, written in zip(read, line, strict=True):
            if isinstance(written, str):
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
                assert cell.removeprefix("'") == written or cell == written
            else:
                assert cell == ("" if written is None else str(written))


def test_a_text_with_a_semicolon_is_quoted() -> None:
    """Spreadsheets of half of Europe begin a new cell there, and would take what follows for a formula."""
    assert csv_text([("a;=1+1", 1)]) == '"a;=1+1",1\r\n'
