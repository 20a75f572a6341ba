"""Ask for the rows whose column is among many texts, by one statement whose text does not grow with their number.

An expanded `IN (?, ?, …)` is another statement for each number of them: rendered anew each time, and never prepared by
PostgreSQL's driver.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import msgspec
from sqlalchemy import ARRAY, Boolean, ColumnElement, Dialect, SelectBase, Text, TypeDecorator, bindparam
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


class _OneOf(FunctionElement[bool]):
    """True where the column is one of many texts; `texts` says how that is written in each store."""

    type = Boolean()
    texts: ClassVar[Mapping[str, str]]

    def self_group(self, against: object = None) -> Self:  # noqa: ARG002 - whatever it stands in
        """Stay as it is: SQLAlchemy would add "= 1" on SQLite, which then reads the whole table."""
        return self


class among(_OneOf):  # noqa: N801 - reads as the operator that it is
    """True where the column is one of the texts in the list that is given by this name when the statement runs."""

    inherit_cache = True
    texts: ClassVar = {"postgresql": "{} = ANY ({})", "sqlite": "{} IN (SELECT value FROM json_each({}))"}

    def __init__(self, column: ColumnElement[str], name: str) -> None:
        super().__init__(column, bindparam(name, type_=_Texts()))


class among_found(_OneOf):  # noqa: N801 - as above
    """True where the column is one of the texts that a query finds, for statements that lock the rows.

    When PostgreSQL has waited for a row that another transaction has changed, it looks whether the row still fits. With
    `IN` and the plan of a prepared statement it finds nothing to compare it with then, and leaves the row out. An array
    is made once and stays.
    """

    inherit_cache = True
    texts: ClassVar = {"postgresql": "{} = ANY (ARRAY{})", "sqlite": "{} IN {}"}

    def __init__(self, column: ColumnElement[str], query: SelectBase) -> None:
        super().__init__(column, query.scalar_subquery())


@compiles(_OneOf)
def _one_of(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    clauses = (compiler.process(clause, **options) for clause in element.clauses)
    return element.texts[compiler.dialect.name].format(*clauses)
