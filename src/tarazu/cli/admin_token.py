"""`tarazu admin token`: what programs call the admin API with."""

from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.acts import done
from tarazu.cli.clock import system_clock
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.options import AsJson, ConfigPath, command_group, duration_option
from tarazu.cli.output import Column, print_fields, print_json, print_table, say, shown_once
from tarazu.cli.pasted import id_of_key
from tarazu.cli.people_documents import AdminTokenDocument, IssuedTokenDocument
from tarazu.cli.program import command_line

token_app = command_group("token", "Issue, list and revoke tokens of the admin API.")

TokenId = Annotated[
    str,
    Parameter(
        name="ID", converter=id_of_key, help="The token's id, as in tok_4fGh…; tarazu admin token list tells it."
    ),
]

_COLUMNS = (
    Column("id", whole=True),
    Column("name"),
    Column("state"),
    Column("scopes"),
    Column("by"),
    Column("created", whole=True),
    Column("expires", whole=True),
)


@token_app.command
def create(
    *,
    name: Annotated[str, Parameter(metavar="NAME", help="Which program it is for; the trail has it.")],
    scopes: Annotated[
        str,
        Parameter(
            metavar="A,B",
            help="What it is for, divided by commas: read, accounts (and keys), credits. The last two include read.",
        ),
    ],
    expires: Annotated[
        int | None,
        duration_option("--expires", "It ends after this time: 90d, 12h, 1h30m; without it, never.", least_s=1),
    ] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Issue a token of the admin API, which is shown this once.

    Only a digest of it is kept.

    For example:

        tarazu admin token create --name shop --scopes read,credits --expires 90d
        tarazu admin token create --name dashboard --scopes read
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        issued = provisioning.create_admin_token(
            name=name,
            scopes=[scope.strip() for scope in scopes.split(",") if scope.strip()],
            expires_in_s=expires,
        )
    document = IssuedTokenDocument.of(issued)
    with shown_once(
        f"The token {document.id} is made",
        f"Nothing can show it again. Revoke it: {command_line(f'admin token revoke {document.id}', config)}",
    ):
        _print_issued(document, as_json=as_json)


@token_app.command(name="list")
def list_(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """List all tokens, also those that have ended.

    The oldest comes first. No token itself is shown.

    For example:

        tarazu admin token list
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        tokens = provisioning.admin_tokens()
    now_ms = system_clock()
    documents = [AdminTokenDocument.of(token, now_ms) for token in tokens]
    if as_json:
        print_json(documents)
    elif not documents:
        create_one = command_line("admin token create --name NAME --scopes SCOPES", config)
        say(f"There are no tokens. Issue one with: {create_one}")
    else:
        print_table(
            _COLUMNS,
            ((of.id, of.name, of.state, of.scopes, of.made_by, of.created_at, of.expires_at) for of in documents),
        )


@token_app.command
def revoke(token: TokenId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """End a token for good, from the next request on.

    For example:

        tarazu admin token revoke tok_4fGhJkLmNpQr
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        document = AdminTokenDocument.of(provisioning.revoke_admin_token(token), system_clock())
        done(f"The token {document.id} is revoked.")
    if as_json:
        print_json(document)
    else:
        say(f"{document.id} ({document.name}) is revoked since {document.revoked_at}.")


def _print_issued(document: IssuedTokenDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    print_fields(
        (
            ("Token", document.secret),
            ("Id", document.id),
            ("Name", document.name),
            ("Scopes", document.scopes),
            ("Expires", document.expires_at or "never"),
        )
    )
    say("\nKeep the token now: it is not shown again.")
