"""For each error of the specification's table, a call that meets it; for tests with clients that others wrote.

The service's clock must stand still: a client takes a while to start, and a full minute would be over.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.errors import Error
from tests.support.backend import ScriptedBackend, answers
from tests.support.service import RunningService

HELLO = ({"role": "user", "content": "Hello"},)


class Call(Struct, frozen=True, kw_only=True):
    """One chat call: the key to use (None: no Authorization header), and the members of the body."""

    api_key: str | None
    model: str = "test/one"
    messages: tuple[dict[str, str], ...] = HELLO
    stream: bool = False


Scene = Callable[[RunningService, ScriptedBackend], Call]


class Scenario(Struct, frozen=True):
    """An error of the table and how to meet it."""

    code: str
    status: int
    scene: Scene

    @property
    def text(self) -> str:
        """What the table says of it; more may follow."""
        return next(error.value.message for error in Error if error.value.code == self.code)


def _streaming(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer().secret, stream=True)


def _no_key(_service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=None)


def _bad_key(_service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key="trz_wrong")


def _no_plan(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer(plan=None).secret)


def _exhausted(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer().secret, model="test/dear")


def _blocked(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer(status=AccountStatus.BLOCKED).secret)


def _no_model(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer().secret, model="no/such-model")


def _too_large(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer().secret, messages=({"role": "user", "content": "x" * 24_001},))


def _no_messages(service: RunningService, _backend: ScriptedBackend) -> Call:
    return Call(api_key=service.customer().secret, messages=())


def _too_many(service: RunningService, _backend: ScriptedBackend) -> Call:
    customer = service.customer(plan="narrow")
    for _ in range(3):
        service.chat(customer)
    return Call(api_key=customer.secret)


def _backend_fails(service: RunningService, backend: ScriptedBackend) -> Call:
    backend.behaviour = answers(b"<html>no</html>", status=500, content_type="text/html")
    return Call(api_key=service.customer().secret)


def _stopped(service: RunningService, _backend: ScriptedBackend) -> Call:
    service.provisioning.stop_intake(retry_after_s=7)
    return Call(api_key=service.customer().secret)


SCENARIOS = (
    Scenario("streaming_not_supported", 400, _streaming),
    Scenario("missing_api_key", 401, _no_key),
    Scenario("invalid_api_key", 401, _bad_key),
    Scenario("upgrade_required", 402, _no_plan),
    Scenario("api_credits_exhausted", 402, _exhausted),
    Scenario("account_unavailable", 403, _blocked),
    Scenario("model_not_found", 404, _no_model),
    Scenario("input_too_large", 413, _too_large),
    Scenario("messages_required", 422, _no_messages),
    Scenario("rate_limit_exceeded", 429, _too_many),
    Scenario("upstream_error", 502, _backend_fails),
    Scenario("system_stopped", 503, _stopped),
)
"""In the order of the table."""


@contextmanager
def met(scenario: Scenario, service: RunningService, backend: ScriptedBackend) -> Iterator[Call]:
    """Set the scene, and clear it afterwards."""
    try:
        yield scenario.scene(service, backend)
    finally:
        service.provisioning.resume_intake()
        backend.reset()
