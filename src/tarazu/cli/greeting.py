"""What `tarazu serve` tells a person once it answers: the address, and lines to paste."""

import shlex

import msgspec

from tarazu.cli.options import DEFAULT_URL
from tarazu.cli.program import command_line
from tarazu.service.configuration.addresses import ADMIN_PATH, API_PATH, PANEL_PATH

QUESTION = "What is the capital of France?"


def demo_greeting(
    base_url: str, reason: str, *, key: str, model_id: str, panel_link: str | None, create_operator: str | None
) -> str:
    """Greet at the first start of the demo. This is the one place where its key and the link to its panel are shown."""
    api = base_url + API_PATH
    body = msgspec.json.encode({"prompt": QUESTION}).decode()
    link = ""
    if panel_link is not None:
        link = (
            f"Open the panel of this account, and choose a password there (once, within three days):\n{panel_link}\n\n"
        )
    return f"""\
Tarazu is ready at {base_url}

{reason}

Your API key, shown only this once:
{key}

Get the first reply:
curl {api}/chat/completions -H 'Authorization: Bearer {key}' -H 'Content-Type: application/json' -d '{body}'

The same with the OpenAI SDK for Python:
from openai import OpenAI

client = OpenAI(base_url="{api}", api_key="{key}")
reply = client.chat.completions.create(
    model="{model_id}", messages=[{{"role": "user", "content": "{QUESTION}"}}]
)
print(reply.choices[0].message.content)

{link}{_ending(base_url, create_operator)}"""


def greeting(base_url: str, advice: str, create_operator: str | None) -> str:
    """Greet at every other start; `advice` says how to come by a key.

    `create_operator` is the command that makes the first operator, where there is none.
    """
    return f"""\
Tarazu is ready at {base_url}

{advice}

{_ending(base_url, create_operator)}"""


def _ending(base_url: str, create_operator: str | None) -> str:
    url = "" if base_url == DEFAULT_URL else f" --url {shlex.quote(base_url)}"
    first = "" if create_operator is None else f"\nThere is no operator yet. Make the first one:\n{create_operator}\n"
    return f"""\
The panel for account holders is at {base_url}{PANEL_PATH}
The operators' pages are at {base_url}{ADMIN_PATH}
{first}
Talk with it in a terminal (it asks for the key):
{command_line(f"chat{url}")}

The API is explained at {base_url}/docs
Stop the service with Ctrl-C."""
