"""Look for a part of a text, in the form of `domain/search_form.py`, by what each database has for it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, collate, func, literal, literal_column, text
from sqlalchemy.sql.functions import Function

from tarazu.domain.search_form import NORMAL_FORM, PLAIN, READ, TURKISH, UNREAD, WRITTEN, search_form

ICU = "und-x-icu"
"""The collation of PostgreSQL that knows the capitals of all scripts; a server without ICU knows those of its own."""


def any_contains(connection: Connection, sought: str, *columns: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Make the condition that one of the columns has the text in it."""
    # All in one text, with a line break between them, which no name has: the form of a row is made once.
    whole: ColumnElement[str] = literal("")
    for column in columns:
        whole = whole.concat(literal("\n")).concat(func.coalesce(column, ""))
    return as_read(connection, whole).contains(search_form(sought), autoescape=True)


def as_read(connection: Connection, column: ColumnElement[str]) -> Function[Any]:
    """Bring a text of the books into the form, on the database."""
    form = _on_sqlite if connection.dialect.name == "sqlite" else _on_postgresql(connection)
    return form(column)


def _on_sqlite(column: ColumnElement[str]) -> Function[Any]:
    return func.search_form(column)


def _on_postgresql(connection: Connection) -> Callable[[ColumnElement[str]], Function[Any]]:
    knows_icu = connection.execute(text("SELECT 1 FROM pg_collation WHERE collname = :name"), {"name": ICU}).first()

    def form(column: ColumnElement[str]) -> Function[Any]:
        normal = func.translate(func.normalize(column, literal_column(NORMAL_FORM)), TURKISH, PLAIN)
        lower = func.lower(collate(normal, ICU) if knows_icu else normal)
        return func.translate(lower, WRITTEN + UNREAD, READ)

    return form
