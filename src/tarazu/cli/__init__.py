"""The commands that operators and callers type."""

from tarazu.cli.running import main

__all__ = ["main"]
