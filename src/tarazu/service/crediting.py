"""Change balances by top-ups and adjustments: each once, never below zero, never beyond what the books hold."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct
from sqlalchemy import Connection

from tarazu.domain.accounts import Account
from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.store.accounts import lock_account
from tarazu.store.adjustments import Adjustment, find_adjustment, insert_adjustment
from tarazu.store.credit_history import CreditChange
from tarazu.store.references import lock_reference
from tarazu.store.topups import Topup, find_topup, insert_topup

REFERENCE_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 1_000
"""Of a note or a reason."""

ChangeT = TypeVar("ChangeT", Topup, Adjustment)


class CreditHistory(Struct, frozen=True, kw_only=True):
    """An account and what has changed its balance beside requests, newest first; `more` when there are older ones."""

    account: Account
    changes: tuple[CreditChange, ...]
    more: bool


def checked_amount(credits_: int, *, least: int) -> int:
    """Let an amount pass.

    Raises:
        ProvisioningError: it is 0, below `least`, or more than a balance may be.
    """
    if not least <= credits_ <= BALANCE_MAX or credits_ == 0:
        text = (
            "The amount must be a whole number from {least} to {most}, not {credits}."
            if least == 1
            else "The amount must be a whole number from {least} to {most} but 0, not {credits}."
        )
        raise ProvisioningError(text, member="credits", least=least, most=BALANCE_MAX, credits=credits_)
    return credits_


def record_topup(connection: Connection, topup: Topup) -> tuple[Topup, bool]:
    """Add a top-up, or find the one that its reference has brought before; tell also whether it was added.

    The account must be there.

    Raises:
        ProvisioningError: the reference was used for something else, or the balance would be too large.
    """
    return _record(connection, topup, insert_topup)


def record_adjustment(connection: Connection, adjustment: Adjustment) -> tuple[Adjustment, bool]:
    """Make an adjustment, or find the one that its reference has made before; tell also whether it was made.

    The account must be there.

    Raises:
        ProvisioningError: the reference was used for something else, or the balance would pass its bounds.
    """
    return _record(connection, adjustment, insert_adjustment)


def _record(
    connection: Connection, change: ChangeT, insert: Callable[[Connection, ChangeT], None]
) -> tuple[ChangeT, bool]:
    first = _used_before(connection, change.reference)
    if first is None:
        _check_room(connection, change)
        insert(connection, change)
        return change, True
    if not isinstance(first, type(change)) or (first.account_id, first.credits) != (change.account_id, change.credits):
        raise _used_otherwise(first)
    return first, False


def _used_before(connection: Connection, reference: str | None) -> Topup | Adjustment | None:
    if reference is None:
        return None
    lock_reference(connection, reference)
    return find_topup(connection, reference) or find_adjustment(connection, reference)


def _used_otherwise(first: Topup | Adjustment) -> ProvisioningError:
    text = (
        "The reference {reference} was used before, for {credits} credits to {account}; nothing was changed. "
        "Give every payment and every correction a reference of its own."
        if isinstance(first, Topup)
        else "The reference {reference} was used before, for an adjustment of {account} by {credits:+} credits; "
        "nothing was changed. Give every payment and every correction a reference of its own."
    )
    return ConflictError(
        text, member="reference", reference=first.reference, credits=first.credits, account=first.account_id
    )


def _check_room(connection: Connection, change: Topup | Adjustment) -> None:
    """Refuse what the balance has no room for. It is locked, so the message tells the one that decided."""
    account = lock_account(connection, change.account_id)
    assert account is not None, "accounts are never deleted"
    balance = account.balance
    if change.credits > 0 and balance + change.credits > BALANCE_MAX:
        raise ConflictError(
            "The balance may not pass {most} credits; it is {balance} now, so at most {room} credits can be given.",
            member="credits",
            most=BALANCE_MAX,
            balance=balance,
            room=max(0, BALANCE_MAX - balance),
        )
    if balance + change.credits < 0:
        raise ConflictError(
            "The balance may not be below zero; it is {balance} now, so at most {balance} credits can be taken. "
            "What is held for requests on their way is not in it.",
            member="credits",
            balance=balance,
        )
