"""Ask for the rows whose column is among many texts, by one statement whose text does not grow with their number.

An expanded `IN (?, ?, …)` is another statement for each number of them: rendered anew each time, and never prepared by
PostgreSQL's driver.
"""

from typing import Any

import msgspec
from sqlalchemy import Boolean, ColumnElement, Dialect, SelectBase, Text, TypeDecorator, bindparam
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine


class _Texts(TypeDecorator[list[str]]):
    """Many texts in one parameter: an array for PostgreSQL, JSON for SQLite."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(ARRAY(Text) if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> Any:
        return value if dialect.name == "postgresql" else msgspec.json.encode(value).decode()


class among(FunctionElement[bool]):  # noqa: N801 - reads as the operator that it is
    """True where the column is one of the texts in the list that is given by this name when the statement runs."""

    inherit_cache = True
    type = Boolean()

    def __init__(self, column: ColumnElement[str], name: str) -> None:
        super().__init__(column, bindparam(name, type_=_Texts()))

    def self_group(self, against: object = None) -> "among":  # noqa: ARG002 - whatever it stands in
        """Stay as it is: SQLAlchemy would add "= 1" on SQLite, which then reads the whole table."""
        return self


@compiles(among, "postgresql")
def _among_array(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, texts = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY ({texts})"


@compiles(among, "sqlite")
def _among_json(element: among, compiler: SQLCompiler, **options: Any) -> str:
    column, texts = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({texts}))"  # noqa: S608 - clauses that are compiled already


class among_found(FunctionElement[bool]):  # noqa: N801 - as above
    """True where the column is one of the texts that a query finds, for statements that lock the rows.

    When PostgreSQL has waited for a row that another transaction has changed, it looks whether the row still fits. With
    `IN` and the plan of a prepared statement it finds nothing to compare it with then, and leaves the row out. An array
    is made once and stays.
    """

    inherit_cache = True
    type = Boolean()

    def __init__(self, column: ColumnElement[str], query: SelectBase) -> None:
        super().__init__(column, query.scalar_subquery())

    def self_group(self, against: object = None) -> "among_found":  # noqa: ARG002 - as above
        """Stay as it is, as above."""
        return self


@compiles(among_found, "postgresql")
def _among_found_array(element: among_found, compiler: SQLCompiler, **options: Any) -> str:
    column, query = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} = ANY (ARRAY{query})"


@compiles(among_found, "sqlite")
def _among_found(element: among_found, compiler: SQLCompiler, **options: Any) -> str:
    column, query = (compiler.process(clause, **options) for clause in element.clauses)
    return f"{column} IN {query}"
