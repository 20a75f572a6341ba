"""The first minute of a newcomer: `tarazu serve` in an empty folder, and the printed lines pasted as they are."""

import os
import pty
import re
import subprocess
import sys
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.browser import chromium, visiting
from tests.support.curl import with_curl
from tests.support.patience import PATIENCE_S
from tests.support.service import free_port

KEY = re.compile(r"trz_[0-9A-Za-z]{50}")
TARAZU = [sys.executable, "-m", "tarazu"]


class Demo:
    """A served demo: its folder, and the banner that its start printed."""

    def __init__(self, folder: Path, port: int, curl: dict[str, str]) -> None:
        self.folder = folder
        self.port = port
        self.curl = curl
        self.banner = ""
        """As a terminal shows it: a key is printed nowhere else."""

    def paste(self, command: list[str], *, given: str | None = None, **environ: str) -> str:
        """Run a command in the folder; answer with what it prints."""
        ran = subprocess.run(
            command,
            input=given,
            cwd=self.folder,
            env={**os.environ, **self.curl, **environ},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        return ran.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """The demo, served by the real embedded model; at the end its books must balance."""
    demo = Demo(tmp_path_factory.mktemp("demo"), free_port(), with_curl(tmp_path_factory.mktemp("curl")))
    environ = {name: value for name, value in os.environ.items() if name != "TARAZU_CONFIG"}
    command = [*TARAZU, "serve", "--port", str(demo.port)]
    screen, terminal = pty.openpty()
    tty.setraw(terminal)  # or it would end lines with a carriage return too
    with (demo.folder / "serve.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=demo.folder, env=environ, stdout=terminal, stderr=log)
    os.close(terminal)
    try:
        with os.fdopen(screen, encoding="utf-8") as shown:
            for line in shown:  # ends at the latest with the process
                demo.banner += line
                if "Ctrl-C" in line:
                    break
            yield demo
        demo.paste([*TARAZU, "audit"])
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_the_printed_curl_line_names_paris(demo: Demo) -> None:
    """Pasted as it is, the curl line gets a real answer to its question."""
    line = next(line for line in demo.banner.splitlines() if line.startswith("curl "))
    assert "What is the capital of France?" in line
    assert "Paris" in demo.paste(["sh", "-c", line])


def test_the_printed_snippet_names_paris(demo: Demo) -> None:
    """Pasted as it is, the snippet for the official client prints the model's reply."""
    snippet = demo.banner[demo.banner.index("from openai") :]
    snippet = snippet[: snippet.index("print(")] + "print(reply.choices[0].message.content)\n"
    assert "Paris" in demo.paste([sys.executable, "-c", snippet])


def test_a_chat_in_the_terminal_names_paris(demo: Demo) -> None:
    """`tarazu chat` takes its prompt from a pipe and prints the reply."""
    reply = demo.paste(
        [*TARAZU, "chat", "--url", f"http://127.0.0.1:{demo.port}"],
        given="What is the capital of France?",
        TARAZU_API_KEY=KEY.findall(demo.banner)[0],
    )
    assert "Paris" in reply


def test_the_printed_link_leads_into_the_panel(demo: Demo) -> None:
    """In a real browser: a password is chosen, the demo's key is there, and the model answers; the link works once."""
    base_url = f"http://127.0.0.1:{demo.port}"
    (link,) = re.findall(rf"{base_url}/panel/invitation/\w+", demo.banner)
    with chromium() as browser, visiting(browser, base_url) as visitor:
        visitor.accept(link, "a sentence to remember")
        assert visitor.path() == "/panel/"
        visitor.assert_readable()
        visitor.open("/panel/keys")
        assert KEY.findall(demo.banner)[0][:16] in visitor.page.inner_text("main")
        visitor.open("/panel/playground")
        visitor.say("Hello!")
        assert visitor.page.inner_text(".turn.assistant .said").strip()
    with chromium() as browser, visiting(browser, base_url) as visitor:
        visitor.open(link.removeprefix(base_url))
        assert visitor.page.locator('[name="password"]').count() == 0
        visitor.faults.clear()  # the browser tells of the status of an invitation that has ended


def test_a_reply_costs_what_the_model_costs(demo: Demo) -> None:
    """The demo's account has paid one credit for each reply so far."""
    account = re.findall(r"acc_\w+", demo.paste([*TARAZU, "account", "list", "--json"]))[0]
    used = int(re.findall(r'"used":\s*(\d+)', demo.paste([*TARAZU, "account", "show", account, "--json"]))[0])
    line = next(line for line in demo.banner.splitlines() if line.startswith("curl "))
    demo.paste(["sh", "-c", line])
    shown = demo.paste([*TARAZU, "account", "show", account, "--json"])
    assert int(re.findall(r'"used":\s*(\d+)', shown)[0]) == used + 1


def test_no_prompt_and_no_reply_is_kept(demo: Demo) -> None:
    """Neither the log nor the books hold what was asked or answered, nor the key."""
    line = next(line for line in demo.banner.splitlines() if line.startswith("curl "))
    demo.paste(["sh", "-c", line])
    kept = b"".join(path.read_bytes() for path in demo.folder.iterdir() if path.is_file())
    for secret in ("capital", "Paris", KEY.findall(demo.banner)[0], KEY.findall(demo.banner)[0][16:48]):
        assert secret.encode() not in kept
