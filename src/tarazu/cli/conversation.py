"""A conversation in the terminal: turns, commands that begin with a slash, and what each reply costs."""

import readline  # noqa: F401 - gives input() line editing and a history, which stays in memory
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from tarazu.api.objects import ChatCompletion, UsageObject
from tarazu.cli.chat_client import ChatClient
from tarazu.cli.errors import CommandError
from tarazu.cli.output import Column, counted, print_fields, print_table, printable, say, unicode_text
from tarazu.domain.prompt import Message

PROMPT = "you> "
HELP = """\
/new          begin again, without what was said
/model        list the models
/model ID     ask this model from now on
/usage        show what is used and what is left
/help         show this
/quit         end (Ctrl-D does too)
Anything else is sent."""


class Conversation:
    """One person's conversation with one model. What was said is kept in memory only."""

    def __init__(self, client: ChatClient, *, model: str | None, system: str | None) -> None:
        self._client = client
        self._model = model
        self._start = () if system is None else (Message("system", system),)
        self._messages = list(self._start)
        self._credits = 0
        self._replies = Console(highlight=False)
        self._notes = Console(stderr=True, highlight=False, markup=False, emoji=False)

    def run(self) -> None:
        """Take turns until the person ends it.

        Raises:
            CommandError: the service cannot be reached or refuses the key, before the first turn.
        """
        usage = self._client.usage()
        self._note(f"{self._client.url}, key {usage.key.name}. {_left(usage)} /help lists the commands.")
        for text in self._turns():
            try:
                self._take(text)
            except CommandError as error:
                self._note(str(error), style="red")
            except KeyboardInterrupt:
                self._note("No longer waiting for the reply. /usage tells whether it was paid for all the same.")
        self._note(f"{counted(self._credits, 'credit')} spent in this conversation.")

    def _turns(self) -> Iterator[str]:
        """Read lines until /quit, Ctrl-D or Ctrl-C at the prompt."""
        while True:
            try:
                text = input(PROMPT).strip()
            except (EOFError, KeyboardInterrupt):
                say()
                return
            except UnicodeDecodeError:
                self._note("That is no Unicode text.", style="red")
                continue
            if text == "/quit":
                return
            if text:
                yield text

    def _take(self, text: str) -> None:
        if not text.startswith("/"):
            self._ask(unicode_text(text, "The message"))
            return
        match text.split():
            case ["/new"]:
                self._messages = list(self._start)
                self._note("A new conversation.")
            case ["/model"]:
                self._list_models()
            case ["/model", model_id]:
                self._change_model(model_id)
            case ["/usage"]:
                self._print_usage()
            case ["/help"]:
                self._note(HELP)
            case [name, *_]:
                raise CommandError(f"There is no command {name}.", "/help lists the commands.")

    def _ask(self, text: str) -> None:
        """Send a turn. It joins the history together with its reply, so a failed one can be sent again."""
        asked = Message("user", text)
        with self._waiting():
            completion = self._client.complete([*self._messages, asked], self._model)
        reply = completion.choices[0].message.content
        self._messages += (asked, Message("assistant", reply))
        self._credits += completion.usage.credits
        self._replies.print(Text(printable(reply)), soft_wrap=not self._replies.is_terminal)
        self._note(f"{spent(completion)} {self._credits:,} in this conversation.{self._left()}")

    def _left(self) -> str:
        try:
            return f" {_left(self._client.usage())}"
        except CommandError:
            return ""  # the reply is what counts

    def _list_models(self) -> None:
        print_table(
            (Column("model", whole=True), Column("name"), Column("credits", number=True), Column("status")),
            (
                (model.id, model.display_name, model.credits_per_request, model.status)
                for model in self._client.models().data
            ),
        )

    def _change_model(self, model_id: str) -> None:
        """Ask another model from now on, if the key may use it.

        Raises:
            CommandError: it may not, or the service cannot be asked.
        """
        if model_id not in {model.id for model in self._client.models().data}:
            raise CommandError(f"This key has no model {model_id}.", "/model lists those that it has.")
        self._model = model_id
        self._note(f"{model_id} is asked from now on.")

    def _print_usage(self) -> None:
        usage = self._client.usage()
        credits_, rate = usage.api_credits, usage.rate_limit
        print_fields(
            (
                ("Plan", usage.plan),
                ("Period", usage.period),
                ("Used", f"{credits_.used:,} of {credits_.limit:,} credits, {credits_.remaining:,} left"),
                ("Balance", f"{usage.pay_as_you_go.balance:,} credits"),
                ("This minute", f"{rate.remaining:,} of {rate.limit_per_minute:,} requests left"),
                ("Next minute", rate.resets_at),
                ("Key", f"{usage.key.id} ({usage.key.name})"),
            )
        )

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        if not self._notes.is_terminal:
            yield
            return
        with self._notes.status("waiting for the reply"):
            yield

    def _note(self, text: str, *, style: str = "dim") -> None:
        sys.stdout.flush()
        self._notes.print(printable(text), style=style)


def spent(completion: ChatCompletion) -> str:
    """Say what a reply cost."""
    source = {"plan": "the plan", "api_balance": "the balance"}[completion.usage.billing_source]
    return f"{completion.model}: {counted(completion.usage.credits, 'credit')} from {source}."


def _left(usage: UsageObject) -> str:
    return f"Left: {usage.api_credits.remaining:,} this month, {usage.pay_as_you_go.balance:,} in the balance."
