"""Accounts in the books: make, find, change."""

from enum import StrEnum
from typing import Any

from msgspec import Struct
from sqlalchemy import ColumnElement, Connection, Select, case, func, select, tuple_, update
from sqlalchemy.exc import IntegrityError

from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.credits import BALANCE_MAX
from tarazu.store.rows import account_of, account_row, select_accounts
from tarazu.store.schema import accounts
from tarazu.store.searching import any_contains, as_read
from tarazu.store.upsert import insert_into


class BalanceError(Exception):
    """The balance has no room for the change: it would be below zero or above BALANCE_MAX."""


class AccountOrder(StrEnum):
    """In which order accounts are listed."""

    NEWEST = "newest"
    OLDEST = "oldest"
    NAME = "name"
    USED = "used"
    BALANCE = "balance"


class Sought(Struct, frozen=True, kw_only=True):
    """Which accounts are looked for: those that all of this is true of.

    `text` is what a name or an email has in it, in the form of `domain/search_form.py`; `plan` is empty for none.
    """

    text: str = ""
    plan: str | None = None
    status: AccountStatus | None = None


def insert_account(connection: Connection, account: Account) -> bool:
    """Add an account, whose id must be new; False where another one has the email."""
    new = insert_into(connection, accounts).values(account_row(account))
    inserted = new.on_conflict_do_nothing(index_elements=[accounts.c.email]).returning(accounts.c.id)
    return connection.execute(inserted).first() is not None


def find_account(connection: Connection, account_id: str) -> Account | None:
    """Read one account."""
    row = connection.execute(select_accounts().where(accounts.c.id == account_id)).one_or_none()
    return None if row is None else account_of(row)


def lock_account(connection: Connection, account_id: str) -> Account | None:
    """Read one account that nobody else changes until the transaction ends."""
    row = connection.execute(select_accounts().where(accounts.c.id == account_id).with_for_update()).one_or_none()
    return None if row is None else account_of(row)


def find_account_by_email(connection: Connection, email: str) -> Account | None:
    """Read the account with this email."""
    row = connection.execute(select_accounts().where(accounts.c.email == email)).one_or_none()
    return None if row is None else account_of(row)


def list_accounts(connection: Connection) -> list[Account]:
    """Read all accounts, oldest first."""
    query = select_accounts().order_by(accounts.c.created_at_ms, accounts.c.id)
    return [account_of(row) for row in connection.execute(query)]


def newest_accounts(connection: Connection, *, limit: int, after: str | None = None) -> list[Account]:
    """Read accounts, the newest first, at most `limit`; those that come after the account `after`, if given.

    Raises:
        LookupError: there is no account `after`.
    """
    return _newest(connection, select_accounts(), limit, after)


def search_accounts(connection: Connection, text: str, *, limit: int, after: str | None = None) -> list[Account]:
    """Read the accounts that a text may mean, the newest first; paged as `newest_accounts` is.

    That is the one with this id or this email; where there is none, all that have the text in their name or email.
    Texts are compared in the form of `domain/search_form.py`.

    Raises:
        LookupError: there is no account `after`.
    """
    exact = find_exactly(connection, text)
    if exact is not None:
        return [] if after is not None else [exact]
    has_it = any_contains(connection, text, accounts.c.name, accounts.c.email)
    return _newest(connection, select_accounts().where(has_it), limit, after)


def find_exactly(connection: Connection, text: str) -> Account | None:
    """Read the account with this id or this email."""
    return find_account(connection, text) or find_account_by_email(connection, text.lower())


def count_accounts(connection: Connection, sought: Sought) -> int:
    """Count the accounts that are looked for."""
    query = select(func.count()).select_from(accounts).where(*_conditions(connection, sought))
    return int(connection.execute(query).scalar_one())


def accounts_in_order(
    connection: Connection, sought: Sought, order: AccountOrder, *, period: str, limit: int, offset: int
) -> list[Account]:
    """Read the accounts that are looked for, in an order, at most `limit` behind the first `offset`.

    For the order by use, what was used in another period than `period` counts as nothing.
    """
    newest = (accounts.c.created_at_ms.desc(), accounts.c.id.desc())
    by: dict[AccountOrder, tuple[ColumnElement[Any], ...]] = {
        AccountOrder.NEWEST: newest,
        AccountOrder.OLDEST: (accounts.c.created_at_ms, accounts.c.id),
        AccountOrder.NAME: (as_read(connection, accounts.c.name), *newest),
        AccountOrder.USED: (case((accounts.c.period == period, accounts.c.used), else_=0).desc(), *newest),
        AccountOrder.BALANCE: (accounts.c.balance.desc(), *newest),
    }
    query = select_accounts().where(*_conditions(connection, sought)).order_by(*by[order]).limit(limit).offset(offset)
    return [account_of(row) for row in connection.execute(query)]


def has_accounts(connection: Connection) -> bool:
    """Tell whether there is any account."""
    return connection.execute(select(accounts.c.id).limit(1)).first() is not None


def plans_in_use(connection: Connection) -> dict[str, int]:
    """Count the accounts of each plan that some are on."""
    rows = connection.execute(
        select(accounts.c.plan, func.count()).where(accounts.c.plan.is_not(None)).group_by(accounts.c.plan)
    )
    return {plan: count for plan, count in rows}  # noqa: C416 - rows are no pairs for dict()


def update_account(connection: Connection, account_id: str, *, plan: str | None, status: AccountStatus) -> None:
    """Set plan and status. Only the ledger, top-ups and adjustments touch the figures."""
    connection.execute(update(accounts).where(accounts.c.id == account_id).values(plan=plan, status=status.value))


def set_account_email(connection: Connection, account_id: str, email: str) -> bool:
    """Set the email; False where another account has it, and nothing is changed."""
    try:
        with connection.begin_nested():
            connection.execute(update(accounts).where(accounts.c.id == account_id).values(email=email))
    except IntegrityError:
        return False
    return True


def rename_account(connection: Connection, account_id: str, name: str) -> None:
    """Set the name."""
    connection.execute(update(accounts).where(accounts.c.id == account_id).values(name=name))


def add_to_balance(connection: Connection, account_id: str, credits_: int) -> None:
    """Add to the balance, or take from it, in one statement, on the row as it is now.

    Raises:
        BalanceError: there is no room for it, or no such account; nothing was changed.
    """
    changed = accounts.c.balance + credits_
    has_room = changed <= BALANCE_MAX if credits_ > 0 else changed >= 0
    statement = update(accounts).where(accounts.c.id == account_id, has_room).values(balance=changed)
    if connection.execute(statement).rowcount != 1:
        raise BalanceError


def _conditions(connection: Connection, sought: Sought) -> list[ColumnElement[bool]]:
    conditions = []
    if sought.text:
        conditions.append(any_contains(connection, sought.text, accounts.c.name, accounts.c.email))
    if sought.plan is not None:
        conditions.append(accounts.c.plan == sought.plan if sought.plan else accounts.c.plan.is_(None))
    if sought.status is not None:
        conditions.append(accounts.c.status == sought.status.value)
    return conditions


def _newest(connection: Connection, query: Select[Any], limit: int, after: str | None) -> list[Account]:
    if after is not None:
        then = connection.execute(select(accounts.c.created_at_ms).where(accounts.c.id == after)).scalar_one_or_none()
        if then is None:
            raise LookupError(after)
        query = query.where(tuple_(accounts.c.created_at_ms, accounts.c.id) < (then, after))
    query = query.order_by(accounts.c.created_at_ms.desc(), accounts.c.id.desc()).limit(limit)
    return [account_of(row) for row in connection.execute(query)]
