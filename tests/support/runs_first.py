"""What a Python process finds before its own modules, and runs before its own code."""

import os
from collections.abc import Mapping
from pathlib import Path


def found_first(folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Write the environment variable by which modules are taken from the folder before those of `environ`."""
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), environ.get("PYTHONPATH"))))}


def runs_first(folder: Path, code: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Put the code where Python looks for what to run at its start; answer with the variable that makes it look."""
    (folder / "sitecustomize.py").write_text(code)
    return found_first(folder, environ)
