"""docs/clients.md as tests read it, and its programs as people run them: each client in an environment of its own."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from msgspec import Struct

from tarazu.api.contract.samples import DEFAULT_ORIGIN, QUESTION
from tests.support.backend import Exchange, completion
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "clients.md"
NODE_PACKAGES = ROOT / "tests" / "npm"
ENVIRONMENTS = ROOT / ".clients"
"""Made by `make nightly`, from requirements/clients-*.txt."""

NEWEST = "newest"
OLDER = "older"
ALONE = "aider"
TESTS = "tests"
"""The environment of the tests themselves."""

CATALOGUE = """
[billing]
default_model = "tarazu/smollm2"

[plans.large]
monthly_credits = 1000000
requests_per_minute = 100000

[plans.narrow]
monthly_credits = 1000000
requests_per_minute = 1

[plans.nothing]
monthly_credits = 0
requests_per_minute = 1000

[plans.other]
monthly_credits = 1000000
requests_per_minute = 1000
models = ["other"]

[models."tarazu/smollm2"]
credits = 1
capabilities = ["json_output"]
timeout_s = 60
[[models."tarazu/smollm2".backends]]
kind = "openai"
url = "BACKEND"
model = "m"

[models.other]
credits = 1
[[models.other.backends]]
kind = "openai"
url = "BACKEND"
model = "other"
"""

QUIET = {
    "AIDER_ANALYTICS": "false",
    "AIDER_CHECK_UPDATE": "false",
    "AIDER_GIT": "false",
    "AIDER_SHOW_MODEL_WARNINGS": "false",
    "AIDER_SHOW_RELEASE_NOTES": "false",
    "AIDER_YES_ALWAYS": "true",
    "CREWAI_DISABLE_TELEMETRY": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "NO_COLOR": "1",
    "OTEL_SDK_DISABLED": "true",
}
"""Clients that would look for news on the internet look for none, and ask no person."""


class Client(Struct, frozen=True):
    """A section of the page: its title and its blocks of code, each of which goes on where the one before ends."""

    title: str
    language: str
    blocks: tuple[str, ...]

    @property
    def program(self) -> str:
        """All of it."""
        return "\n".join(self.blocks)


class Ran(Struct, frozen=True):
    """What became of a program."""

    status: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """All that a person reads, with single spaces, however it is folded."""
        return " ".join((self.out + " " + self.err).split())


def page() -> str:
    """Read the page."""
    return PAGE.read_text("utf-8")


def read_clients() -> dict[str, Client]:
    """List the sections that have code, by their titles."""
    found = {}
    for section in re.split(r"^## ", page(), flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
        if blocks:
            (language,) = {language for language, _ in blocks}
            found[title] = Client(title, language, tuple(source for _, source in blocks))
    return found


def rows(heading: str) -> list[list[str]]:
    """List the cells of the table whose first column is headed so, without its head."""
    table = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page(), re.MULTILINE)
    assert table, heading
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table[1].splitlines()]


def run(
    client: Client,
    source: str,
    *,
    environment: str,
    base_url: str,
    api_key: str,
    folder: Path,
    question: str = QUESTION,
) -> Ran:
    """Run a program as it stands on the page, but for the address and the question."""
    written = source.replace(f"{DEFAULT_ORIGIN}/api/v1", base_url).replace(QUESTION, question)
    programs = _programs(environment)
    command = {
        "javascript": [find_node().program, "--input-type=module", "-"],
        "python": [str(programs / "python"), "-"],
        "sh": ["sh", "-e"],
    }[client.language]
    environ = {
        **{name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
        **QUIET,
        "AIDER_MESSAGE": question,
        "HOME": str(folder),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TARAZU_API_KEY": api_key,
    }
    ran = subprocess.run(
        command,
        input=written,
        env=environ,
        cwd=NODE_PACKAGES if client.language == "javascript" else folder,
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def _programs(environment: str) -> Path:
    if environment == TESTS:
        return Path(sys.executable).parent
    programs = ENVIRONMENTS / environment / "bin"
    assert programs.is_dir(), f"`make .clients/{environment}/stamp` installs what this needs; `make nightly` does so."
    return programs


async def answer_as_asked(exchange: Exchange) -> None:
    """Reply as a model does that keeps the form that it is asked for, by `response_format` or in the prompt."""
    await exchange.send(200, completion(_reply(exchange.received.body), {"prompt_tokens": 5, "completion_tokens": 7}))


def _reply(body: dict[str, Any]) -> str:
    asked = json.dumps(body)
    if "response_format" in body:
        place = {"city": "Paris", "country": "France"}
        return json.dumps({"thought": "I know.", "code": 'final_answer("Paris")'} if "final_answer" in asked else place)
    if "final_answer" in asked:
        return 'Thought: I know.\n<code>\nfinal_answer("Paris")\n</code>'
    if "[[ ## answer ## ]]" in asked:
        return "[[ ## answer ## ]]\nParis\n\n[[ ## completed ## ]]"
    return "The capital of France is Paris."
