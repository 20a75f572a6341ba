"""How the configuration file stands to what is in force: whether a reload would change something, or be refused."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from tarazu.domain.catalogue import Catalogue
from tarazu.service.configuration.loading import load
from tarazu.service.configuration.problems import ConfigurationError


class FileState(StrEnum):
    """What a reload would do."""

    NO_FILE = "no_file"
    """Nothing: the built-in demo catalogue does not change."""
    IN_FORCE = "in_force"
    """Nothing: what the file sells is in force."""
    CHANGED = "changed"
    """Put changes in force."""
    REFUSED = "refused"
    """Nothing: it would be refused."""


class OnDisk(Struct, frozen=True):
    """The state of the file, and for how many reasons it would be refused. What they are stays at the machine."""

    state: FileState
    problems: int = 0


def look_at_file(path: Path | None, in_force: Catalogue, environ: Mapping[str, str] = os.environ) -> OnDisk:
    """Read the file as a reload would, and compare it with the catalogue that is in force."""
    if path is None:
        return OnDisk(FileState.NO_FILE)
    try:
        read = load(path, environ)
    except ConfigurationError as error:
        return OnDisk(FileState.REFUSED, len(error.problems))
    return OnDisk(FileState.IN_FORCE if read.catalogue == in_force else FileState.CHANGED)
