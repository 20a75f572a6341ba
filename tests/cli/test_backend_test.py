"""`tarazu backend test`."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.backends.port import Fault
from tarazu.cli import backend_advice
from tarazu.cli.running import EXIT_INTERRUPTED
from tarazu.service.trying import NOT_LOADED, SECRET_MISSING
from tests.cli.commands import COMMAND, Commands, clean_environ
from tests.support.backend import Behaviour, Exchange, ScriptedBackend, answers, completion, replies, stalls
from tests.support.patience import PATIENCE_S

KEY = "sk-canary-7d31"
PROMPT = "prompt-canary-2b90"
CANARY = "canary-c55e"
"""What a server says with its refusals."""
BACKEND = """
[[models."{model}".backends]]
kind = "openai"
url = "{url}/{place}/v1"
model = "{place}"
"""


@pytest.fixture
def server() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as server:
        yield server


def sell(folder: Path, server: ScriptedBackend, settings: str = "", **models: tuple[str, ...]) -> None:
    """Sell models with backends at these places of the server."""
    text = ""
    for model, places in models.items():
        text += f'[models."{model}"]\ncredits = 1\n'
        for place in places:
            text += BACKEND.format(model=model, url=server.root, place=place) + settings
    (folder / "tarazu.toml").write_text(text)


def at_places(**behaviours: Behaviour) -> Behaviour:
    """Behave as the place in the path says."""

    async def behave(exchange: Exchange) -> None:
        await behaviours[exchange.received.path.split("/")[1]](exchange)

    return behave


def tried(tarazu: Commands, *arguments: str) -> dict[str, dict[str, Any]]:
    """Run the test; tell what came of each backend, by its name."""
    ran = tarazu("backend", "test", *arguments, "--json")
    assert ran.err == ""
    found = {each["backend"]: each for each in ran.json}
    assert ran.status == any(each["outcome"] not in {"ok", "disabled"} for each in found.values())
    return found


def test_each_backend_is_asked_once_and_told_of(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """Name, kind, server's model, outcome, seconds, tokens and the reply's beginning: a row each, in their order."""
    server.behaviour = at_places(
        good=replies("Hello [there].", {"prompt_tokens": 12, "completion_tokens": 3}), bad=answers(b"", status=500)
    )
    sell(folder, server, a=("good", "bad"), b=("good",))
    ran = tarazu("backend", "test")
    assert (ran.status, ran.err) == (1, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert [lines[row][:4] for row in (1, 2, 3)] == [
        ["a#1", "openai", "good", "ok"],
        ["a#2", "openai", "bad", "status"],
        ["b#1", "openai", "good", "ok"],
    ]
    assert lines[1][-4:] == ["12", "3", "Hello", "[there]."]
    assert float(lines[1][4]) >= 0
    assert lines[2][4] == "500"
    assert ran.out.splitlines()[4:] == ["", "a#2: The server, or a proxy before it, has failed. Look into its own log."]
    assert sorted(received.path.split("/")[1] for received in server.received) == ["bad", "good", "good"]


def test_one_model_is_tested_alone(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """The exit status is 0 when all its backends answer, whatever the others would."""
    server.behaviour = at_places(good=replies())
    sell(folder, server, a=("good",), b=("bad",))
    assert list(tried(tarazu, "a")) == ["a#1"]


def test_a_model_that_is_not_there_is_told_with_those_that_are(tarazu: Commands) -> None:
    """Nobody is asked."""
    ran = tarazu("backend", "test", "test/three")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "tarazu: There is no model test/three.\nThere are: test/one, test/two\n"


def test_the_request_is_as_those_of_callers(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """With the prompt that is given, and the model's own ceiling."""
    sell(folder, server, a=("good",))
    text = (folder / "tarazu.toml").read_text()
    (folder / "tarazu.toml").write_text(text.replace("credits = 1", "credits = 1\nmax_output_tokens = 77"))
    tried(tarazu, "a", "--prompt", f"  {PROMPT} ")
    (received,) = server.received
    assert received.body == {
        "model": "good",
        "messages": [{"role": "user", "content": PROMPT}],
        "max_tokens": 77,
        "stream": False,
    }


def test_no_books_are_opened(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """No credits are moved: there is no database, before and after."""
    (folder / "tarazu.db").unlink()
    sell(folder, server, a=("good",))
    tried(tarazu)
    assert [path.name for path in folder.iterdir()] == ["tarazu.toml"]


def test_all_are_asked_at_the_same_time(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """One that hangs holds up nobody: each is answered only when both are there."""
    sell(folder, server, a=("one", "two"))
    met: list[Exchange] = []

    async def behave(exchange: Exchange) -> None:
        met.append(exchange)
        if len(met) == 2:
            for each in met:
                await each.send(200, completion())
        else:
            await exchange.gone

    server.behaviour = behave
    assert [each["outcome"] for each in tried(tarazu).values()] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("settings", "options"),
    [("timeout_s = 0.2\n", ()), ("", ("--timeout", "0.2")), ("timeout_s = 99\n", ("--timeout", "0.2"))],
)
def test_a_backend_that_hangs_is_given_up(
    tarazu: Commands, folder: Path, server: ScriptedBackend, settings: str, options: tuple[str, ...]
) -> None:
    """After its own time-out, or the one that the option names."""
    server.behaviour = stalls
    sell(folder, server, settings, a=("slow",))
    each = tried(tarazu, *options)["a#1"]
    assert each["outcome"] == "timeout"
    assert "in 0.2 s" in each["advice"]


@pytest.mark.parametrize("timeout", ["0", "-1", "601", "nan"])
def test_a_time_out_that_no_backend_can_have_is_refused(tarazu: Commands, timeout: str) -> None:
    """As in the configuration."""
    ran = tarazu("backend", "test", "--timeout", timeout)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("tarazu: --timeout: expected a number of seconds above 0, at most 600, got ")


@pytest.mark.parametrize("prompt", ["", " \n", "x" * 24_001])
def test_a_prompt_that_no_caller_could_send_is_refused(tarazu: Commands, prompt: str) -> None:
    """Nobody is asked."""
    ran = tarazu("backend", "test", "--prompt", prompt)
    assert (ran.status, ran.out, ran.err) == (2, "", "tarazu: --prompt: expected 1 to 24,000 characters.\n")


@pytest.mark.parametrize(
    ("behaviour", "outcome", "advice"),
    [
        (answers(b"", status=401), "key_refused", "Check the environment variable CANARY_KEY"),
        (answers(b'{"error": {"code": "insufficient_quota"}}', status=429), "key_refused", "billing of its account"),
        (answers(b"", status=404), "status", "/at/v1, and model, at."),
        (answers(b"", status=302, location="https://example.com"), "status", "perhaps it wants https"),
        (answers(b"", status=503), "status", "Look into its own log"),
        (answers(b"", status=409), "status", "did not take the request"),
        (answers(b"", status=429), "busy", "Try again later"),
        (answers(b"<html>"), "invalid_reply", "Check kind and url"),
        (answers(b"", status=400), "request_refused", "Check model and max_output_tokens"),
        (answers(b'{"error": {"code": "unsupported_value"}}', status=400), "request_refused", "into omit"),
        (answers(b'{"error": {"code": "content_filter"}}', status=400), "refusal", "another --prompt"),
    ],
)
def test_each_fault_comes_with_the_next_step(
    tarazu: Commands,
    folder: Path,
    server: ScriptedBackend,
    monkeypatch: pytest.MonkeyPatch,
    behaviour: Behaviour,
    outcome: str,
    advice: str,
) -> None:
    """In one line, under the table and in the document."""
    monkeypatch.setenv("CANARY_KEY", KEY)
    server.behaviour = behaviour
    sell(folder, server, 'api_key_env = "CANARY_KEY"\n', a=("at",))
    each = tried(tarazu)["a#1"]
    assert each["outcome"] == outcome
    assert advice in each["advice"]
    assert f"a#1: {each['advice']}" in tarazu("backend", "test").out.splitlines()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        ('api_key_file = "key"\n', "Check what is in the file that api_key_file names."),
        ('headers_env = { "X-Gateway-Key" = "CANARY_KEY" }\n', "It does not take the secrets that headers_env names."),
        ("", "It wants a key."),
    ],
)
def test_a_key_that_is_refused_is_told_with_its_place(
    tarazu: Commands,
    folder: Path,
    server: ScriptedBackend,
    monkeypatch: pytest.MonkeyPatch,
    settings: str,
    advice: str,
) -> None:
    """The operator is sent where it is, or to where one belongs."""
    monkeypatch.setenv("CANARY_KEY", KEY)
    (folder / "key").write_text(KEY)
    server.behaviour = answers(b"", status=403)
    sell(folder, server, settings, a=("at",))
    assert advice in tried(tarazu)["a#1"]["advice"]


def test_every_outcome_that_is_a_failure_has_its_advice() -> None:
    """A new fault must come with the next step."""
    with_own = {Fault.KEY_REFUSED.word, Fault.STATUS.word}
    assert set(backend_advice._STEPS) | with_own == {*(fault.word for fault in Fault), SECRET_MISSING, NOT_LOADED}


def test_a_server_that_is_down_is_told_with_its_address(tarazu: Commands) -> None:
    """The catalogue of these tests has its servers at a port where nobody listens."""
    each = tried(tarazu, "test/one")["test/one#1"]
    assert each["outcome"] == "unreachable"
    assert each["advice"].startswith(
        "Is the server up, and can this machine reach it? Check url, http://127.0.0.1:9/v1,"
    )
    assert (each["reply"], each["prompt_tokens"], each["load_s"]) == (None, None, None)


def test_a_missing_key_holds_up_only_its_own_backend(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """It is told which variable to set; the others are asked."""
    sell(folder, server, 'api_key_env = "NO_SUCH_KEY"\n', a=("at",))
    text = (folder / "tarazu.toml").read_text() + BACKEND.format(model="a", url=server.root, place="two")
    (folder / "tarazu.toml").write_text(text)
    found = tried(tarazu)
    assert [each["outcome"] for each in found.values()] == ["secret_missing", "ok"]
    assert found["a#1"]["advice"].startswith("Its secret is not there: the environment variable NO_SUCH_KEY is not set")
    assert [received.body["model"] for received in server.received] == ["two"]


def test_a_backend_that_is_disabled_is_not_asked(tarazu: Commands, folder: Path, server: ScriptedBackend) -> None:
    """That is no failure."""
    sell(folder, server, "enabled = false\n", a=("at",))
    assert tried(tarazu)["a#1"]["outcome"] == "disabled"
    assert server.received == []


def test_a_local_model_is_loaded_for_the_test(tarazu: Commands, folder: Path) -> None:
    """How long that took is told apart from the reply; the process ends with it."""
    (folder / "tarazu.toml").write_text(
        '[models.small]\ncredits = 1\nmax_output_tokens = 8\n[[models.small.backends]]\nkind = "local"\n'
    )
    each = tried(tarazu)["small#1"]
    assert each["outcome"] == "ok"
    assert each["load_s"] > 0
    assert each["seconds"] > 0
    assert each["reply"]
    commands = [path.read_bytes() for task in Path("/proc/self/task").iterdir() for path in _children(task)]
    assert [command for command in commands if b"local_server" in command] == []
    assert tarazu("backend", "test").out.splitlines()[1].split()[:4] == ["small#1", "local", "embedded", "ok"]


def _children(task: Path) -> list[Path]:
    return [Path(f"/proc/{child}/cmdline") for child in (task / "children").read_text().split()]


def test_a_local_model_that_cannot_be_loaded_is_told(tarazu: Commands, folder: Path) -> None:
    """With the reason, and without a line of the log."""
    (folder / "broken.gguf").write_bytes(b"GGUF and no more")
    (folder / "tarazu.toml").write_text(
        '[models.small]\ncredits = 1\n[[models.small.backends]]\nkind = "local"\nmodel = "broken.gguf"\n'
    )
    each = tried(tarazu)["small#1"]
    assert each["outcome"] == "not_loaded"
    assert "broken.gguf cannot be started" in each["advice"]


def test_ctrl_c_ends_it_at_once(folder: Path, server: ScriptedBackend) -> None:
    """Whatever hangs, a server as well as a model that is being loaded."""
    server.behaviour = stalls
    sell(folder, server, a=("slow",))
    with (folder / "tarazu.toml").open("a") as file:
        file.write('[[models."a".backends]]\nkind = "local"\n')
    with subprocess.Popen(
        [COMMAND, "backend", "test"], cwd=folder, env=clean_environ(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        server.wait_for_requests(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (EXIT_INTERRUPTED, b"", b"")


def test_nothing_secret_is_printed(
    tarazu: Commands, folder: Path, server: ScriptedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key, no prompt, nothing that a refusal says, and of a reply no more than its beginning, in one line."""
    monkeypatch.setenv("CANARY_KEY", KEY)
    refusal = json.dumps({"error": {"message": CANARY, "code": CANARY}}).encode()
    server.behaviour = at_places(
        bad=answers(refusal, status=500),
        refused=answers(refusal, status=401),
        good=replies(f"one\n\x1b[2Jtwo {'x' * 40}{CANARY}"),
    )
    sell(folder, server, 'api_key_env = "CANARY_KEY"\n', a=("bad", "refused", "good"))
    printed = ""
    for options in ((), ("--json",)):
        ran = tarazu("backend", "test", "--prompt", PROMPT, *options)
        printed += ran.out + ran.err
    assert {received.headers["authorization"] for received in server.received} == {f"Bearer {KEY}"}
    assert "xxx…" in printed
    for secret in (KEY, PROMPT, CANARY, "\x1b"):
        assert secret not in printed
