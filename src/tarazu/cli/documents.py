"""The JSON documents that commands print with --json. Times are ISO 8601 in UTC, amounts are whole credits."""

from typing import TYPE_CHECKING

from msgspec import Struct

from tarazu.domain.accounts import Account, Key
from tarazu.domain.calendar import iso_time
from tarazu.domain.catalogue import Catalogue
from tarazu.domain.credits import quota_limit, quota_remaining
from tarazu.service.identifiers import request_id_of

if TYPE_CHECKING:
    from tarazu.service.backend_reports import BackendReport
    from tarazu.service.crediting import CreditHistory
    from tarazu.service.key_acts import IssuedKey
    from tarazu.store.adjustments import Adjustment
    from tarazu.store.request_history import RequestRow
    from tarazu.store.topups import Topup


class AccountDocument(Struct, frozen=True, kw_only=True):
    """One account in its current period. `limit` is the plan's monthly quota, 0 without a plan."""

    id: str
    name: str
    email: str | None
    plan: str | None
    status: str
    period: str
    used: int
    limit: int
    remaining: int
    balance: int
    created_at: str

    @classmethod
    def of(cls, account: Account, catalogue: Catalogue) -> "AccountDocument":
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


class RequestDocument(Struct, frozen=True, kw_only=True):
    """One request. `state` is held, charged, released or swept; what its end brings is None while it is held.

    `reason` is abandoned or timed_out where there was no reply for it, by the caller's own doing.
    """

    id: str
    request_id: str
    account_id: str
    key_id: str
    key_name: str
    model: str
    credits: int
    credits_charged: int
    source: str
    state: str
    created_at: str
    ended_at: str | None
    tries: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reason: str | None

    @classmethod
    def of(cls, row: "RequestRow") -> "RequestDocument":
        """Describe a request."""
        return cls(
            id=row.id,
            request_id=request_id_of(row.id),
            account_id=row.account_id,
            key_id=row.key_id,
            key_name=row.key_name,
            model=row.model_id,
            credits=row.credits,
            credits_charged=row.credits_charged,
            source=row.source.value,
            state=row.state.value,
            created_at=iso_time(row.created_at_ms),
            ended_at=time_or_none(row.ended_at_ms),
            tries=row.tries,
            prompt_tokens=row.prompt_tokens,
            completion_tokens=row.completion_tokens,
            reason=None if row.reason is None else row.reason.value,
        )


class KeyDocument(Struct, frozen=True, kw_only=True):
    """One key. `state` is active, expired or revoked; `models` and `limit_per_minute` are None where it has no own."""

    id: str
    account_id: str
    name: str
    state: str
    models: tuple[str, ...] | None
    limit_per_minute: int | None
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    paused_at: str | None
    successor_id: str | None

    @classmethod
    def of(cls, key: Key, now_ms: int) -> "KeyDocument":
        """Describe a key as it is now."""
        return cls(
            id=key.id,
            account_id=key.account_id,
            name=key.name,
            state=key.state(now_ms).value,
            models=key.models,
            limit_per_minute=key.limit_per_minute,
            created_at=iso_time(key.created_at_ms),
            expires_at=time_or_none(key.expires_at_ms),
            revoked_at=time_or_none(key.revoked_at_ms),
            paused_at=time_or_none(key.paused_at_ms),
            successor_id=key.successor_id,
        )


class IssuedKeyDocument(Struct, frozen=True, kw_only=True):
    """A key just made. `secret` is the whole key, to be seen this once."""

    id: str
    secret: str
    account_id: str
    name: str
    models: tuple[str, ...] | None
    limit_per_minute: int | None
    created_at: str
    expires_at: str | None

    @classmethod
    def of(cls, issued: "IssuedKey") -> "IssuedKeyDocument":
        """Describe a key just made."""
        key = issued.key
        return cls(
            id=key.id,
            secret=issued.secret,
            account_id=key.account_id,
            name=key.name,
            models=key.models,
            limit_per_minute=key.limit_per_minute,
            created_at=iso_time(key.created_at_ms),
            expires_at=time_or_none(key.expires_at_ms),
        )

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"IssuedKeyDocument({self.id})"


class TopupDocument(Struct, frozen=True, kw_only=True):
    """A top-up; `added` is False when its reference had been used before, `balance` is the account's now."""

    id: str
    account_id: str
    credits: int
    reference: str
    note: str | None
    made_by: str | None
    created_at: str
    added: bool
    balance: int

    @classmethod
    def of(cls, topup: "Topup", *, added: bool, balance: int) -> "TopupDocument":
        """Describe a top-up and what came of it."""
        return cls(
            id=topup.id,
            account_id=topup.account_id,
            credits=topup.credits,
            reference=topup.reference,
            note=topup.note,
            made_by=topup.made_by,
            created_at=iso_time(topup.created_at_ms),
            added=added,
            balance=balance,
        )


class AdjustmentDocument(Struct, frozen=True, kw_only=True):
    """An adjustment; `adjusted` is False when its reference had been used before, `balance` is the account's now."""

    id: str
    account_id: str
    credits: int
    reason: str
    reference: str | None
    made_by: str
    created_at: str
    adjusted: bool
    balance: int

    @classmethod
    def of(cls, adjustment: "Adjustment", *, adjusted: bool, balance: int) -> "AdjustmentDocument":
        """Describe an adjustment and what came of it."""
        return cls(
            id=adjustment.id,
            account_id=adjustment.account_id,
            credits=adjustment.credits,
            reason=adjustment.reason,
            reference=adjustment.reference,
            made_by=adjustment.made_by,
            created_at=iso_time(adjustment.created_at_ms),
            adjusted=adjusted,
            balance=balance,
        )


class CreditChangeDocument(Struct, frozen=True, kw_only=True):
    """One change of a balance: a `kind` of top-up or adjustment. `why` is its note or its reason.

    `made_by` is None where a release that did not record it made the change.
    """

    id: str
    kind: str
    credits: int
    reference: str | None
    why: str | None
    made_by: str | None
    created_at: str


class CreditHistoryDocument(Struct, frozen=True, kw_only=True):
    """What has changed an account's balance beside requests, newest first, and the balance now.

    When there is `more`, --before with the last of the ids shows it.
    """

    account_id: str
    balance: int
    changes: tuple[CreditChangeDocument, ...]
    more: bool

    @classmethod
    def of(cls, history: "CreditHistory") -> "CreditHistoryDocument":
        """Describe a page of the history."""
        return cls(
            account_id=history.account.id,
            balance=history.account.balance,
            more=history.more,
            changes=tuple(
                CreditChangeDocument(
                    id=change.id,
                    kind=change.kind.value,
                    credits=change.credits,
                    reference=change.reference,
                    why=change.why,
                    made_by=change.made_by,
                    created_at=iso_time(change.created_at_ms),
                )
                for change in history.changes
            ),
        )


class MigrationDocument(Struct, frozen=True, kw_only=True):
    """The revision of the database before (None: there were no books) and after."""

    before: str | None
    after: str


class BackupDocument(Struct, frozen=True, kw_only=True):
    """A backup just made: where it is, and what it holds. `bytes` is its size."""

    file: str
    revision: str
    accounts: int
    requests: int
    bytes: int


class RestoreDocument(Struct, frozen=True, kw_only=True):
    """The books that a restore has put in place: the backup's, at its revision `before` and `after` being migrated.

    `kept` is where the books are that they have replaced; None: there were none.
    """

    file: str
    before: str
    after: str
    accounts: int
    requests: int
    kept: str | None


class ProblemDocument(Struct, frozen=True, kw_only=True):
    """One thing to put right in the configuration."""

    file: str
    line: int | None
    key: str | None
    reason: str


class PlanDocument(Struct, frozen=True, kw_only=True):
    """A plan on sale."""

    name: str
    monthly_credits: int
    requests_per_minute: int
    models: tuple[str, ...]


class ModelDocument(Struct, frozen=True, kw_only=True):
    """A model on sale. `payg_amount` is the price of one request in the configuration's currency."""

    id: str
    display_name: str
    credits: int
    payg_amount: int
    backends: tuple[str, ...]


class CheckDocument(Struct, frozen=True, kw_only=True):
    """The configuration: what it sells, or, when it is not `ok`, what is wrong with it. It is `ok` with `warnings`."""

    ok: bool
    path: str | None = None
    plans: tuple[PlanDocument, ...] = ()
    models: tuple[ModelDocument, ...] = ()
    problems: tuple[ProblemDocument, ...] = ()
    warnings: tuple[str, ...] = ()


class BackendRestDocument(Struct, frozen=True, kw_only=True):
    """A process of the service leaves a backend alone, since it was last well and until it may be tried again.

    `process` is its machine, its number there, and random characters; `state` is "busy" or "tripped".
    """

    process: str
    state: str
    fault: str
    since: str
    until: str


class BackendDocument(Struct, frozen=True, kw_only=True):
    """A backend as the configuration has it. `health` is "ready", "busy", "tripped" or "disabled".

    `url` and `host` are None for a local model. `timeout_s` is what one try may take. `rests` are those of all
    processes that leave it alone now.
    """

    model: str
    backend: str
    kind: str
    url: str | None
    host: str | None
    server_model: str | None
    priority: int
    weight: int
    max_concurrency: int | None
    timeout_s: float
    health: str
    rests: tuple[BackendRestDocument, ...]

    @classmethod
    def of(cls, report: "BackendReport") -> "BackendDocument":
        """Describe a backend, and its rests."""
        from tarazu.service.servers import host_of, model_of, url_of  # noqa: PLC0415 - no other document needs it

        spec = report.spec
        return cls(
            model=report.model.id,
            backend=report.name,
            kind=spec.kind,
            url=url_of(spec),
            host=host_of(spec),
            server_model=model_of(spec),
            priority=spec.priority,
            weight=spec.weight,
            max_concurrency=spec.max_concurrency,
            timeout_s=report.model.timeout_of(spec),
            health=report.health.value,
            rests=tuple(
                BackendRestDocument(
                    process=rest.process_id,
                    state=rest.state,
                    fault=rest.fault,
                    since=iso_time(rest.since_ms),
                    until=iso_time(rest.until_ms),
                )
                for rest in report.rests
            ),
        )


class TriedBackendDocument(Struct, frozen=True, kw_only=True):
    """What came of asking one backend: `outcome` is "ok", "disabled", or why there is no reply, with what to do then.

    `reply` is the beginning of the reply; `load_s` is of a local model, which is loaded for it.
    """

    model: str
    backend: str
    kind: str
    server_model: str | None
    outcome: str
    detail: str | None
    load_s: float | None
    seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reply: str | None
    advice: str | None


def time_or_none(instant_ms: int | None) -> str | None:
    """Write an instant as ISO 8601 in UTC; None stays None."""
    return None if instant_ms is None else iso_time(instant_ms)
