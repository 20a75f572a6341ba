"""Refused requests are summed up: none is counted twice or forgotten, and nobody fills the books by them."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis.strategies import booleans, integers, lists, sampled_from, text, tuples

from tarazu.domain import refused
from tarazu.domain.errors import Error, Sender
from tarazu.domain.refused import MODELS_MAX, NAME_MAX, SLOT_MS, TOLD, RefusedSums, model_name
from tests.support.values import NOON_MS

SENDERS = [Sender(f"acc_{account}", f"key_{account}_{key}") for account in (1, 2) for key in (1, 2)]
ONE = SENDERS[0]
REFUSED = tuples(
    sampled_from(SENDERS),
    sampled_from(sorted(TOLD, key=lambda error: error.name)),
    sampled_from([None, "small", "large"]),
    integers(0, SLOT_MS // 4),
    sampled_from(["keep", "tell", "fail"]),
)


def test_what_is_told_are_the_statuses_of_the_history() -> None:
    """402, 403, 404 for a model, and 429: what an account can change."""
    assert {error.value.status for error in TOLD} == {402, 403, 404, 429}
    assert Error.NOT_FOUND not in TOLD


@given(asked=lists(REFUSED, max_size=40))
def test_every_refused_request_is_counted_once(
    asked: list[tuple[Sender, Error, str | None, int, str]],
) -> None:
    """By account, key, error, model and ten minutes, however often it is told, and whatever could not be told."""
    sums, told = RefusedSums(), []
    expected: Counter[tuple[str, str, Error, str | None, int]] = Counter()
    now_ms = NOON_MS
    for sender, error, model, later_ms, then in asked:
        now_ms += later_ms
        sums.note(sender, error, model, now_ms)
        expected[sender.account_id, sender.key_id, error, model, now_ms // SLOT_MS * SLOT_MS] += 1
        if then == "tell":
            told += sums.take()
        elif then == "fail":
            taken = sums.take()
            sums.note(sender, error, model, now_ms)
            expected[sender.account_id, sender.key_id, error, model, now_ms // SLOT_MS * SLOT_MS] += 1
            sums.put_back(taken)
    told += sums.take()
    assert sums.take() == []
    counted: Counter[tuple[str, str, Error, str | None, int]] = Counter()
    for each in told:
        kind = each.kind
        counted[kind.account_id, kind.key_id, kind.error, kind.model_id, kind.slot_ms] += each.requests
        assert kind.slot_ms <= each.first_at_ms <= each.last_at_ms < kind.slot_ms + SLOT_MS
    assert counted == expected


@given(first=REFUSED, second=REFUSED)
def test_kinds_have_one_id_in_every_process(
    first: tuple[Sender, Error, str | None, int, str], second: tuple[Sender, Error, str | None, int, str]
) -> None:
    """Two processes add to one row; what differs in anything has another."""
    kinds = []
    for sender, error, model, at_ms, _ in (first, second):
        sums = RefusedSums()
        sums.note(sender, error, model, NOON_MS + at_ms)
        kinds.append(sums.take()[0].kind)
    assert (kinds[0].id == kinds[1].id) is (kinds[0] == kinds[1])
    assert re.fullmatch("refused_[0-9A-Za-z]{20}", kinds[0].id)


def test_what_is_told_comes_in_the_order_of_the_ids() -> None:
    """So that two processes that write wait for each other in one order."""
    sums = RefusedSums()
    for sender in SENDERS:
        for error in TOLD:
            sums.note(sender, error, None, NOON_MS)
    told = [each.kind.id for each in sums.take()]
    assert told == sorted(told)
    assert len(told) == len(SENDERS) * len(TOLD)


@given(names=lists(integers(0, 100), min_size=MODELS_MAX), is_told=booleans())
def test_an_account_fills_no_books_with_names(names: list[int], is_told: bool) -> None:  # noqa: FBT001 - an example
    """So many models are told apart in ten minutes, told or not; the rest is counted too, without a name."""
    sums, told = RefusedSums(), []
    for name in names:
        sums.note(ONE, Error.MODEL_NOT_FOUND, f"model-{name}", NOON_MS)
        told += sums.take() if is_told else []
    told += sums.take()
    assert len({each.kind.model_id for each in told} - {None}) == min(MODELS_MAX, len(set(names)))
    assert sum(each.requests for each in told) == len(names)
    sums.note(ONE, Error.MODEL_NOT_FOUND, "another", NOON_MS + SLOT_MS)
    assert [each.kind.model_id for each in sums.take()] == ["another"]


def test_a_process_keeps_so_many_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the books are away, what is kept in memory has an end."""
    monkeypatch.setattr(refused, "KINDS_MAX", 5)
    sums = RefusedSums()
    for number in range(10):
        sums.note(Sender(f"acc_{number}", "key"), Error.RATE_LIMIT_EXCEEDED, "small", NOON_MS)
    taken = sums.take()
    assert len(taken) == 5
    sums.note(Sender("acc_11", "key"), Error.RATE_LIMIT_EXCEEDED, "small", NOON_MS)
    sums.put_back(taken)
    assert len(sums.take()) == 5


@pytest.mark.parametrize("name", ["gpt-4o", "openai/gpt-4o-mini", "claude-3-5-sonnet-20241022", "m", "a" * 19])
def test_the_name_of_a_model_is_kept(name: str) -> None:
    """As it was asked for, sold or not."""
    assert model_name(name) == name


SECRETS = ["", "trz_" + "a1B" * 17, "sk-proj-" + "Ab3" * 16, "b" * 20]


@pytest.mark.parametrize("name", [*SECRETS, "What is 2+2?", "سلام", "a-" * (NAME_MAX // 2) + "a", "-x", "a\nb"])
def test_what_may_be_a_key_or_a_prompt_is_not_kept(name: str) -> None:
    """Nobody's secret comes into the books by the wrong member."""
    assert model_name(name) is None


@given(asked=text(max_size=80))
def test_no_text_that_a_name_cannot_be_is_kept(asked: str) -> None:
    """What is kept has no space, and is short."""
    kept = model_name(asked)
    assert kept is None or (kept == asked and len(asked) <= NAME_MAX and not re.search(r"[^A-Za-z0-9:./_-]", asked))
