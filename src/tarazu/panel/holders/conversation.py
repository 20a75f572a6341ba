"""A conversation of the playground with its settings: as its form carries them, and as they are asked."""

from http import HTTPStatus
from typing import Literal

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException

from tarazu.domain.numbers import read_decimal, read_number
from tarazu.domain.prompt import RANGES, STOP_CHARACTERS_MAX, STOP_SEQUENCES_MAX, WHITE_SPACE
from tarazu.panel.forms import Form
from tarazu.panel.messages import later
from tarazu.service.completion import Completion
from tarazu.service.provisioning_errors import ProvisioningError

TURNS_MAX = 500
NUMBERS = {
    "temperature": later("Temperature"),
    "top_p": later("Top p"),
    "presence_penalty": later("Presence penalty"),
    "frequency_penalty": later("Frequency penalty"),
}
WHOLE_NUMBERS = {"max_tokens": later("Longest reply, in tokens"), "seed": later("Seed")}
CARRIED = ("model", "key", "system", "stop", *NUMBERS, *WHOLE_NUMBERS)
"""The fields that a conversation is gone on with, as they were written."""
LEAST = {"max_tokens": 1, "seed": 0}
WHOLE_MAX = 2**31 - 1


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One message of the conversation; a model's has its name, the request's id, what it cost, and its tokens."""

    role: Literal["user", "assistant"]
    content: str
    model: str = ""
    request_id: str = ""
    credits: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, completion: Completion) -> "Turn":
        """Make it of a model's reply."""
        return cls(
            role="assistant",
            content=completion.text,
            model=completion.model_id,
            request_id=completion.id,
            credits=completion.credits,
            tokens=completion.prompt_tokens + completion.completion_tokens,
        )


class Conversation(Struct, frozen=True, kw_only=True):
    """The turns so far, the next message, and what it is asked with."""

    turns: tuple[Turn, ...]
    prompt: str
    model: str
    system: str
    settings: dict[str, float | int | list[str]]

    def messages(self) -> list[dict[str, str]]:
        """List the messages, as a program sends them; without the next one nothing would be asked."""
        said: list[tuple[str, str]] = [(turn.role, turn.content) for turn in self.turns]
        if self.prompt.strip(WHITE_SPACE):
            said.append(("user", self.prompt))
        if self.system.strip(WHITE_SPACE):
            said.insert(0, ("system", self.system))
        return [{"role": role, "content": content} for role, content in said]

    def body(self) -> bytes:
        """Ask as a program would, so that the same rules are in force.

        Without its next message the conversation would be asked, and paid for, once more.
        """
        messages = self.messages() if self.prompt.strip(WHITE_SPACE) else []
        return msgspec.json.encode({"model": self.model, "messages": messages, **self.settings})

    def answered(self, completion: Completion) -> str:
        """Write it with the message and its reply, for the form."""
        return written((*self.turns, Turn(role="user", content=self.prompt), Turn.of(completion)))


def conversation_of(form: Form) -> Conversation:
    """Read it out of the form.

    Raises:
        HTTPException: no page of ours has written its turns so.
        ProvisioningError: a setting is none, or out of its range.
    """
    return Conversation(
        turns=turns_of(form),
        prompt=form.text("prompt"),
        model=form.text("model"),
        system=form.text("system"),
        settings={**_numbers(form), **_stop(form)},
    )


def turns_of(form: Form) -> tuple[Turn, ...]:
    """Read the turns so far out of the form.

    Raises:
        HTTPException: no page of ours has written them so.
    """
    try:
        turns = msgspec.json.decode(form.text("conversation") or "[]", type=tuple[Turn, ...])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise HTTPException(HTTPStatus.BAD_REQUEST) from None
    if len(turns) > TURNS_MAX:
        raise HTTPException(HTTPStatus.BAD_REQUEST)
    return turns


def written(turns: tuple[Turn, ...]) -> str:
    """Write the turns for the form."""
    return msgspec.json.encode(turns).decode()


def _numbers(form: Form) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for name, what in NUMBERS.items():
        least, most = RANGES[name]
        number = read_decimal(form.text(name))
        if number is not None and least <= number <= most:
            found[name] = number
        elif form.text(name).strip():
            raise ProvisioningError("{what}: write a number from {least} to {most}.", what=what, least=least, most=most)
    for name, what in WHOLE_NUMBERS.items():
        whole, least = read_number(form.text(name)), LEAST[name]
        if whole is not None and least <= whole <= WHOLE_MAX:
            found[name] = whole
        elif form.text(name).strip():
            raise ProvisioningError(
                "{what}: write a whole number from {least} to {most}.", what=what, least=least, most=WHOLE_MAX
            )
    return found


def _stop(form: Form) -> dict[str, list[str]]:
    stop = [line for line in form.text("stop").split("\n") if line]
    if len(stop) > STOP_SEQUENCES_MAX or any(len(line) > STOP_CHARACTERS_MAX for line in stop):
        raise ProvisioningError(
            "Stop at: write up to {lines} lines, of at most {characters} characters each.",
            lines=STOP_SEQUENCES_MAX,
            characters=STOP_CHARACTERS_MAX,
        )
    return {"stop": stop} if stop else {}
