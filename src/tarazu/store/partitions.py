"""On PostgreSQL `requests` is cut by month; the cuts are made ahead of the months."""

from collections.abc import Iterable

from sqlalchemy import Connection, text


def prepare_partitions(connection: Connection, periods: Iterable[str]) -> list[str]:
    """Make the partitions of these periods (YYYY-MM) that are missing, and list them; on SQLite there are none to make.

    A month that comes before its partition is there loses nothing: its requests go to the default partition.
    """
    if connection.dialect.name != "postgresql":
        return []
    made = []
    for period in periods:
        name = f"requests_{period.replace('-', '_')}"
        if connection.execute(text("SELECT to_regclass(:name)"), {"name": name}).scalar() is None:
            # Names and values cannot be parameters of this statement; a period is digits and a hyphen.
            connection.exec_driver_sql(f"CREATE TABLE {name} PARTITION OF requests FOR VALUES IN ('{period}')")
            made.append(name)
    return made
