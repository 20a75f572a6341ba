"""The form in which texts are compared when people look for something: as they read, not as keyboards write. Pure.

Capitals make no difference, nor do the letters of Arabic that stand for those of Persian, what joins and parts letters,
vowel signs, and in which script's digits a number is written.
"""

from typing import Final
from unicodedata import normalize

NORMAL_FORM: Final = "NFKC"
TURKISH, PLAIN = "İı", "ii"
"""Letters whose small forms no two programs agree on, and what they are taken for."""
_FORMS = {
    "ی": "يىئ",
    "ک": "ك",
    "ه": "ةۀ",
    "ا": "آأإٱ",
    "و": "ؤ",
    "σ": "ς",
    **{str(digit): chr(0x06F0 + digit) + chr(0x0660 + digit) for digit in range(10)},
}
UNREAD = (
    "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}\N{SOFT HYPHEN}\N{ARABIC TATWEEL}\N{ARABIC LETTER SUPERSCRIPT ALEF}"
    "\N{LEFT-TO-RIGHT MARK}\N{RIGHT-TO-LEFT MARK}\N{ARABIC LETTER MARK}" + "".join(map(chr, range(0x064B, 0x0656)))
)
"""Joiners, vowel signs, marks of direction: left out."""
WRITTEN = "".join(_FORMS.values())
READ = "".join(read * len(written) for read, written in _FORMS.items())
"""What each character of WRITTEN is taken for."""
_PLAIN = str.maketrans(TURKISH, PLAIN)
_TABLE = str.maketrans(WRITTEN, READ, UNREAD)


def search_form(text: str) -> str:
    """Bring a text of bounded length into the form."""
    if text.isascii():
        return text.lower()
    return normalize(NORMAL_FORM, text).translate(_PLAIN).lower().translate(_TABLE)


def any_reads(sought: str, *texts: str | None) -> bool:
    """Tell whether what is looked for stands in one of the texts, as they read."""
    form = search_form(sought.strip())
    return any(form in search_form(text) for text in texts if text is not None)
