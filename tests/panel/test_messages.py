"""The catalogues say all that code and templates say, with the same values in it."""

import re
from pathlib import Path
from string import Formatter

import pytest
from babel.messages.catalog import Catalog, Message

from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.panel.messages import told, translations
from tarazu.service.provisioning_errors import ProvisioningError
from tests.support.messages import TRANSLATED, catalogue_file, extracted, translated, written

NAMED = re.compile(r"%\((\w+)\)s")
GLOSSARY = Path(__file__).parents[2] / "docs" / "glossary.md"
OF_PAGES = "## What pages say"
KEPT_AS_THEY_ARE = ("TARAZU_API_KEY", "API", "CSV", "JSON", "chatcmpl_", "req_", "ada@example.com", "2026-02")


@pytest.fixture(params=TRANSLATED)
def language(request: pytest.FixtureRequest) -> Language:
    """Take each language in turn."""
    language: Language = request.param
    return language


def ids(catalog: Catalog) -> set[object]:
    """List the messages of a catalogue."""
    return {message.id for message in catalog if message.id}


def texts(value: object) -> tuple[str, ...]:
    """List the forms of a message: one, or one for each number."""
    return (value,) if isinstance(value, str) else tuple(str(text) for text in value)  # type: ignore[attr-defined]


def names(text: str) -> set[str]:
    """Name the values that stand in a message."""
    return set(NAMED.findall(text)) | {name for _, name, _, _ in Formatter().parse(text) if name}


def test_messages_are_found() -> None:
    """In templates, in pages, and where acts are refused."""
    assert ids(extracted()) >= {
        "Overview",
        "Create the key",
        "This key may not use this model. Choose another of either.",
    }
    assert ids(extracted()) >= {"There is no account {account!r}.", "limit per minute", "name"}
    assert ("%(shown)s credit", "%(shown)s credits") in ids(extracted())


def test_no_message_is_missing_or_left_over(language: Language) -> None:
    """What the code says is what the catalogue says: `python -m tests.support.messages` shows the difference."""
    catalog = translated(language)
    assert ids(catalog) == ids(extracted())
    assert list(catalog.obsolete) == []


def test_every_message_is_translated(language: Language) -> None:
    """None is empty, and none is a guess that nobody has looked at."""
    unready = [m.id for m in translated(language) if m.id and (m.fuzzy or not all(texts(m.string)))]
    assert unready == []


def test_the_same_values_stand_in_every_translation(language: Language) -> None:
    """A value that is missing would be hidden from the reader, one too many would break the page."""

    def differs(message: Message) -> bool:
        wanted = names(texts(message.id)[-1])
        return any(names(text) != wanted for text in texts(message.string))

    assert [message.id for message in translated(language) if message.id and differs(message)] == []


def test_persian_is_persian() -> None:
    """No English word is left in it but names, and none of its digits is Latin."""
    for message in translated(Language.PERSIAN):
        for text in texts(message.string) if message.id else ():
            plain = re.sub(r"%\(\w+\)s|\{[^}]*\}", "", text)
            for word in KEPT_AS_THEY_ARE:
                plain = plain.replace(word, "")
            assert re.search(r"[A-Za-z0-9]", plain) is None, text


def test_no_word_comes_back_that_nobody_says(language: Language) -> None:
    """Of the glossary's words for the pages: in neither language one that another has taken the place of."""
    rows = [line.strip("| ").split(" | ") for line in GLOSSARY.read_text("utf-8").partition(OF_PAGES)[2].splitlines()]
    unsaid = [
        {word for row in rows if len(row) == 5 for word in row[column].split(", ") if word not in {"–", "---"}}
        for column in (3, 4)
    ]
    english, persian = (words - {"not in English", "not in Persian"} for words in unsaid)
    assert len(english) > 10
    assert len(persian) > 20
    for message in translated(language):
        for text in texts(message.id) if message.id else ():
            assert [word for word in english if _has(text.lower(), word)] == [], text
        for text in texts(message.string) if message.id else ():
            assert [word for word in persian if _has(text, word)] == [], text


def _has(text: str, word: str) -> bool:
    stem = re.escape(word.removesuffix("…"))
    return re.search(rf"(?<!\w){stem}" + ("" if word.endswith("…") else r"(?!\w)"), text) is not None


def test_the_catalogue_is_kept_as_it_would_be_written(language: Language) -> None:
    """In one order and form, so that a change shows as what it is."""
    assert catalogue_file(language).read_bytes() == written(translated(language))


def test_an_error_is_told_in_the_readers_language() -> None:
    """Its words, the name of what is wrong, and its numbers; what somebody has written stays as it is."""
    text = "The {what} must be from 1 to {most}, not {number}."
    error = ProvisioningError(text, what="number of days", most=3650, number=-1)
    assert told(error, Formats(Language.ENGLISH)) == "The number of days must be from 1 to 3,650, not \u200e−1."
    assert told(error, Formats(Language.PERSIAN)) == "«تعداد روزها» باید از ۱ تا ۳٬۶۵۰ باشد، نه \u200e−۱."
    unknown = ProvisioningError("There is no key {key!r}.", key="name 12")
    assert told(unknown, Formats(Language.PERSIAN)) == "کلید «name 12» نیست."


def test_numbers_have_their_plurals() -> None:
    """One, and more."""
    english, persian = translations(Language.ENGLISH), translations(Language.PERSIAN)
    assert english.ngettext("%(shown)s credit", "%(shown)s credits", 1) == "%(shown)s credit"
    assert english.ngettext("%(shown)s credit", "%(shown)s credits", 2) == "%(shown)s credits"
    assert persian.ngettext("%(shown)s credit", "%(shown)s credits", 1) == "%(shown)s اعتبار"
