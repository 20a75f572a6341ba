"""Find what an act or a page is about, or say that it is not there."""

from sqlalchemy import Connection

from tarazu.domain.accounts import Account
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.accounts import find_account


def existing_account(connection: Connection, account_id: str) -> Account:
    """Read an account.

    Raises:
        ProvisioningError: there is none with this id.
    """
    account = find_account(connection, account_id)
    if account is None:
        raise NotThereError(
            "There is no account {account!r}.", hint="List them with: tarazu account list", account=account_id
        )
    return account
