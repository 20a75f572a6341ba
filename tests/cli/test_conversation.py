"""`tarazu chat` without a prompt: a conversation on a real terminal."""

import re
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.cli.commands import COMMAND, clean_environ
from tests.cli.scripted_api import KEY, USAGE, ScriptedApi, as_json, detailed, error, reply, scripted_api
from tests.support.patience import PATIENCE_S

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of forkpty:DeprecationWarning")
"""The terminal's process is forked beside the scripted server's threads, and becomes another program at once."""

PROMPT = "you> "
LINES, COLUMNS = 40, 200
STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    """A server that answers as told."""
    with scripted_api() as api:
        yield api


class Terminal:
    """A person at a terminal, who waits for what is shown before typing on."""

    def __init__(self, folder: Path, api: ScriptedApi, *options: str, key: str | None = KEY) -> None:
        self._key = {} if key is None else {"TARAZU_API_KEY": key}
        self.process: pexpect.spawn[str] = pexpect.spawn(
            str(COMMAND),
            ["chat", *options],
            cwd=str(folder),
            env=clean_environ(TARAZU_URL=api.url, TERM="xterm", INPUTRC="/dev/null", COLUMNS=str(COLUMNS), **self._key),
            encoding="utf-8",
            timeout=PATIENCE_S,
            dimensions=(LINES, COLUMNS),
        )

    def wait(self, text: str = PROMPT) -> str:
        """Wait until the text is shown; answer with what came before it, without its styles."""
        self.process.expect_exact(text)
        before: str = STYLES.sub("", self.process.before or "").replace("\r", "")
        return before

    def say(self, text: str) -> str:
        """Type a line; answer with what is shown until the next prompt."""
        self.process.sendline(text)
        return self.wait()

    def end(self) -> int:
        """Wait for the end; answer with the exit status."""
        self.process.expect(pexpect.EOF)
        status: int = self.process.wait()
        return status

    def leave(self) -> None:
        """End as a person does, by Ctrl-D: a process that is killed cannot tell which of its lines were reached."""
        try:
            if self.process.isalive():
                self.process.sendeof()
                self.end()
        finally:
            self.process.close(force=True)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    """End the terminals that a test has opened."""
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.leave()


@pytest.fixture
def terminal(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> Terminal:
    """A conversation that has begun."""
    terminals.append(Terminal(folder, api))
    terminals[0].wait()
    return terminals[0]


def test_it_begins_with_where_one_is_and_what_is_left(
    folder: Path, api: ScriptedApi, terminals: list[Terminal]
) -> None:
    """Before the first turn the address, the key's name, what is left, and how to get help are shown."""
    terminals.append(Terminal(folder, api))
    assert terminals[0].wait().strip() == (
        f"{api.url}, key laptop. Left: 970 this month, 2,500 in the balance. /help lists the commands."
    )


def test_each_reply_shows_its_price_the_sum_and_what_is_left(terminal: Terminal, api: ScriptedApi) -> None:
    """A reply is followed by its credits, those of the conversation, and what GET /usage says is left."""
    api.replies = [reply("Hello."), reply("Again.", credits=5, billing_source="api_balance")]
    assert "Hello.\ntest/one: 2 credits from the plan. 2 in this conversation. Left: 970 this month" in terminal.say(
        "Hi"
    )
    assert "Again.\ntest/one: 5 credits from the balance. 7 in this conversation. Left:" in terminal.say("And?")
    terminal.process.sendline("/quit")
    terminal.wait("7 credits spent in this conversation.")
    assert terminal.end() == 0


def test_the_history_goes_along(terminal: Terminal, api: ScriptedApi) -> None:
    """Each turn is sent with all turns before it."""
    api.replies = [reply("Hello."), reply("Again.")]
    terminal.say("Hi")
    terminal.say("سلام")
    assert api.asked[1]["messages"] == [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "سلام"},
    ]


def test_new_begins_again_but_for_the_system_message(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """/new forgets what was said; --system and --model stay."""
    terminals.append(Terminal(folder, api, "--system", "Be brief.", "--model", "a/b"))
    terminals[0].wait()
    api.replies = [reply("Hello."), reply("Again.")]
    terminals[0].say("Hi")
    assert "A new conversation." in terminals[0].say("/new")
    terminals[0].say("Hi again")
    assert api.asked[1] == {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi again"}],
        "model": "a/b",
    }


def test_a_refused_turn_can_be_sent_again(terminal: Terminal, api: ScriptedApi) -> None:
    """A refusal shows code, message and when to retry; the conversation goes on, without the refused turn."""
    limits = {"scope": "key", "limit_per_minute": 3, "resets_at": "2026-03-01T10:01:00Z"}
    api.replies = [detailed(429, "rate_limit_exceeded", "Too many.", limits, retry_after="42"), reply("Hello.")]
    shown = terminal.say("Hi")
    assert "rate_limit_exceeded: Too many.\nTry again in 42 s. The limit is 3 a minute.\n" in shown
    assert "2 in this conversation" in terminal.say("Hi")
    assert api.asked[1]["messages"] == [{"role": "user", "content": "Hi"}]


def test_the_model_can_be_changed(terminal: Terminal, api: ScriptedApi) -> None:
    """/model lists the key's models with their prices, /model ID asks another from then on."""
    assert re.search(r"MODEL +NAME +CREDITS +STATUS\s+test/one +Test One +2 +available", terminal.say("/model"))
    assert "test/one is asked from now on." in terminal.say("/model test/one")
    api.replies = [error(404, "model_not_found", "No such model.")]
    assert "model_not_found: No such model." in terminal.say("Hi")
    assert api.asked[0]["model"] == "test/one"


def test_a_model_that_the_key_has_not_is_refused(terminal: Terminal, api: ScriptedApi) -> None:
    """A mistyped /model ID is told at once, and the one before is asked on."""
    shown = terminal.say("/model nope")
    assert "This key has no model nope.\n/model lists those that it has." in shown
    terminal.say("Hi")
    assert "model" not in api.asked[0]


def test_usage_is_shown_on_demand(terminal: Terminal) -> None:
    """/usage shows plan, period, quota, balance, the minute's limit and the key."""
    lines = [line.split() for line in terminal.say("/usage").splitlines()[1:]]
    assert [" ".join(line) for line in lines if line] == [
        "Plan basic",
        "Period 2026-03",
        "Used 30 of 1,000 credits, 970 left",
        "Balance 2,500 credits",
        "This minute 59 of 60 requests left",
        "Next minute 2026-03-01T10:01:00Z",
        "Key key_1 (laptop)",
    ]


def test_help_lists_the_commands(terminal: Terminal) -> None:
    """/help names every command, and so does a mistyped one lead to it; nothing is sent."""
    shown = terminal.say("/help")
    assert all(f"\n{command} " in shown for command in ("/new", "/model", "/usage", "/help", "/quit"))
    assert "There is no command /halp.\n/help lists the commands." in terminal.say("/halp me")
    assert "2 in this conversation" not in terminal.say("")


def test_what_is_left_may_be_unknown(terminal: Terminal, api: ScriptedApi) -> None:
    """A reply counts even when GET /usage fails after it."""
    api.replies = [reply("Hello.")]
    api.usage = error(503, "system_stopped")
    assert terminal.say("Hi").rstrip().endswith("2 in this conversation.")


def test_ctrl_c_stops_waiting(terminal: Terminal, api: ScriptedApi) -> None:
    """Ctrl-C while a reply is awaited leads back to the prompt; the turn does not join the history."""
    api.replies = [reply("Too late."), reply("Hello.")]
    api.go_on.clear()
    terminal.process.sendline("Hi")
    assert api.waiting.wait(PATIENCE_S)
    terminal.process.sendintr()
    assert "No longer waiting for the reply." in terminal.wait()
    api.go_on.set()
    terminal.say("Hi again")
    assert api.asked[1]["messages"] == [{"role": "user", "content": "Hi again"}]


@pytest.mark.parametrize("how", ["sendeof", "sendintr"])
def test_ctrl_d_and_ctrl_c_end_at_the_prompt(terminal: Terminal, how: str) -> None:
    """At the prompt both end the conversation as /quit does."""
    getattr(terminal.process, how)()
    terminal.wait("0 credits spent in this conversation.")
    assert terminal.end() == 0


def test_lines_come_back_from_memory_and_from_no_file(terminal: Terminal, folder: Path) -> None:
    """The arrow brings back what was typed, which is kept in no file."""
    terminal.say("/helm")
    terminal.process.send("\x1b[A\r")
    assert "There is no command /helm." in terminal.wait()
    terminal.process.sendline("/quit")
    assert terminal.end() == 0
    assert list(folder.iterdir()) == []


def test_the_key_is_asked_for_without_an_echo(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """Without a key in the environment it is asked for, and what is typed is not shown."""
    terminals.append(Terminal(folder, api, key=None))
    terminals[0].wait("API key: ")
    terminals[0].process.waitnoecho(PATIENCE_S)
    terminals[0].process.sendline(KEY)
    assert KEY not in terminals[0].wait()
    assert api.authorizations == {f"Bearer {KEY}"}


def test_a_refused_key_ends_it_before_the_first_turn(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """A key that the service refuses is told at once, with exit status 1."""
    api.usage = error(401, "invalid_api_key", "Unknown key.")
    terminals.append(Terminal(folder, api))
    terminals[0].wait("tarazu: invalid_api_key: Unknown key.")
    assert terminals[0].end() == 1


def test_a_name_cannot_drive_the_terminal(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """What the service says of the key is shown without control characters and not read as markup."""
    api.usage = as_json(200, {**USAGE, "key": {"id": "key_1", "name": "\x1b]0;x\x07[red]a[/red]"}})
    terminals.append(Terminal(folder, api))
    terminals[0].process.expect_exact("key ]0;x[red]a[/red]. Left")


def test_json_is_not_for_conversations(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """--json without a prompt is a usage error."""
    terminals.append(Terminal(folder, api, "--json"))
    terminals[0].wait("tarazu: --json needs a PROMPT.")
    assert terminals[0].end() == 2


def test_json_is_indented_on_a_terminal(folder: Path, api: ScriptedApi, terminals: list[Terminal]) -> None:
    """On a terminal a JSON document is laid out for reading."""
    api.replies = [reply("ok")]
    terminals.append(Terminal(folder, api, "Hi", "--json"))
    terminals[0].process.expect_exact('{\r\n  "id": "chatcmpl_1",\r\n')
    assert terminals[0].end() == 0
