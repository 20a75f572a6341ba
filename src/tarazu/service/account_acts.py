"""Open, find and change accounts."""

from msgspec.structs import replace
from sqlalchemy import Connection

from tarazu.domain.accounts import Account, AccountStatus, Window
from tarazu.domain.calendar import period_of
from tarazu.domain.people import PersonKind
from tarazu.service.acting import Acting
from tarazu.service.checks import (
    HISTORY_LENGTH,
    NAME_LENGTH_MAX,
    UNCHANGED,
    Unchanged,
    checked_email,
    checked_text,
)
from tarazu.service.creating import asked_under, created_before, record_creation
from tarazu.service.finding import AccountList, AccountPage, account_list, accounts_page, existing_account
from tarazu.service.identifiers import new_account_id
from tarazu.service.people import shut_out
from tarazu.service.provisioning_errors import ConflictError, ProvisioningError
from tarazu.store.accounts import (
    AccountOrder,
    Sought,
    has_accounts,
    insert_account,
    list_accounts,
    lock_account,
    rename_account,
    set_account_email,
    update_account,
)
from tarazu.store.owners import Owner


class AccountActs(Acting):
    """The acts on accounts."""

    def create_account(
        self,
        *,
        name: str,
        email: str | None = None,
        plan: str | None = None,
        status: AccountStatus = AccountStatus.ACTIVE,
    ) -> Account:
        """Open an account with nothing used and no balance.

        Raises:
            ProvisioningError: bad name or email, email taken, unknown plan.
        """
        with self._transaction() as connection:
            return self._open_account(connection, name=name, email=email, plan=plan, status=status)

    def create_account_once(
        self, reference: str, *, name: str, email: str | None, plan: str | None, status: AccountStatus
    ) -> tuple[Account, bool]:
        """Open an account, once for each reference; tell also whether it was opened just now.

        The same reference again, with the same values, answers with the first account as it is now.

        Raises:
            ProvisioningError: as in `create_account`; a bad reference, or one that was used with other values.
        """
        asked = asked_under(reference, "account", name, email, plan, status)
        with self._transaction() as connection:
            first = created_before(connection, asked)
            if first is not None:
                (account,) = self._on_this_page(connection, [existing_account(connection, first)])
                return account, False
            account = self._open_account(connection, name=name, email=email, plan=plan, status=status)
            record_creation(connection, asked, account.id, account.created_at_ms)
            return account, True

    def accounts(self) -> list[Account]:
        """List all accounts as they stand in this period, oldest first."""
        with self._reading() as connection:
            return self._on_this_page(connection, list_accounts(connection))

    def accounts_page(
        self, *, search: str | None = None, limit: int = HISTORY_LENGTH, after: str | None = None
    ) -> AccountPage:
        """List accounts as they stand in this period, the newest first: at most `limit`, after `after` if given.

        With `search` it is the one with that id or email, or else those with that text in their name or email.

        Raises:
            ProvisioningError: there is no account `after`, or `limit` is out of bounds.
        """
        with self._reading() as connection:
            page = accounts_page(connection, search=search, limit=limit, after=after)
            return replace(page, accounts=tuple(self._on_this_page(connection, page.accounts)))

    def account_list(self, sought: Sought, order: AccountOrder, *, page: int | None = None) -> AccountList:
        """List the accounts that are looked for as they stand in this period, a page of them by its number."""
        period = period_of(self._clock(), self._catalogue.zone)
        with self._reading() as connection:
            found = account_list(connection, sought, order, period=period, page=page)
            return replace(found, accounts=tuple(self._on_this_page(connection, found.accounts)))

    def account(self, account_id: str) -> Account:
        """Show one account as it stands in this period.

        Raises:
            ProvisioningError: there is no such account.
        """
        with self._reading() as connection:
            (account,) = self._on_this_page(connection, [existing_account(connection, account_id)])
        return account

    def has_accounts(self) -> bool:
        """Tell whether anybody has an account yet."""
        with self._reading() as connection:
            return has_accounts(connection)

    def set_account(
        self,
        account_id: str,
        *,
        name: str | Unchanged = UNCHANGED,
        email: str | Unchanged = UNCHANGED,
        plan: str | Unchanged | None = UNCHANGED,
        status: AccountStatus | Unchanged = UNCHANGED,
    ) -> Account:
        """Change name, email, plan or status, from the next request on.

        Where the email changes or the account is blocked, the holder's sessions and invitation end; with another email
        the password and the second factor go too, since another person may be behind it.

        Raises:
            ProvisioningError: no such account or plan, a bad name or email, or an email that is taken.
        """
        with self._transaction() as connection:
            lock_account(connection, account_id)
            before = existing_account(connection, account_id)
            account = replace(
                before,
                name=before.name if isinstance(name, Unchanged) else checked_text("name", name, NAME_LENGTH_MAX),
                email=before.email if isinstance(email, Unchanged) else checked_email(email),
                plan=before.plan if isinstance(plan, Unchanged) else self._plan_name(plan),
                status=before.status if isinstance(status, Unchanged) else status,
            )
            if account.email is not None and account.email != before.email:
                if not set_account_email(connection, account_id, account.email):
                    raise _email_taken(account.email)
                self._shut_out(connection, account_id, is_another_person=True)
            elif account.status is AccountStatus.BLOCKED:
                self._shut_out(connection, account_id)
            if account.name != before.name:
                rename_account(connection, account_id, account.name)
            update_account(connection, account_id, plan=account.plan, status=account.status)
            changes = {
                member: [getattr(before, member), getattr(account, member)]
                for member in ("name", "email", "plan", "status")
                if getattr(before, member) != getattr(account, member)
            }
            if changes:
                self._record(connection, "account.set", account_id, **changes)
            (account,) = self._on_this_page(connection, [account])
        return account

    def _open_account(
        self, connection: Connection, *, name: str, email: str | None, plan: str | None, status: AccountStatus
    ) -> Account:
        now_ms = self._clock()
        account = Account(
            id=new_account_id(),
            name=checked_text("name", name, NAME_LENGTH_MAX),
            email=None if email is None else checked_email(email),
            plan=self._plan_name(plan),
            status=status,
            period=period_of(now_ms, self._catalogue.zone),
            used=0,
            balance=0,
            window=Window(),
            created_at_ms=now_ms,
        )
        if not insert_account(connection, account):
            raise _email_taken(account.email)
        detail = {"name": account.name, "email": account.email, "plan": account.plan, "status": account.status}
        self._record(connection, "account.create", account.id, **detail)
        return account

    def _shut_out(self, connection: Connection, account_id: str, *, is_another_person: bool = False) -> None:
        owner = Owner(PersonKind.HOLDER, account_id)
        shut_out(connection, owner, self._clock(), is_another_person=is_another_person)

    def _plan_name(self, plan: str | None) -> str | None:
        if plan is not None and plan not in self._catalogue.plans:
            raise ProvisioningError(
                "There is no plan {plan!r}. Plans: {plans}.",
                member="plan",
                plan=plan,
                plans=", ".join(self._catalogue.plans) or "none",
            )
        return plan


def _email_taken(email: str | None) -> ConflictError:
    return ConflictError(
        "There is an account with the email {email} already. Give another.",
        hint="Or find it with: tarazu account list",
        member="email",
        email=email,
    )
