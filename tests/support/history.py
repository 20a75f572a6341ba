"""The repository's history."""

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def commit_hash() -> str | None:
    """Tell the commit that this tree is of."""
    ran = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return ran.stdout.strip() or None
