"""The playground over HTTP, by its forms alone: what the model is asked, what is charged, and what is shown."""

import json
import os
import re
import subprocess
import sys
from html import unescape
from http import HTTPStatus
from pathlib import Path

import pytest

from tarazu.service.identifiers import request_id_of
from tests.support.at_once import wait_until
from tests.support.backend import ScriptedBackend, answers, replies
from tests.support.curl import with_curl
from tests.support.node import find_node
from tests.support.patience import PATIENCE_S
from tests.support.service import BACKEND_KEY, RunningService
from tests.support.visitor import Holder, holder

PLAYGROUND = "/panel/playground"
NODE_PACKAGES = Path(__file__).parents[1] / "npm"


@pytest.fixture(scope="module")
def someone(service: RunningService) -> Holder:
    """A holder on the large plan, for the module."""
    return holder(service)


def new_key(service: RunningService, someone: Holder) -> str:
    """Make a key; tell its id."""
    return service.provisioning.create_key(someone.account_id, name="play").key.id


def test_a_conversation_is_served_and_paid_like_any_request(
    service: RunningService, someone: Holder, backend: ScriptedBackend
) -> None:
    """Turn by turn, with the credits of each reply; the second carries the first, and the history has both."""
    talk = {"key": new_key(service, someone), "model": "test/two"}
    visitor = someone.visitor
    used = service.provisioning.account(someone.account_id).used
    first = visitor.send(PLAYGROUND, **talk, prompt="How many?", conversation="[]")
    assert first.status == 200
    assert "test/two Hello there. 2 credits" in first.text
    second = visitor.send(PLAYGROUND, **talk, prompt="And then?", conversation=first.field("conversation"))
    sent = [message["content"] for message in backend.received[-1].body["messages"]]
    assert sent == ["How many?", "Hello there.", "And then?"]
    assert service.provisioning.account(someone.account_id).used == used + 4
    turns = json.loads(second.field("conversation"))
    assert [turn["role"] for turn in turns] == ["user", "assistant"] * 2
    found = visitor.get(f"/panel/history?id={turns[-1]['request_id']}").text
    assert "test/two" in found
    assert "succeeded" in found
    assert "How many?" not in visitor.get("/panel/history").text
    by_answer = request_id_of(turns[-1]["request_id"])
    assert visitor.get(f"/panel/history?id={by_answer}").text == found


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"prompt": " \n"}, 422, "Write a message first"),
        ({"model": "no/such"}, 404, "may not use this model"),
        ({"prompt": "x" * 24_001}, 413, "longer than 24,000"),
        ({"model": "test/dear"}, 402, "do not cover this model"),
        ({"conversation": "no json"}, 400, "could not be read"),
        ({"conversation": '[{"role": "system", "content": "x"}]'}, 400, "could not be read"),
        ({"conversation": '{"role": "user"}'}, 400, "could not be read"),
        ({"turn": "0123456789abcdef" * 200}, 400, "could not be read"),
        ({"turn": "no such"}, 400, "could not be read"),
    ],
)
def test_a_turn_that_cannot_be_is_refused_in_words(
    service: RunningService, someone: Holder, fields: dict[str, str], status: int, said: str
) -> None:
    """Nothing is charged for it, and what was written stays."""
    talk = {"key": new_key(service, someone), "model": "test/one", "prompt": "Hello", **fields}
    refused = someone.visitor.send(PLAYGROUND, **talk)
    assert refused.status == status
    assert said in refused.text


@pytest.mark.parametrize("since", ["paused", "revoked", "another's"])
def test_a_key_that_is_gone_since_the_page_was_opened_is_refused_in_words(service: RunningService, since: str) -> None:
    """The conversation and the message stay; another key may be chosen."""
    person, books = holder(service), service.provisioning
    books.create_key(person.account_id, name="left")
    key_id = books.create_key(
        holder(service).account_id if since == "another's" else person.account_id, name="k"
    ).key.id
    if since == "paused":
        books.pause_key(key_id)
    elif since == "revoked":
        books.revoke_key(key_id)
    said = json.dumps([{"role": "user", "content": "before"}, {"role": "assistant", "content": "then"}])
    person.visitor.get(PLAYGROUND)
    refused = person.visitor.send(PLAYGROUND, key=key_id, model="test/one", prompt="kept as it was", conversation=said)
    assert refused.status == 404
    assert "This key no longer works. Choose another" in refused.text
    assert "kept as it was" in refused.text
    assert json.loads(refused.field("conversation"))[1]["content"] == "then"


def test_a_model_that_fails_costs_nothing_and_says_so(
    service: RunningService, someone: Holder, backend: ScriptedBackend
) -> None:
    """The history shows the request that was not charged; no word of the backend reaches the page."""
    backend.behaviour = answers(b"<html>no</html>")
    used = service.provisioning.account(someone.account_id).used
    talk = {"key": new_key(service, someone), "model": "test/one", "prompt": "kept as it was"}
    refused = someone.visitor.send(PLAYGROUND, **talk)
    assert refused.status == 502
    assert "Nothing was charged" in refused.text
    assert "kept as it was" in refused.text
    wait_until(lambda: service.provisioning.account(someone.account_id).used == used)  # nobody waits for a release
    history = someone.visitor.get("/panel/history")
    assert "failed, not charged" in history.text
    assert BACKEND_KEY not in history.answer.body.decode()


def test_a_message_is_charged_once_however_often_it_is_sent(service: RunningService) -> None:
    """By its own word, in the form: a reload of what a cookie cannot hold sends it again."""
    person = holder(service)
    key = service.provisioning.create_key(person.account_id, name="k").key
    visitor = person.visitor
    form = visitor.get(PLAYGROUND)
    sent = {"key": key.id, "model": "test/two", "prompt": "How many?", "turn": form.field("turn")}
    first = visitor.send(PLAYGROUND, conversation="[]", **sent)
    again = visitor.send(PLAYGROUND, conversation="[]", **sent)
    assert first.status == again.status == 200, first.text
    assert first.field("conversation") == again.field("conversation")
    assert service.provisioning.account(person.account_id).used == 2
    assert first.field("turn") != sent["turn"]
    other = visitor.send(PLAYGROUND, conversation="[]", **{**sent, "prompt": "And then?"})
    assert "sent before, with another text" in other.text
    assert service.provisioning.account(person.account_id).used == 2


SETTINGS = {
    "temperature": "۰٫۷",
    "top_p": "0.5",
    "presence_penalty": "-1",
    "frequency_penalty": "",
    "max_tokens": "۱٬۰۰۰",
    "seed": "7",
    "stop": "END\nSTOP",
}


def test_a_system_prompt_and_settings_are_asked_with(
    service: RunningService, someone: Holder, backend: ScriptedBackend
) -> None:
    """As a program would send them; they stay in the form, and what is empty is left to the model."""
    talk = {"key": new_key(service, someone), "model": "test/one", "system": "Be brief.", **SETTINGS}
    page = someone.visitor.send(PLAYGROUND, prompt="How many?", conversation="[]", **talk)
    sent = backend.received[-1].body
    assert [(message["role"], message["content"]) for message in sent["messages"]] == [
        ("system", "Be brief."),
        ("user", "How many?"),
    ]
    expected = {"temperature": 0.7, "top_p": 0.5, "presence_penalty": -1, "max_tokens": 1_000, "seed": 7}
    assert {name: sent[name] for name in expected} == expected
    assert sent["stop"] == ["END", "STOP"]
    assert "frequency_penalty" not in sent
    assert [page.field(name) for name in expected] == [SETTINGS[name] for name in expected]
    assert "Be brief." in page.text


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("temperature", "2.5", "Temperature: write a number from 0 to 2"),
        ("temperature", "warm", "Temperature: write a number from 0 to 2"),
        ("top_p", "1.1", "Top p: write a number from 0 to 1"),
        ("presence_penalty", "-3", "Presence penalty: write a number from \N{MINUS SIGN}2 to 2"),
        ("frequency_penalty", "1e1", "Frequency penalty: write a number"),
        ("max_tokens", "0", "Longest reply, in tokens: write a whole number from 1 to"),
        ("seed", "1.5", "Seed: write a whole number"),
        ("stop", "a\nb\nc\nd\ne", "up to 4 lines"),
        ("stop", "x" * 257, "256 characters"),
    ],
)
def test_a_setting_that_is_none_is_refused_in_words(
    service: RunningService, someone: Holder, backend: ScriptedBackend, field: str, value: str, said: str
) -> None:
    """Nothing is asked, and what was written stays."""
    asked = len(backend.received)
    talk = {"key": new_key(service, someone), "model": "test/one", "prompt": "a long story", field: value}
    refused = someone.visitor.send(PLAYGROUND, **talk)
    assert refused.status == HTTPStatus.UNPROCESSABLE_ENTITY
    assert said in refused.text.replace("\u200e", "")
    assert "a long story" in refused.text
    assert len(backend.received) == asked


def test_a_conversation_is_taken_up_and_nothing_is_asked(
    service: RunningService, someone: Holder, backend: ScriptedBackend
) -> None:
    """What a browser has kept is shown as it was, with what is written beside it."""
    asked = len(backend.received)
    new_key(service, someone)
    turns = [
        {"role": "user", "content": "How many?"},
        {
            "role": "assistant",
            "content": "**Seven**.",
            "model": "test/one",
            "request_id": "r",
            "credits": 1,
            "tokens": 9,
        },
    ]
    page = someone.visitor.send(
        f"{PLAYGROUND}/take-up",
        conversation=json.dumps(turns),
        prompt="And then?",
        model="test/two",
        system="Be brief.",
    )
    if page.status == HTTPStatus.SEE_OTHER:
        page = someone.visitor.follow(page)
    assert page.status == HTTPStatus.OK
    assert "How many?" in page.text
    assert "Seven ." in page.text
    assert "9 tokens" in page.text
    assert "And then?" in page.text
    assert page.field("conversation") == json.dumps(turns, separators=(",", ":"))
    assert len(backend.received) == asked


def test_a_reply_is_shown_as_it_is_meant_and_can_do_nothing(
    service: RunningService, someone: Holder, backend: ScriptedBackend
) -> None:
    """Markdown is rendered; what would load or run is text."""
    backend.behaviour = replies("# Three\n\n- **one**\n\n<script>alert(1)</script> ![x](https://example.com/x.png)")
    talk = {"key": new_key(service, someone), "model": "test/one", "prompt": "*How* many?", "conversation": "[]"}
    page = someone.visitor.send(PLAYGROUND, **talk)
    assert page.html is not None
    assert "one" in page.text
    assert "<script>alert(1)</script>" in page.text
    assert "*How* many?" in page.text, "what people write stays as it is"
    assert {"li", "strong"} <= {tag for tag, _ in page.html.elements}
    assert page.html.values("src", "img") == []


LABELS = {"curl": 0, "Python": 1, "JavaScript": 2}


@pytest.mark.parametrize("label", LABELS)
def test_a_conversation_as_code_sends_what_the_page_sends(
    service: RunningService, someone: Holder, backend: ScriptedBackend, tmp_path: Path, label: str
) -> None:
    """Pasted as it stands, whatever is written in it."""
    key = service.provisioning.create_key(someone.account_id, name="program")
    nasty = 'it\'s "quoted" $HOME `id` \\n {} % ! \u2028 سلام\nnew line'
    turns = [{"role": "user", "content": nasty}, {"role": "assistant", "content": nasty}]
    fields = {"conversation": json.dumps(turns), "prompt": nasty, "system": nasty, "model": "test/one", **SETTINGS}
    page = someone.visitor.send(f"{PLAYGROUND}/take-up", **fields)
    page = someone.visitor.follow(page) if page.status == HTTPStatus.SEE_OTHER else page
    assert f"http://127.0.0.1:{service.port}/api/v1" in page.text
    source = unescape(
        re.findall(r'<code id="sample-\d">(.*?)</code>', page.answer.body.decode(), re.DOTALL)[LABELS[label]]
    )
    environ = {**os.environ, **with_curl(tmp_path), "TARAZU_API_KEY": key.secret}
    command = {
        "curl": ["sh", "-e"],
        "Python": [sys.executable, "-"],
        "JavaScript": [find_node().program, "--input-type=module", "-"],
    }[label]
    run = subprocess.run(
        command,
        input=source,
        env=environ,
        cwd=NODE_PACKAGES,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    settings = {"temperature": 0.7, "max_tokens": 1_000, "stop": ["END", "STOP"]}
    sent = backend.received[-1].body
    assert [message["content"] for message in sent["messages"]] == [nasty.strip()] * 4
    assert {name: sent[name] for name in settings} == settings
