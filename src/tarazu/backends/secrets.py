"""The secrets of one backend."""

from msgspec import Struct


class Secrets(Struct, frozen=True, kw_only=True):
    """What a backend's configuration names but does not hold: its key, and the values of headers."""

    api_key: str | None = None
    headers: dict[str, str] = {}

    def __repr__(self) -> str:
        """Show nothing."""
        return "Secrets(…)"
