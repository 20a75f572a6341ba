"""`tarazu serve`: what it says and does around the serving itself."""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

import pytest
from msgspec.structs import replace

from tarazu.cli import serve
from tarazu.cli.running import run
from tarazu.domain.calendar import Clock
from tarazu.domain.keys import parse
from tarazu.service import serving
from tarazu.service.configuration import Configuration, ServerSettings
from tarazu.service.serving import ServingError
from tarazu.service.shortages import NO_PROCESSES
from tests.cli.commands import COMMAND, Commands, clean_environ, run_process
from tests.support.patience import PATIENCE_S
from tests.support.rows import rows

URL = "http://127.0.0.1:8080"
KEY = re.compile(r"trz_\w{50}")
LINK = re.compile(rf"^{URL}/panel/invitation/\w{{43}}$", re.MULTILINE)
LAST_LINE = "Stop the service with Ctrl-C.\n"


class Served:
    """Stands for the serving: says at once that it is ready, and keeps what it was told to serve."""

    def __init__(self) -> None:
        self.settings: ServerSettings | None = None
        self.status = 0
        self.public_url: str | None = None
        self.error: ServingError | None = None

    def __call__(
        self, _read: Configuration, server: ServerSettings, _clock: Clock, *, on_ready: Callable[[ServerSettings], None]
    ) -> int:
        """Take the place of `tarazu.service.serving.serve`."""
        self.settings = server
        if self.error is not None:
            raise self.error
        on_ready(replace(server, port=8080, public_url=self.public_url))
        return self.status


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    """Serve nothing, at once."""
    served = Served()
    monkeypatch.setattr(serving, "serve", served)
    return served


@pytest.fixture
def demo(tarazu: Commands, folder: Path) -> Commands:
    """Run commands in a folder without a configuration, where the demo catalogue is in force."""
    (folder / "tarazu.toml").unlink()
    return tarazu


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("output", ["full", "closed", "left"])
def test_a_greeting_that_nobody_reads_is_no_failure(
    tarazu: Commands, served: Served, monkeypatch: pytest.MonkeyPatch, output: str, status: int
) -> None:
    """The service runs without it, and its own end tells the exit status."""
    served.status = status
    assert tarazu("account", "list").status == 0  # all is loaded
    reader, writer = os.pipe()
    os.close(reader)
    opened = {
        "full": lambda: open("/dev/full", "w"),  # noqa: PTH123, SIM115 - closed below, as the others
        "closed": lambda: open(os.open(os.devnull, os.O_RDONLY), "w"),  # noqa: PTH123, SIM115 - as `prepare_streams` has it
        "left": lambda: open(os.dup(writer), "w"),  # noqa: PTH123, SIM115 - as above
    }[output]()
    os.close(writer)
    with opened, monkeypatch.context() as unread:
        unread.setattr(sys, "stdout", opened)
        assert run(["serve"]) == status


@pytest.mark.usefixtures("served")
def test_the_demo_makes_an_account_and_shows_its_key(demo: Commands) -> None:
    """The first start on the demo catalogue makes the account Demo on the plan free, and prints its key."""
    ran = demo("serve")
    assert (ran.status, ran.err) == (0, "")
    (account,) = demo.json("account", "list")
    assert (account["name"], account["plan"], account["status"]) == ("Demo", "free", "active")
    (key,) = demo.json("key", "list", account["id"])
    presented = parse(ran.out.split("shown only this once:\n")[1].split("\n")[0])
    assert presented is not None
    assert (presented.id, key["name"], key["state"]) == (key["id"], "demo", "active")


@pytest.mark.usefixtures("served")
def test_the_demo_prints_lines_to_paste(demo: Commands) -> None:
    """The banner has the address, one curl line, a program for the OpenAI SDK, the chat command and the docs."""
    out = demo("serve").out
    key = KEY.findall(out)[0]
    (curl,) = (line for line in out.splitlines() if line.startswith("curl "))
    assert shlex.split(curl) == [
        "curl",
        f"{URL}/api/v1/chat/completions",
        "-H",
        f"Authorization: Bearer {key}",
        "-H",
        "Content-Type: application/json",
        "-d",
        '{"prompt":"What is the capital of France?"}',
    ]
    program = out[out.index("from openai") : out.index("print(reply") + len("print(reply.choices[0].message.content)")]
    compile(program, "banner", "exec")
    assert f'client = OpenAI(base_url="{URL}/api/v1", api_key="{key}")' in program
    assert 'model="tarazu/smollm2"' in program
    assert out.startswith(f"Tarazu is ready at {URL}\n")
    assert re.search(r"^\S+ chat$", out, re.MULTILINE)
    assert f"{URL}/docs" in out
    assert set(KEY.findall(out)) == {key}


@pytest.mark.usefixtures("served")
def test_a_later_start_of_the_demo_shows_no_key(demo: Commands) -> None:
    """From the second start on the banner says how to make another key of the demo account; none is made."""
    demo("serve")
    out = demo("serve").out
    (account,) = demo.json("account", "list")
    assert KEY.search(out) is None
    assert out.startswith(f"Tarazu is ready at {URL}\n")
    assert re.search(rf"^\S+ key create {account['id']} --name NAME$", out, re.MULTILINE)
    assert len(demo.json("key", "list", account["id"])) == 1


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("is_demo", [True, False], ids=["demo", "configured"])
def test_the_pages_and_the_first_operator_are_named_at_each_start(
    tarazu: Commands, folder: Path, *, is_demo: bool
) -> None:
    """The command that makes the first operator is there until there is one."""
    if is_demo:
        (folder / "tarazu.toml").unlink()
    command = re.compile(r"^\S+ admin operator create --email EMAIL --name NAME$", re.MULTILINE)
    for _ in range(2):
        out = tarazu("serve").out
        assert re.search(rf"\b{URL}/panel$", out, re.MULTILINE)
        assert re.search(rf"\b{URL}/admin$", out, re.MULTILINE)
        assert command.search(out)
    tarazu("admin", "operator", "create", "--email", "grace@example.com", "--name", "Grace")
    out = tarazu("serve").out
    assert f"{URL}/admin\n" in out
    assert not command.search(out)


@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - nothing is served
def test_the_first_start_of_the_demo_leads_into_its_panel(
    demo: Commands, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """By a link that is printed that once, and only where no other machine reaches it."""
    monkeypatch.setattr(serve, "_is_watched", lambda: True)
    first, second = demo("serve", "--host", host).out, demo("serve", "--host", host).out
    assert len(LINK.findall(first)) == (1 if host == "127.0.0.1" else 0)
    assert LINK.findall(second) == []
    (account,) = demo.json("account", "list")
    assert demo.json("account", "invite", account["id"])["link"]  # it has an email: another link can be made


@pytest.mark.usefixtures("served")
def test_the_key_is_in_no_file(demo: Commands, folder: Path) -> None:
    """The demo's key is printed and nowhere kept: its secret is in no file of the folder."""
    key = KEY.findall(demo("serve").out)[0]
    secret = key[len("trz_") + 12 : -6].encode()
    assert not any(secret in file.read_bytes() for file in folder.iterdir())


@rows("decisions.added_by_this_project.15")
@pytest.mark.usefixtures("served")
@pytest.mark.parametrize("is_watched", [False, True], ids=["log", "terminal"])
def test_no_key_that_other_machines_could_use_ends_in_a_log(
    demo: Commands, monkeypatch: pytest.MonkeyPatch, *, is_watched: bool
) -> None:
    """A terminal shows it; what is printed to a pipe or a file is kept, and says how to issue one."""
    monkeypatch.setattr(serve, "_is_watched", lambda: is_watched)
    out = demo("serve", "--host", "0.0.0.0").out  # noqa: S104 - nothing is served
    (account,) = demo.json("account", "list")
    shown = KEY.search(out) is not None
    assert (shown, len(demo.json("key", "list", account["id"]))) == (is_watched, int(is_watched))
    assert is_watched or re.search(rf"^\S+ key create {account['id']} --name NAME$", out, re.MULTILINE)


@pytest.mark.usefixtures("served")
def test_the_demo_says_that_it_is_one(demo: Commands) -> None:
    """A service whose configuration was forgotten tells so, at each start."""
    for _ in range(2):
        assert "This is the demo: there is no tarazu.toml here" in demo("serve").out


def test_where_it_listens_is_told_beside_a_public_address(tarazu: Commands, served: Served) -> None:
    """The address that callers use need not lead here yet."""
    served.public_url = "https://ai.example.com"
    out = tarazu("serve").out
    assert out.startswith(f"Tarazu is ready at https://ai.example.com\n\nIt listens at {URL}\n")
    served.public_url = None
    assert "It listens" not in tarazu("serve").out


@pytest.mark.parametrize("host", ["127.0.0.1:80", "localhost:8080", "fe80::1%lo", "[::1]", "1:2"])
def test_a_host_with_a_port_is_refused_in_words(tarazu: Commands, served: Served, folder: Path, host: str) -> None:
    """As an option and in the file, by serve and by check; nothing is started."""
    words = "without"
    assert words in tarazu("serve", "--host", host).err
    (folder / "tarazu.toml").write_text(f'[server]\nhost = "{host}"\n' + (folder / "tarazu.toml").read_text())
    for command in ("serve", "check"):
        ran = tarazu(command)
        assert ran.status == 1
        assert "server.host: expected" in ran.err
        assert words in ran.err
    assert served.settings is None


def test_a_demo_that_cannot_start_makes_no_key(demo: Commands, served: Served) -> None:
    """Where the port is taken no key is made that nobody would see; the next start shows it."""
    served.error = ServingError("Cannot listen on 127.0.0.1:8080: Address already in use. Choose another.")
    ran = demo("serve")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "tarazu: Cannot listen on 127.0.0.1:8080: Address already in use. Choose another.\n"
    served.error = None
    assert KEY.search(demo("serve").out)


def test_another_address_is_in_every_line(demo: Commands, served: Served) -> None:
    """The banner is about the address that the service has, and the chat command goes there."""
    served.public_url = "https://ai.example.com/"
    out = demo("serve", "--port", "9000").out
    assert "127.0.0.1" not in out
    assert "curl https://ai.example.com/api/v1/chat/completions" in out
    assert re.search(r"^\S+ chat --url https://ai.example.com$", out, re.MULTILINE)


@pytest.mark.usefixtures("served")
def test_a_configured_service_makes_no_account(tarazu: Commands) -> None:
    """With a configuration of one's own nothing is made; the banner says how to open an account and issue a key."""
    out = tarazu("serve", "--config", "tarazu.toml").out
    assert KEY.search(out) is None
    assert tarazu.json("account", "list") == []
    assert re.search(r"^\S+ account create --name NAME --plan PLAN --config tarazu.toml$", out, re.MULTILINE)
    tarazu.account()
    out = tarazu("serve").out
    assert re.search(r"^\S+ key create ACCOUNT --name NAME$", out, re.MULTILINE)
    assert "account create" not in out


def test_options_win_over_the_configuration(tarazu: Commands, served: Served) -> None:
    """--host, --port and --workers replace what the configuration says; what is not named stays."""
    served.status = 3
    assert tarazu("serve", "--host", "0.0.0.0", "--port", "0", "--workers", "4").status == 3  # noqa: S104 - not served
    assert served.settings is not None
    assert (served.settings.host, served.settings.port, served.settings.workers) == ("0.0.0.0", 0, 4)  # noqa: S104
    tarazu("serve")
    assert (served.settings.host, served.settings.port, served.settings.workers) == ("127.0.0.1", 8080, 1)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--port", "65536", "--port: expected a port from 0 (any free one) to 65535, got 65536."),
        ("--workers", "0", "--workers: expected an integer from 1 to 256, got 0."),
        ("--host", "a b", "--host: expected a host name or an address without port, got 'a b'."),
        (
            "--port",
            "http",
            "Invalid value for --port: expected a whole number, got 'http'\nSee how it is used: tarazu serve --help",
        ),
    ],
)
def test_an_option_out_of_bounds_is_a_usage_error(
    tarazu: Commands, served: Served, option: str, value: str, message: str
) -> None:
    """What the configuration could not say the options cannot either; nothing is started."""
    ran = tarazu("serve", option, value)
    assert (ran.status, ran.out, ran.err) == (2, "", f"tarazu: {message}\n")
    assert served.settings is None


def test_books_that_cannot_be_used_are_told_before_the_start(tarazu: Commands, served: Served, folder: Path) -> None:
    """A database that cannot be opened ends the command before anything is served."""
    configured = '[database]\nurl = "sqlite:///missing/tarazu.db"\n' + (folder / "tarazu.toml").read_text()
    (folder / "tarazu.toml").write_text(configured)
    ran = tarazu("serve")
    assert (ran.status, ran.out) == (1, "")
    place = folder / "missing" / "tarazu.db"
    assert ran.err.startswith(f"tarazu: The books cannot be made at {place}: there is no folder {place.parent}.\n")
    assert served.settings is None


def test_the_real_service_says_that_it_is_ready_and_stops_when_told(tarazu: Commands, folder: Path) -> None:
    """The command as a process: the banner is on standard output once requests are answered, and SIGTERM ends it."""
    tarazu.account()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [COMMAND, "serve", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=log,
            stdin=subprocess.DEVNULL,
            cwd=folder,
            env=clean_environ(),
            text=True,
        )
    assert process.stdout is not None
    try:
        banner = list(takewhile(lambda line: line != LAST_LINE, process.stdout))
        assert banner, (folder / "log").read_text()
        ready = re.fullmatch(r"Tarazu is ready at http://127\.0\.0\.1:(\d+)\n", banner[0])
        assert ready
        socket.create_connection(("127.0.0.1", int(ready[1])), PATIENCE_S).close()
        second = subprocess.run(
            [COMMAND, "serve", "--port", ready[1]],
            capture_output=True,
            text=True,
            cwd=folder,
            env=clean_environ(),
            timeout=PATIENCE_S,
            check=False,
        )
        made = tarazu.json("admin", "operator", "create", "--email", "grace@example.com", "--name", "Grace")
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert made["link"].startswith(f"http://127.0.0.1:{ready[1]}/admin/invitation/")
    assert (second.returncode, second.stdout) == (1, "")
    assert f"\ntarazu: Cannot listen on 127.0.0.1:{ready[1]}: Address already in use." in f"\n{second.stderr}"


@pytest.mark.parametrize("limit", [1, 4, 6, 8])
def test_without_room_for_its_processes_and_threads_it_says_so(tarazu: Commands, folder: Path, limit: int) -> None:
    """After the lines of its log, in one line with the next step, wherever the start meets the limit."""
    tarazu.account()
    ran = run_process("serve", "--port", "0", folder=folder, through=_with_processes(limit))
    assert (ran.status, ran.out) == (1, "")
    *logged, last = ran.err.splitlines()
    assert all(json.loads(line)["event"] for line in logged)
    assert last == f"tarazu: {NO_PROCESSES}"


def _with_processes(limit: int) -> list[str]:
    """Begin a command line for a user who may have so many processes and threads. Root may have any number."""
    other = 50_000 + os.getpid() % 10_000  # has none but those of this test; a container may know no larger number
    rights = ["--inh-caps=+dac_override", "--ambient-caps=+dac_override", "--bounding-set=-all,+dac_override"]
    user = ["setpriv", f"--reuid={other}", f"--regid={other}", "--clear-groups", *rights] if os.geteuid() == 0 else []
    return [*user, "prlimit", f"--nproc={limit}:{limit}"]
