"""Take a picture of every page, for people to look at: `python -m tests.browser.pictures [FOLDER]`.

Phone and desktop, light and dark, English and Persian. The figures are those of a few days of somebody's requests.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Browser

from tests.browser.pages import HOLDER_PAGES, OPEN_PAGES, OPERATOR_PAGES, PASSWORD, Inhabitants, settle
from tests.support.backend import ScriptedBackend
from tests.support.browser import DESKTOP, PHONE, Scheme, chromium, visiting
from tests.support.service import RunningService

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
LOCALES = {"en": "en-US", "fa": "fa-IR"}


def main() -> None:
    """Take them all, and say where they are."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name, ScriptedBackend() as backend, RunningService(Path(name), backend.url) as service:
        base_url = f"http://127.0.0.1:{service.port}"
        inhabitants = settle(service, base_url)
        with chromium() as browser:
            kept = _signed_in(browser, base_url, inhabitants)
            for language, locale in LOCALES.items():
                for width in (PHONE, DESKTOP):
                    for scheme in SCHEMES:
                        ending = f"{language}-{width}-{scheme}"
                        _take(
                            browser,
                            base_url,
                            inhabitants,
                            kept,
                            folder,
                            ending,
                            width=width,
                            scheme=scheme,
                            locale=locale,
                        )
    sys.stdout.write(f"{len(list(folder.glob('*.png')))} pictures in {folder}\n")


def _signed_in(browser: Browser, base_url: str, inhabitants: Inhabitants) -> dict[str, Any]:
    with visiting(browser, base_url) as visitor:
        visitor.accept(inhabitants.holder_link, PASSWORD)
        visitor.accept(inhabitants.operator_link, PASSWORD)
        return {"storage_state": visitor.context.storage_state()}


def _take(
    browser: Browser,
    base_url: str,
    inhabitants: Inhabitants,
    kept: dict[str, Any],
    folder: Path,
    ending: str,
    **look: Any,
) -> None:
    for pages, state in (((*HOLDER_PAGES, *OPERATOR_PAGES), kept), (OPEN_PAGES, {})):
        with visiting(browser, base_url, **state, **look) as visitor:
            for page in pages:
                visitor.open(inhabitants.path(page))
                visitor.page.screenshot(path=folder / f"{_name(page)}-{ending}.png", full_page=True)
            visitor.faults.clear()  # an invitation that has ended is no fault here


def _name(page: str) -> str:
    words = page.replace("{account_id}", "one").replace("{key_id}", "one").strip("/").replace("/", "-")
    return words or "first"


if __name__ == "__main__":
    main()
