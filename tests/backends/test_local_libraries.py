"""The system libraries that llama.cpp is linked to: found, replaced, or told before the start."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from httptools.parser import parser

from tarazu.backends.local import LocalModels
from tarazu.backends.local_libraries import DEBIAN_PACKAGES, OPENMP_FOLDER, SEARCH_PATH, library_path
from tarazu.backends.local_model import LocalModelError, find_model
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tests.cli.commands import CATALOGUE, clean_environ, run_process
from tests.support.dialects import ask, asked
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the engine carries all its libraries")

OPENMP = Path(next(entry for entry in sys.path if Path(entry, OPENMP_FOLDER).is_dir()), OPENMP_FOLDER)
NEEDED = b"\0libc.so.6\0"
"""What every library is linked to."""
GONE = "libz.so.0"
"""What no system has, of the same length."""
PACKAGED = "libomp.so"
"""Another name that the package with OpenMP's library has for it, of the same length too."""

Linking = Callable[[str], Path]


@pytest.fixture
def linked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Linking]:
    """Put an engine into a folder that is searched first; all it has is a file that is linked to the library."""

    def link(library: str) -> Path:
        engine = tmp_path / "packages" / "xllamacpp"
        engine.mkdir(parents=True)
        (engine / "__init__.py").touch()
        original = Path(parser.__file__).read_bytes()
        assert original.count(NEEDED) == 1
        (engine / "engine.abi3.so").write_bytes(original.replace(NEEDED, b"\0%s\0" % library.encode()))
        monkeypatch.syspath_prepend(engine.parent)
        return engine.parent

    library_path.cache_clear()
    yield link
    library_path.cache_clear()


def test_what_the_system_has_is_not_searched_elsewhere(linked_to: Linking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing is missing, the libraries are searched where the environment says."""
    monkeypatch.setenv(SEARCH_PATH, "/somewhere")
    linked_to("libc.so.6")
    assert library_path() == "/somewhere"


def test_what_the_system_lacks_is_taken_from_the_package(linked_to: Linking, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its folder is searched last, so that it hides nothing of the system's."""
    monkeypatch.setenv(SEARCH_PATH, "/somewhere")
    linked_to(PACKAGED)
    assert library_path() == f"/somewhere:{OPENMP}"


def test_a_missing_library_is_told_with_the_line_that_installs_it(
    linked_to: Linking, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the library, and Debian's package where it is one of those that llama.cpp is linked to."""
    monkeypatch.setitem(DEBIAN_PACKAGES, GONE, "libz0")
    linked_to(GONE)
    with pytest.raises(LocalModelError, match=rf"missing here: {GONE}\. On Debian or Ubuntu: apt-get install libz0;"):
        find_model(None)


def test_a_service_whose_model_could_never_answer_does_not_start(linked_to: Linking, tmp_path: Path) -> None:
    """`tarazu serve` ends with status 1 and says what is missing; `tarazu backend test` says the same."""
    environ = clean_environ(PYTHONPATH=os.pathsep.join([str(linked_to(GONE)), os.environ.get("PYTHONPATH", "")]))
    served = run_process("serve", "--port", "0", folder=tmp_path, environ=environ)
    assert (served.status, served.out) == (1, "")
    assert served.err.startswith(f"tarazu: Local models need system libraries that are missing here: {GONE}. Install")
    tried = run_process("backend", "test", "--json", folder=tmp_path, environ=environ)
    assert tried.status == 1
    assert GONE in tried.out


def test_a_service_without_local_models_needs_no_library(linked_to: Linking, tmp_path: Path) -> None:
    """What nothing in the configuration uses may be missing."""
    environ = clean_environ(PYTHONPATH=os.pathsep.join([str(linked_to(GONE)), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "tarazu.toml").write_text(CATALOGUE)
    tried = run_process("backend", "test", "--json", folder=tmp_path, environ=environ)
    assert GONE not in tried.out + tried.err


def test_the_model_answers_with_the_packages_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes the place of the system's OpenMP library does its work, and leaves nothing in shared memory."""
    monkeypatch.setenv(SEARCH_PATH, str(OPENMP))
    library_path.cache_clear()
    models = LocalModels([None])
    try:
        models.start()
        models.wait_ready(PATIENCE_S)
        (model,) = models
        left_behind = Path(f"/dev/shm/__KMP_REGISTERED_LIB_{model.process_id}_{os.getuid()}")  # noqa: S108 - the library's
        assert left_behind.exists()
        assert str(OPENMP / "libgomp.so.1") in Path(f"/proc/{model.process_id}/maps").read_text()
        spec = BackendSpec(kind="openai", url=models.addresses[None].url, model="local")
        request = asked(("user", "What is the capital of France?"), max_tokens=24)
        assert "Paris" in ask(spec, request, Secrets(api_key=models.addresses[None].api_key)).text
    finally:
        models.stop()
        library_path.cache_clear()
    assert not left_behind.exists()
