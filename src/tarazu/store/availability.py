"""The one error by which everyone above learns that the books cannot be used."""


class BooksUnavailableError(Exception):
    """The database cannot be reached or take a write now. Nothing was changed, unless it went away under a commit."""
