"""Take a picture of every page, and make docs/pictures.md of them: `python -m tests.browser.pictures`.

`python -m tests.browser.pictures FOLDER` takes every page in every look into a folder: phone and desktop, light and
dark, English and Persian. The figures are those of a few weeks of a customer's requests.
"""

import shutil
import sys
from base64 import b64decode
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser

from tests.browser.pages import HOLDER_PAGES, OPEN_PAGES, OPERATOR_PAGES, PASSWORD, Inhabitants, settle
from tests.support.backend import ScriptedBackend
from tests.support.browser import DESKTOP, PHONE, Scheme, Visitor, chromium, visiting
from tests.support.service import Customer, RunningService
from tests.support.set_clock import SetClock

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
GALLERY = FOLDER.with_suffix(".md")
PAGES = (*HOLDER_PAGES, *OPERATOR_PAGES, *OPEN_PAGES)
KEPT = "en-1280-light"
"""The look of which the repository keeps a picture of each page."""
INTRODUCTION = f"""# A picture of every page

In English, at {DESKTOP:,} pixels, light. `python -m tests.browser.pictures` takes them anew. With the name of a folder
it takes every page into that, in every look: in English and Persian, at {PHONE} and {DESKTOP:,} pixels, light and
dark. The people and their requests are made up.
"""
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
QUALITY = 75
DAYS = 24
DAY_S = 86_400
MODELS = ("test/one", "test/two", "test/free")
LOCALES = {"en": "en-US", "fa": "fa-IR"}


def main() -> None:
    """Take one picture of each page and renew the page that shows them; or take every look into a folder."""
    if sys.argv[1:]:
        take(endings(), Path(sys.argv[1]))
        return
    shutil.rmtree(FOLDER, ignore_errors=True)
    take([KEPT], FOLDER)
    GALLERY.write_text(gallery(), "utf-8")


def take(looks: Iterable[str], folder: Path) -> None:
    """Take every page in these looks."""
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name, ScriptedBackend() as backend:
        clock = SetClock(Path(name))
        service = RunningService(Path(name), backend.url, environ=clock.environ, clock=clock)
        with service, chromium() as browser:
            base_url = f"http://127.0.0.1:{service.port}"
            inhabitants = settle(service, base_url, live=partial(_ask_for_weeks, service, clock))
            kept = _signed_in(browser, base_url, inhabitants)
            for ending in looks:
                with visiting(browser, base_url, **kept, **look(ending)) as visitor:
                    _take(visitor, folder, ending, (*HOLDER_PAGES, *OPERATOR_PAGES), inhabitants)
                with visiting(browser, base_url, **look(ending)) as visitor:
                    _take(visitor, folder, ending, OPEN_PAGES, inhabitants)


def gallery() -> str:
    """Write the page that shows them all."""
    sections = [f"## `{page}`\n![{page}](pictures/{file_name(page, KEPT)})\n" for page in PAGES]
    return INTRODUCTION + "\n" + "\n".join(sections)


def endings() -> list[str]:
    """Name the looks: language, width and scheme."""
    return [f"{language}-{width}-{scheme}" for language in LOCALES for width in (PHONE, DESKTOP) for scheme in SCHEMES]


def look(ending: str) -> dict[str, Any]:
    """Tell what a browser of this look is."""
    language, width, scheme = ending.split("-")
    return {"width": int(width), "scheme": scheme, "locale": LOCALES[language]}


def file_name(page: str, ending: str) -> str:
    """Name the picture of a page in one look."""
    words = page.replace("{account_id}", "one").replace("{key_id}", "one").strip("/").replace("/", "-")
    return f"{words}-{ending}.webp"


def _ask_for_weeks(service: RunningService, clock: SetClock, customer: Customer) -> None:
    for day in range(DAYS):
        clock.advance(DAY_S)
        for number in range(3 + day * 5 % 7):
            service.chat(customer, model=MODELS[number % len(MODELS)])


def _signed_in(browser: Browser, base_url: str, inhabitants: Inhabitants) -> dict[str, Any]:
    """Sign a customer and an operator in; answer with what their browser keeps."""
    with visiting(browser, base_url) as visitor:
        visitor.accept(inhabitants.holder_link, PASSWORD)
        visitor.accept(inhabitants.operator_link, PASSWORD)
        return {"storage_state": visitor.context.storage_state()}


def _take(visitor: Visitor, folder: Path, ending: str, pages: Iterable[str], inhabitants: Inhabitants) -> None:
    for page in pages:
        visitor.open(inhabitants.path(page))
        (folder / file_name(page, ending)).write_bytes(_picture(visitor))
    visitor.faults.clear()  # an invitation that has ended is no fault here


def _picture(visitor: Visitor) -> bytes:
    """Take the whole page in a format that Playwright itself does not offer, in a third of the bytes."""
    session = visitor.context.new_cdp_session(visitor.page)
    size = session.send("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
    settings = {"format": "webp", "quality": QUALITY, "captureBeyondViewport": True, "clip": clip}
    data: str = session.send("Page.captureScreenshot", settings)["data"]
    session.detach()
    return b64decode(data)


if __name__ == "__main__":
    main()
