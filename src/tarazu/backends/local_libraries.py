"""Find the system libraries that llama.cpp is linked to, and tell which are missing before it is started.

Its wheel carries all but the system's own: on a minimal Debian OpenMP's is missing. The package cmeel-libomp has one of
the same name and interface, which takes its place where the system has none.
"""

import os
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

ENGINE_PACKAGE = "xllamacpp"
OPENMP_FOLDER = "cmeel.prefix/lib"
"""Where the package cmeel-libomp has its libraries, beside all other packages."""
SEARCH_PATH = "LD_LIBRARY_PATH"
LIST_ONLY = "LD_TRACE_LOADED_OBJECTS"
"""With this the linker runs nothing, and lists what it would load."""
LIST_TIMEOUT_S = 30
NOT_FOUND = re.compile(r"^\s*(\S+) => not found$", re.MULTILINE)
DEBIAN_PACKAGES = {"libgcc_s.so.1": "libgcc-s1", "libgomp.so.1": "libgomp1", "libstdc++.so.6": "libstdc++6"}
"""Which package of Debian and Ubuntu has a library that llama.cpp is linked to, beside the C library's own."""


class LibrariesMissingError(Exception):
    """The system lacks libraries that llama.cpp needs. The message names them and says how to install them."""


@cache
def library_path() -> str | None:
    """Answer with the LD_LIBRARY_PATH with which llama.cpp finds all its libraries: None when it needs none.

    Raises:
        LibrariesMissingError: it does not find them all.
    """
    path = os.environ.get(SEARCH_PATH)
    if not _missing(path):
        return path
    path = ":".join(filter(None, (path, _openmp_folder())))
    if missing := _missing(path):
        names = [DEBIAN_PACKAGES[name] for name in missing if name in DEBIAN_PACKAGES]
        advice = f"On Debian or Ubuntu: apt-get install {' '.join(names)}" if names else "Install what has them"
        raise LibrariesMissingError(
            f"Local models need system libraries that are missing here: {', '.join(missing)}. {advice}; "
            "or leave backends of kind local out of the configuration."
        )
    return path


def _missing(path: str | None) -> list[str]:
    """List what the dynamic linker does not find; nothing where it is not glibc's, as on macOS."""
    linker, engine = _linker(), _engine()
    if linker is None or engine is None:
        return []
    environ = {**os.environ, **({} if path is None else {SEARCH_PATH: path}), LIST_ONLY: "1"}
    try:
        listed = subprocess.run(  # noqa: S603 - the linker of this very process
            [linker, engine], capture_output=True, text=True, env=environ, timeout=LIST_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return []  # then the model's own process finds out
    return sorted(set(NOT_FOUND.findall(listed.stdout)))


def _linker() -> Path | None:
    """Find the linker that loaded this process: where it is differs from system to system."""
    maps = Path("/proc/self/maps")
    files = (Path(line.split(maxsplit=5)[-1]) for line in maps.read_text().splitlines()) if maps.exists() else ()
    return next((file for file in files if file.name.startswith("ld-linux") and file.exists()), None)


def _engine() -> Path | None:
    spec = find_spec(ENGINE_PACKAGE)
    folders = (spec and spec.submodule_search_locations) or ()
    return next((file for folder in folders for file in Path(folder).glob("*.so")), None)


def _openmp_folder() -> str | None:
    folders = (Path(entry, OPENMP_FOLDER) for entry in sys.path)
    return next((str(folder) for folder in folders if folder.is_dir()), None)
