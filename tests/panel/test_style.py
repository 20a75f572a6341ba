"""The style sheet: colours that can be read by everyone, and sides that turn with the language."""

import re
from importlib.resources import files
from struct import unpack_from

import pytest

from tarazu.panel.static_files import FONTS, TYPES, static_file

SHEET = static_file("panel.css").content.decode()
CONTRAST_MIN = 4.5
"""WCAG 2.2 AA, for text of ordinary size."""
PART_CONTRAST_MIN = 3.0
"""The same for what is no text: edges of fields, bars, the focus."""
SCHEMES = ("light", "dark")
TEXTS = [
    (text, ground)
    for ground in ("paper", "surface", "sunken")
    for text in ("ink", "muted", "act", "act-strong", "brass", "bad", "good")
] + [
    ("brass", "brass-soft"),
    ("muted", "brass-soft"),
    ("ink", "brass-soft"),
    ("good", "good-soft"),
    ("ink", "good-soft"),
    ("warn", "warn-soft"),
    ("ink", "warn-soft"),
    ("bad", "bad-soft"),
    ("ink", "bad-soft"),
    ("on-act", "act"),
    ("on-act", "act-strong"),
]
PARTS = [(part, ground) for ground in ("paper", "surface") for part in ("edge", "bar", "bar-strong", "brass", "bad")]


def colours(scheme: str) -> dict[str, str]:
    """Read the colours of a scheme; the dark one replaces those of the light one that it names."""
    light, dark = re.findall(r":root \{\n(.*?)\}", SHEET, re.DOTALL)[:2]
    named = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", light))
    return named if scheme == "light" else named | dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))


def luminance(colour: str) -> float:
    """Tell the relative luminance of WCAG."""
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Tell the contrast ratio of two colours."""
    bright, dim = sorted((luminance(first), luminance(second)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def letters_of(font: bytes) -> set[int]:
    """Read which characters a TrueType file draws, from its table of format 4 (OpenType specification, `cmap`)."""
    (tables,) = unpack_from(">H", font, 4)
    records = [unpack_from(">4sLLL", font, 12 + 16 * place) for place in range(tables)]
    cmap = next(offset for tag, _, offset, _ in records if tag == b"cmap")
    (number,) = unpack_from(">H", font, cmap + 2)
    places = [cmap + unpack_from(">HHL", font, cmap + 4 + 8 * place)[2] for place in range(number)]
    table = next(place for place in places if unpack_from(">H", font, place)[0] == 4)
    segments = unpack_from(">H", font, table + 6)[0] // 2
    ends = unpack_from(f">{segments}H", font, table + 14)
    starts = unpack_from(f">{segments}H", font, table + 16 + 2 * segments)
    return {code for start, end in zip(starts, ends, strict=True) for code in range(start, end + 1)}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_text_can_be_read(scheme: str) -> None:
    """Each colour of text, on each ground that it stands on."""
    named = colours(scheme)
    poor = [pair for pair in TEXTS if contrast(named[pair[0]], named[pair[1]]) < CONTRAST_MIN]
    assert poor == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_all_parts_can_be_told_apart(scheme: str) -> None:
    """Edges of fields, bars, and the ring around what has the focus."""
    named = colours(scheme)
    poor = [pair for pair in PARTS if contrast(named[pair[0]], named[pair[1]]) < PART_CONTRAST_MIN]
    assert poor == []


def test_no_side_is_named_left_or_right() -> None:
    """Margins, borders and places turn with the language; only what always runs from the left says so."""
    sided = re.findall(r"^\s*((?:margin|padding|border|inset)-(?:left|right)|left|right)\s*:", SHEET, re.MULTILINE)
    assert sided == []


def test_the_style_sheet_names_files_by_their_versions() -> None:
    """So browsers keep the typeface for ever, and load another one as soon as its package has one."""
    named = re.findall(r'url\("([a-z0-9.-]+)\?v=([0-9a-f]+)"\)', SHEET)
    assert {name for name, _ in named} == set(FONTS)
    assert SHEET.count("url(") == len(named)
    assert named == [(name, static_file(name).version) for name, _ in named]


def test_the_typeface_has_every_letter_of_the_persian_catalogue() -> None:
    """All that its style sheet promises for is drawn by it, and not by whatever a system has."""
    catalogue = (files("tarazu.panel") / "locale/fa/LC_MESSAGES/messages.po").read_text("utf-8")
    written = {ord(letter) for letter in catalogue if "\u0600" <= letter <= "\u06ff"}
    assert len(written) > 40
    for name in FONTS:
        assert written <= letters_of(static_file(name).content), name


def test_files_bring_nothing_from_elsewhere() -> None:
    """No address of another host stands in any of them, but the name of SVG."""
    for name in set(TYPES) - set(FONTS):
        content = static_file(name).content.decode().replace("http://www.w3.org/2000/svg", "")
        assert "//" not in re.sub(r"^\s*//.*$", "", content, flags=re.MULTILINE)
        assert "@import" not in content
