"""Arguments for every command, so that a claim about all of them is tried on all of them."""

from collections.abc import Mapping

from tarazu.cli.app import whole_app
from tests.cli.commands_page import command_paths

ACCOUNT = "acc_00000000000000"
KEY = "key_000000000000"

WITH_BOOKS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("account", "create"): ("--name", "Ada"),
    ("account", "list"): (),
    ("account", "show"): (ACCOUNT,),
    ("account", "set"): (ACCOUNT, "--no-plan"),
    ("account", "rename"): (ACCOUNT, "Ada Lovelace"),
    ("account", "invite"): (ACCOUNT,),
    ("account", "sign-out"): (ACCOUNT,),
    ("admin", "operator", "create"): ("--email", "grace@example.com", "--name", "Grace"),
    ("admin", "operator", "list"): (),
    ("admin", "operator", "invite"): ("opr_00000000000000",),
    ("admin", "operator", "set"): ("opr_00000000000000", "--status", "inactive"),
    ("admin", "token", "create"): ("--name", "shop", "--scopes", "read"),
    ("admin", "token", "list"): (),
    ("admin", "token", "revoke"): ("tok_000000000000",),
    ("admin", "trail"): (),
    ("audit",): (),
    ("backend", "list"): (),
    ("credit", "add"): (ACCOUNT, "5", "--reference", "r"),
    ("credit", "adjust"): (ACCOUNT, "5", "--reason", "r"),
    ("credit", "history"): (ACCOUNT,),
    ("db", "backup"): ("backup.db",),
    ("intake", "stop"): (),
    ("intake", "resume"): (),
    ("intake", "status"): (),
    ("key", "create"): (ACCOUNT, "--name", "laptop"),
    ("key", "list"): (ACCOUNT,),
    ("key", "pause"): (KEY,),
    ("key", "resume"): (KEY,),
    ("key", "set"): (KEY, "--name", "desk"),
    ("key", "revoke"): (KEY,),
    ("key", "replace"): (KEY,),
    ("request",): ("req_0V2yJ8kQm4tB7wXc1NfRpL2",),
}
"""Commands that work on books that are there, and make or migrate none."""
MAKING = frozenset({("serve",), ("db", "upgrade"), ("db", "restore")})
"""Commands that make or migrate books."""
WITHOUT_BOOKS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("check",): (),
    ("openapi",): (),
    ("backend", "test"): (),
    ("reload",): (),
    ("drain",): (),
    ("chat",): ("--key-file", "key", "hello"),
}
"""Commands that need none."""


def every_command() -> set[tuple[str, ...]]:
    """List the words of all commands that do something, rather than hold others."""
    paths = set(command_paths(whole_app()))
    return {path for path in paths if not any(other[:-1] == path for other in paths if other)}
