"""`tarazu key`: issue, list, revoke and replace API keys."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tarazu.cli.acts import done
from tarazu.cli.clock import system_clock
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.documents import IssuedKeyDocument, KeyDocument
from tarazu.cli.options import AsJson, ConfigPath, command_group, duration_option, number_option
from tarazu.cli.output import Column, print_fields, print_json, print_table, say, say_aside, shown_once
from tarazu.cli.pasted import id_of_key
from tarazu.cli.program import command_line

if TYPE_CHECKING:
    from pathlib import Path

    from tarazu.service.key_acts import IssuedKey

key_app = command_group("key", "Issue, list, revoke and replace API keys.")

AccountId = Annotated[str, Parameter(name="ACCOUNT", help="The account's id, as in acc_9Kx2…")]
KeyId = Annotated[
    str,
    Parameter(name="KEY", converter=id_of_key, help="The key's id, as in key_4fGh…; tarazu key list ACCOUNT tells it."),
]

_COLUMNS = (
    Column("id", whole=True),
    Column("name"),
    Column("state"),
    Column("models"),
    Column("per minute", number=True),
    Column("created", whole=True),
    Column("expires", whole=True),
)


@key_app.command
def create(
    account: AccountId,
    /,
    *,
    name: Annotated[str, Parameter(metavar="NAME", help="What the key is for, for people.")],
    expires: Annotated[
        int | None,
        duration_option("--expires", "It ends after this time: 90d, 12h, 1h30m; without it, never.", least_s=1),
    ] = None,
    models: Annotated[
        str | None,
        Parameter(metavar="A,B", help="Only these models, divided by commas; never more than the plan allows."),
    ] = None,
    limit_per_minute: Annotated[
        int | None, number_option("--limit-per-minute", "Its own limit of requests, beside that of the account.")
    ] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Issue an API key, which is shown this once.

    Only a digest of it is kept. It never allows more than the account's plan
    does.

    For example:

        tarazu key create acc_9Kx2QwErTyUiOp --name laptop
        tarazu key create acc_9Kx2QwErTyUiOp --name ci --expires 90d
        tarazu key create acc_9Kx2QwErTyUiOp --name bot --models tarazu/smollm2
        tarazu key create acc_9Kx2QwErTyUiOp --name shop --limit-per-minute 10
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        issued = provisioning.create_key(
            account,
            name=name,
            models=None if models is None else [model.strip() for model in models.split(",") if model.strip()],
            limit_per_minute=limit_per_minute,
            expires_in_s=expires,
        )
    _print_issued(issued, config, as_json=as_json)


@key_app.command(name="list")
def list_(account: AccountId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """List an account's keys, also those that have ended.

    The oldest comes first. No key itself is shown.

    For example:

        tarazu key list acc_9Kx2QwErTyUiOp
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        keys = provisioning.keys(account)
    now = system_clock()
    documents = [KeyDocument.of(key, now) for key in keys]
    if as_json:
        print_json(documents)
    elif not documents:
        say(f"{account} has no keys. Issue one with: {command_line(f'key create {account} --name NAME', config)}")
    else:
        print_table(
            _COLUMNS,
            (
                (of.id, of.name, of.state, of.models or "all", of.limit_per_minute, of.created_at, of.expires_at)
                for of in documents
            ),
        )


@key_app.command
def revoke(key: KeyId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """End a key for good, from the next request on.

    For example:

        tarazu key revoke key_4fGhJkLmNpQr
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        document = KeyDocument.of(provisioning.revoke_key(key), system_clock())
        done(f"The key {document.id} is revoked.")
    if as_json:
        print_json(document)
    else:
        say(f"{document.id} ({document.name}) is revoked since {document.revoked_at}.")


@key_app.command
def replace(
    key: KeyId,
    /,
    *,
    grace: Annotated[int, duration_option("--grace", "The old key works on for this time: 30m, 1h, 2d.")] = 0,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Issue a new key in place of an old one.

    The new one has the name, models, limit and expiry of the old one, which ends
    at once or after a time of grace.

    For example:

        tarazu key replace key_4fGhJkLmNpQr
        tarazu key replace key_4fGhJkLmNpQr --grace 1h
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        issued = provisioning.replace_key(key, grace_s=grace)
    old = f"The old one, {key}, {'ends after its time of grace' if grace else 'is revoked'}."
    done(old)
    _print_issued(issued, config, as_json=as_json)
    if not as_json:
        say(old)


def _print_issued(issued: "IssuedKey", config: "Path | None", *, as_json: bool) -> None:
    document = IssuedKeyDocument.of(issued)
    with shown_once(
        f"The key {document.id} is made",
        f"Nothing can show it again. Make another in its place: {command_line(f'key replace {document.id}', config)}",
    ):
        _print_document(document, as_json=as_json)
    if issued.live_keys is not None:
        say_aside(
            f"tarazu: The account has {issued.live_keys:,} keys that have not ended, more than its holder may make."
        )


def _print_document(document: IssuedKeyDocument, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    print_fields(
        (
            ("Key", document.secret),
            ("Id", document.id),
            ("Account", document.account_id),
            ("Name", document.name),
            ("Models", document.models or "all that the account may use"),
            ("Per minute", document.limit_per_minute or "as the account"),
            ("Expires", document.expires_at or "never"),
        )
    )
    say("\nKeep the key now: it is not shown again.")
