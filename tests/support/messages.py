"""The messages that code and templates hold, and the catalogues that say them in other languages.

`python -m tests.support.messages` brings the catalogues to what the code says: new messages come in empty, changed and
lost ones go, and what is translated stays.
"""

from collections.abc import Iterator
from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

from tarazu.panel.language import Language

SOURCES = Path(__file__).parents[2] / "src" / "tarazu"
LOCALES = SOURCES / "panel" / "locale"
TRANSLATED = (Language.PERSIAN,)
PYTHON_PLACES = ("panel/**.py", "service/**.py")
TEMPLATE_PLACES = ("panel/templates/**.html",)
KEYWORDS = {
    "_": None,
    "gettext": None,
    "ngettext": (1, 2),
    "later": None,
    "ProvisioningError": (1,),
    "NotThereError": (1,),
    "ConflictError": (1,),
    "checked_text": (1,),
    "checked_count": (1,),
    "within": (1,),
    "whole_number": (1,),
}
"""The functions whose texts people are shown, with the places of these texts."""
TEMPLATE_OPTIONS = {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}


@cache
def extracted() -> Catalog:
    """Read all messages out of code and templates, once."""
    catalog = Catalog()
    for place, line, message, context in _found():
        catalog.add(message, locations=[(place, line)], context=context)
    return catalog


def catalogue_file(language: Language) -> Path:
    """Name the file that holds a language."""
    return LOCALES / language.value / "LC_MESSAGES" / "messages.po"


def translated(language: Language) -> Catalog:
    """Read the catalogue of a language as it is kept."""
    return read_po(BytesIO(catalogue_file(language).read_bytes()), locale=language.value)


def written(catalog: Catalog) -> bytes:
    """Write a catalogue as it is kept: by message, with the files that say it and without line numbers or dates."""
    target = BytesIO()
    write_po(target, catalog, width=120, sort_output=True, omit_header=True, include_lineno=False)
    header = (
        'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n"Content-Transfer-Encoding: 8bit\\n"\n'
        f'"Language: {catalog.locale_identifier}\\n"\n"Plural-Forms: {catalog.plural_forms}\\n"\n\n'
    )
    return header.encode() + target.getvalue()


def _found() -> Iterator[tuple[str, int, str | tuple[str, ...], str | None]]:
    methods = [(place, "python") for place in PYTHON_PLACES]
    methods += [(place, "jinja2.ext:babel_extract") for place in TEMPLATE_PLACES]
    options = dict.fromkeys(TEMPLATE_PLACES, TEMPLATE_OPTIONS)
    for place, line, message, _comments, context in extract_from_dir(str(SOURCES), methods, options, KEYWORDS):
        yield place, line, message, context


def main() -> None:
    """Renew the catalogues."""
    messages = extracted()
    for language in TRANSLATED:
        catalog = translated(language)
        catalog.update(messages, no_fuzzy_matching=True)
        catalog.obsolete.clear()
        catalogue_file(language).write_bytes(written(catalog))


if __name__ == "__main__":
    main()
