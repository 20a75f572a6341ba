"""The one error by which everyone above learns that the books cannot be used, and how the log tells of it."""


class BooksUnavailableError(Exception):
    """The database cannot be reached or take a write now. Nothing was changed, unless it went away under a commit."""


def reason_of(error: Exception) -> str:
    """Say on one line why something failed, for the log: of the books in our words, else with the kind of the error."""
    if isinstance(error, BooksUnavailableError):
        return str(error)
    return " ".join(f"{type(error).__name__}: {error}".split())
