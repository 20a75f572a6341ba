"""A call of /chat/completions that passes every check, and ways to make it fail them: one alone, or several at once."""

import json
from collections.abc import Callable

from msgspec import Struct

from tarazu.domain.accounts import Account, AccountStatus
from tests.support.backend import ScriptedBackend, answers
from tests.support.odd_keys import mistyped
from tests.support.service import CHAT, Answer, Customer, RunningService
from tests.support.windows import Places, places, within_one_minute

RETRY_AFTER_S = 7
"""What the operator says when intake is stopped."""
TOO_MANY_CHARACTERS = 24_001
BODY_BYTES_MAX = 1_048_576


class Draft(Struct):
    """The call as it will be sent, and what is to be done to the books before. As it is made, it passes every check."""

    content: str = "Hello"
    method: str = "POST"
    sends_key: bool = True
    mistypes_key: bool = False
    is_revoked: bool = False
    is_blocked: bool = False
    is_stopped: bool = False
    is_window_full: bool = False
    content_type: str = "application/json"
    is_too_long: bool = False
    is_broken: bool = False
    stream: bool = False
    role: str = "user"
    plan: str | None = "large"
    key_models: tuple[str, ...] | None = None
    model: str = "test/one"
    backend_fails: bool = False


class Check(Struct, frozen=True):
    """One row of the order of checks: its number, its answer, and how to fail it."""

    number: int
    status: int
    code: str
    fail: Callable[[Draft], None]

    def __str__(self) -> str:
        """Name the row."""
        return f"decisions.order_of_checks.{self.number}"


class Outcome(Struct, frozen=True):
    """The answer, and the books before and after it. `backend_calls` were made by this call."""

    customer: Customer
    answer: Answer
    account_before: Account
    account: Account
    places_before: Places
    places: Places
    backend_calls: int


def attempt(service: RunningService, backend: ScriptedBackend, *checks: Check, content: str = "Hello") -> Outcome:
    """Send a call that fails these checks and no other."""
    draft = Draft(content=content)
    for check in checks:
        check.fail(draft)
    return within_one_minute(lambda: _sent(draft, service, backend))


def _sent(draft: Draft, service: RunningService, backend: ScriptedBackend) -> Outcome:
    customer = _prepared(draft, service, backend)
    account_before, places_before = service.account(customer), places(service, customer)
    try:
        if draft.is_stopped:
            service.provisioning.stop_intake(retry_after_s=RETRY_AFTER_S)
        answer = service.request(draft.method, CHAT, _body(draft), _headers(draft, customer))
    finally:
        service.provisioning.resume_intake()
    await_books(service)
    return Outcome(
        customer=customer,
        answer=answer,
        account_before=account_before,
        account=service.account(customer),
        places_before=places_before,
        places=places(service, customer),
        backend_calls=len(backend.received),
    )


def await_books(service: RunningService) -> None:
    """Wait until the books hold what earlier answers have asked of them, such as the return of credits."""
    assert service.get("/health").status == 200  # goes through the same queue


def _prepared(draft: Draft, service: RunningService, backend: ScriptedBackend) -> Customer:
    backend.reset()
    customer = service.customer(
        draft.plan, models=draft.key_models, limit_per_minute=1 if draft.is_window_full else None
    )
    if draft.is_window_full:
        assert service.chat(customer).status in {200, 402}
        backend.reset()
    if draft.is_revoked:
        service.provisioning.revoke_key(customer.key_id)
    if draft.is_blocked:
        service.provisioning.set_account(customer.account_id, status=AccountStatus.BLOCKED)
    if draft.backend_fails:
        backend.behaviour = answers(b"no", status=500)
    return customer


def _headers(draft: Draft, customer: Customer) -> dict[str, str]:
    secret = mistyped(customer.secret) if draft.mistypes_key else customer.secret
    headers = {"Content-Type": draft.content_type}
    return {**headers, "Authorization": f"Bearer {secret}"} if draft.sends_key else headers


def _body(draft: Draft) -> bytes:
    messages = [{"role": draft.role, "content": draft.content}]
    body = json.dumps({"model": draft.model, "messages": messages, "stream": draft.stream}).encode()
    if draft.is_broken:
        body = body[:-1]
    return body + b" " * BODY_BYTES_MAX if draft.is_too_long else body


def _wrong_method(draft: Draft) -> None:
    draft.method = "PUT"


def _no_key(draft: Draft) -> None:
    draft.sends_key = False


def _mistyped_key(draft: Draft) -> None:
    draft.mistypes_key = True


def _revoked_key(draft: Draft) -> None:
    draft.is_revoked = True


def _blocked_account(draft: Draft) -> None:
    draft.is_blocked = True


def _stopped_intake(draft: Draft) -> None:
    draft.is_stopped = True


def _full_window(draft: Draft) -> None:
    draft.is_window_full = True


def _wrong_type(draft: Draft) -> None:
    draft.content_type = "text/plain"


def _too_long_body(draft: Draft) -> None:
    draft.is_too_long = True


def _broken_body(draft: Draft) -> None:
    draft.is_broken = True


def _stream(draft: Draft) -> None:
    draft.stream = True


def _no_valid_message(draft: Draft) -> None:
    draft.role = "tool"


def _too_many_characters(draft: Draft) -> None:
    draft.content += "x" * TOO_MANY_CHARACTERS


def _neither_plan_nor_balance(draft: Draft) -> None:
    draft.plan = None


def _model_not_allowed(draft: Draft) -> None:
    draft.key_models, draft.model = ("test/one",), "test/two"


def _model_too_dear(draft: Draft) -> None:
    draft.model = "test/dear"


def _failing_backend(draft: Draft) -> None:
    draft.backend_fails = True


CHECKS = (
    Check(1, 405, "method_not_allowed", _wrong_method),
    Check(2, 401, "missing_api_key", _no_key),
    Check(3, 401, "invalid_api_key", _mistyped_key),
    Check(4, 401, "invalid_api_key", _revoked_key),
    Check(5, 403, "account_unavailable", _blocked_account),
    Check(6, 503, "system_stopped", _stopped_intake),
    Check(7, 429, "rate_limit_exceeded", _full_window),
    Check(8, 415, "unsupported_media_type", _wrong_type),
    Check(9, 413, "input_too_large", _too_long_body),
    Check(10, 400, "invalid_request", _broken_body),
    Check(11, 400, "streaming_not_supported", _stream),
    Check(12, 422, "messages_required", _no_valid_message),
    Check(13, 413, "input_too_large", _too_many_characters),
    Check(14, 402, "upgrade_required", _neither_plan_nor_balance),
    Check(15, 404, "model_not_found", _model_not_allowed),
    Check(16, 402, "api_credits_exhausted", _model_too_dear),
    Check(17, 502, "upstream_error", _failing_backend),
)
"""The rows of the order of checks, in their order. Applied in that order, any of them can fail together."""
WINDOWS_CHECK = 7
BACKEND_CHECK = 17
