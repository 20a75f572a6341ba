"""Change balances by top-ups and adjustments: each once, never below zero, never beyond what the books hold."""

from sqlalchemy import Connection

from tarazu.domain.credits import BALANCE_MAX
from tarazu.service.checks import ProvisioningError
from tarazu.store.accounts import BalanceError, find_account
from tarazu.store.adjustments import Adjustment, find_adjustment, insert_adjustment
from tarazu.store.references import lock_reference
from tarazu.store.topups import Topup, find_topup, insert_topup

REFERENCE_LENGTH_MAX = 200
TEXT_LENGTH_MAX = 1_000
"""Of a note or a reason."""


def checked_amount(credits_: int, *, least: int) -> int:
    """Let an amount pass.

    Raises:
        ProvisioningError: it is 0, below `least`, or more than a balance may be.
    """
    if not least <= credits_ <= BALANCE_MAX or credits_ == 0:
        but_zero = "" if least == 1 else " but 0"
        raise ProvisioningError(
            f"The amount must be a whole number from {least} to {BALANCE_MAX}{but_zero}, not {credits_}."
        )
    return credits_


def record_topup(connection: Connection, topup: Topup) -> tuple[Topup, bool]:
    """Add a top-up, or find the one that its reference has brought before; tell also whether it was added.

    Raises:
        ProvisioningError: the reference was used for something else, or the balance would be too large.
    """
    first = _used_before(connection, topup.reference)
    if first is None:
        try:
            insert_topup(connection, topup)
        except BalanceError:
            raise _out_of_bounds(connection, topup) from None
        return topup, True
    if not isinstance(first, Topup) or not _is_same(first, topup):
        raise _used_otherwise(first)
    return first, False


def record_adjustment(connection: Connection, adjustment: Adjustment) -> tuple[Adjustment, bool]:
    """Make an adjustment, or find the one that its reference has made before; tell also whether it was made.

    Raises:
        ProvisioningError: the reference was used for something else, or the balance would pass its bounds.
    """
    first = None if adjustment.reference is None else _used_before(connection, adjustment.reference)
    if first is None:
        try:
            insert_adjustment(connection, adjustment)
        except BalanceError:
            raise _out_of_bounds(connection, adjustment) from None
        return adjustment, True
    if not isinstance(first, Adjustment) or not _is_same(first, adjustment):
        raise _used_otherwise(first)
    return first, False


def _used_before(connection: Connection, reference: str) -> Topup | Adjustment | None:
    lock_reference(connection, reference)
    return find_topup(connection, reference) or find_adjustment(connection, reference)


def _is_same(first: Topup | Adjustment, second: Topup | Adjustment) -> bool:
    return (first.account_id, first.credits) == (second.account_id, second.credits)


def _used_otherwise(first: Topup | Adjustment) -> ProvisioningError:
    what = "for" if isinstance(first, Topup) else "for an adjustment by"
    return ProvisioningError(
        f"The reference {first.reference} was used before, {what} {first.credits} credits to {first.account_id}; "
        "nothing was changed. Give every payment and every correction a reference of its own."
    )


def _out_of_bounds(connection: Connection, change: Topup | Adjustment) -> ProvisioningError:
    account = find_account(connection, change.account_id)
    assert account is not None
    if change.credits > 0:
        return ProvisioningError(f"The balance may not pass {BALANCE_MAX} credits; it is {account.balance} now.")
    return ProvisioningError(
        f"The balance may not be below zero; it is {account.balance} now, so at most {account.balance} credits can be "
        "taken. What is held for requests on their way is not in it."
    )
