"""The API's page."""


def html() -> bytes:
    """Make the page."""
    return b"<!doctype html><title>Tarazu</title>"
