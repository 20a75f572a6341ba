"""What pages say, in each language. Messages are written in English where they are used, and looked up here."""

from collections.abc import Mapping
from functools import lru_cache
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from io import BytesIO

from tarazu.panel.formats import Formats
from tarazu.panel.language import Language
from tarazu.service.provisioning_errors import ProvisioningError

WHAT = "what"
"""The value of an error's message that names something, in a word that is translated too."""


def later(message: str) -> str:
    """Mark a message that is translated where it is shown."""
    return message


@lru_cache
def translations(language: Language) -> NullTranslations:
    """Read the catalogue of a language, at its first use; English needs none."""
    if language is Language.ENGLISH:
        return NullTranslations()
    from babel.messages.mofile import write_mo  # noqa: PLC0415 - a tenth of a second that English does without
    from babel.messages.pofile import read_po  # noqa: PLC0415 - as above

    source = files("tarazu.panel") / "locale" / language.value / "LC_MESSAGES" / "messages.po"
    compiled = BytesIO()
    write_mo(compiled, read_po(BytesIO(source.read_bytes()), locale=language.value))
    compiled.seek(0)
    return GNUTranslations(compiled)


def told(error: ProvisioningError, formats: Formats) -> str:
    """Say why something cannot be done."""
    return filled_in(error.text, error.values, formats)


def filled_in(text: str, values: Mapping[str, object], formats: Formats) -> str:
    """Say a message with its values."""
    filled = {name: _value(name, value, formats) for name, value in values.items()}
    return translations(formats.language).gettext(text).format(**filled)


def _value(name: str, value: object, formats: Formats) -> object:
    if isinstance(value, int):
        return _Number(value, formats)
    return translations(formats.language).gettext(str(value)) if name == WHAT else _Text(str(value), formats.language)


class _Text:
    """Writes itself into a message, between its readers' quotation marks where the message wants some."""

    def __init__(self, text: str, language: Language) -> None:
        self._text = text
        self._language = language

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        opening, closing = "«»" if self._language is Language.PERSIAN else "“”"
        return f"{opening}{self._text}{closing}"


class _Number:
    """Writes itself into a message as its readers write numbers, with its sign where the message wants one."""

    def __init__(self, number: int, formats: Formats) -> None:
        self._number = number
        self._formats = formats

    def __format__(self, specification: str) -> str:
        return self._formats.change(self._number) if specification == "+" else self._formats.number(self._number)
