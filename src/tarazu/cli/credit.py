"""`tarazu credit`: add credits to an account's balance."""

from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.documents import TopupDocument
from tarazu.cli.options import AsJson, ConfigPath, command_group, whole_number
from tarazu.cli.output import print_json, say

credit_app = command_group("credit", "Add credits to an account's balance.")


@credit_app.command
def add(
    account: Annotated[str, Parameter(name="ACCOUNT", help="The account's id, as in acc_9Kx2…")],
    amount: Annotated[int, Parameter(name="AMOUNT", converter=whole_number, help="Whole credits, at least 1.")],
    /,
    *,
    reference: Annotated[
        str, Parameter(metavar="REF", help="The payment's own number. The same one again adds nothing.")
    ],
    note: Annotated[str | None, Parameter(metavar="TEXT", help="A remark for the books.")] = None,
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
    with open_provisioning(configuration) as provisioning:
        topup, added = provisioning.add_credit(account, amount, reference=reference, note=note)
        balance = provisioning.account(account).balance
    document = TopupDocument.of(topup, added=added, balance=balance)
    if as_json:
        print_json(document)
        return
    if added:
        say(f"Added {document.credits:,} credits to {document.account_id}.")
    else:
        say(
            f"Nothing was added: the reference {document.reference} brought "
            f"{document.credits:,} credits at {document.created_at} already."
        )
    say(f"The balance is {document.balance:,} credits.")
