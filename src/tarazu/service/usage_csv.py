"""The usage of an account as CSV, for a spreadsheet: the same figures as in its report."""

import csv
from collections.abc import Iterable
from enum import StrEnum
from io import StringIO

from msgspec.structs import astuple

from tarazu.service.reports import UsageLine, UsageReport
from tarazu.store.usage import Usage

_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


class Grouping(StrEnum):
    """What the usage is added up by."""

    DAY = "day"
    MODEL = "model"
    KEY = "key"


def usage_csv(report: UsageReport, by: Grouping) -> str:
    """Write the lines of a report, with a head and as the standard for CSV (RFC 4180) has it.

    A name that a spreadsheet would take for a formula gets an apostrophe before it, one with a semicolon quotes around
    it.
    """
    match by:
        case Grouping.DAY:
            return _csv(["day"], (([line.id], line) for line in report.days))
        case Grouping.MODEL:
            return _csv(["model"], (([_harmless(line.id)], line) for line in report.models))
        case Grouping.KEY:
            return _csv(["key_id", "key"], (([line.id, _harmless(line.name)], line) for line in report.keys))


def _csv(head: list[str], lines: Iterable[tuple[list[str], UsageLine]]) -> str:
    text = StringIO()
    writer = csv.writer(text)
    quoting = csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow([*head, *Usage.__struct_fields__])
    for names, line in lines:
        is_split_elsewhere = any(";" in name for name in names)  # by spreadsheets of countries with decimal commas
        (quoting if is_split_elsewhere else writer).writerow([*names, *astuple(line.usage)])
    return text.getvalue()


def _harmless(name: str) -> str:
    return f"'{name}" if name.startswith(_FORMULA_SIGNS) else name
