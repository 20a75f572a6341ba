"""The makers' own SDKs: they ask as our backends do, their types describe our requests, and we read their answers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tarazu.backends.http_backend import BodyWriter
from tarazu.backends.kinds import KINDS
from tarazu.backends.kinds.gemini import REFUSALS
from tarazu.backends.port import BackendError, Fault, Reply
from tarazu.backends.replies import read_reply
from tarazu.backends.secrets import Secrets
from tarazu.domain.catalogue import BackendSpec
from tarazu.domain.prompt import WHITE_SPACE, ChatRequest, Message, ResponseFormat, Settings
from tests.support.backend import Received, ScriptedBackend, answers
from tests.support.dialects import ANSWERS, anthropic_answer, ask, asked
from tests.support.lazily import lazily

if TYPE_CHECKING:
    import anthropic._constants
    import anthropic.types.message_create_params
    import openai.types.chat.chat_completion
    import openai.types.chat.completion_create_params
    import pydantic
    from google import genai
else:
    anthropic, openai, pydantic, genai = map(lazily, ("anthropic", "openai", "pydantic", "google.genai"))

KEY = "sk-5eCr3t"
GONE_FROM_ANTHROPICS_TYPES = {"temperature", "top_p"}
"""Its newest models take them no more, and the older ones do."""
IDENTIFYING = {"authorization", "x-api-key", "x-goog-api-key", "anthropic-version"}

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
SAID = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30)
COUNTS = st.integers(0, 10_000)
REQUESTS = st.builds(
    ChatRequest,
    model=st.none(),
    messages=st.lists(
        st.builds(Message, st.sampled_from(["system", "user", "assistant"]), SAID), min_size=1, max_size=6
    ).map(tuple),
    settings=st.builds(
        Settings,
        temperature=st.none() | st.floats(0, 2),
        top_p=st.none() | st.floats(0, 1),
        max_tokens=st.none() | st.integers(1, 2**31 - 1),
        stop=st.none() | st.lists(SAID, min_size=1, max_size=4).map(tuple),
        seed=st.none() | st.integers(-(2**31), 2**31 - 1),
        presence_penalty=st.none() | st.floats(-2, 2),
        frequency_penalty=st.none() | st.floats(-2, 2),
        response_format=st.none()
        | st.just(ResponseFormat())
        | st.builds(
            ResponseFormat,
            name=st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True),
            schema=st.none() | st.just(Raw(b'{"type": "object"}')),
            strict=st.none() | st.booleans(),
            description=st.none() | SAID,
        ),
    ),
)


@pytest.fixture
def backend() -> Iterator[ScriptedBackend]:
    """A model server."""
    with ScriptedBackend() as backend:
        yield backend


def sent(backend: ScriptedBackend, kind: str, request: ChatRequest, path: str, **settings: Any) -> Received:
    """Tell what reaches a server from our own backend."""
    backend.behaviour = answers(json.dumps(ANSWERS[kind]).encode())
    ask(BackendSpec(kind=kind, url=backend.root + path, **settings), request, Secrets(api_key=KEY))
    return backend.received.pop()


def identity(received: Received) -> dict[str, str]:
    """Pick the headers that tell who asks, and in which version."""
    return {name: value for name, value in received.headers.items() if name in IDENTIFYING}


def test_the_openai_sdk_asks_as_we_do(backend: ScriptedBackend) -> None:
    """Same path, same key, same body, but for a `stream` that goes without saying."""
    ours = sent(
        backend,
        "openai",
        asked(("system", "Be brief."), ("user", "Hello"), temperature=0.5, max_tokens=9, stop=("E",), seed=7),
        "/v1",
    )
    with openai.OpenAI(base_url=backend.url, api_key=KEY, max_retries=0) as client:
        client.chat.completions.create(
            model="m",
            messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
            temperature=0.5,
            max_tokens=9,
            stop=["E"],
            seed=7,
            stream=False,
        )
    (theirs,) = backend.received
    assert (ours.path, identity(ours), ours.body) == (theirs.path, identity(theirs), theirs.body)


def test_the_anthropic_sdk_asks_as_we_do(backend: ScriptedBackend) -> None:
    """Same path, same body; and the same key and version of the API once two settings say so.

    The SDK has moved to a version of the API that other servers do not know yet, and to another header for the key.
    """
    ours = sent(
        backend,
        "anthropic",
        asked(("system", "Be brief."), ("user", "Hello"), max_tokens=9, stop=("E",)),
        "",
        key_header="Authorization",
        headers={"anthropic-version": anthropic._constants.ANTHROPIC_API_VERSION},
    )
    with anthropic.Anthropic(base_url=backend.root, api_key=KEY, max_retries=0) as client:
        client.messages.create(
            model="m",
            system="Be brief.",
            messages=[{"role": "user", "content": [{"type": "text", "text": "Hello"}]}],
            max_tokens=9,
            stop_sequences=["E"],
            stream=False,
        )
    (theirs,) = backend.received
    assert (ours.path, identity(ours), ours.body) == (theirs.path, identity(theirs), theirs.body)


def test_the_gemini_sdk_asks_as_we_do(backend: ScriptedBackend) -> None:
    """Same path, same key, same body, but for the role of the system's content, which means nothing there."""
    ours = sent(
        backend,
        "gemini",
        asked(
            ("system", "Be brief."),
            ("user", "Hello"),
            ("assistant", "Hi."),
            ("user", "So?"),
            temperature=0.5,
            top_p=0.9,
            max_tokens=9,
            stop=("E",),
            seed=7,
            presence_penalty=0.1,
            frequency_penalty=-0.1,
        ),
        "/v1beta",
    )
    with genai.Client(
        api_key=KEY, http_options=genai.types.HttpOptions(base_url=backend.root, api_version="v1beta")
    ) as client:
        client.models.generate_content(
            model="m",
            contents=[
                genai.types.Content(role="user", parts=[genai.types.Part(text="Hello")]),
                genai.types.Content(role="model", parts=[genai.types.Part(text="Hi.")]),
                genai.types.Content(role="user", parts=[genai.types.Part(text="So?")]),
            ],
            config=genai.types.GenerateContentConfig(
                system_instruction="Be brief.",
                temperature=0.5,
                top_p=0.9,
                max_output_tokens=9,
                stop_sequences=["E"],
                seed=7,
                presence_penalty=0.1,
                frequency_penalty=-0.1,
            ),
        )
    (theirs,) = backend.received
    theirs.body["systemInstruction"].pop("role")
    assert (ours.path, identity(ours), ours.body) == (theirs.path, identity(theirs), theirs.body)


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False}
IN_JSON = asked(
    ("user", "Where?"),
    max_tokens=9,
    response_format=ResponseFormat(name="place", schema=Raw(json.dumps(SCHEMA).encode()), strict=True),
)


def test_each_sdk_asks_for_json_as_we_do(backend: ScriptedBackend) -> None:
    """By the member that its maker has for a schema."""
    ours = {
        kind: sent(backend, kind, IN_JSON, path).body
        for kind, path in (("openai", "/v1"), ("anthropic", ""), ("gemini", "/v1beta"))
    }
    with openai.OpenAI(base_url=backend.url, api_key=KEY, max_retries=0) as client:
        client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Where?"}],
            max_tokens=9,
            stream=False,
            response_format={"type": "json_schema", "json_schema": {"name": "place", "schema": SCHEMA, "strict": True}},
        )
    with anthropic.Anthropic(base_url=backend.root, api_key=KEY, max_retries=0) as client:
        client.messages.create(
            model="m",
            messages=[{"role": "user", "content": [{"type": "text", "text": "Where?"}]}],
            max_tokens=9,
            stream=False,
            output_config={"format": {"type": "json_schema", "schema": SCHEMA}},
        )
    with genai.Client(
        api_key=KEY, http_options=genai.types.HttpOptions(base_url=backend.root, api_version="v1beta")
    ) as client:
        client.models.generate_content(
            model="m",
            contents=[genai.types.Content(role="user", parts=[genai.types.Part(text="Where?")])],
            config=genai.types.GenerateContentConfig(
                max_output_tokens=9, response_mime_type="application/json", response_json_schema=SCHEMA
            ),
        )
    assert [received.body for received in backend.received] == [ours["openai"], ours["anthropic"], ours["gemini"]]


def body(kind: str, request: ChatRequest) -> dict[str, Any]:
    """Make the body that a server of this kind gets, as it arrives there."""
    value = json.loads(BodyWriter(BackendSpec(kind=kind, url="http://x", model="m")).write(request))
    assert isinstance(value, dict)
    return value


@cache
def adapter(kind: Any) -> pydantic.TypeAdapter[Any]:
    """Make what checks values against a TypedDict."""
    return pydantic.TypeAdapter(kind)


def check(kind: Any, value: dict[str, Any], others: Collection[str] = ()) -> None:
    """Check a value against a TypedDict: it has members of its alone, beside `others`, and each is of its type."""
    assert set(value) <= get_type_hints(kind).keys() | set(others)
    for member in adapter(kind).validate_python(value).values():
        if not isinstance(member, str | dict | list) and isinstance(member, Iterable):
            list(member)  # what is only iterable is not checked before it is iterated


@given(REQUESTS)
def test_openais_types_describe_our_requests(request: ChatRequest) -> None:
    """Whatever is asked."""
    kind = openai.types.chat.completion_create_params.CompletionCreateParamsNonStreaming
    check(kind, body("openai", request))


@given(REQUESTS)
def test_anthropics_types_describe_our_requests(request: ChatRequest) -> None:
    """Whatever is asked, the user speaks first and the sides take turns."""
    told = body("anthropic", request)
    kind = anthropic.types.message_create_params.MessageCreateParamsNonStreaming
    check(kind, told, GONE_FROM_ANTHROPICS_TYPES)
    assert not set(told) >= GONE_FROM_ANTHROPICS_TYPES
    assert 0 <= told.get("temperature", 0) <= 1
    roles = [message["role"] for message in told["messages"]]
    assert roles[0] == "user"
    assert all(role != next_role for role, next_role in pairwise(roles))


@given(REQUESTS)
def test_geminis_types_describe_our_requests(request: ChatRequest) -> None:
    """Whatever is asked; its models refuse unknown members."""
    told = body("gemini", request)
    genai.types.GenerateContentConfig.model_validate(told.pop("generationConfig", {}))
    for content in told.pop("contents"):
        genai.types.Content.model_validate(content)
    genai.types.Content.model_validate(told.pop("systemInstruction", {}))
    assert told == {}


def read(kind: str, answer: str) -> Reply | Fault:
    """Read an answer of this kind."""
    try:
        return read_reply(answer.encode(), KINDS[kind].read)
    except BackendError as error:
        return error.fault


def is_blank(text: str) -> bool:
    """Tell whether there is nothing in it."""
    return not text.strip(WHITE_SPACE)


@st.deferred
def usages() -> st.SearchStrategy[openai.types.CompletionUsage]:
    """Make up any usage that OpenAI's types allow."""
    kind = openai.types.CompletionUsage
    return st.builds(kind, prompt_tokens=COUNTS, completion_tokens=COUNTS, total_tokens=COUNTS)


@st.deferred
def finish_reasons() -> st.SearchStrategy[Any]:
    """Take any reason that OpenAI's types allow."""
    kind = openai.types.chat.chat_completion.Choice
    return st.sampled_from(get_args(kind.model_fields["finish_reason"].annotation))


@given(TEXTS | st.none(), st.none() | SAID, finish_reasons, usages | st.none())
def test_openais_answers_are_read(
    content: str | None, refusal: str | None, finish_reason: Any, usage: openai.types.CompletionUsage | None
) -> None:
    """Every completion that its types allow is a reply, or a fault that fits."""
    answer = openai.types.chat.ChatCompletion(
        id="x",
        created=1,
        model="m",
        object="chat.completion",
        choices=[
            openai.types.chat.chat_completion.Choice(
                index=0,
                finish_reason=finish_reason,
                message=openai.types.chat.ChatCompletionMessage(role="assistant", content=content, refusal=refusal),
            )
        ],
        usage=usage,
    )
    outcome = read("openai", answer.model_dump_json())
    if content is not None and not is_blank(content):
        assert outcome == Reply(
            text=content,
            prompt_tokens=None if usage is None else usage.prompt_tokens,
            completion_tokens=None if usage is None else usage.completion_tokens,
        )
    elif refusal or finish_reason == "content_filter":
        assert outcome is Fault.REFUSAL
    elif finish_reason == "length":
        assert outcome is Fault.REQUEST_REFUSED
    else:
        assert outcome is Fault.INVALID_REPLY


@st.deferred
def blocks_of_content() -> st.SearchStrategy[list[Any]]:
    """Make up any content that Anthropic's types allow."""
    types = anthropic.types
    return st.lists(
        st.builds(types.TextBlock, type=st.just("text"), text=TEXTS)
        | st.builds(types.ThinkingBlock, type=st.just("thinking"), thinking=TEXTS, signature=TEXTS)
        | st.builds(types.RedactedThinkingBlock, type=st.just("redacted_thinking"), data=TEXTS),
        max_size=4,
    )


@st.deferred
def stop_reasons() -> st.SearchStrategy[anthropic.types.StopReason]:
    """Take any reason that Anthropic's types allow."""
    return st.sampled_from(get_args(anthropic.types.StopReason))


@given(blocks_of_content, stop_reasons, COUNTS, COUNTS, COUNTS | st.none())
def test_anthropics_answers_are_read(
    blocks: list[Any],
    stop_reason: anthropic.types.StopReason,
    read_tokens: int,
    written: int,
    cached: int | None,
) -> None:
    """Every message that its types allow is a reply, or a fault that fits."""
    answer = anthropic.types.Message(
        id="x",
        type="message",
        role="assistant",
        model="m",
        content=blocks,
        stop_reason=stop_reason,
        usage=anthropic.types.Usage(input_tokens=read_tokens, output_tokens=written, cache_read_input_tokens=cached),
    )
    outcome = read("anthropic", answer.model_dump_json())
    text = "".join(block.text for block in blocks if isinstance(block, anthropic.types.TextBlock))
    if not is_blank(text):
        assert outcome == Reply(text=text, prompt_tokens=read_tokens + (cached or 0), completion_tokens=written)
    else:
        assert outcome is {
            "refusal": Fault.REFUSAL,
            "max_tokens": Fault.REQUEST_REFUSED,
            "model_context_window_exceeded": Fault.REQUEST_REFUSED,
        }.get(stop_reason, Fault.INVALID_REPLY)


@st.deferred
def parts_of_content() -> st.SearchStrategy[list[genai.types.Part]]:
    """Make up any content that Gemini's types allow."""
    return st.lists(st.builds(genai.types.Part, text=TEXTS, thought=st.booleans() | st.none()), max_size=4)


@given(
    parts_of_content | st.none(),
    st.deferred(lambda: st.sampled_from(genai.types.FinishReason)),
    COUNTS,
    COUNTS | st.none(),
    COUNTS | st.none(),
)
def test_geminis_answers_are_read(
    parts: list[genai.types.Part] | None,
    finish_reason: genai.types.FinishReason,
    read_tokens: int,
    written: int | None,
    thought: int | None,
) -> None:
    """Every response that its types allow is a reply, or a fault that fits."""
    answer = genai.types.GenerateContentResponse(
        candidates=[
            genai.types.Candidate(
                content=genai.types.Content(role="model", parts=parts), finish_reason=finish_reason, index=0
            )
        ],
        usage_metadata=genai.types.GenerateContentResponseUsageMetadata(
            prompt_token_count=read_tokens, candidates_token_count=written, thoughts_token_count=thought
        ),
    )
    outcome = read("gemini", answer.model_dump_json(by_alias=True, exclude_none=True))
    text = "".join(part.text or "" for part in parts or () if not part.thought)
    if not is_blank(text):
        completion_tokens = None if written is None else written + (thought or 0)
        assert outcome == Reply(text=text, prompt_tokens=read_tokens, completion_tokens=completion_tokens)
    elif finish_reason.value in REFUSALS:
        assert outcome is Fault.REFUSAL
    elif finish_reason is genai.types.FinishReason.MAX_TOKENS:
        assert outcome is Fault.REQUEST_REFUSED
    else:
        assert outcome is Fault.INVALID_REPLY


@given(st.deferred(lambda: st.sampled_from(genai.types.BlockedReason)))
def test_geminis_blocked_prompts_are_refusals(reason: genai.types.BlockedReason) -> None:
    """Whatever the reason."""
    answer = genai.types.GenerateContentResponse(
        prompt_feedback=genai.types.GenerateContentResponsePromptFeedback(block_reason=reason)
    )
    assert read("gemini", answer.model_dump_json(by_alias=True, exclude_none=True)) is Fault.REFUSAL


def test_the_reasons_that_we_know_are_geminis() -> None:
    """Each is one of its words."""
    assert set(REFUSALS) <= {reason.value for reason in genai.types.FinishReason}


def test_anthropics_answer_of_the_tests_is_one() -> None:
    """What other tests send in its name, its SDK reads."""
    assert anthropic.types.Message.model_validate(anthropic_answer(), strict=True).content[0].type == "text"
