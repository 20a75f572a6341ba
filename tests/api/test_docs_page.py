"""The pages that explain the API and its clients: complete, sound HTML, readable by all, in need of no network."""

import re
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tarazu.api.admin.openapi import admin_html
from tarazu.api.contract.samples import DEFAULT_ORIGIN
from tarazu.api.docs_page import CONTENT_SECURITY_POLICY, STYLE, clients_html, html
from tarazu.api.prose import block, inline
from tarazu.domain.errors import Error
from tarazu.service.configuration.addresses import CLIENTS_PATH
from tests.support.clients import ROOT, read_clients
from tests.support.contract import DOCUMENT, SCHEMAS, operations
from tests.support.html_page import Page
from tests.support.patience import PATIENCE_S

CONTRAST_MIN = 4.5
"""WCAG 2.2 AA, for text of ordinary size."""
TEXT_COLOURS = ("ink", "muted", "brass", "link", "good", "bad")
BACKGROUNDS = ("paper", "panel")


PAGES = {"api": html, "clients": clients_html}
OTHERS = {"/api/v1/openapi.json", "/docs", "/docs/clients", "/panel/", "data:,"}
"""Where links lead beside the page itself."""
CLIENTS_URL = DEFAULT_ORIGIN + CLIENTS_PATH
on_both = pytest.mark.parametrize("page", PAGES, indirect=True)


@cache
def read(name: str) -> Page:
    """Read one of the pages."""
    return Page(PAGES[name]().decode())


@pytest.fixture
def page(request: pytest.FixtureRequest) -> Page:
    """Take each of the pages in turn."""
    return read(request.param)


@on_both
def test_every_element_is_closed(page: Page) -> None:
    """The page is well-formed: what is opened is closed, in order."""
    assert page.open == []


@on_both
def test_ids_are_unique_and_every_link_resolves(page: Page) -> None:
    """Each id stands once, and each link goes to one of them, to the contract, or to a page beside it."""
    ids = Counter(page.values("id"))
    assert [name for name, times in ids.items() if times > 1] == []
    for target in page.values("href"):
        assert target in OTHERS or target == CLIENTS_URL or target.removeprefix("#") in ids, target
    for target in page.values("aria-labelledby"):
        assert target in ids


def test_they_lead_to_the_pages_beside_them() -> None:
    """Holders to their panel and from one page to the other, operators to their pages."""
    assert {"/panel/", "/docs/clients", CLIENTS_URL} <= set(read("api").values("href"))
    assert {"/panel/", "/docs"} <= set(read("clients").values("href"))
    assert "/admin/" in Page(admin_html().decode()).values("href")


@on_both
def test_it_loads_nothing(page: Page) -> None:
    """No script, image, font or style sheet comes from anywhere, and the browser is told to hold the page to that."""
    assert [tag for tag, _ in page.elements if tag in ("script", "img", "iframe", "object", "embed")] == []
    assert page.values("src") == []
    assert [attributes["href"] for tag, attributes in page.elements if tag == "link"] == ["data:,"]
    assert not re.search(r"url\(|@import|@font-face", STYLE)
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'")
    assert CONTENT_SECURITY_POLICY in page.values("content")
    assert page.values("style") == []
    assert [name for _, attributes in page.elements for name in attributes if name.startswith("on")] == []


@pytest.mark.parametrize("name", PAGES)
def test_its_style_sheet_is_the_one_it_allows(name: str) -> None:
    """The style element holds the sheet that the policy has the digest of, to the letter."""
    source = PAGES[name]().decode()
    assert source.startswith("<!doctype html>")
    assert f"<style>{STYLE}</style>" in source


@pytest.mark.parametrize("operation_id", operations())
def test_operations(operation_id: str) -> None:
    """Each operation stands there with its route, its samples, its statuses and its place in the contents."""
    operation = operations()[operation_id]
    source = html().decode()
    start = source.index(f'<section class="operation" id="{operation_id}"')
    section = Page(source[start : source.index("</section>", start)]).text
    assert f"{operation['method']} {operation['path']}" in section
    for status in operation["responses"]:
        assert status in section
    for sample in operation["x-codeSamples"]:
        assert " ".join(sample["source"].split()) in section
    assert f"#{operation_id}" in read("api").values("href")


@pytest.mark.parametrize("name", SCHEMAS)
def test_objects(name: str) -> None:
    """Each object stands there with every member, its type and its meaning."""
    source = html().decode()
    start = source.index(f'<section id="{name}"')
    section = Page(source[start : source.index("</section>", start)]).text
    for member, schema in SCHEMAS[name]["properties"].items():
        row = re.search(rf" {member} (.+?) (yes|no|one of them) ", section)
        assert row is not None, member
        assert _letters(schema["description"].replace("`", "")) in _letters(section)


@pytest.mark.parametrize("error", Error)
def test_errors(error: Error) -> None:
    """Each error stands in the table with its status and code."""
    section = read("api").text[read("api").text.index("Cause Remedy") :]
    assert f"{error.value.status} {error.value.code}" in section


def test_headers() -> None:
    """Each header of an answer is explained."""
    for name in DOCUMENT["components"]["headers"]:
        assert name in read("api").values("id")


@on_both
def test_landmarks_and_headings(page: Page) -> None:
    """One of each landmark, one first heading, no level of headings left out, and a language."""
    assert {tag: page.count(tag) for tag in ("header", "nav", "main", "footer", "h1")} == {
        "header": 1,
        "nav": 1,
        "main": 1,
        "footer": 1,
        "h1": 1,
    }
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(following <= level + 1 for level, following in pairwise(levels))
    assert page.elements[0] == ("html", {"lang": "en"})
    assert page.values("href")[1] == "#content"


@on_both
def test_what_scrolls_can_be_reached_with_the_keyboard(page: Page) -> None:
    """Each block of code takes the focus and has a name; the focus is shown."""
    blocks = [attributes for tag, attributes in page.elements if tag == "pre"]
    assert blocks
    assert all(attributes["tabindex"] == "0" and attributes["aria-label"] for attributes in blocks)
    assert ":focus-visible" in STYLE
    assert "outline: none" not in STYLE


@on_both
def test_every_cell_says_what_it_is(page: Page) -> None:
    """Cells keep their column's title where the columns are given up, and their roles."""
    for tag, attributes in page.elements:
        if tag == "td":
            assert attributes["data-label"]
            assert attributes["role"] == "cell"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme: str) -> None:
    """Text of every colour stands out from every background, in both colour schemes."""
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    for background in BACKGROUNDS:
        for colour in TEXT_COLOURS:
            assert _contrast(colours[colour], colours[background]) >= CONTRAST_MIN, (colour, background)


def test_another_base_address() -> None:
    """The pages show the address that callers use, wherever the files have that of a service on one's own machine."""
    page = html("https://ai.example.com/api/v1").decode()
    assert "https://ai.example.com/api/v1/chat/completions" in page
    assert "https://ai.example.com/docs/clients" in page
    about_clients = clients_html("https://ai.example.com/api/v1").decode()
    assert about_clients.count("https://ai.example.com/api/v1") >= len(read_clients())
    assert "127.0.0.1" not in page + about_clients


def test_each_client_of_the_file_stands_on_the_page() -> None:
    """With all of its programs, to the letter."""
    text = read("clients").text
    for client in read_clients().values():
        assert client.title in text
        for source in client.blocks:
            assert " ".join(source.split()) in text


def test_the_package_brings_the_page_about_clients(tmp_path: Path) -> None:
    """The file of docs/, once: in the source distribution, and in the wheel that is built of it."""
    _build("sdist", ROOT, tmp_path)
    with tarfile.open(next(tmp_path.glob("*.tar.gz"))) as sources:
        sources.extractall(tmp_path, filter="data")
    (unpacked,) = (folder for folder in tmp_path.iterdir() if folder.is_dir())
    _build("wheel", unpacked, tmp_path)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert wheel.read("tarazu/api/texts/clients.md") == (ROOT / "docs" / "clients.md").read_bytes()


def _build(kind: str, folder: Path, into: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=PATIENCE_S, check=True)


def test_raw_html_in_a_text_stays_text() -> None:
    """What looks like HTML in the contract's texts is shown, not obeyed."""
    for rendered in (block("<b>x</b>\n\n```\n<i>\n```"), inline("<b>x</b> `<i>`")):
        assert "<b>" not in rendered
        assert "<i>" not in rendered
        assert "&lt;b&gt;" in rendered


def _letters(text: str) -> str:
    """Leave out the spaces, which elements put between words and their full stops."""
    return "".join(text.split())


def _contrast(first: str, second: str) -> float:
    """The ratio that WCAG defines."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
