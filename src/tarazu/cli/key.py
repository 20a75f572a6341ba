"""`tarazu key`: issue, list, change, pause, revoke and replace API keys."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from tarazu.cli.acts import done
from tarazu.cli.clock import system_clock
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.documents import IssuedKeyDocument, KeyDocument
from tarazu.cli.errors import UsageError
from tarazu.cli.options import AsJson, ConfigPath, command_group, duration_option, number_option
from tarazu.cli.output import Column, print_fields, print_json, print_table, say, say_aside, shown_once
from tarazu.cli.pasted import id_of_key
from tarazu.cli.program import command_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tarazu.domain.accounts import Key
    from tarazu.service.key_acts import IssuedKey
    from tarazu.service.provisioning import Provisioning

key_app = command_group("key", "Issue, list, change, pause, revoke and replace API keys.")

AccountId = Annotated[str, Parameter(name="ACCOUNT", help="The account's id, as in acc_9Kx2…")]
KeyId = Annotated[
    str,
    Parameter(name="KEY", converter=id_of_key, help="The key's id, as in key_4fGh…; tarazu key list ACCOUNT tells it."),
]

_BOUNDS = {"expiry": "expires_in_s", "models": "models", "limit": "limit_per_minute"}
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
            models=_listed(models),
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


@key_app.command(name="set")
def set_(
    key: KeyId,
    /,
    *,
    name: Annotated[str | None, Parameter(metavar="NAME", help="What the key is for, for people.")] = None,
    expires: Annotated[
        int | None, duration_option("--expires", "It ends this time from now: 90d, 12h, 1h30m.", least_s=1)
    ] = None,
    models: Annotated[
        str | None,
        Parameter(metavar="A,B", help="Only these models, divided by commas; never more than the plan allows."),
    ] = None,
    limit_per_minute: Annotated[
        int | None, number_option("--limit-per-minute", "Its own limit of requests, beside that of the account.")
    ] = None,
    without: Annotated[
        str | None, Parameter(metavar="WHAT", help=f"Take bounds away, divided by commas: {', '.join(_BOUNDS)}.")
    ] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Change what a key is called and may do, from the next request on.

    For example:

        tarazu key set key_4fGhJkLmNpQr --name "night job"
        tarazu key set key_4fGhJkLmNpQr --expires 30d --limit-per-minute 10
        tarazu key set key_4fGhJkLmNpQr --without expiry,models
    """
    asked = {"name": name, "expires_in_s": expires, "models": _listed(models), "limit_per_minute": limit_per_minute}
    changes: dict[str, Any] = {member: value for member, value in asked.items() if value is not None}
    for bound in _listed(without) or ():
        if bound not in _BOUNDS:
            raise UsageError(f"{bound!r} is no bound of a key.", f"Bounds: {', '.join(_BOUNDS)}.")
        if _BOUNDS[bound] in changes:
            raise UsageError(f"The {bound} cannot be both set and taken away.", "Give one of them.")
        changes[_BOUNDS[bound]] = None
    if not changes:
        raise UsageError(
            "There is nothing to change.", "Give --name, --expires, --models, --limit-per-minute or --without."
        )
    document = _changed(lambda books: books.set_key(key, **changes), "is changed", config)
    _print_changed(document, "is changed", as_json=as_json)


@key_app.command
def pause(key: KeyId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Let requests with a key be refused, from the next one on, until it is resumed.

    For example:

        tarazu key pause key_4fGhJkLmNpQr
    """
    document = _changed(lambda books: books.pause_key(key), "is paused", config)
    _print_changed(document, "is paused", as_json=as_json)


@key_app.command
def resume(key: KeyId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Let a paused key work again, from the next request on.

    For example:

        tarazu key resume key_4fGhJkLmNpQr
    """
    document = _changed(lambda books: books.resume_key(key), "works again", config)
    _print_changed(document, "works again", as_json=as_json)


@key_app.command
def revoke(key: KeyId, /, *, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """End a key for good, from the next request on.

    For example:

        tarazu key revoke key_4fGhJkLmNpQr
    """
    document = _changed(lambda books: books.revoke_key(key), "is revoked", config)
    _print_changed(document, f"is revoked since {document.revoked_at}", as_json=as_json)


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


def _listed(written: str | None) -> list[str] | None:
    return None if written is None else [part.strip() for part in written.split(",") if part.strip()]


def _changed(act: "Callable[[Provisioning], Key]", what: str, config: "Path | None") -> KeyDocument:
    """Change a key, and say so at once, whether or not more can be printed."""
    with open_provisioning(read_configuration(config)) as provisioning:
        document = KeyDocument.of(act(provisioning), system_clock())
        done(f"The key {document.id} {what}.")
    return document


def _print_changed(document: KeyDocument, what: str, *, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        say(f"{document.id} ({document.name}) {what}.")


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
