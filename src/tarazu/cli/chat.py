"""`tarazu chat`: talk with a model in the terminal, through the API."""

# ruff: noqa: PLC0415 - the HTTP client is loaded only when it is used, so that every command starts fast

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tarazu.cli.acts import done
from tarazu.cli.errors import UsageError
from tarazu.cli.options import DEFAULT_URL, AsJson
from tarazu.cli.output import print_json, printable, say, say_aside, unicode_text

PROMPT_BYTES_MAX = 1024 * 1024


def chat(
    prompt: Annotated[str | None, Parameter(name="PROMPT", help="What to ask; without it, a conversation.")] = None,
    /,
    *,
    url: Annotated[
        str, Parameter(metavar="URL", env_var="TARAZU_URL", help="The address of the service.")
    ] = DEFAULT_URL,
    key_file: Annotated[
        Path | None,
        Parameter(
            metavar="FILE", help="Take the API key from this file, not from $TARAZU_API_KEY or by asking for it."
        ),
    ] = None,
    model: Annotated[
        str | None, Parameter(metavar="ID", help="The model to ask; without it, the service's default.")
    ] = None,
    system: Annotated[str | None, Parameter(metavar="TEXT", help="Tell the model how to reply.")] = None,
    as_json: AsJson = False,
) -> None:
    """Talk with a model through the API.

    With a PROMPT, or text on standard input, it prints one reply; otherwise it
    holds a conversation. Every reply shows the credits it cost. The key is
    never an argument, since others could see it.

    For example:

        tarazu chat
        tarazu chat "What is the capital of France?"
        tarazu chat --system "Answer in Persian." < question.txt
    """
    from tarazu.cli.caller_key import caller_key
    from tarazu.cli.chat_client import ChatClient
    from tarazu.cli.conversation import Conversation, spent
    from tarazu.domain.prompt import Message

    if prompt is None and not sys.stdin.isatty():
        prompt = _standard_input()
    if prompt is not None and not prompt.strip():
        raise UsageError("The prompt is empty.", 'Ask something: tarazu chat "What is the capital of France?"')
    if prompt is None and as_json:
        raise UsageError("--json needs a PROMPT.", "A conversation is for people.")
    system = None if system is None else unicode_text(system, "--system")
    with ChatClient(url or DEFAULT_URL, caller_key(key_file)) as client:
        if prompt is None:
            Conversation(client, model=model, system=system).run()
            return
        asked = Message("user", unicode_text(prompt, "The prompt"))
        completion = client.complete([*([Message("system", system)] if system else []), asked], model)
        done(f"The reply was given, and is charged: {spent(completion)}")
    if as_json:
        print_json(completion)
        return
    say(printable(completion.choices[0].message.content))
    say_aside(spent(completion))


def _standard_input() -> str:
    text = sys.stdin.buffer.read(PROMPT_BYTES_MAX + 1)
    if len(text) > PROMPT_BYTES_MAX:
        raise UsageError(f"Standard input has more than {PROMPT_BYTES_MAX:,} bytes.", "Send less.")
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise UsageError("Standard input is not UTF-8 text.", "Send text in UTF-8.") from None
