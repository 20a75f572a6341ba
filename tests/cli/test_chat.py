"""`tarazu chat` with a prompt: one reply."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu.cli.caller_key import KEY_FILE_BYTES_MAX
from tarazu.cli.chat import PROMPT_BYTES_MAX
from tests.cli.commands import COMMAND, Commands, Ran, clean_environ, run_process
from tests.cli.scripted_api import KEY, Answered, ScriptedApi, as_json, detailed, error, reply, scripted_api
from tests.support.backend import ScriptedBackend
from tests.support.patience import PATIENCE_S
from tests.support.service import RunningService

NO_KEY = "Set TARAZU_API_KEY, or name a file with --key-file."


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    """A server that answers as told."""
    with scripted_api() as api:
        yield api


@pytest.fixture
def chat(tarazu: Commands, api: ScriptedApi, monkeypatch: pytest.MonkeyPatch) -> Commands:
    """Run commands with a key and the address of the scripted server in the environment."""
    monkeypatch.setenv("TARAZU_URL", api.url)
    monkeypatch.setenv("TARAZU_API_KEY", KEY)
    return tarazu


def test_one_reply_and_what_it_cost(chat: Commands, api: ScriptedApi) -> None:
    """The reply is the command's result; what it cost is said beside, on standard error."""
    api.replies = [reply("Paris.")]
    ran = chat("chat", "What is the capital of France?")
    assert (ran.status, ran.out) == (0, "Paris.\n")
    assert ran.err == "test/one: 2 credits from the plan.\n"
    assert api.asked == [{"messages": [{"role": "user", "content": "What is the capital of France?"}]}]
    assert api.authorizations == {f"Bearer {KEY}"}
    assert api.paths == ["/api/v1/chat/completions"]


def test_model_and_system_go_along(chat: Commands, api: ScriptedApi) -> None:
    """--model is asked for, and --system comes first."""
    api.replies = [reply("ok", credits=1, billing_source="api_balance")]
    ran = chat("chat", "Hi", "--model", "a/b", "--system", "Be brief.")
    assert ran.err == "test/one: 1 credit from the balance.\n"
    assert api.asked == [
        {
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "model": "a/b",
        }
    ]


def test_json_is_the_completion(chat: Commands, api: ScriptedApi) -> None:
    """--json prints the completion as the API gave it."""
    api.replies = [reply("Paris.")]
    completion = chat.json("chat", "Hi")
    assert completion["choices"][0]["message"]["content"] == "Paris."
    assert completion["usage"]["credits"] == 2


@pytest.mark.parametrize("end", ["", "/", "/api/v1", "/api/v1/"])
def test_the_address_may_hold_the_path_of_the_api(chat: Commands, api: ScriptedApi, end: str) -> None:
    """--url takes the address with and without /api/v1, as an SDK's base_url has it."""
    api.replies = [reply("ok")]
    assert chat("chat", "Hi", "--url", api.url + end).status == 0
    assert api.paths == ["/api/v1/chat/completions"]


def test_a_reply_cannot_drive_the_terminal(chat: Commands, api: ScriptedApi) -> None:
    """Control characters in a reply are left out; lines, tabs, joiners and other scripts stay."""
    api.replies = [reply("a\x1b[2Jb\rc\x9bd\x07\n\tمی\u200cرود 🙂")]
    assert chat("chat", "Hi").out == "a[2Jbcd\n\tمی\u200cرود 🙂\n"


def test_standard_input_is_the_prompt(folder: Path, api: ScriptedApi) -> None:
    """`echo hi | tarazu chat` asks what stands on standard input."""
    api.replies = [reply("ok")]
    ran = ask(folder, api, stdin="سلام\nدنیا\n".encode())
    assert (ran.status, ran.out) == (0, "ok\n")
    assert api.asked[0]["messages"] == [{"role": "user", "content": "سلام\nدنیا\n"}]


@pytest.mark.parametrize(
    ("stdin", "problem"),
    [
        (b" \n", "The prompt is empty."),
        (b"\xff\xfe", "Standard input is not UTF-8 text."),
        (b"a" * (PROMPT_BYTES_MAX + 1), "Standard input has more than 1,048,576 bytes."),
    ],
)
def test_standard_input_that_cannot_be_asked(folder: Path, api: ScriptedApi, stdin: bytes, problem: str) -> None:
    """Nothing, bytes that are no text, and too much are usage errors; nothing is sent."""
    ran = ask(folder, api, stdin=stdin)
    assert (ran.status, ran.out, ran.err.splitlines()[0]) == (2, "", f"tarazu: {problem}")
    assert api.paths == []


def test_an_argument_that_is_no_text_is_refused(folder: Path, api: ScriptedApi) -> None:
    """Bytes of another encoding in the prompt are a usage error, not a traceback."""
    ran = subprocess.run(
        [str(COMMAND).encode(), b"chat", b"caf\xe9"],
        capture_output=True,
        cwd=folder,
        env=clean_environ(TARAZU_URL=api.url, TARAZU_API_KEY=KEY),
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr == b"tarazu: Argument 2 is no Unicode text.\nSend text in UTF-8.\n"


def test_the_key_comes_from_a_file(
    chat: Commands, api: ScriptedApi, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--key-file wins over the environment; white space around the key does not matter."""
    monkeypatch.setenv("TARAZU_API_KEY", "other")
    (folder / "key").write_text(f"  {KEY}\n")
    api.replies = [reply("ok")]
    assert chat("chat", "Hi", "--key-file", "key").status == 0
    assert api.authorizations == {f"Bearer {KEY}"}


def test_a_key_file_that_others_can_read_is_told(chat: Commands, api: ScriptedApi, folder: Path) -> None:
    """With the line that keeps them out, beside the reply."""
    (folder / "key").write_text(KEY)
    for mode, is_told in ((0o644, True), (0o600, False)):
        (folder / "key").chmod(mode)
        api.replies = [reply("ok")]
        ran = chat("chat", "Hi", "--key-file", "key")
        assert (ran.status, ran.out) == (0, "ok\n")
        assert ("Other users can read key. Keep them out with: chmod 600 key" in ran.err) == is_told


@pytest.mark.parametrize("text", ["", KEY[:-1], KEY[:-1] + "!", KEY[:-2] + KEY[-1] + KEY[-2], "\xff", "x" * 9_999])
def test_a_mistyped_key_is_told_before_it_is_sent(chat: Commands, api: ScriptedApi, folder: Path, text: str) -> None:
    """A key whose shape or checksum is wrong goes nowhere, and is not repeated in the error."""
    (folder / "key").write_text(text, "latin-1")
    ran = chat("chat", "Hi", "--key-file", "key")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("tarazu: There is no valid API key in key.")
    assert not text or text not in ran.err
    assert api.paths == []
    assert len(text) < KEY_FILE_BYTES_MAX or "x" * 99 not in ran.err


def test_a_key_file_that_cannot_be_read(chat: Commands) -> None:
    """A missing key file is told with the other ways to give a key."""
    ran = chat("chat", "Hi", "--key-file", "nowhere")
    assert ran.status == 1
    assert ran.err == f"tarazu: The key file nowhere cannot be read (No such file or directory).\n{NO_KEY}\n"


def test_without_a_terminal_nobody_is_asked_for_the_key(folder: Path, api: ScriptedApi) -> None:
    """With no key and no terminal to ask on the command ends, and does not take the prompt for the key."""
    ran = subprocess.run(
        [COMMAND, "chat"],
        input=f"{KEY}\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env=clean_environ(TARAZU_URL=api.url),
        start_new_session=True,  # takes the terminal away
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (1, "", f"tarazu: There is no API key.\n{NO_KEY}\n")
    assert api.paths == []


def test_there_is_no_option_for_the_key(chat: Commands) -> None:
    """The key cannot be an argument, where every process of the machine could read it."""
    ran = chat("chat", "Hi", "--key", KEY)
    assert (ran.status, ran.err.splitlines()[0]) == (2, "tarazu: Unknown option: --key. Did you mean --key-file?")


EXHAUSTED = {"period": "2026-03", "used": 999, "limit": 1_000, "cost": 5, "api_credit_balance": 2}
RATE = {"scope": "key", "limit_per_minute": 60, "resets_at": "2026-03-01T10:01:00Z"}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            error(401, "invalid_api_key"),
            "Check the key; the operator issues another with: tarazu key create ACCOUNT --name NAME",
        ),
        (error(402, "upgrade_required"), "The operator sets a plan with: tarazu account set ID --plan PLAN"),
        (
            detailed(402, "api_credits_exhausted", "Said by the server.", EXHAUSTED),
            "The request costs 5 credits; 999 of 1,000 are used in 2026-03, and the balance is 2.",
        ),
        (
            error(402, "api_credits_exhausted"),
            "The operator adds credits with: tarazu credit add ACCOUNT AMOUNT --reference REF",
        ),
        (error(403, "account_unavailable"), "The operator sees why with: tarazu account show ID"),
        (error(404, "model_not_found"), "In a conversation, /model lists the models of this key."),
        (error(413, "input_too_large"), "Send less; in a conversation, /new begins again without the history."),
        (
            detailed(429, "rate_limit_exceeded", "Said by the server.", RATE, retry_after="42"),
            "Try again in 42 s. The limit is 60 a minute.",
        ),
        (error(429, "rate_limit_exceeded", retry_after="soon"), "Try again later."),
        (error(502, "upstream_error"), "Try again in a moment; nothing was paid for this one."),
        (error(503, "system_stopped", retry_after="600"), "Try again in 600 s."),
        (error(418, "unheard_of"), None),
    ],
)
def test_a_refusal_is_told_with_advice(chat: Commands, api: ScriptedApi, answer: Answered, told: str | None) -> None:
    """An error of the API is its code and message on one line, then what to do; exit status 1."""
    api.replies = [answer]
    ran = chat("chat", "Hi")
    first, *advice = ran.err.splitlines()
    assert (ran.status, ran.out) == (1, "")
    assert first.split(": ", 2)[0::2] == ["tarazu", "Said by the server."]
    assert advice == ([] if told is None else [told])


def test_an_error_drives_no_terminal(chat: Commands, api: ScriptedApi) -> None:
    """Neither its code nor its message."""
    told = {"code": "unheard\x1b[1m", "message": "Send \x1b[1mJSON.", "details": {}}
    api.replies = [as_json(415, {"error": told})]
    ran = chat("chat", "Hi")
    assert (ran.status, ran.err) == (1, "tarazu: unheard[1m: Send [1mJSON.\n")


@pytest.mark.parametrize(
    "answer",
    [
        Answered(200, b"<html>"),
        Answered(200, b""),
        as_json(200, {"object": "chat.completion"}),
        as_json(500, {"detail": "x"}),
        as_json(500, {"error": "x"}),
        Answered(404, b"<html>"),
        Answered(302, b"", {"Location": "/"}),
    ],
)
def test_another_kind_of_server_is_told(chat: Commands, api: ScriptedApi, answer: Answered) -> None:
    """What answers in another form than the API's is told to be something else; the key follows no redirect."""
    api.replies = [answer]
    ran = chat("chat", "Hi")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"tarazu: {api.url} answers, but not as this API does (HTTP {answer.status}).\nCheck the address, --url.\n"
    )
    assert len(api.paths) == 1


def test_a_service_that_is_not_there_is_told(chat: Commands) -> None:
    """Where nobody listens the reason and two ways out are said."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        ran = chat("chat", "Hi", "--url", url)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == (
        f"tarazu: {url} cannot be reached (Connection refused).\n"
        "Is the service running? tarazu serve starts it; --url or TARAZU_URL names another address.\n"
    )


@pytest.mark.parametrize(
    "url", ["127.0.0.1:8080", "ftp://x", "http://", "http://a:b@c", "http://a/?q", "http://%zz", 'http://a"b']
)
def test_what_is_no_address_is_a_usage_error(chat: Commands, url: str) -> None:
    """A bad --url is told to be one; nothing is sent."""
    ran = chat("chat", "Hi", "--url", url)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("tarazu: --url: ")


@pytest.mark.parametrize("prompt", ["", " \n"])
def test_an_empty_prompt_is_a_usage_error(chat: Commands, prompt: str) -> None:
    """Nothing is asked when there is nothing to ask."""
    ran = chat("chat", prompt)
    assert (ran.status, ran.err.splitlines()[0]) == (2, "tarazu: The prompt is empty.")


def test_ctrl_c_while_waiting_is_quiet(folder: Path, api: ScriptedApi) -> None:
    """SIGINT ends the command at once with status 130 and no traceback, also when the server never answers."""
    api.go_on.clear()
    process = subprocess.Popen(
        [COMMAND, "chat", "Hi"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=clean_environ(TARAZU_URL=api.url, TARAZU_API_KEY=KEY),
    )
    try:
        assert api.waiting.wait(PATIENCE_S)
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"")


def test_the_real_service_replies(tmp_path: Path) -> None:
    """Against `tarazu serve` itself: the reply of its backend, the price, and an error of its own."""
    with ScriptedBackend() as backend, RunningService(tmp_path, backend.url) as service:
        customer = service.customer("three")
        environ = clean_environ(TARAZU_URL=f"http://127.0.0.1:{service.port}", TARAZU_API_KEY=customer.secret)
        first = run_process("chat", "Hi", "--model", "test/two", folder=tmp_path, environ=environ)
        second = run_process("chat", "Hi", "--model", "test/two", folder=tmp_path, environ=environ)
    assert (first.status, first.out, first.err) == (0, "Hello there.\n", "test/two: 2 credits from the plan.\n")
    problem, advice = second.err.splitlines()
    assert (second.status, second.out) == (1, "")
    assert problem.startswith("tarazu: api_credits_exhausted: ")
    assert advice.startswith("The request costs 2 credits; 2 of 3 are used in ")


def ask(folder: Path, api: ScriptedApi, *, stdin: bytes) -> Ran:
    """Run the command as a process, with a prompt on standard input."""
    return run_process(
        "chat", folder=folder, environ=clean_environ(TARAZU_URL=api.url, TARAZU_API_KEY=KEY), stdin=stdin
    )
