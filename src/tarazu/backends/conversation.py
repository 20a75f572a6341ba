"""Put messages into the form of servers that keep system messages apart and want the user to speak first."""

from typing import Literal

from msgspec import Struct

from tarazu.domain.prompt import Message

OPENING = "."
"""Stands for what the user has said before a conversation that begins with the assistant."""


class Turn(Struct, frozen=True):
    """All that one side says before the other one speaks."""

    role: Literal["user", "assistant"]
    texts: list[str]


class Conversation(Struct, frozen=True):
    """The system messages as one text, empty without any; and turns that alternate, the first one the user's."""

    system: str
    turns: list[Turn]

    @classmethod
    def of(cls, messages: tuple[Message, ...]) -> "Conversation":
        """Take the messages apart. Where there are only system messages, they are the user's turn."""
        system = [message.content for message in messages if message.role == "system"]
        turns: list[Turn] = []
        for message in messages:
            if message.role == "system":
                continue
            if not turns or turns[-1].role != message.role:
                turns.append(Turn(message.role, []))
            turns[-1].texts.append(message.content)
        if not turns:
            return cls("", [Turn("user", system)])
        if turns[0].role != "user":
            turns.insert(0, Turn("user", [OPENING]))
        return cls("\n\n".join(system), turns)
