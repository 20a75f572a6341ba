"""Look for a part of a text, in the form of `domain/search_form.py`, by what each database has for it."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import ColumnElement, Connection, collate, func, literal_column, or_, text
from sqlalchemy.sql.functions import Function

from tarazu.domain.search_form import NORMAL_FORM, READ, UNREAD, WRITTEN, search_form

ICU = "und-x-icu"
"""The collation of PostgreSQL that knows the capitals of all scripts; a server without ICU knows those of its own."""


def any_contains(connection: Connection, sought: str, *columns: ColumnElement[str | None]) -> ColumnElement[bool]:
    """Make the condition that one of the columns has the text in it."""
    form = _on_sqlite if connection.dialect.name == "sqlite" else _on_postgresql(connection)
    has_it = (form(func.coalesce(column, "")).contains(search_form(sought), autoescape=True) for column in columns)
    return or_(*has_it)


def _on_sqlite(column: Function[Any]) -> Function[Any]:
    return func.search_form(column)


def _on_postgresql(connection: Connection) -> Callable[[Function[Any]], Function[Any]]:
    knows_icu = connection.execute(text("SELECT 1 FROM pg_collation WHERE collname = :name"), {"name": ICU}).first()

    def form(column: Function[Any]) -> Function[Any]:
        normal = func.normalize(column, literal_column(NORMAL_FORM))
        lower = func.lower(collate(normal, ICU) if knows_icu else normal)
        return func.translate(lower, WRITTEN + UNREAD, READ)

    return form
