"""What a configuration refers to outside its text: the environment, and the folder in which its paths start."""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct


class Surroundings(Struct, frozen=True):
    """`secrets` is the environment that must hold the backends' keys; None when no key is asked for."""

    folder: Path
    secrets: Mapping[str, str] | None

    def path(self, name: str) -> Path:
        """Find the file that the configuration calls so."""
        return (self.folder / name).absolute()
