"""The contract's code samples, run as a caller runs them, against a server that answers the contract's examples."""

import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.api.contract.samples import chat_samples
from tarazu.api.openapi import document
from tests.support.contract import media, operations, validator
from tests.support.curl import with_curl, with_own_curl
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S

NODE_PACKAGES = Path(__file__).parents[1] / "npm"
API_KEY = "trz_sample"
PRINTED = {
    "createChatCompletion": "The capital of France is Paris.",
    "listModels": "tarazu/smollm2",
    "retrieveModel": "SmolLM2 135M",
    "getUsage": "98750",
    "getContract": '"openapi"',
}
"""What each sample must show, in whichever language."""


class Examples(BaseHTTPRequestHandler):
    """Answers each operation with its first example, if the request is as the contract asks."""

    def do_GET(self) -> None:
        """Answer a GET."""
        self._answer("GET", b"")

    def do_POST(self) -> None:
        """Answer a POST."""
        self._answer("POST", self.rfile.read(int(self.headers["Content-Length"])))

    def log_message(self, *_args: object) -> None:
        """Print nothing."""

    def _answer(self, method: str, body: bytes) -> None:
        path = unquote(self.path).removeprefix("/api/v1").replace("/tarazu/smollm2", "/{model_id}")
        (operation,) = (found for found in operations().values() if (found["method"], found["path"]) == (method, path))
        if operation.get("security") != []:
            assert self.headers["Authorization"] == f"Bearer {API_KEY}"
        if "requestBody" in operation:
            assert self.headers["Content-Type"] == "application/json"
            validator(media(operation["requestBody"])["schema"]).validate(json.loads(body))
        examples: dict[str, Any] = media(operation["responses"]["200"])["examples"]
        payload = json.dumps(next(iter(examples.values()))["value"]).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)


def _sources(base_url: str) -> dict[tuple[str, str], str]:
    return {
        (operation.operation_id, sample.label): sample.source
        for item in document(base_url).paths.values()
        for operation in item.operations().values()
        for sample in operation.code_samples
    }


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    """The address of a server that answers the examples."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Examples) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/api/v1"
        server.shutdown()
        thread.join(PATIENCE_S)


@pytest.fixture(scope="module")
def curl(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Have a curl."""
    return with_curl(tmp_path_factory.mktemp("curl"))


def _command(label: str) -> list[str]:
    if label == "JavaScript":
        return [find_node().program, "--input-type=module", "-"]
    return {"curl": ["sh", "-e"], "Python": [sys.executable, "-"]}[label]


@pytest.mark.parametrize(("operation_id", "label"), list(_sources("")))
def test_a_sample_does_what_it_shows(base_url: str, curl: dict[str, str], operation_id: str, label: str) -> None:
    """A sample, pasted as it stands, sends what the contract asks and prints what came."""
    assert PRINTED[operation_id] in _printed(_sources(base_url)[operation_id, label], _command(label), curl)


@pytest.mark.parametrize("operation_id", [operation_id for operation_id, label in _sources("") if label == "curl"])
def test_the_tests_own_curl_does_the_same(base_url: str, tmp_path: Path, operation_id: str) -> None:
    """Where there is no real one, it proves the same of a line."""
    source = _sources(base_url)[operation_id, "curl"]
    assert PRINTED[operation_id] in _printed(source, _command("curl"), with_own_curl(tmp_path))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "role": st.sampled_from(["system", "user", "assistant"]),
                "content": st.text("aب'\"\\\n$`{}%!\u2028é ", min_size=1),
            }
        ),
        min_size=1,
        max_size=3,
    )
)
def test_a_conversation_is_written_as_it_is(messages: list[dict[str, str]]) -> None:
    """The Python sample is valid Python, and its arguments are the messages; so is the body of the curl line."""
    curl, python, _ = (sample.source for sample in chat_samples("http://x", "m", messages))
    call = python.partition("client.chat.completions.create(")[2].partition("\n)\nprint")[0]
    asked = {"model": "m", "messages": messages}
    assert eval(f"dict({call})") == asked  # noqa: S307 - our own source, of texts that the test has drawn
    (body,) = shlex.split(curl.partition(" -d ")[2])
    assert json.loads(body) == asked


def _printed(source: str, command: list[str], environ: dict[str, str]) -> str:
    run = subprocess.run(
        command,
        input=source,
        env={**os.environ, **environ, "TARAZU_API_KEY": API_KEY},
        cwd=NODE_PACKAGES,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
