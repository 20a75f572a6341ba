"""Let the releases make the books that `kept_books` keeps: `python -m tests.migrations.make`.

Only revisions without books get some: what a release has left behind does not change when there are newer ones. So
`_live` may do what the newest release can: what a new revision has brought belongs into it.
"""

import asyncio
import http.client
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from sqlalchemy import Engine

from tarazu.domain.accounts import AccountStatus
from tarazu.domain.people import PersonKind
from tarazu.domain.second_factor import code_at, secret_text, step_at
from tarazu.service.back_office import BackOffice
from tarazu.service.own_access import OwnAccess
from tarazu.service.passwords import Passwords
from tarazu.service.proving import Browser, Prover
from tarazu.service.provisioning import Provisioning
from tarazu.service.sign_in_errors import SignInError
from tarazu.service.signing_in import Entered, SigningIn
from tarazu.store.engine import open_engine
from tarazu.store.revision import current_revision
from tarazu.store.trail import Via
from tests.migrations.kept_books import FOLDER, KeptBooks, rows_of, write
from tests.migrations.releases import ReleasedService, revisions, source_of
from tests.support.at_once import Call, held, wait_until
from tests.support.backend import ScriptedBackend, answers
from tests.support.people import CHEAP, PASSWORD, SECRET, WRONG
from tests.support.service import Customer
from tests.support.set_clock import SetClock

LEFT_AT = "2026-02-28T23:59:58Z"
HOLD_S = 36
"""A little longer than the models' time-out and the time to settle."""
MODELS = ("test/one", "test/two", "test/free")
BODY = {"prompt": "Hello"}

T = TypeVar("T")


def main() -> None:
    """Make what is missing, and say where."""
    for revision in revisions():
        if not (FOLDER / f"{revision}.json").exists():
            sys.stdout.write(f"{write(revision, _make(revision))}\n")


def _make(revision: str) -> KeptBooks:
    with TemporaryDirectory() as name, ScriptedBackend() as backend:
        folder = Path(name)
        clock = SetClock(folder)
        source = source_of(revision, folder / "release")
        environ = {**clock.environ, "TARAZU_OPERATOR": "an operator"}
        service = ReleasedService(source, folder, backend.url, environ=environ)
        secrets = _live(service, backend, clock)
        assert _look(service, current_revision) == revision
        return KeptBooks(LEFT_AT, secrets, _look(service, rows_of))


def _live(service: ReleasedService, backend: ScriptedBackend, clock: SetClock) -> dict[str, str]:
    """Do something of everything over three months; answer with some of the keys, by what they are."""
    clock.set("2025-12-31T23:59:30Z")
    service.json("db", "upgrade")
    planned, mixed, payg = (
        service.customer("large"),
        service.customer("basic", balance=50),
        service.customer(None, balance=9),
    )
    limited = service.another_key(planned, models=["test/one", "test/two"], limit_per_minute=7)
    expired = service.another_key(planned, expires="1h")
    revoked, replaced, paused = service.another_key(mixed), service.another_key(mixed), service.another_key(mixed)
    service.customer("basic", status=AccountStatus.BLOCKED)
    service.json(*["account", "create", "--name", "زویا", "--email", "zoe@example.com", "--status", "unverified"])
    with service:
        _ask(service, planned, mixed, payg, limited, expired, revoked)
        clock.set("2026-01-31T23:59:59Z")
        service.json("key", "revoke", revoked.key_id)
        service.json("key", "replace", replaced.key_id, "--grace", "2d")
        service.json("key", "set", paused.key_id, "--name", "night job", "--limit-per-minute", "3")
        service.json("key", "pause", paused.key_id)
        _ask(service, *[mixed] * 6, planned, payg)  # more than the quota: the rest is from the balance
        backend.behaviour = answers(b"no", status=500)
        _ask(service, planned, payg)  # released
        backend.reset()
        clock.set("2026-02-01T00:00:01Z")
        _ask(service, planned, mixed)
        service.json("credit", "add", payg.account_id, "7", "--reference", "invoice 7", "--note", "for February")
        service.json("credit", "adjust", payg.account_id, "-2", "--reason", "a test", "--reference", "correction 1")
        _kill_with_held(service, backend, partial(service.chat, planned), partial(service.chat, payg))
        clock.advance(HOLD_S)
        service.start()
        wait_until(lambda: "held" not in _states(service))  # swept
        clock.set(LEFT_AT)
        _ask(service, planned, mixed, payg)
        assert service.post(planned, BODY, idempotency_key="answered").status == http.client.OK
        _tire(service, backend, planned)
        assert service.chat(planned, model="gpt-4o").status == http.client.NOT_FOUND
        wait_until(lambda: bool(_look(service, rows_of)["refused_requests"]))
        _kill_with_held(
            service,
            backend,
            partial(service.post, planned, BODY, idempotency_key="running"),
            partial(service.chat, mixed),
            partial(service.chat, payg),
        )
    _let_people_in(service, clock)
    service.json("intake", "stop", "--retry-after", "77")
    return {
        "planned": planned.secret,
        "limited": limited.secret,
        "mixed": mixed.secret,
        "payg": payg.secret,
        "expired": expired.secret,
        "revoked": revoked.secret,
    }


def _let_people_in(service: ReleasedService, clock: SetClock) -> None:
    """Invite a holder and two operators, of whom one is gone again; sign in, rightly and wrongly; issue tokens."""
    holder = service.json("account", "create", "--name", "Ada", "--email", "ada@example.com")["id"]
    token = service.json("account", "invite", holder)["link"].rpartition("/")[2]
    operators = [
        service.json("admin", "operator", "create", "--email", email, "--name", "An operator")["id"]
        for email in ("grace@example.com", "hedy@example.com")
    ]
    service.json("admin", "operator", "set", operators[-1], "--status", "inactive")
    tokens = [
        service.json("admin", "token", "create", "--name", "shop", *options)["id"]
        for options in (("--scopes", "read"), ("--scopes", "accounts,credits", "--expires", "90d"))
    ]
    service.json("admin", "token", "revoke", tokens[-1])
    catalogue = service.configuration.catalogue

    def sign_in(engine: Engine) -> None:
        office, passwords = BackOffice(engine, catalogue, clock), Passwords(CHEAP)
        prover = Prover(office, passwords, clock)
        asyncio.run(_sign_in(SigningIn(office, prover, clock), OwnAccess(office, prover, clock), clock, token))
        passwords.close()
        office.close()

    def create_once(engine: Engine) -> None:
        provisioning = Provisioning(engine, catalogue, clock, by="shop", via=Via.TOKEN)
        provisioning.create_account_once("order 1", name="Once", email=None, plan="basic", status=AccountStatus.ACTIVE)

    _look(service, sign_in)
    _look(service, create_once)


async def _sign_in(signing_in: SigningIn, own_access: OwnAccess, clock: SetClock, token: str) -> None:
    browser = Browser("192.0.2.1", "Firefox, Linux")
    entered = await signing_in.accept(PersonKind.HOLDER, token, PASSWORD, browser=browser)
    assert isinstance(entered, Entered)
    signed_in = await signing_in.signed_in(PersonKind.HOLDER, entered.secret)
    assert signed_in is not None
    email, clock_ms = signed_in.person.email, clock()
    await own_access.speak(signed_in.person, "fa")
    code = code_at(SECRET, step_at(clock_ms))
    await own_access.set_up_second_factor(signed_in, secret_text(SECRET), code, browser=browser)
    await signing_in.sign_in(PersonKind.HOLDER, email=email, password=PASSWORD, browser=browser)
    with suppress(SignInError):
        await signing_in.sign_in(PersonKind.HOLDER, email=email, password=WRONG, browser=browser)


def _ask(service: ReleasedService, *customers: Customer) -> None:
    for customer in customers:
        for model in MODELS:
            service.chat(customer, model=model)


def _kill_with_held(service: ReleasedService, backend: ScriptedBackend, *calls: Call) -> None:
    with held(backend, *calls) as asked:
        service.kill()
    for each in asked:
        with suppress(OSError, http.client.HTTPException):
            each.result()


def _tire(service: ReleasedService, backend: ScriptedBackend, customer: Customer) -> None:
    """Let a backend rest."""
    backend.behaviour = answers(b"no", status=429, retry_after="300")
    service.chat(customer, model="test/hasty")
    backend.reset()
    wait_until(lambda: bool(_look(service, rows_of)["backend_rests"]))


def _states(service: ReleasedService) -> set[str]:
    return {row["state"] for row in _look(service, rows_of)["requests"]}


def _look(service: ReleasedService, look: Callable[[Engine], T]) -> T:
    """Look into the books without migrating them."""
    engine = open_engine(service.configuration.database_url)
    try:
        return look(engine)
    finally:
        engine.dispose()


if __name__ == "__main__":
    main()
