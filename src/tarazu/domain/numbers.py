"""Read numbers as people write them. Pure."""

import re

CHARACTERS_MAX = 50
"""Of a number that is read: nothing here is that large, and Python refuses to read or write thousands of digits."""
MINUS = "\u2212"
SEPARATORS = ",٬،_ \u00a0\u202f"
"""What people put between groups of three digits: commas, those of Persian and Arabic too, lines below, and spaces."""

_MARKS = "\u200e\u200f"
"""Directions of writing, which come along when a number is copied from a page."""
_LATIN = str.maketrans("۰۱۲۳۴۵۶۷۸۹٠١٢٣٤٥٦٧٨٩" + MINUS, "01234567890123456789-", _MARKS)
_NO_SEPARATORS = str.maketrans("", "", SEPARATORS)
_WHOLE = re.compile(
    rf"[+-]?(?:[0-9]+|[1-9][0-9]{{0,2}}(?P<separator>[{SEPARATORS}])[0-9]{{3}}(?:(?P=separator)[0-9]{{3}})*)"
)
_DECIMAL = re.compile(r"[+-]?[0-9]{1,12}(?:[.,/٫][0-9]{1,12})?")
_POINT = str.maketrans(",/٫", "...")
"""A comma is a decimal point here, as in most of Europe, and so is a stroke, as on Persian keyboards."""


def read_decimal(text: str) -> float | None:
    """Read a number with decimals and without separators, in Latin, Persian or Arabic digits; None: it is none."""
    plain = text[: CHARACTERS_MAX + 1].translate(_LATIN).strip()
    return float(plain.translate(_POINT)) if _DECIMAL.fullmatch(plain) else None


def read_number(text: str) -> int | None:
    """Read a whole number in Latin, Persian or Arabic digits; None: it is none.

    Separators stand between groups of three digits alone, all of one kind, and never after a leading zero: 1,5 and
    0,500 are fractions to those who write them so, and 12,34 is a slip.
    """
    if len(text) > CHARACTERS_MAX:
        return None
    plain = text.translate(_LATIN).strip()
    if _WHOLE.fullmatch(plain) is None:
        return None
    return int(plain.translate(_NO_SEPARATORS))
