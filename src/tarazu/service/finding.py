"""Find the accounts and keys that an act or a page is about, or say that they are not there."""

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, Key
from tarazu.domain.paging import PAGE_LENGTH, Paging
from tarazu.service.checks import NAME_LENGTH_MAX, checked_length
from tarazu.service.identifiers import COMPLETION_PREFIX, REQUEST_PREFIX, completion_id_of
from tarazu.service.provisioning_errors import NotThereError
from tarazu.store.accounts import (
    AccountOrder,
    Sought,
    accounts_in_order,
    count_accounts,
    find_account,
    find_exactly,
    newest_accounts,
    search_accounts,
)
from tarazu.store.keys import newest_keys
from tarazu.store.request_history import RequestRow, find_any_request

OF_REQUESTS = (REQUEST_PREFIX, COMPLETION_PREFIX)
"""How the ids of requests, and of their answers, begin."""


class AccountPage(Struct, frozen=True, kw_only=True):
    """Accounts, the newest first; `more` when others follow the last one."""

    accounts: tuple[Account, ...]
    more: bool


class AccountList(Struct, frozen=True, kw_only=True):
    """One page of the accounts that are looked for."""

    accounts: tuple[Account, ...]
    paging: Paging


class KeyPage(Struct, frozen=True, kw_only=True):
    """Keys of an account, the newest first; `more` when others follow the last one."""

    keys: tuple[Key, ...]
    more: bool


def existing_account(connection: Connection, account_id: str) -> Account:
    """Read an account.

    Raises:
        ProvisioningError: there is none with this id.
    """
    account = find_account(connection, account_id)
    if account is None:
        raise _no_account(account_id)
    return account


def accounts_page(connection: Connection, *, search: str | None, limit: int, after: str | None) -> AccountPage:
    """Find accounts, all or those that a text may mean: at most `limit`, after the account `after` if given.

    The id of a request, or of an answer, means the account whose request it was. Each account is as it is in the
    books, on whatever page that is.

    Raises:
        ProvisioningError: there is no account `after`, or `limit` is out of bounds.
    """
    checked_length(limit)
    text = (search or "").strip()
    if len(text) > NAME_LENGTH_MAX:
        return AccountPage(accounts=(), more=False)  # nothing is called so
    try:
        if text.startswith(OF_REQUESTS):
            meant = _meant(connection, text)
            found = [] if meant is None else [meant]
        elif text:
            found = search_accounts(connection, text, limit=limit + 1, after=after)
        else:
            found = newest_accounts(connection, limit=limit + 1, after=after)
    except LookupError:
        raise _no_account(after) from None
    return AccountPage(accounts=tuple(found[:limit]), more=len(found) > limit)


def account_list(
    connection: Connection,
    sought: Sought,
    order: AccountOrder,
    *,
    period: str,
    page: int | None,
    length: int = PAGE_LENGTH,
) -> AccountList:
    """Find a page of the accounts that are looked for.

    A whole id or email means that account alone, and the id of a request or an answer the account whose it was,
    whatever else is looked for. Each account is as it is in the books, on whatever page of the quota that is.
    """
    text = sought.text.strip()
    if len(text) > NAME_LENGTH_MAX:
        return AccountList(accounts=(), paging=Paging.of(0, page))  # nothing is called so
    exact = _meant(connection, text)
    if exact is not None:
        return AccountList(accounts=(exact,), paging=Paging.of(1, page))
    sought = replace(sought, text=text)
    paging = Paging.of(count_accounts(connection, sought), page, length=length)
    found = accounts_in_order(connection, sought, order, period=period, limit=paging.length, offset=paging.offset)
    return AccountList(accounts=tuple(found), paging=paging)


def existing_request(connection: Connection, request_id: str) -> RequestRow:
    """Read a request of any account by its id, or by the `X-Request-Id` of its answer.

    Raises:
        ProvisioningError: there is none with this id.
    """
    found = find_any_request(connection, completion_id_of(request_id))
    if found is None:
        raise NotThereError(
            "There is no request {request!r}.",
            hint="One that was refused has no row: look for its id in the log.",
            request=request_id,
        )
    return found


def keys_page(connection: Connection, account_id: str, *, limit: int, after: str | None) -> KeyPage:
    """Find the keys of an account, also those that have ended: at most `limit`, after the key `after` if given.

    Raises:
        ProvisioningError: there is no such account, it has no key `after`, or `limit` is out of bounds.
    """
    checked_length(limit)
    existing_account(connection, account_id)
    try:
        found = newest_keys(connection, account_id, limit=limit + 1, after=after)
    except LookupError:
        raise no_key(after) from None
    return KeyPage(keys=tuple(found[:limit]), more=len(found) > limit)


def _meant(connection: Connection, text: str) -> Account | None:
    """Find the account that a text alone can mean: by its id or email, or by the id of one of its requests."""
    if text.startswith(OF_REQUESTS):
        request = find_any_request(connection, completion_id_of(text))
        return None if request is None else existing_account(connection, request.account_id)
    return find_exactly(connection, text) if text else None


def no_key(key_id: str | None) -> NotThereError:
    """Say that there is no such key, or none in that account."""
    return NotThereError("There is no key {key!r}.", hint="List them with: tarazu key list ACCOUNT", key=key_id)


def _no_account(account_id: str | None) -> NotThereError:
    return NotThereError(
        "There is no account {account!r}.", hint="List them with: tarazu account list", account=account_id
    )
