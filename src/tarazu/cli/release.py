"""Which release this is, and which commit where it runs from a clone."""

from pathlib import Path

HASH_DIGITS = 12
FOLDER = Path(__file__).parents[3]
"""The clone, where the package runs from one."""


def release(folder: Path = FOLDER) -> str:
    """Tell the release, as in `0.1.0`, or in a clone `0.1.0 (commit 5a2c2c8d1f0e)`. Git need not be there."""
    from importlib.metadata import version  # noqa: PLC0415 - no other command needs it

    commit = _commit(folder)
    return version("tarazu") + (f" (commit {commit[:HASH_DIGITS]})" if commit else "")


def _commit(folder: Path) -> str | None:
    """Read the hash of the commit that is checked out; None where there is none, or Git keeps it in another way."""
    try:
        git = folder / ".git"
        if git.is_file():  # of a worktree, which has its own HEAD and shares the rest
            git = folder / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head
        name = head.removeprefix("ref:").strip()
        common = git / (git / "commondir").read_text().strip() if (git / "commondir").is_file() else git
        if (common / name).is_file():
            return (common / name).read_text().strip()
        packed = (common / "packed-refs").read_text().splitlines()
    except (OSError, ValueError):
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {name}")), None)
