"""API keys: list, issue, show, change, pause, revoke and replace them."""

from http import HTTPStatus
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from tarazu.api.admin.call import Call, Desk, NoQuery, Reply
from tarazu.api.admin.errors import AdminError
from tarazu.api.admin.members import AskedLimit, CreationReference, Limit, More, Time, given, number, text, time
from tarazu.api.admin.route import ONCE, Route
from tarazu.domain.accounts import Key
from tarazu.domain.admin_tokens import Scope
from tarazu.domain.calendar import iso_time
from tarazu.service.checks import EXPIRY_S_MAX, HISTORY_LENGTH, LIMIT_PER_MINUTE_MAX, NAME_LENGTH_MAX
from tarazu.service.finding import KeyPage
from tarazu.service.provisioning import Provisioning

_NAME = text("What the key is for, for people.", NAME_LENGTH_MAX)
_MODELS = Meta(
    description="Only these models, never more than the plan allows; null: all that it does.",
    extra_json_schema={"minItems": 1},
)
_LIMIT = number("Its own limit of requests, beside that of the account; null: none.", 1, LIMIT_PER_MINUTE_MAX)


class NewKey(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key to be issued."""

    name: Annotated[str, _NAME]
    expires_in_s: Annotated[int | None, number("It ends after so many seconds; null: never.", 1, EXPIRY_S_MAX)] = None
    models: Annotated[
        tuple[str, ...] | None,
        _MODELS,
    ] = None
    limit_per_minute: Annotated[
        int | None,
        _LIMIT,
    ] = None
    reference: CreationReference = None


class KeyChanges(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change; what is left out stays as it is."""

    name: Annotated[str | UnsetType, _NAME] = UNSET
    expires_in_s: Annotated[
        int | UnsetType | None, number("It ends so many seconds from now; null: never.", 1, EXPIRY_S_MAX)
    ] = UNSET
    models: Annotated[
        tuple[str, ...] | UnsetType | None,
        _MODELS,
    ] = UNSET
    limit_per_minute: Annotated[
        int | UnsetType | None,
        _LIMIT,
    ] = UNSET


class Replacement(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a key is to be replaced."""

    grace_s: Annotated[int, number("For so many seconds the old key works on.", 0, EXPIRY_S_MAX)] = 0


class KeysQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which keys to show."""

    limit: AskedLimit = HISTORY_LENGTH
    before: Annotated[str | None, Meta(description="Only those before the key with this id.")] = None


class KeyObject(Struct, frozen=True, kw_only=True):
    """One key, without its secret."""

    id: Annotated[str, Meta(pattern="^key_[0-9A-Za-z]+$", description="Names the key.")]
    account_id: Annotated[str, Meta(description="Whose it is.")]
    name: Annotated[str, Meta(description="What it is for, for people.")]
    state: Annotated[
        Literal["active", "paused", "expired", "revoked"], Meta(description="Only an active key is let in.")
    ]
    models: Annotated[
        tuple[str, ...] | None, Meta(description="Its own list of models; null: all that the plan allows.")
    ]
    limit_per_minute: Annotated[int | None, Meta(description="Its own limit of requests; null: the account's alone.")]
    created_at: Annotated[str, time("When it was issued.")]
    expires_at: Annotated[Time | None, Meta(description="When it ends by itself; null: never.")]
    revoked_at: Annotated[Time | None, Meta(description="When it was ended; null: it was not.")]
    paused_at: Annotated[Time | None, Meta(description="Since when it has been paused; null: it is not.")] = None
    successor_id: Annotated[str | None, Meta(description="The key that was made in its place; null: none.")] = None

    @classmethod
    def of(cls, key: Key, now_ms: int) -> "KeyObject":
        """Describe a key as it is now."""
        return cls(**_key_members(key, now_ms))


class IssuedKeyObject(KeyObject, frozen=True, kw_only=True):
    """A key that was created or took another one's place, with its secret."""

    secret: Annotated[str | None, Meta(description="The whole key, shown this once; null where it was shown before.")]

    @classmethod
    def issued(cls, key: Key, secret: str | None, now_ms: int) -> "IssuedKeyObject":
        """Describe a key, with its secret if that is to be shown."""
        return cls(secret=secret, **_key_members(key, now_ms))

    def __repr__(self) -> str:
        """Name the key without its secret."""
        return f"IssuedKeyObject({self.id})"


class KeyList(Struct, frozen=True, kw_only=True):
    """A page of an account's keys, also those that have ended, newest first."""

    data: Annotated[tuple[KeyObject, ...], Meta(description="The keys.")]
    limit: Limit
    more: More

    @classmethod
    def of(cls, page: KeyPage, now_ms: int, limit: int) -> "KeyList":
        """Describe a page."""
        return cls(data=tuple(KeyObject.of(key, now_ms) for key in page.keys), limit=limit, more=page.more)


def _key_members(key: Key, now_ms: int) -> dict[str, Any]:
    return {
        "id": key.id,
        "account_id": key.account_id,
        "name": key.name,
        "state": key.state(now_ms).value,
        "models": key.models,
        "limit_per_minute": key.limit_per_minute,
        "created_at": iso_time(key.created_at_ms),
        "expires_at": None if key.expires_at_ms is None else iso_time(key.expires_at_ms),
        "revoked_at": None if key.revoked_at_ms is None else iso_time(key.revoked_at_ms),
        "paused_at": None if key.paused_at_ms is None else iso_time(key.paused_at_ms),
        "successor_id": key.successor_id,
    }


async def list_keys(desk: Desk, call: Call[KeysQuery, None]) -> Reply:
    """Show a page of an account's keys."""
    asked = call.query
    page = await desk.act(
        call.caller, lambda acts: acts.keys_page(call.account_id, limit=asked.limit, after=asked.before)
    )
    return Reply(KeyList.of(page, desk.now_ms(), asked.limit))


async def create_key(desk: Desk, call: Call[NoQuery, NewKey]) -> Reply:
    """Issue a key, with a reference once."""
    key, secret = await desk.act(call.caller, lambda acts: _issue(acts, call.account_id, call.body))
    return Reply(IssuedKeyObject.issued(key, secret, desk.now_ms()), is_new=secret is not None)


async def get_key(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Show a key."""
    key = await desk.act(call.caller, lambda acts: acts.key(call.key_id))
    return Reply(KeyObject.of(key, desk.now_ms()))


async def revoke_key(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """End a key now."""
    key = await desk.act(call.caller, lambda acts: acts.revoke_key(call.key_id))
    return Reply(KeyObject.of(key, desk.now_ms()))


async def change_key(desk: Desk, call: Call[NoQuery, KeyChanges]) -> Reply:
    """Change what a key is called and may do."""
    key = await desk.act(call.caller, lambda acts: acts.set_key(call.key_id, **given(call.body)))
    return Reply(KeyObject.of(key, desk.now_ms()))


async def pause_key(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Let requests with a key be refused until it is resumed."""
    key = await desk.act(call.caller, lambda acts: acts.pause_key(call.key_id))
    return Reply(KeyObject.of(key, desk.now_ms()))


async def resume_key(desk: Desk, call: Call[NoQuery, None]) -> Reply:
    """Let a key work again."""
    key = await desk.act(call.caller, lambda acts: acts.resume_key(call.key_id))
    return Reply(KeyObject.of(key, desk.now_ms()))


async def replace_key(desk: Desk, call: Call[NoQuery, Replacement]) -> Reply:
    """Issue a key in another one's place."""
    issued = await desk.act(call.caller, lambda acts: acts.replace_key(call.key_id, grace_s=call.body.grace_s))
    return Reply(IssuedKeyObject.issued(issued.key, issued.secret, desk.now_ms()), is_new=True)


def _issue(acts: Provisioning, account_id: str, asked: NewKey) -> tuple[Key, str | None]:
    name, models, limit, expires_in_s = asked.name, asked.models, asked.limit_per_minute, asked.expires_in_s
    if asked.reference is None:
        issued = acts.create_key(
            account_id, name=name, models=models, limit_per_minute=limit, expires_in_s=expires_in_s
        )
        return issued.key, issued.secret
    return acts.create_key_once(
        account_id, asked.reference, name=name, models=models, limit_per_minute=limit, expires_in_s=expires_in_s
    )


EXAMPLE = KeyObject(
    id="key_7Hq2Zt9LmXw4",
    account_id="acc_9Kx2QwErTyUiOp",
    name="laptop",
    state="active",
    models=None,
    limit_per_minute=60,
    created_at="2026-01-17T10:05:00Z",
    expires_at="2026-04-17T10:05:00Z",
    revoked_at=None,
)
ISSUED_EXAMPLE = IssuedKeyObject(**{**asdict(EXAMPLE), "secret": "trz_ and 50 letters and digits"})
REVOKED_EXAMPLE = KeyObject(**{**asdict(EXAMPLE), "state": "revoked", "revoked_at": "2026-03-14T09:26:00Z"})
PAUSED_EXAMPLE = KeyObject(**{**asdict(EXAMPLE), "state": "paused", "paused_at": "2026-03-14T09:26:00Z"})
ROUTES = (
    Route(
        operation_id="listKeys",
        tag="Keys",
        method="GET",
        path="/accounts/{account_id}/keys",
        scope=Scope.READ,
        summary="List an account's keys",
        description="Also those that have ended, newest first. The next page is `before` the last key of this one.",
        query=KeysQuery,
        answer=KeyList(data=(EXAMPLE,), limit=HISTORY_LENGTH, more=False),
        errors=(AdminError.NOT_THERE, AdminError.INVALID_VALUE),
        handle=list_keys,
    ),
    Route(
        operation_id="createKey",
        tag="Keys",
        method="POST",
        path="/accounts/{account_id}/keys",
        scope=Scope.ACCOUNTS,
        summary="Issue a key",
        description=(
            "The whole key is shown in this answer alone. With a `reference` it is safe to repeat: the same again "
            "answers 200 with the key as it is now, and `secret` null."
        ),
        body=NewKey(name="laptop", expires_in_s=7_776_000, limit_per_minute=60, reference="signup-1017-key"),
        answer=ISSUED_EXAMPLE,
        statuses=ONCE,
        leads_to={"getKey": "key_id", "revokeKey": "key_id", "replaceKey": "key_id"},
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT, AdminError.INVALID_VALUE),
        handle=create_key,
    ),
    Route(
        operation_id="getKey",
        tag="Keys",
        method="GET",
        path="/keys/{key_id}",
        scope=Scope.READ,
        summary="Show a key",
        description="Without its secret, which nobody knows but its holder.",
        answer=EXAMPLE,
        errors=(AdminError.NOT_THERE,),
        handle=get_key,
    ),
    Route(
        operation_id="changeKey",
        tag="Keys",
        method="PATCH",
        path="/keys/{key_id}",
        scope=Scope.ACCOUNTS,
        summary="Change a key",
        description=(
            "Its name, end, models and limit, from the next request on; what is left out stays as it is. A key that "
            "has ended is answered 409, and so is another end for one that has been replaced."
        ),
        body=KeyChanges(name="laptop", limit_per_minute=60),
        answer=EXAMPLE,
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT, AdminError.INVALID_VALUE),
        handle=change_key,
    ),
    Route(
        operation_id="pauseKey",
        tag="Keys",
        method="POST",
        path="/keys/{key_id}/pause",
        scope=Scope.ACCOUNTS,
        summary="Pause a key",
        description=(
            "Requests with it are refused, from the next one on, until it is resumed. One that is paused already stays "
            "as it is; one that has ended is answered 409."
        ),
        answer=PAUSED_EXAMPLE,
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT),
        handle=pause_key,
    ),
    Route(
        operation_id="resumeKey",
        tag="Keys",
        method="POST",
        path="/keys/{key_id}/resume",
        scope=Scope.ACCOUNTS,
        summary="Resume a key",
        description="It works again from the next request on. One that has ended is answered 409.",
        answer=EXAMPLE,
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT),
        handle=resume_key,
    ),
    Route(
        operation_id="revokeKey",
        tag="Keys",
        method="POST",
        path="/keys/{key_id}/revoke",
        scope=Scope.ACCOUNTS,
        summary="Revoke a key",
        description="It ends for good, from the next request on. One that is revoked already stays as it is.",
        answer=REVOKED_EXAMPLE,
        errors=(AdminError.NOT_THERE,),
        handle=revoke_key,
    ),
    Route(
        operation_id="replaceKey",
        tag="Keys",
        method="POST",
        path="/keys/{key_id}/replace",
        scope=Scope.ACCOUNTS,
        summary="Replace a key",
        description=(
            "The new key has the name, models, limit and expiry of the old one, which ends at once or after `grace_s`. "
            "A key that has ended, or has been replaced before, is answered 409."
        ),
        body=Replacement(grace_s=3_600),
        answer=ISSUED_EXAMPLE,
        statuses=(HTTPStatus.CREATED,),
        errors=(AdminError.NOT_THERE, AdminError.CONFLICT, AdminError.INVALID_VALUE),
        handle=replace_key,
    ),
)
