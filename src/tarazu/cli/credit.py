"""`tarazu credit`: add credits to a balance, correct it, and show what has changed it."""

from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.acts import DO_NOT_REPEAT, done
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.documents import AdjustmentDocument, CreditChangeDocument, CreditHistoryDocument, TopupDocument
from tarazu.cli.options import AsJson, ConfigPath, command_group, number_option, whole_number
from tarazu.cli.output import Column, counted, print_json, print_table, say
from tarazu.cli.program import command_line
from tarazu.service.checks import HISTORY_LENGTH, HISTORY_LENGTH_MAX

credit_app = command_group("credit", "Add credits to balances, correct them, and show what has changed them.")

AccountId = Annotated[str, Parameter(name="ACCOUNT", help="The account's id, as in acc_9Kx2…")]
By = Annotated[
    str | None,
    Parameter(name="--by", metavar="NAME", help="Who does it; without it $TARAZU_OPERATOR, else the login name."),
]

_COLUMNS = (
    Column("id", whole=True),
    Column("when", whole=True),
    Column("kind", whole=True),
    Column("credits", number=True),
    Column("by"),
    Column("why"),
)


@credit_app.command
def add(
    account: AccountId,
    amount: Annotated[int, Parameter(name="AMOUNT", converter=whole_number, help="Whole credits, at least 1.")],
    /,
    *,
    reference: Annotated[
        str, Parameter(metavar="REF", help="The payment's own number. The same one again adds nothing.")
    ],
    note: Annotated[str | None, Parameter(metavar="TEXT", help="A remark for the books.")] = None,
    by: By = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Add credits to an account's balance, once for each reference.

    It is safe to repeat: a reference that was used before adds nothing.

    For example:

        tarazu credit add acc_9Kx2QwErTyUiOp 5000 --reference invoice-2026-0117
        tarazu credit add acc_9Kx2QwErTyUiOp 200 --reference gift-7 --note "for May"
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration, by=by) as provisioning:
        topup, added = provisioning.add_credit(account, amount, reference=reference, note=note)
        done(
            f"The balance of {topup.account_id} was changed by {topup.credits:+,} ({topup.id}), "
            f"for the reference {topup.reference}; the same one again adds nothing."
        )
        balance = provisioning.account(account).balance
    document = TopupDocument.of(topup, added=added, balance=balance)
    if as_json:
        print_json(document)
        return
    if added:
        say(f"Added {counted(document.credits, 'credit')} to {document.account_id}.")
    else:
        say(
            f"Nothing was added: the reference {document.reference} brought "
            f"{counted(document.credits, 'credit')} at {document.created_at} already."
        )
    say(f"The balance is {counted(document.balance, 'credit')}.")


@credit_app.command
def adjust(
    account: AccountId,
    amount: Annotated[
        int,
        Parameter(name="AMOUNT", converter=whole_number, help="Whole credits: 500 gives so many, -500 takes so many."),
    ],
    /,
    *,
    reason: Annotated[str, Parameter(metavar="TEXT", help="Why, for the books.")],
    reference: Annotated[
        str | None, Parameter(metavar="REF", help="A number of its own. The same one again changes nothing.")
    ] = None,
    by: By = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Correct an account's balance, up or down, but never below zero.

    With a reference it is safe to repeat: one that was used before changes
    nothing. Without, it is done each time.

    For example:

        tarazu credit adjust acc_9Kx2QwErTyUiOp -500 --reason "invoice 117 was paid twice"
        tarazu credit adjust acc_9Kx2QwErTyUiOp 20 --reason "outage of May 3" --reference sorry-3
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration, by=by) as provisioning:
        adjustment, adjusted = provisioning.adjust_credit(account, amount, reason=reason, reference=reference)
        again = DO_NOT_REPEAT if reference is None else f"the reference {reference} again changes nothing"
        done(f"The balance of {account} was changed by {adjustment.credits:+,} ({adjustment.id}); {again}.")
        balance = provisioning.account(account).balance
    document = AdjustmentDocument.of(adjustment, adjusted=adjusted, balance=balance)
    if as_json:
        print_json(document)
        return
    if not adjusted:
        say(
            f"Nothing was changed: the reference {document.reference} adjusted the balance by "
            f"{document.credits:+,} credits at {document.created_at} already."
        )
    elif document.credits > 0:
        say(f"Gave {counted(document.credits, 'credit')} to {document.account_id}.")
    else:
        say(f"Took {counted(-document.credits, 'credit')} from {document.account_id}.")
    say(f"The balance is {counted(document.balance, 'credit')}.")


@credit_app.command
def history(
    account: AccountId,
    /,
    *,
    limit: Annotated[
        int, number_option("--limit", f"Show so many at most, up to {HISTORY_LENGTH_MAX:,}.")
    ] = HISTORY_LENGTH,
    before: Annotated[
        str | None, Parameter(metavar="ID", help="Show those before this one, as in top_5fGh… or adj_…")
    ] = None,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Show what has changed an account's balance beside requests, newest first.

    Every top-up and every adjustment, with when, who and why. Who made a top-up
    is not known where an older release has booked it.

    For example:

        tarazu credit history acc_9Kx2QwErTyUiOp
        tarazu credit history acc_9Kx2QwErTyUiOp --before top_5fGhJkLmNpQrSt
        tarazu credit history acc_9Kx2QwErTyUiOp --limit 1000 --json
    """
    configuration = read_configuration(config)
    with open_provisioning(configuration) as provisioning:
        document = CreditHistoryDocument.of(provisioning.credit_history(account, limit=limit, before=before))
    if as_json:
        print_json(document)
        return
    if document.changes:
        _print_changes(document.changes)
    elif before is None:
        say(f"{account} has no top-ups and no adjustments.")
    else:
        say(f"{account} has nothing before {before}.")
    say(f"The balance is {counted(document.balance, 'credit')}.")
    if document.more:
        next_page = f"credit history {account} --limit {limit} --before {document.changes[-1].id}"
        say(f"There are more. See them with: {command_line(next_page, config)}")
    elif not document.changes and before is None:
        say(f"Add credits with: {command_line(f'credit add {account} AMOUNT --reference REF', config)}")


def _print_changes(changes: Sequence[CreditChangeDocument]) -> None:
    print_table(
        _COLUMNS,
        ((of.id, of.created_at, of.kind, f"{of.credits:+,}", of.made_by, _why(of)) for of in changes),
    )
    say()


def _why(change: CreditChangeDocument) -> str:
    return ": ".join(filter(None, (change.reference, change.why)))
