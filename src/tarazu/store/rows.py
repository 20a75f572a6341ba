"""Turn rows of the books into the domain's values and back."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Select, select

from tarazu.domain.accounts import Account, AccountStatus, Key, Window
from tarazu.domain.credits import Hold, RequestState, Source
from tarazu.store.schema import accounts, keys, requests

ACCOUNT_COLUMNS = (
    accounts.c.id,
    accounts.c.name,
    accounts.c.email,
    accounts.c.plan,
    accounts.c.status,
    accounts.c.period,
    accounts.c.used,
    accounts.c.balance,
    accounts.c.window_minute,
    accounts.c.window_taken,
    accounts.c.created_at_ms,
    accounts.c.abandoned_hour,
    accounts.c.abandoned_taken,
)
KEY_COLUMNS = (
    keys.c.id,
    keys.c.account_id,
    keys.c.name,
    keys.c.digest,
    keys.c.models,
    keys.c.limit_per_minute,
    keys.c.created_at_ms,
    keys.c.expires_at_ms,
    keys.c.revoked_at_ms,
    keys.c.window_minute,
    keys.c.window_taken,
    keys.c.paused_at_ms,
    keys.c.successor_id,
)
HOLD_COLUMNS = (
    requests.c.id,
    requests.c.account_id,
    requests.c.key_id,
    requests.c.model_id,
    requests.c.credits,
    requests.c.source,
    requests.c.period,
    requests.c.day,
    requests.c.created_at_ms,
    requests.c.deadline_ms,
)
HOLD_ROW = (*(column.name for column in HOLD_COLUMNS), "state")
"""The columns that `hold_row` fills."""


def select_accounts() -> Select[Any]:
    """Select the columns that `account_of` reads."""
    return select(*ACCOUNT_COLUMNS)


def select_keys() -> Select[Any]:
    """Select the columns that `key_of` reads."""
    return select(*KEY_COLUMNS)


def select_holds() -> Select[Any]:
    """Select the columns that `hold_of` reads."""
    return select(*HOLD_COLUMNS)


def account_of(row: Sequence[Any]) -> Account:
    """Read an account, in the order of ACCOUNT_COLUMNS."""
    id_, name, email, plan, status, period, used, balance, minute, taken, created_at_ms, hour, abandoned = row
    return Account(
        id=id_,
        name=name,
        email=email,
        plan=plan,
        status=AccountStatus(status),
        period=period,
        used=used,
        balance=balance,
        window=Window(minute, taken),
        created_at_ms=created_at_ms,
        abandoned_hour=hour,
        abandoned_taken=abandoned,
    )


def account_row(account: Account) -> dict[str, Any]:
    """Write an account as the values of a new row."""
    return {
        "id": account.id,
        "name": account.name,
        "email": account.email,
        "plan": account.plan,
        "status": account.status.value,
        "period": account.period,
        "used": account.used,
        "balance": account.balance,
        "window_minute": account.window.minute,
        "window_taken": account.window.taken,
        "created_at_ms": account.created_at_ms,
    }


def key_of(row: Sequence[Any]) -> Key:
    """Read a key, in the order of KEY_COLUMNS."""
    (
        id_,
        account_id,
        name,
        digest,
        models,
        limit,
        created_at_ms,
        expires_at_ms,
        revoked_at_ms,
        minute,
        taken,
        paused_at_ms,
        successor_id,
    ) = row
    return Key(
        id=id_,
        account_id=account_id,
        name=name,
        digest=digest,
        models=None if models is None else msgspec.json.decode(models, type=tuple[str, ...]),
        limit_per_minute=limit,
        created_at_ms=created_at_ms,
        expires_at_ms=expires_at_ms,
        revoked_at_ms=revoked_at_ms,
        window=Window(minute, taken),
        paused_at_ms=paused_at_ms,
        successor_id=successor_id,
    )


def key_row(key: Key) -> dict[str, Any]:
    """Write a key as the values of a new row."""
    return {
        "id": key.id,
        "account_id": key.account_id,
        "name": key.name,
        "digest": key.digest,
        "models": None if key.models is None else msgspec.json.encode(key.models).decode(),
        "limit_per_minute": key.limit_per_minute,
        "created_at_ms": key.created_at_ms,
        "expires_at_ms": key.expires_at_ms,
        "revoked_at_ms": key.revoked_at_ms,
        "window_minute": key.window.minute,
        "window_taken": key.window.taken,
        "paused_at_ms": key.paused_at_ms,
        "successor_id": key.successor_id,
    }


def hold_of(row: Sequence[Any]) -> Hold:
    """Read a hold, in the order of HOLD_COLUMNS."""
    id_, account_id, key_id, model_id, credits_, source, period, day, created_at_ms, deadline_ms = row
    return Hold(
        request_id=id_,
        account_id=account_id,
        key_id=key_id,
        model_id=model_id,
        credits=credits_,
        source=Source(source),
        period=period,
        day=day,
        created_at_ms=created_at_ms,
        deadline_ms=deadline_ms,
    )


def hold_row(hold: Hold) -> dict[str, Any]:
    """Write a hold as the values of a new request row in state `held`."""
    return {
        "id": hold.request_id,
        "account_id": hold.account_id,
        "key_id": hold.key_id,
        "model_id": hold.model_id,
        "credits": hold.credits,
        "source": hold.source.value,
        "state": RequestState.HELD.value,
        "period": hold.period,
        "day": hold.day,
        "created_at_ms": hold.created_at_ms,
        "deadline_ms": hold.deadline_ms,
    }
