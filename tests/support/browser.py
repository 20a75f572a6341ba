"""A real browser: headless Chromium, watched for errors and for requests that leave the service."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from msgspec import Struct
from playwright.sync_api import Browser, BrowserContext, Locator, Page, sync_playwright

from tests.support.chromium import find_chromium, with_letters
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S
from tests.support.service import Customer

AXE = Path(__file__).parents[1] / "npm" / "node_modules" / "axe-core" / "axe.min.js"
STANDARDS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
PHONE = 390
DESKTOP = 1_280
HEIGHT = 900
Scheme = Literal["light", "dark"]
GLUED = re.compile(r".*(?:[a-z][.:!?][A-Z]|[آ-ی][.:!؟][آ-ی]).*")
"""A sentence that begins where another one ends, without a space."""
BOTH_WAYS = re.compile(r"[A-Za-z].*[آ-ی]|[آ-ی].*[A-Za-z]")
ISOLATE = "\N{FIRST STRONG ISOLATE}"


class Spoken(Struct, frozen=True):
    """What a browser asks for, and the language and direction of the pages that it gets."""

    locale: str
    language: str
    direction: str


ENGLISH = Spoken("en-US", "en", "ltr")
PERSIAN = Spoken("fa-IR", "fa", "rtl")


class Visitor(Struct, frozen=True):
    """Somebody at a browser of their own. What went wrong in it, or left the service, stands in `faults`."""

    context: BrowserContext
    page: Page
    base_url: str
    faults: list[str]

    def open(self, path: str) -> None:
        """Go to a page of the service."""
        self.page.goto(self.base_url + path)

    def accept(self, link: str, password: str) -> None:
        """Follow an invitation, and choose a password."""
        self.page.goto(link)
        self.page.fill('[name="password"]', password)
        with self.page.expect_navigation():
            self.page.locator("form", has=self.page.locator('[name="password"]')).locator("button.primary").click()

    def send(self, action: str, **fields: str) -> None:
        """Fill in the form that goes to this path, and press its button, be it folded away or not."""
        form = self.page.locator(f'form[action="{action}"]')
        folded = self.page.locator("details:not([open])", has=form).locator("summary")
        if folded.count():
            folded.first.click()
        for name, value in fields.items():
            self._fill(form.locator(f'[name="{name}"]'), value)
        with self.page.expect_navigation():
            form.locator("button").last.click()

    def say(self, prompt: str, **fields: str) -> None:
        """Send a message in the playground, and wait for what comes of it."""
        turns = self.page.locator(".turn").count()
        for name, value in {**fields, "prompt": prompt}.items():
            self._fill(self.page.locator(f'#ask [name="{name}"]'), value)
        self.page.locator("#ask button.primary").click()
        self.page.wait_for_function(
            "turns => !document.querySelector('#ask') || (!document.querySelector('.pending') && "
            "(document.querySelectorAll('.turn').length > turns || document.querySelector('#problem [role=alert]')))",
            arg=turns,
        )

    def path(self) -> str:
        """Tell the path of the page that is open."""
        return self.page.url.removeprefix(self.base_url).partition("?")[0]

    def violations(self) -> list[str]:
        """List what axe-core has against the page as it is now, each with the elements that it is about."""
        # Run by the debugger, to which the page's content security policy does not apply.
        self.page.evaluate(_axe())
        found = self.page.evaluate(f"axe.run(document, {{runOnly: {json.dumps(STANDARDS)}}}).then(r => r.violations)")
        return [f"{each['id']}: {each['help']} {[node['html'] for node in each['nodes']]}" for each in found]

    def assert_readable(self) -> None:
        """See that axe-core has nothing against the page that is open, which is no wider than its window.

        And that a space stands between sentences, where templates put one after the other, and that in an option
        letters of both directions keep apart.
        """
        assert self.violations() == []
        assert not self.is_wider_than_the_window()
        code = "\n".join(self.page.locator("pre, code").all_inner_texts())
        assert [line for line in GLUED.findall(self.page.inner_text("body")) if line not in code] == []
        options = self.page.locator("option").all_text_contents()
        assert [option for option in options if BOTH_WAYS.search(option) and ISOLATE not in option] == []

    def is_wider_than_the_window(self) -> bool:
        """Tell whether the page must be scrolled sideways to be read."""
        wider: bool = self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth + 1"
        )
        return wider

    def _fill(self, field: Locator, value: str) -> None:
        if field.evaluate("it => it.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run the browser.

    While it runs this thread has an event loop: no test may make one of its own beside it.
    """
    found = find_chromium()
    # Playwright's own Node.js needs a library that a minimal system lacks.
    os.environ["PLAYWRIGHT_NODEJS_PATH"] = find_node().program
    with TemporaryDirectory() as letters, sync_playwright() as playwright:
        environ: dict[str, str | float | bool] = {**os.environ, **found.environ, **with_letters(Path(letters))}
        # Without a sandbox, which not every machine gives to every user: it sees nothing but our own pages.
        browser = playwright.chromium.launch(executable_path=found.program, env=environ, chromium_sandbox=False)
        yield browser
        browser.close()


@contextmanager
def visiting(
    browser: Browser, base_url: str, *, width: int = DESKTOP, scheme: Scheme = "light", **settings: Any
) -> Iterator[Visitor]:
    """Give somebody new a window of the browser, without cookies. At the end nothing must have gone wrong in it."""
    context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme, **settings)
    context.set_default_timeout(PATIENCE_S * 1_000)
    faults: list[str] = []
    context.on("weberror", lambda error: faults.append(f"error: {error.error}"))
    context.on("console", lambda message: _note(faults, message.type, message.text))
    context.on("request", lambda request: _watch(faults, base_url, request.url))
    visitor = Visitor(context, context.new_page(), base_url, faults)
    yield visitor
    context.close()
    assert visitor.faults == []


def _note(faults: list[str], kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        faults.append(f"console: {text}")


def _watch(faults: list[str], base_url: str, url: str) -> None:
    if not url.startswith((f"{base_url}/", "data:")):
        faults.append(f"outside request: {url}")


def with_key(secret: str) -> Customer:
    """Be whoever has nothing but a key."""
    return Customer("", "", secret)


@cache
def _axe() -> str:
    return AXE.read_text("utf-8")
