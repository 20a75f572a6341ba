"""The others that do the like, each in the fastest settings that its makers document: how they are started."""

import http.client
import json
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path

from bench.asking import conversation
from bench.peers.contender import MODEL, OPENAI_CHAT, Contender
from bench.peers.process_tree import CORE, starting_on
from bench.peers.servers import ServerError, running
from tests.support.service import free_port

ROOT = Path(__file__).parents[2]
LITELLM = ROOT / ".bench" / "litellm" / "bin" / "litellm"
MODULES = ROOT / "bench" / "npm" / "node_modules"
PORTKEY = MODULES / "@portkey-ai" / "gateway" / "build" / "start-server.js"
BUN = MODULES / "@oven" / f"bun-linux-{platform.machine().replace('x86_64', 'x64')}" / "bin" / "bun"
TENSORZERO = ROOT / ".bench" / "tensorzero" / "bin" / "python"
EMBEDDED_TENSORZERO = Path(__file__).with_name("embedded_tensorzero.py")
ANY_LLM = ROOT / ".bench" / "anyllm" / "bin" / "any-llm-gateway"
MANY = 1_000_000_000
"""A limit and a budget that nobody comes to the end of."""
ANY_LLM_CONNECTIONS = 15
"""Each request keeps one of so many connections to the books; who waits for one more stops the event loop."""
ASK_TIMEOUT_S = 30

_KEY = "sk-bench"
_LITELLM_CONFIGURATION = """
model_list:
  - model_name: MODEL
    litellm_params: {model: aiohttp_openai/MODEL, api_base: "http://BACKEND/v1", api_key: none}
general_settings: {master_key: KEY, disable_spend_logs: true}
litellm_settings: {telemetry: false, set_verbose: false, num_retries: 0}
"""
_TENSORZERO_CONFIGURATION = """
[gateway]
observability.enabled = false
disable_pseudonymous_usage_analytics = true
[models.MODEL]
routing = ["backend"]
[models.MODEL.providers.backend]
type = "openai"
model_name = "MODEL"
api_base = "http://BACKEND/v1"
api_key_location = "none"
"""
_ANY_LLM_CONFIGURATION = """
database_url: "sqlite:///./gateway.db"
master_key: KEY
host: 127.0.0.1
port: PORT
rate_limit_rpm: MANY
providers: {openai: {api_base: "http://BACKEND/v1", api_key: none}}
pricing: {"openai:MODEL": {input_price_per_million: 1, output_price_per_million: 1}}
"""


@contextmanager
def litellm(folder: Path, backend: str) -> Iterator[Contender]:
    """Run LiteLLM as its page on production says: one worker, no log but errors, no `.env`, prices from its package.

    Granian, from its page on the tuning of servers, and the provider that asks by aiohttp alone: each of the two is
    faster than without it, and both are fastest.
    """
    port = free_port()
    _write(folder / "config.yaml", _LITELLM_CONFIGURATION, BACKEND=backend)
    command = [
        *(str(LITELLM), "--config", "config.yaml"),
        *("--port", str(port), "--host", "127.0.0.1", "--num_workers", "1", "--run_granian"),
    ]
    environ = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
    server = running(command, port, log=folder / "output.log", environ=environ)
    with starting_on({CORE}, server) as process:
        yield Contender(
            url=f"http://127.0.0.1:{port}{OPENAI_CHAT}",
            pid=process.pid,
            does="one master key; the cost in memory, nothing kept (without a database)",
            headers=_bearer(_KEY),
        )


@contextmanager
def portkey(folder: Path, backend: str, *, runtime: str) -> Iterator[Contender]:
    """Run Portkey on Node.js or Bun, both of which its page on installation names.

    Without its console, which would get a copy of each request.
    """
    port = free_port()
    command = [runtime, str(PORTKEY), "--headless", f"--port={port}"]
    environ = {"NODE_ENV": "production", "TRUSTED_CUSTOM_HOSTS": backend.partition(":")[0]}
    with starting_on({CORE}, running(command, port, log=folder / "output.log", environ=environ)) as process:
        headers = {
            **_bearer(_KEY),
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": f"http://{backend}/v1",
        }
        yield Contender(
            url=f"http://127.0.0.1:{port}{OPENAI_CHAT}",
            pid=process.pid,
            does="no key of its own, no limit, nothing counted",
            headers=headers,
        )


@contextmanager
def tensorzero_gateway(folder: Path, backend: str) -> Iterator[Contender]:
    """Run TensorZero's gateway as its package for Python has it, without observability, so that nothing is written.

    Its keys and limits need tables in PostgreSQL that only its own program makes, which is not in the package.
    """
    port = free_port()
    _write(folder / "tensorzero.toml", _TENSORZERO_CONFIGURATION, BACKEND=backend)
    command = [str(TENSORZERO), str(EMBEDDED_TENSORZERO), "tensorzero.toml", str(port), "address"]
    with starting_on({CORE}, running(command, port, log=folder / "output.log")) as process:
        yield Contender(
            url=f"{(folder / 'address').read_text('utf-8').rstrip('/')}/chat/completions",
            pid=process.pid,
            does="no key, no limit, nothing counted",
            body=conversation(f"tensorzero::model_name::{MODEL}"),
        )


@contextmanager
def any_llm_gateway(folder: Path, backend: str) -> Iterator[Contender]:
    """Run Mozilla's any-llm gateway with one key of one user, who has a budget and pays a price.

    Its books are in SQLite: with PostgreSQL it locks up as soon as two requests of one user meet. The budget has no
    period, which SQLite's dates do not allow.
    """
    port = free_port()
    _write(folder / "config.yml", _ANY_LLM_CONFIGURATION, BACKEND=backend, PORT=str(port), MANY=str(MANY))
    command = [str(ANY_LLM), "serve", "--config", "config.yml", "--workers", "1", "--log-level", "40"]
    with starting_on({CORE}, running(command, port, log=folder / "output.log")) as process:
        budget = _make(port, "/v1/budgets", max_budget=MANY)
        user = _make(port, "/v1/users", user_id="bench", budget_id=budget["budget_id"])
        key = _make(port, "/v1/keys", key_name="bench", user_id=user["user_id"])
        yield Contender(
            url=f"http://127.0.0.1:{port}{OPENAI_CHAT}",
            pid=process.pid,
            does=(
                "key, limit and budget; tokens and cost, which are on disk before the reply (SQLite); "
                f"asked over {ANY_LLM_CONNECTIONS} connections at most"
            ),
            most_connections=ANY_LLM_CONNECTIONS,
            headers=_bearer(key["key"]),
            body=conversation(f"openai:{MODEL}"),
        )


def _write(path: Path, configuration: str, **values: str) -> None:
    for name, value in {"MODEL": MODEL, "KEY": _KEY, **values}.items():
        configuration = configuration.replace(name, value)
    path.write_text(configuration, "utf-8")


def _bearer(key: str) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _make(port: int, path: str, **members: object) -> Mapping[str, str]:
    """Make something by a gateway's admin API; answer with what it says of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ASK_TIMEOUT_S)
    try:
        headers = {"Content-Type": "application/json", **_bearer(_KEY)}
        connection.request("POST", path, json.dumps(members), headers)
        response = connection.getresponse()
        text = response.read().decode("utf-8", "replace")
        if response.status != HTTPStatus.OK:
            raise ServerError(f"{path} answers {response.status}: {text}")
        made: Mapping[str, str] = json.loads(text)
        return made
    finally:
        connection.close()
