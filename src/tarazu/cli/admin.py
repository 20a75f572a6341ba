"""`tarazu admin`: who runs the shop, the admin API's tokens, and the trail of what everybody did."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from tarazu.cli.admin_operator import operator_app
from tarazu.cli.admin_token import token_app
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.options import AsJson, ConfigPath, command_group, number_option
from tarazu.cli.output import Column, print_json, print_table, say
from tarazu.cli.people_documents import ActDocument, TrailDocument
from tarazu.cli.program import command_line
from tarazu.service.checks import HISTORY_LENGTH, HISTORY_LENGTH_MAX

admin_app = command_group("admin", "Operators, tokens of the admin API, and the trail of what was done.")
admin_app.command(operator_app)
admin_app.command(token_app)

_COLUMNS = (
    Column("id", whole=True),
    Column("when", whole=True),
    Column("act", whole=True),
    Column("by"),
    Column("via", whole=True),
    Column("account", whole=True),
    Column("subject", whole=True),
    Column("detail"),
)


@admin_app.command
def trail(
    *,
    account: Annotated[
        str | None, Parameter(metavar="ID", help="Only what was about this account, as in acc_9Kx2…")
    ] = None,
    limit: Annotated[
        int, number_option("--limit", f"Show so many at most, up to {HISTORY_LENGTH_MAX:,}.")
    ] = HISTORY_LENGTH,
    before: Annotated[str | None, Parameter(metavar="ID", help="Show those before this one, as in act_00VA…")] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Show what was done, newest first: every act but requests, by whom and when.

    It may have been done by a command, on the operators' pages, through the admin
    API (by a token) or by an account's holder in the panel.

    For example:

        tarazu admin trail
        tarazu admin trail --account acc_9Kx2QwErTyUiOp --limit 10
        tarazu admin trail --before act_00VApAnzM4jTCyZEv6JmMpG --json
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        document = TrailDocument.of(provisioning.trail(limit=limit, account_id=account, before=before))
    if as_json:
        print_json(document)
        return
    if not document.acts:
        say("There is nothing in the trail." if before is None else f"There is nothing before {before}.")
        return
    _print_acts(document.acts)
    if document.more:
        of_account = "" if account is None else f" --account {account}"
        next_page = f"admin trail{of_account} --limit {limit} --before {document.acts[-1].id}"
        say(f"\nThere are more. See them with: {command_line(next_page, config)}")


def _print_acts(acts: Sequence[ActDocument]) -> None:
    print_table(
        _COLUMNS,
        ((of.id, of.made_at, of.act, of.made_by, of.via, of.account_id, of.subject, _facts(of.detail)) for of in acts),
    )


def _facts(detail: dict[str, Any]) -> str:
    return " ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in detail.items())
