"""docs/pictures.md: every page in every look."""

from tests.browser.pictures import FOLDER, GALLERY, PAGES, endings, file_name, gallery


def test_every_page_has_its_pictures() -> None:
    """And no picture is of a page that is gone; if not: python -m tests.browser.pictures."""
    assert {path.name for path in FOLDER.iterdir()} == {
        file_name(page, ending) for page in PAGES for ending in endings()
    }
    assert GALLERY.read_text("utf-8") == gallery()
