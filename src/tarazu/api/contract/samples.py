"""How callers write each request: with curl, and with the official OpenAI clients for Python and JavaScript."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tarazu.api.contract.structure import CodeSample
from tarazu.service.configuration import ServerSettings

DEFAULT_ORIGIN = ServerSettings().base_url
"""Where the service listens when nothing else is configured; stands in samples when only the path is known."""
MODEL = "tarazu/smollm2"
QUESTION = "What is the capital of France?"

_SHELL_HEADER = '-H "Authorization: Bearer $TARAZU_API_KEY"'


def absolute(base_url: str) -> str:
    """Complete a base address that is only a path."""
    return DEFAULT_ORIGIN + base_url if base_url.startswith("/") else base_url


def chat_samples(
    base_url: str,
    model: str = MODEL,
    messages: Sequence[Mapping[str, str]] = (),
    settings: Mapping[str, object] = MappingProxyType({}),
) -> tuple[CodeSample, ...]:
    """Send a question, or a conversation with its settings, and print the reply."""
    said = messages or [{"role": "user", "content": QUESTION}]
    python = _members(model, _array(said, '{{"role": {}, "content": {}}}', 4, 8), settings, "    {}={},")
    script = _members(model, _array(said, "{{ role: {}, content: {} }}", 2, 4), settings, "  {}: {},")
    body = _members(model, _array(said, '{{"role": {}, "content": {}}}', 4, 6), settings, '    "{}": {},').rstrip(",")
    quoted = body.replace("'", "'\\''")
    return (
        _curl(f"""\
curl {base_url}/chat/completions \\
  {_SHELL_HEADER} \\
  -H "Content-Type: application/json" \\
  -d '{{
{quoted}
  }}'"""),
        _python(
            base_url,
            f"""\
completion = client.chat.completions.create(
{python}
)
print(completion.choices[0].message.content)""",
        ),
        _javascript(
            base_url,
            f"""\
const completion = await client.chat.completions.create({{
{script}
}});
console.log(completion.choices[0].message.content);""",
        ),
    )


def _members(model: str, messages: str, settings: Mapping[str, object], line: str) -> str:
    written = {"model": _json(model), "messages": messages, **{name: _json(value) for name, value in settings.items()}}
    return "\n".join(line.format(name, value) for name, value in written.items())


def _array(messages: Sequence[Mapping[str, str]], form: str, indent: int, deeper: int) -> str:
    """Write messages as an array: a single one in its line, several in a line each."""
    items = [form.format(_json(message["role"]), _json(message["content"])) for message in messages]
    if len(items) == 1:
        return f"[{items[0]}]"
    lines = ",\n".join(" " * deeper + item for item in items)
    return f"[\n{lines}\n{' ' * indent}]"


def _json(value: object) -> str:
    """Write a value in JSON, which Python and JavaScript read alike."""
    return json.dumps(value, ensure_ascii=False)


def list_samples(base_url: str) -> tuple[CodeSample, ...]:
    """Print the id of every usable model."""
    return (
        _curl(f"curl {base_url}/models \\\n  {_SHELL_HEADER}"),
        _python(base_url, "for model in client.models.list():\n    print(model.id)"),
        _javascript(base_url, "for await (const model of client.models.list()) {\n  console.log(model.id);\n}"),
    )


def retrieve_samples(base_url: str) -> tuple[CodeSample, ...]:
    """Print one model."""
    return (
        _curl(f"curl {base_url}/models/{MODEL} \\\n  {_SHELL_HEADER}"),
        _python(base_url, f'print(client.models.retrieve("{MODEL}"))'),
        _javascript(base_url, f'console.log(await client.models.retrieve("{MODEL}"));'),
    )


def usage_samples(base_url: str) -> tuple[CodeSample, ...]:
    """Print the remaining quota. The OpenAI clients have no name for this path, but can ask it."""
    return (
        _curl(f"curl {base_url}/usage \\\n  {_SHELL_HEADER}"),
        _python(
            base_url,
            'usage = client.get("/usage", cast_to=dict[str, object])\nprint(usage["api_credits"])',
        ),
        _javascript(base_url, 'const usage = await client.get("/usage");\nconsole.log(usage.api_credits);'),
    )


def contract_samples(base_url: str) -> tuple[CodeSample, ...]:
    """Fetch the contract."""
    return (_curl(f"curl {base_url}/openapi.json"),)


def _curl(source: str) -> CodeSample:
    return CodeSample("shell", "curl", source)


def _python(base_url: str, source: str) -> CodeSample:
    client = f"""\
import os

from openai import OpenAI

client = OpenAI(base_url="{base_url}", api_key=os.environ["TARAZU_API_KEY"])
"""
    return CodeSample("python", "Python", client + source)


def _javascript(base_url: str, source: str) -> CodeSample:
    client = f"""\
import OpenAI from "openai";

const client = new OpenAI({{
  baseURL: "{base_url}",
  apiKey: process.env.TARAZU_API_KEY,
}});
"""
    return CodeSample("javascript", "JavaScript", client + source)
