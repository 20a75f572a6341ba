"""Files that hold a secret, and who can read them."""

import shlex
import stat
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO


def file_advice(path: Path) -> str | None:
    """Tell what to do where other users of the machine can read a file that holds a secret."""
    try:
        mode = path.stat().st_mode
    except OSError:  # whoever reads it tells
        return None
    if not mode & OTHERS or not stat.S_ISREG(mode):
        return None
    return f"Other users can read {path}. Keep them out with: {shlex.join(['chmod', '600', str(path)])}"
