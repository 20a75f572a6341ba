"""On PostgreSQL `requests` is cut by month; the cuts are made ahead of the months."""

from collections.abc import Iterable

from sqlalchemy import Connection, text


def prepare_partitions(connection: Connection, periods: Iterable[str]) -> list[str]:
    """Make the partitions of these periods (YYYY-MM) that are missing, and list them; on SQLite there are none to make.

    A month that comes before its partition is there loses nothing: its requests go to the default partition. So do
    those of a clock that is far ahead. Such a month stays there, and keeps no other from being made.
    """
    if connection.dialect.name != "postgresql":
        return []
    missing = [period for period in periods if not _exists(connection, period)]
    if missing:
        # One process at a time: what another is making now is there when it has done.
        connection.exec_driver_sql("LOCK TABLE requests IN SHARE UPDATE EXCLUSIVE MODE")
        missing = [period for period in missing if not (_exists(connection, period) or _has_begun(connection, period))]
    for period in missing:
        # Names and values cannot be parameters of this statement; a period is digits and a hyphen.
        connection.exec_driver_sql(f"CREATE TABLE {_name(period)} PARTITION OF requests FOR VALUES IN ('{period}')")
    return [_name(period) for period in missing]


def _exists(connection: Connection, period: str) -> bool:
    return connection.execute(text("SELECT to_regclass(:name)"), {"name": _name(period)}).scalar() is not None


def _has_begun(connection: Connection, period: str) -> bool:
    """Tell whether the default partition has requests of the period: PostgreSQL makes no other for it then."""
    query = text("SELECT 1 FROM requests_default WHERE period = :period LIMIT 1")
    return connection.execute(query, {"period": period}).first() is not None


def _name(period: str) -> str:
    return f"requests_{period.replace('-', '_')}"
