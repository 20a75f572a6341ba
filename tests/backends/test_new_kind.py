"""A new kind of server is one dialect and one line in the registry: the rest of the service learns it from there."""

import json
import subprocess
import sys
from pathlib import Path

from tests.cli.commands import clean_environ
from tests.support.backend import ScriptedBackend, answers

PROGRAM = """
import sys
from tarazu.backends.dialect import Dialect, Draft
from tarazu.backends.kinds import KINDS

KINDS["plain"] = Dialect(
    url=None,
    path="/plain",
    key_header="X-Plain-Key",
    names={"max_tokens": "length"},
    body=lambda model, messages, settings: {"to": model, "say": messages[-1].content, **settings},
    read=lambda answer: Draft(text=answer["said"]),
)

from tarazu.cli import main

main()
"""
"""The program with one kind more, registered before anything else is imported."""
CATALOGUE = """
[models.plain]
credits = 1
max_output_tokens = 7
[[models.plain.backends]]
kind = "plain"
url = "BACKEND"
model = "m"
api_key_env = "PLAIN_KEY"
"""


def test_a_new_kind_is_a_dialect_and_a_line(tmp_path: Path) -> None:
    """`tarazu backend test` takes the kind from the configuration, and asks a server of it in its own words."""
    with ScriptedBackend() as server:
        server.behaviour = answers(json.dumps({"said": "Hello there."}).encode())
        (tmp_path / "tarazu.toml").write_text(CATALOGUE.replace("BACKEND", server.root))
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM, "backend", "test", "--prompt", "Hello", "--json"],
            cwd=tmp_path,
            env=clean_environ(PLAIN_KEY="k"),
            capture_output=True,
            text=True,
            check=True,
        )
    (tried,) = json.loads(ran.stdout)
    assert (tried["kind"], tried["outcome"], tried["reply"]) == ("plain", "ok", "Hello there.")
    (received,) = server.received
    assert (received.path, received.headers["x-plain-key"]) == ("/plain", "k")
    assert received.body == {"to": "m", "say": "Hello", "length": 7}
