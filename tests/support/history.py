"""This repository's history, read without git: which commit this is, and the files of older ones."""

# ruff: noqa: PLC0415 - dulwich is loaded only by the tests that read the history

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ARCHIVED = Path(__file__).with_name("commit.txt")
"""Has the hash of its commit in an archive that git has made; see .gitattributes."""
HASH = re.compile(r"[0-9a-f]{40}")


class HistoryMissingError(Exception):
    """The commit is not here. The message says why, and how to get it."""


def commit_hash() -> str | None:
    """Tell the commit that is checked out, or that an archive was made of; None in a copy that knows neither."""
    from dulwich.errors import NotGitRepository
    from dulwich.repo import Repo

    try:
        with Repo(ROOT) as repository:
            return repository.head().decode()
    except (NotGitRepository, KeyError):  # a repository may have no commit yet
        found = HASH.search(ARCHIVED.read_text("utf-8"))
        return found and found[0]


def take_out(commit: str, folder: str, into: Path) -> None:
    """Write the files of one folder as they were at a commit.

    Raises:
        HistoryMissingError: there is no history here, or not that far back.
    """
    from dulwich.errors import NotGitRepository
    from dulwich.object_store import iter_tree_contents, tree_lookup_path
    from dulwich.objects import Commit, ObjectID
    from dulwich.repo import Repo

    try:
        with Repo(ROOT) as repository:
            objects = repository.object_store
            found = objects[ObjectID(commit.encode())]
            assert isinstance(found, Commit)
            _, tree = tree_lookup_path(objects.__getitem__, found.tree, folder.encode())
            entries = iter_tree_contents(objects, tree)
            files = {entry.path.decode(): objects[entry.sha].as_raw_string() for entry in entries}
    except NotGitRepository:
        raise HistoryMissingError(f"Commit {commit} is not in a copy without .git: use a clone.") from None
    except KeyError:
        raise HistoryMissingError(f"Commit {commit} is not in a shallow clone: git fetch --unshallow") from None
    for name, content in files.items():
        file = into / folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
