"""Configuration files for tests: the least that loads, and what is said of one that does not."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tarazu.service.configuration import Configuration, ConfigurationError, load

FILE_NAME = "tarazu.toml"
MODEL = """\
[models.small]
credits = 1

[[models.small.backends]]
kind = "local"
"""
"""The least that a configuration must have: one model. Two more settings may follow, of its backend."""


def load_text(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> Configuration:
    """Load a file with this text."""
    path = folder / FILE_NAME
    path.write_text(text, encoding="utf-8")
    return load(path, environ or {})


def error_of(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> ConfigurationError:
    """Load a file with this text, which must not load."""
    with pytest.raises(ConfigurationError) as raised:
        load_text(folder, text, environ)
    return raised.value


def problems_of(folder: Path, text: str, environ: Mapping[str, str] | None = None) -> list[str]:
    """Tell what is said of a file with this text, without the folder: one line per problem."""
    return str(error_of(folder, text, environ)).replace(f"{folder}/", "").splitlines()
