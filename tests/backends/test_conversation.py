"""Conversations for servers that keep system messages apart and want the user to speak first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.backends.conversation import OPENING, Conversation, Turn
from tarazu.domain.prompt import Message
from tests.support.dialects import asked

MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["system", "user", "assistant"]), st.text(min_size=1, max_size=5)), min_size=1
)


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([("user", "a")], Conversation("", [Turn("user", ["a"])])),
        ([("system", "s"), ("user", "a")], Conversation("s", [Turn("user", ["a"])])),
        ([("system", "s"), ("user", "a"), ("system", "t")], Conversation("s\n\nt", [Turn("user", ["a"])])),
        ([("user", "a"), ("user", "b")], Conversation("", [Turn("user", ["a", "b"])])),
        (
            [("user", "a"), ("assistant", "b"), ("system", "s"), ("assistant", "c"), ("user", "d")],
            Conversation("s", [Turn("user", ["a"]), Turn("assistant", ["b", "c"]), Turn("user", ["d"])]),
        ),
        (
            [("assistant", "b"), ("user", "a")],
            Conversation("", [Turn("user", [OPENING]), Turn("assistant", ["b"]), Turn("user", ["a"])]),
        ),
        ([("system", "s"), ("system", "t")], Conversation("", [Turn("user", ["s", "t"])])),
    ],
)
def test_system_messages_stand_apart_and_turns_alternate(
    messages: list[tuple[str, str]], expected: Conversation
) -> None:
    """Several of one side become one turn; a conversation that the assistant begins gets an opening."""
    assert Conversation.of(asked(*messages).messages) == expected


@given(MESSAGES)
def test_no_text_is_lost_and_the_user_speaks_first(messages: list[Message]) -> None:
    """Whatever the order: turns alternate from the user on, and hold every text in its order."""
    conversation = Conversation.of(tuple(messages))
    assert [turn.role for turn in conversation.turns] == ["user", "assistant"] * (len(conversation.turns) // 2) + [
        "user"
    ] * (len(conversation.turns) % 2)
    said = [text for turn in conversation.turns for text in turn.texts]
    spoken = [message.content for message in messages if message.role != "system"]
    system = [message.content for message in messages if message.role == "system"]
    assert conversation.system == ("\n\n".join(system) if spoken else "")
    assert said[-len(spoken or system) :] == (spoken or system)
