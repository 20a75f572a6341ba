"""Errors of the databases' drivers, whose text may reach a log."""


def leave_values_out(error: BaseException) -> str | None:
    """Keep what the server says first alone, and answer with it: the details below it quote the row.

    None where no server speaks, and the error stays as it is: SQLite's words, and those about a connection, quote none.
    """
    primary: str | None = getattr(getattr(error, "diag", None), "message_primary", None)
    if primary is not None:
        error.args = (primary,)
    return primary
