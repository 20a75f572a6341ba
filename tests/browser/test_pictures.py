"""docs/pictures.md: every page, and in `make nightly` every look."""

from pathlib import Path

import pytest

from tests.browser.pictures import FOLDER, GALLERY, KEPT, PAGES, endings, file_name, gallery, take

SMALLEST_BYTES = 2_000
"""A page with nothing on it is smaller."""


def test_every_page_has_its_picture() -> None:
    """And no picture is of a page that is gone; if not: python -m tests.browser.pictures."""
    assert {path.name for path in FOLDER.iterdir()} == {file_name(page, KEPT) for page in PAGES}
    assert GALLERY.read_text("utf-8") == gallery()


@pytest.mark.nightly
def test_every_look_of_every_page_can_be_taken(tmp_path: Path) -> None:
    """In both languages, on phone and desktop, light and dark, each page shows something."""
    take(endings(), tmp_path)
    taken = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert taken.keys() == {file_name(page, ending) for page in PAGES for ending in endings()}
    assert min(taken.values()) > SMALLEST_BYTES, taken
