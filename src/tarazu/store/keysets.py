"""Read rows page after page in the order in which they were made: each page begins where another ends."""

from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, tuple_


def rows_on_page(
    connection: Connection,
    query: Select[Any],
    table: Table,
    *,
    limit: int,
    after: str | None = None,
    before: str | None = None,
) -> list[Row[Any]]:
    """Read the oldest rows of a query, oldest first, at most `limit`; with `after`, those after the row with that id.

    With `before`, the newest of those before that row. The table has an `id` and a `created_at_ms`.

    Raises:
        LookupError: the query has no such row.
    """
    place = (table.c.created_at_ms, table.c.id)
    if after is not None:
        query = query.where(tuple_(*place) > _place_of(connection, query, table, after))
    if before is not None:
        query = query.where(tuple_(*place) < _place_of(connection, query, table, before))
    backwards = before is not None and after is None
    order: list[ColumnElement[Any]] = [column.desc() if backwards else column.asc() for column in place]
    found = list(connection.execute(query.order_by(*order).limit(limit)))
    return found[::-1] if backwards else found


def _place_of(connection: Connection, query: Select[Any], table: Table, id_: str) -> tuple[int, str]:
    of_row = query.with_only_columns(table.c.created_at_ms).where(table.c.id == id_)
    created_at_ms = connection.execute(of_row).scalar_one_or_none()
    if created_at_ms is None:
        raise LookupError(id_)
    return created_at_ms, id_
