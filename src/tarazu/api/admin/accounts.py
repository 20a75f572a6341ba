"""Accounts: list, open, show and change them, and let their holders in."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import AskedLimit, CreationReference, Limit, More, given, text, time
from tarazu.api.admin.route import ONCE, Route
from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import quota_limit, quota_remaining
from tarazu.service.checks import HISTORY_LENGTH, NAME_LENGTH_MAX, checked_text
from tarazu.service.finding import AccountPage
from tarazu.service.provisioning import Provisioning


class NewAccount(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An account to be opened."""

    name: Annotated[str, text("Whose account it is, for people.", NAME_LENGTH_MAX)]
    email: Annotated[str | None, text("An address; no two accounts share one.", NAME_LENGTH_MAX)] = None
    plan: Annotated[str | None, Meta(description="A plan of the catalogue; null: only the balance pays.")] = None
    status: Annotated[AccountStatus, Meta(description="Only an active account is served.")] = AccountStatus.ACTIVE
    reference: CreationReference = None


class AccountChanges(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to change of an account; what is left out stays as it is."""

    name: Annotated[str | UnsetType, text("Whose account it is, for people.", NAME_LENGTH_MAX)] = UNSET
    email: Annotated[
        str | UnsetType,
        text("An address; no two accounts share one. With another one its holder is invited anew.", NAME_LENGTH_MAX),
    ] = UNSET
    plan: Annotated[str | UnsetType | None, Meta(description="A plan of the catalogue; null: none.")] = UNSET
    status: Annotated[AccountStatus | UnsetType, Meta(description="Only an active account is served.")] = UNSET


class AccountsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which accounts to show."""

    search: Annotated[
        str | None,
        text("The account with this id or email, or else those with these letters in name or email.", NAME_LENGTH_MAX),
    ] = None
    limit: AskedLimit = HISTORY_LENGTH
    before: Annotated[str | None, Meta(description="Only those before the account with this id.")] = None


class AccountObject(Struct, frozen=True, kw_only=True):
    """One account in its current period."""

    id: Annotated[str, Meta(pattern="^acc_[0-9A-Za-z]+$", description="Names the account.")]
    name: Annotated[str, Meta(description="Whose account it is, for people.")]
    email: Annotated[str | None, Meta(description="An address; no two accounts share one.")]
    plan: Annotated[str | None, Meta(description="Its plan; null: only the balance pays.")]
    status: Annotated[
        Literal["active", "unverified", "inactive", "blocked"], Meta(description="Only an active account is served.")
    ]
    period: Annotated[str, Meta(pattern=r"^\d{4}-\d{2}$", description="The month that it is, YYYY-MM.")]
    used: Annotated[int, Meta(ge=0, description="Credits of the quota used in the period.")]
    limit: Annotated[int, Meta(ge=0, description="The plan's monthly quota; 0 without a plan.")]
    remaining: Annotated[int, Meta(ge=0, description="What is left of the quota.")]
    balance: Annotated[int, Meta(ge=0, description="Credits beside the quota.")]
    created_at: Annotated[str, time("When it was opened.")]

    @classmethod
    def of(cls, account: Account, catalogue: Catalogue) -> "AccountObject":
        """Describe an account. A plan that is no longer on sale has no quota."""
        plan = catalogue.plan(account.plan)
        return cls(
            id=account.id,
            name=account.name,
            email=account.email,
            plan=account.plan,
            status=account.status.value,
            period=account.period,
            used=account.used,
            limit=quota_limit(plan),
            remaining=quota_remaining(account, plan),
            balance=account.balance,
            created_at=iso_time(account.created_at_ms),
        )


class AccountList(Struct, frozen=True, kw_only=True):
    """A page of accounts, newest first."""

    data: Annotated[tuple[AccountObject, ...], Meta(description="The accounts.")]
    limit: Limit
    more: More

    @classmethod
    def of(cls, page: AccountPage, catalogue: Catalogue, limit: int) -> "AccountList":
        """Describe a page."""
        return cls(
            data=tuple(AccountObject.of(account, catalogue) for account in page.accounts), limit=limit, more=page.more
        )


async def list_accounts(desk: Desk, call: Call[AccountsQuery, None]) -> Reply:
    """Show a page of the accounts."""
    asked = call.query
    search = None if asked.search is None else checked_text("search", asked.search, NAME_LENGTH_MAX)
    page = await desk.act(
        call.caller, lambda acts: acts.accounts_page(search=search, limit=asked.limit, after=asked.before)
    )
    return Reply(AccountList.of(page, desk.catalogue, asked.limit))


async def create_account(desk: Desk, call: Call[NoQuery, NewAccount]) -> Reply:
    """Open an account, with a reference once."""
    account, is_new = await desk.act(call.caller, lambda acts: _open(acts, call.body))
    return Reply(AccountObject.of(account, desk.catalogue), is_new=is_new)


async def get_account(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Show an account."""
    account = await desk.act(call.caller, lambda acts: acts.account(call.account_id))
    return Reply(AccountObject.of(account, desk.catalogue))


async def change_account(desk: Desk, call: Call[NoQuery, AccountChanges]) -> Reply:
    """Change name, email, plan and status, or some of them."""
    account = await desk.act(call.caller, lambda acts: acts.set_account(call.account_id, **given(call.body)))
    return Reply(AccountObject.of(account, desk.catalogue))


def _open(acts: Provisioning, asked: NewAccount) -> tuple[Account, bool]:
    name, email, plan, status = asked.name, asked.email, asked.plan, asked.status
    if asked.reference is None:
        return acts.create_account(name=name, email=email, plan=plan, status=status), True
    return acts.create_account_once(asked.reference, name=name, email=email, plan=plan, status=status)


_ON_AN_ACCOUNT = (
    "getAccount",
    "changeAccount",
    "inviteHolder",
    "signOutHolder",
    "listKeys",
    "createKey",
    "listCredits",
    "addTopup",
    "addAdjustment",
)
EXAMPLE = AccountObject(
    id="acc_9Kx2QwErTyUiOp",
    name="Ada Lovelace",
    email="ada@example.com",
    plan="pro",
    status="active",
    period="2026-03",
    used=1_250,
    limit=100_000,
    remaining=98_750,
    balance=500,
    created_at="2026-01-17T10:04:00Z",
)
ROUTES = (
    Route(
        operation_id="listAccounts",
        tag="Accounts",
        method="GET",
        path="/accounts",
        scope=Scope.READ,
        summary="List accounts",
        description="Newest first. The next page is `before` the last account of this one.",
        query=AccountsQuery,
        answer=AccountList(data=(EXAMPLE,), limit=HISTORY_LENGTH, more=False),
        errors=(AdminError.NOT_THERE, AdminError.INVALID_VALUE),
        handle=list_accounts,
    ),
    Route(
        operation_id="createAccount",
        tag="Accounts",
        method="POST",
        path="/accounts",
        scope=Scope.ACCOUNTS,
        summary="Open an account",
        description="With a `reference` it is safe to repeat: the same again answers 200 with the account as it is.",
        body=NewAccount(name="Ada Lovelace", email="ada@example.com", plan="pro", reference="signup-1017"),
        answer=EXAMPLE,
        statuses=ONCE,
        errors=(AdminError.CONFLICT, AdminError.INVALID_VALUE),
        leads_to=dict.fromkeys(_ON_AN_ACCOUNT, "account_id"),
        handle=create_account,
    ),
    Route(
        operation_id="getAccount",
        tag="Accounts",
        method="GET",
        path="/accounts/{account_id}",
        scope=Scope.READ,
        summary="Show an account",
        description="As it stands in this month.",
        answer=EXAMPLE,
        errors=(AdminError.NOT_THERE,),
        handle=get_account,
    ),
    Route(
        operation_id="changeAccount",
        tag="Accounts",
        method="PATCH",
        path="/accounts/{account_id}",
        scope=Scope.ACCOUNTS,
        summary="Change an account",
        description=(
            "Plan and status hold from the next request on. With another email the holder's sessions, invitation, "
            "password and second factor go. What is left out stays as it is."
        ),
        body=AccountChanges(plan=None, status=AccountStatus.BLOCKED),
        answer=EXAMPLE,
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT, AdminError.INVALID_VALUE),
        handle=change_account,
    ),
)
