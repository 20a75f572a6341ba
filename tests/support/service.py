"""The service as its users meet it: `tarazu serve` in a process of its own, asked over real HTTP."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from msgspec import Struct
from sqlalchemy import Engine

from tarazu.cli.clock import system_clock
from tarazu.domain.accounts import Account, AccountStatus
from tarazu.domain.calendar import Clock
from tarazu.service.auditing import audit_books
from tarazu.service.books import open_books
from tarazu.service.configuration import Configuration, load
from tarazu.service.provisioning import Provisioning
from tests.support import forked
from tests.support.left_behind import end_process_with_us
from tests.support.patience import PATIENCE_S
from tests.support.processes import workers

POLL_S = 0.02
CHAT = "/api/v1/chat/completions"
MODELS = "/api/v1/models"
USAGE = "/api/v1/usage"

CATALOGUE = """
[billing]
default_model = "test/one"

[payg]
requests_per_minute = 500
models = ["test/one", "test/two"]

[plans.basic]
monthly_credits = 10
requests_per_minute = 1000
models = ["test/one", "test/two", "test/free", "odd/a:b.c-1/x"]

[plans.large]
monthly_credits = 1000000
requests_per_minute = 100000

[plans.three]
monthly_credits = 3
requests_per_minute = 100000

[plans.narrow]
monthly_credits = 1000
requests_per_minute = 3

[models."test/one"]
display_name = "Test One"
provider = "testers"
description = "Answers for one credit."
credits = 1
payg_amount = 150
capabilities = ["chat", "reasoning"]
timeout_s = 5
[[models."test/one".backends]]
kind = "openai"
url = "BACKEND"
model = "backend-name"
api_key_env = "BACKEND_KEY"

[models."test/two"]
credits = 2
payg_amount = 300
timeout_s = 5
[[models."test/two".backends]]
kind = "openai"
url = "BACKEND"
model = "two"

[models."test/free"]
credits = 0
timeout_s = 5
[[models."test/free".backends]]
kind = "openai"
url = "BACKEND"
model = "free"

[models."test/dear"]
credits = 2000000
timeout_s = 5
[[models."test/dear".backends]]
kind = "openai"
url = "BACKEND"
model = "dear"

[models."test/hasty"]
credits = 1
timeout_s = 0.3
max_output_tokens = 16
[[models."test/hasty".backends]]
kind = "openai"
url = "BACKEND"
model = "hasty"

[models."odd/a:b.c-1/x"]
capabilities = ["json_output"]
credits = 1
timeout_s = 5
[[models."odd/a:b.c-1/x".backends]]
kind = "openai"
url = "BACKEND"
model = "odd"
"""
"""Plans and models for tests; BACKEND stands for the scripted backend's address."""

PATIENT = CATALOGUE.replace("timeout_s = 5", "timeout_s = 60")
"""The same, where a request waits for what may take a busy machine a while."""

BACKEND_KEY = "sk-backend-canary-5f0c"
"""The credential of the model servers in tests; it must not appear in any output."""


class Answer(Struct, frozen=True):
    """One HTTP answer; header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes
    cookies: tuple[str, ...] = ()
    """Each Set-Cookie, in their order."""

    @classmethod
    def of(cls, response: http.client.HTTPResponse) -> "Answer":
        """Read a response to its end."""
        headers = {name.lower(): value for name, value in response.getheaders()}
        cookies = tuple(response.headers.get_all("set-cookie", ()))
        return cls(response.status, headers, response.read(), cookies)

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a domain error."""
        code: str = self.json["error"]["code"]
        return code

    @property
    def text(self) -> str:
        """The reply of the model."""
        text: str = self.json["choices"][0]["message"]["content"]
        return text


class Customer(Struct, frozen=True):
    """An account with one key; `secret` is the whole key."""

    account_id: str
    key_id: str
    secret: str

    @property
    def bearer(self) -> str:
        """The Authorization header."""
        return f"Bearer {self.secret}"


class Asking(ABC):
    """Ways to ask a service, over connections that a subclass makes."""

    @abstractmethod
    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """Send one request as it is."""

    def get(self, path: str, customer: Customer | None = None) -> Answer:
        """GET with the customer's key."""
        return self.request("GET", path, headers=_bearer(customer))

    def post(self, customer: Customer | None, body: object, **headers: str) -> Answer:
        """POST a JSON body to /chat/completions with the customer's key; `x_name` becomes the header X-Name."""
        payload = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **_bearer(customer)}
        sent.update({name.replace("_", "-"): value for name, value in headers.items()})
        return self.request("POST", CHAT, payload, sent)

    def chat(self, customer: Customer, prompt: str = "Hello", **members: object) -> Answer:
        """Ask for a completion."""
        return self.post(customer, {"prompt": prompt, **members})


class RunningService(Asking):
    """`tarazu serve` on a free port, with books of its own in `folder`.

    `catalogue` is the text of tarazu.toml without [server] and [database]. Logs are in `log`. `clock` is what the
    process tells the time by, for who looks into its books. With `is_forked` the process is forked from one that has
    imported what it needs.
    """

    process: "subprocess.Popen[bytes] | forked.Forked"

    def __init__(
        self,
        folder: Path,
        backend_url: str,
        *,
        catalogue: str = CATALOGUE,
        server: str = "",
        database_url: str | None = None,
        environ: Mapping[str, str] | None = None,
        clock: Clock = system_clock,
    ) -> None:
        self.is_forked = False
        self.port = free_port()
        self.folder = folder
        self.config = folder / "tarazu.toml"
        self.log = folder / "serve.log"
        self.config.write_text(
            f"[server]\nport = {self.port}\n{server}\n"
            f'[database]\nurl = "{database_url or f"sqlite:///{folder}/tarazu.db"}"\n'
            + re.sub(r'"BACKEND(?=["/])', f'"{backend_url}', catalogue)
        )
        self.environ = {**os.environ, "BACKEND_KEY": BACKEND_KEY, **(environ or {})}
        self.configuration: Configuration = load(self.config, self.environ)
        self.clock = clock

    @cached_property
    def engine(self) -> Engine:
        """The books, for who looks into them; made or migrated now, where the process has not done it."""
        return open_books(self.configuration.database_url)

    @cached_property
    def provisioning(self) -> Provisioning:
        """What operators do to the books."""
        return Provisioning(self.engine, self.configuration.catalogue, self.clock, by="tests")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if "engine" in self.__dict__:
            self.engine.dispose()

    def start(self, stderr: int | None = None) -> None:
        """Start the process and wait until it answers and all its workers are there.

        Its standard error goes to its log, unless another is given.
        """
        self.process = self._forked() if self.is_forked and stderr is None else self._begun(stderr)
        end_process_with_us(self.process.pid)
        until = time.monotonic() + PATIENCE_S
        while not self._answers() or len(workers(self)) < self.configuration.server.workers:
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(POLL_S)

    def _forked(self) -> forked.Forked:
        output = forked.Output(self.log, self.log)
        return forked.begin(("serve", "--config", str(self.config)), self.environ, output, cwd=self.folder)

    def _begun(self, stderr: int | None) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "tarazu", "serve", "--config", str(self.config)],
                stdout=log,
                stderr=log if stderr is None else stderr,
                stdin=subprocess.DEVNULL,
                env=self.environ,
                cwd=self.folder,
            )

    def stop(self) -> int:
        """Stop the process as an operator does, and wait for its end."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def kill(self) -> None:
        """End the process and its workers as a power cut does."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.kill()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        self.process.wait(PATIENCE_S)

    def customer(
        self,
        plan: str | None = "large",
        *,
        balance: int = 0,
        status: AccountStatus = AccountStatus.ACTIVE,
        models: Sequence[str] | None = None,
        limit_per_minute: int | None = None,
    ) -> Customer:
        """Open an account with a key, straight in the books."""
        account = self.provisioning.create_account(name="Test", plan=plan, status=status)
        if balance:
            self.provisioning.add_credit(account.id, balance, reference=f"start of {account.id}")
        issued = self.provisioning.create_key(
            account.id, name="test key", models=models, limit_per_minute=limit_per_minute
        )
        return Customer(account.id, issued.key.id, issued.secret)

    def another_key(self, customer: Customer, **settings: Any) -> Customer:
        """Issue one more key of the same account."""
        issued = self.provisioning.create_key(customer.account_id, name="another key", **settings)
        return Customer(customer.account_id, issued.key.id, issued.secret)

    def account(self, customer: Customer) -> Account:
        """Read the account from the books."""
        return self.provisioning.account(customer.account_id)

    def request(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    ) -> Answer:
        """Send one request as it is, over a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.connect()
            return send(connection, method, path, body, headers)
        finally:
            connection.close()

    def logged(self, event: str, *, since: int = 0, least: int = 1) -> list[dict[str, Any]]:
        """Wait until so many lines of an event are in the log, behind `since` characters; read them."""
        until = time.monotonic() + PATIENCE_S
        while True:
            text = self.log.read_text()[since:].rpartition("\n")[0]
            lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
            found = [line for line in lines if line["event"] == event]
            if len(found) >= least:
                return found
            assert time.monotonic() < until, text
            time.sleep(POLL_S)

    def run(self, *arguments: str, config: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """Run a tarazu command on the same configuration, or on another."""
        return forked.run((*arguments, "--config", str(config or self.config)), self.environ)

    def json(self, *arguments: str) -> Any:
        """Run a tarazu command that must work, with --json; answer with what it prints."""
        ran = self.run(*arguments, "--json")
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def _answers(self) -> bool:
        try:
            return self.request("GET", "/health").status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False


def send(
    connection: http.client.HTTPConnection,
    method: str,
    path: str,
    body: bytes | str | None = None,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
) -> Answer:
    """Send one request as it is over a connection, and read its answer. A Host that is given is the only one."""
    named = [*headers.items()] if isinstance(headers, Mapping) else headers
    has_host = any(name.lower() == "host" for name, _ in named)
    connection.putrequest(method, path, skip_host=has_host, skip_accept_encoding=True)
    for name, value in named:
        connection.putheader(name, value)
    payload = body.encode() if isinstance(body, str) else body
    if payload is not None:
        connection.putheader("Content-Length", str(len(payload)))
    with suppress(BrokenPipeError, ConnectionResetError):  # the answer may come before all of the body is sent
        connection.endheaders(payload)
    return Answer.of(connection.getresponse())


def _bearer(customer: Customer | None) -> dict[str, str]:
    return {} if customer is None else {"Authorization": customer.bearer}


@contextmanager
def checked(service: RunningService) -> Iterator[RunningService]:
    """Run a forked service; at the end its books must balance, and nothing unforeseen have happened."""
    service.is_forked = True
    with service as running:
        yield running
        assert audit_books(running.engine, running.clock).differences == ()
        log = running.log.read_text()
        for fault in ("request_failed", "unhandled", "worker_failed", "AssertionError", "Traceback"):
            assert fault not in log, log


def events(service: RunningService, name: str) -> list[dict[str, Any]]:
    """Read the lines of the log about one kind of event."""
    lines = [line for line in service.log.read_text().splitlines() if line.startswith("{")]
    return [event for event in map(json.loads, lines) if event["event"] == name]


def free_port() -> int:
    """Find a port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
