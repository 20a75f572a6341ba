"""What is sold to whom: plan and key narrow, and nothing widens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.domain.catalogue import Offer
from tests.support.values import make_catalogue, make_model, make_plan

IDS = ["small", "large", "org/model:1.5", "extra"]
MODELS = [make_model(id_) for id_ in IDS]
lists = st.lists(st.sampled_from([*IDS, "*", "gone"]), max_size=4).map(tuple)


def offer(*models: str) -> Offer:
    """Make an offer of some models."""
    return Offer(models=models, requests_per_minute=1)


def test_usable_models_come_in_catalogue_order() -> None:
    """The order of the file, not of the plan's or the key's list."""
    catalogue = make_catalogue(MODELS)
    usable = catalogue.usable_models(offer("extra", "small", "large"), ("large", "extra"))
    assert [model.id for model in usable] == ["large", "extra"]


def test_a_star_allows_all() -> None:
    """In a plan and in a key."""
    assert [model.id for model in make_catalogue(MODELS).usable_models(offer("*"), ("*",))] == IDS


def test_a_key_without_a_list_has_the_plans() -> None:
    """None means no narrowing; an empty list means nothing."""
    catalogue = make_catalogue(MODELS)
    assert [model.id for model in catalogue.usable_models(offer("small"), None)] == ["small"]
    assert list(catalogue.usable_models(offer("*"), ())) == []


@given(lists, st.none() | lists, st.none() | st.sampled_from([*IDS, "gone"]))
def test_narrowing_never_widens(plan: tuple[str, ...], key: tuple[str, ...] | None, default: str | None) -> None:
    """No key gives a model that the plan has not, whatever the lists hold, and no default does."""
    catalogue = make_catalogue(MODELS, default_model=default)
    usable = {model.id for model in catalogue.usable_models(offer(*plan), key)}
    of_plan = {model.id for model in catalogue.usable_models(offer(*plan), None)}
    assert usable <= of_plan
    assert of_plan <= (set(IDS) if "*" in plan else set(plan))
    if key is not None and "*" not in key:
        assert usable <= set(key)


@given(lists, st.none() | lists, st.none() | st.sampled_from([*IDS, "gone"]))
def test_the_list_is_exactly_what_can_be_called(
    plan: tuple[str, ...], key: tuple[str, ...] | None, default: str | None
) -> None:
    """A model is found by its id when, and only when, it is listed; with no id, the default or the first is."""
    catalogue = make_catalogue(MODELS, default_model=default)
    listed = [model.id for model in catalogue.usable_models(offer(*plan), key)]
    for id_ in (*IDS, "gone", "*", "", "SMALL"):
        found = catalogue.usable_model(id_, offer(*plan), key)
        assert (None if found is None else found.id) == (id_ if id_ in listed else None)
    chosen = catalogue.usable_model(None, offer(*plan), key)
    expected = default if default in listed else next(iter(listed), None)
    assert (None if chosen is None else chosen.id) == expected


@pytest.mark.parametrize(
    ("default", "key", "chosen"),
    [
        ("large", None, "large"),
        ("large", ("small", "large"), "large"),
        ("large", ("extra", "small"), "small"),
        ("gone", None, "small"),
        (None, ("extra",), "extra"),
        (None, (), None),
    ],
)
def test_the_default_model_is_the_configured_one_or_the_first_usable(
    default: str | None, key: tuple[str, ...] | None, chosen: str | None
) -> None:
    """Input: the configured `default_model` if this key may use it, else the first usable in catalogue order."""
    model = make_catalogue(MODELS, default_model=default).usable_model(None, offer("*"), key)
    assert (None if model is None else model.id) == chosen


def test_a_model_that_is_asked_for_is_never_replaced() -> None:
    """An unknown or forbidden id is not answered with the default."""
    catalogue = make_catalogue(MODELS, default_model="small")
    assert catalogue.usable_model("gone", offer("*"), None) is None
    assert catalogue.usable_model("large", offer("small"), None) is None


def test_an_account_without_a_plan_has_the_pay_as_you_go_offer() -> None:
    """So has one whose plan is no longer on sale."""
    catalogue = make_catalogue(plans=[make_plan(requests_per_minute=7)], payg=offer("small"))
    assert catalogue.offer("basic").requests_per_minute == 7
    assert catalogue.offer(None) == offer("small")
    assert catalogue.offer("gone") == offer("small")
    assert catalogue.plan("gone") is None
    assert catalogue.plan(None) is None
