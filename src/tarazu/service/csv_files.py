"""Accounts, requests, credits, usage and acts as CSV, for a spreadsheet: read a part at a time, however many lines."""

import csv
from collections.abc import Callable, Iterable
from datetime import datetime, tzinfo
from io import StringIO
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import astuple
from sqlalchemy import Connection

from tarazu.domain.accounts import Account
from tarazu.domain.calendar import MILLISECONDS_PER_SECOND, day_after, day_start_ms, iso_time, period_of
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import quota_limit
from tarazu.service.finding import account_list, existing_account
from tarazu.service.reports import HistoryEntry, HistoryFilter, history
from tarazu.service.trails import TrailFilter, trail_page
from tarazu.store.accounts import AccountOrder, Sought
from tarazu.store.credit_history import CreditChange, credit_changes
from tarazu.store.pages import on_page
from tarazu.store.refused_requests import RefusedRow
from tarazu.store.trail import Act
from tarazu.store.usage import Usage, UsageOfDay, usage_of_days

PART_LINES = 1_000
"""Of a file so many lines are read and held at a time."""
BYTE_ORDER_MARK = "\ufeff"
"""Tells Excel that the file is UTF-8."""
FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")

Line = tuple[str | int | None, ...]


class CsvPart(Struct, frozen=True):
    """Some lines of a file, and what the next part begins after; None where this is the last."""

    lines: list[Line]
    after: Any = None


class CsvFile(Struct, frozen=True):
    """A file: the names of its columns, and how a part of it is read that begins after something, or at first."""

    head: Line
    read: Callable[[Connection, Any], CsvPart]


def requests_csv(account_id: str, zone: tzinfo, sought: HistoryFilter) -> CsvFile:
    """Write an account's requests of those that are sought, the newest first. Times are those of `zone`, and in UTC."""

    def read(connection: Connection, after: str | None) -> CsvPart:
        found = history(connection, account_id, zone, limit=PART_LINES, before=after, sought=sought)
        return CsvPart([_request_line(entry, zone) for entry in found.entries], found.before)

    return CsvFile(REQUEST_COLUMNS, read)


def credits_csv(
    account_id: str, zone: tzinfo, first_day: str | None, last_day: str | None, *, with_who: bool
) -> CsvFile:
    """Write an account's top-ups and corrections, the newest first; with who made them, where it is for operators."""
    since_ms = None if first_day is None else day_start_ms(first_day, zone)
    until_ms = None if last_day is None else day_start_ms(day_after(last_day), zone)

    def read(connection: Connection, after: str | None) -> CsvPart:
        existing_account(connection, account_id)
        found = credit_changes(
            connection, account_id, limit=PART_LINES + 1, before=after, since_ms=since_ms, until_ms=until_ms
        )
        part = found[:PART_LINES]
        lines = [_change_line(change, zone, with_who=with_who) for change in part]
        return CsvPart(lines, part[-1].id if len(found) > PART_LINES else None)

    return CsvFile(CREDIT_COLUMNS + (("made_by",) if with_who else ()), read)


def usage_csv(account_id: str, first_day: str | None, last_day: str | None) -> CsvFile:
    """Write what an account has used, by day, model and key together, the earliest day first."""

    def read(connection: Connection, after: UsageOfDay | None) -> CsvPart:
        existing_account(connection, account_id)
        found = usage_of_days(
            connection, account_id, first_day=first_day, last_day=last_day, after=after, limit=PART_LINES + 1
        )
        part = found[:PART_LINES]
        return CsvPart([_usage_line(each) for each in part], part[-1] if len(found) > PART_LINES else None)

    return CsvFile(USAGE_COLUMNS, read)


def accounts_csv(catalogue: Catalogue, now_ms: int, sought: Sought) -> CsvFile:
    """Write the accounts that are sought as they stand in this period, the oldest first; times are UTC."""
    period = period_of(now_ms, catalogue.zone)

    def read(connection: Connection, after: int | None) -> CsvPart:
        number = (after or 0) + 1
        found = account_list(connection, sought, AccountOrder.OLDEST, period=period, page=number, length=PART_LINES)
        lines = [_account_line(account, catalogue) for account in on_page(connection, found.accounts, period)]
        return CsvPart(lines, number if number < found.paging.last else None)

    return CsvFile(ACCOUNT_COLUMNS, read)


def trail_csv(zone: tzinfo, sought: TrailFilter) -> CsvFile:
    """Write the acts that are sought, the newest first."""

    def read(connection: Connection, after: str | None) -> CsvPart:
        found = trail_page(connection, sought, limit=PART_LINES, before=after)
        return CsvPart([_act_line(act, zone) for act in found.acts], found.before)

    return CsvFile(TRAIL_COLUMNS, read)


def csv_text(lines: Iterable[Line]) -> str:
    """Write lines as the standard for CSV (RFC 4180) has it.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, one with a semicolon quotes around
    it: spreadsheets of countries with decimal commas begin a new cell there.
    """
    text = StringIO()
    writer, quoting = csv.writer(text), csv.writer(text, quoting=csv.QUOTE_NONNUMERIC)
    for line in lines:
        cells = [_harmless(cell) if isinstance(cell, str) else cell for cell in line]
        is_split_elsewhere = any(isinstance(cell, str) and ";" in cell for cell in cells)
        (quoting if is_split_elsewhere else writer).writerow(cells)
    return text.getvalue()


REQUEST_COLUMNS = (
    *("id", "time", "time_utc", "key_id", "key", "model", "outcome", "cause", "price", "credits", "source"),
    *("tries", "prompt_tokens", "completion_tokens", "duration_ms", "requests", "last_time_utc"),
)
CREDIT_COLUMNS = ("id", "time", "time_utc", "kind", "credits", "reference", "reason")
ACCOUNT_COLUMNS = (
    *("id", "name", "email", "plan", "status", "period", "used", "limit", "balance"),
    *("created_utc", "last_request_utc"),
)
TRAIL_COLUMNS = ("id", "time", "time_utc", "act", "made_by", "via", "account_id", "subject", "detail")
USAGE_COLUMNS = ("day", "model", "key_id", "key", *Usage.__struct_fields__)


def _request_line(entry: HistoryEntry | RefusedRow, zone: tzinfo) -> Line:
    if isinstance(entry, RefusedRow):
        return (
            *(entry.id, *_times(entry.first_at_ms, zone), entry.key_id, entry.key_name, entry.model_id),
            *(entry.ending.value, entry.code, None, 0, None),
            *(None, None, None, None, entry.requests, iso_time(entry.last_at_ms)),
        )
    return (
        *(entry.id, *_times(entry.created_at_ms, zone), entry.key_id, entry.key_name, entry.model_id),
        *(entry.ending.value, entry.cause and entry.cause.value, entry.price, entry.credits, entry.source.value),
        *(entry.tries, entry.prompt_tokens, entry.completion_tokens, entry.duration_ms, 1, None),
    )


def _change_line(change: CreditChange, zone: tzinfo, *, with_who: bool) -> Line:
    line = (
        *(change.id, *_times(change.created_at_ms, zone), change.kind.value, change.credits),
        *(change.reference, change.why),
    )
    return (*line, change.made_by) if with_who else line


def _account_line(account: Account, catalogue: Catalogue) -> Line:
    last_used_ms = account.last_used_ms
    return (
        *(account.id, account.name, account.email, account.plan, account.status.value, account.period, account.used),
        *(quota_limit(catalogue.plan(account.plan)), account.balance, iso_time(account.created_at_ms)),
        None if last_used_ms is None else iso_time(last_used_ms),
    )


def _act_line(act: Act, zone: tzinfo) -> Line:
    detail = msgspec.json.encode(act.detail).decode()
    times = _times(act.made_at_ms, zone)
    return (act.id, *times, act.act, act.made_by, act.via.value, act.account_id, act.subject, detail)


def _usage_line(each: UsageOfDay) -> Line:
    return (each.day, each.model_id, each.key_id, each.key_name, *astuple(each.usage))


def _times(instant_ms: int, zone: tzinfo) -> tuple[str, str]:
    local = datetime.fromtimestamp(instant_ms // MILLISECONDS_PER_SECOND, zone)
    return local.strftime("%Y-%m-%d %H:%M:%S"), iso_time(instant_ms)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(FORMULA_SIGNS) else text
