"""The pools of a catalogue that changes: what is known of a backend's health outlives a change of something else."""

import pytest
from msgspec.structs import replace

from tarazu.backends.http_client import HttpClient
from tarazu.domain.catalogue import BackendSpec, Catalogue
from tarazu.service.pools import Pools
from tests.support.values import Clock, make_catalogue, make_model

SERVER = BackendSpec(kind="openai", url="http://127.0.0.1:1/v1", model="m")


def catalogue(*ids: str, **changes: object) -> Catalogue:
    """Sell models with one server each."""
    return make_catalogue(models=[replace(make_model(id_), **{"backends": (SERVER,), **changes}) for id_ in ids])


def test_a_model_that_is_sold_as_before_keeps_its_pool() -> None:
    """And one whose backends have changed gets a new one."""
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(catalogue("a", "b"), {})
    a, b = pools["a"], pools["b"]
    pools.adopt(
        make_catalogue(models=[*catalogue("a").models.values(), *catalogue("b", timeout_s=7.0).models.values()]), {}
    )
    assert pools["a"] is a
    assert pools["b"] is not b


def test_a_change_of_the_price_keeps_the_pool() -> None:
    """Its backends are what they were: who rests goes on to rest, and no bound is passed meanwhile."""
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(catalogue("a"), {})
    a = pools["a"]
    pools.adopt(catalogue("a", credits=7, description="Dearer."), {})
    assert pools["a"] is a


def test_a_catalogue_that_cannot_be_adopted_changes_nothing() -> None:
    """Not even the models before the one at fault."""
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(catalogue("a"), {})
    a = pools["a"]
    keyless = replace(SERVER, api_key_env="GONE")
    changed = [*catalogue("a", timeout_s=7.0).models.values(), *catalogue("b", backends=(keyless,)).models.values()]
    with pytest.raises(ValueError, match="GONE"):
        pools.adopt(make_catalogue(models=changed), {})
    assert (dict(pools), pools["a"]) == ({"a": a}, a)


def test_a_model_that_is_sold_no_longer_keeps_its_pool() -> None:
    """For a request that was admitted a moment before; when it is sold again, its pool is there."""
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(catalogue("a", "b"), {})
    b = pools["b"]
    pools.adopt(catalogue("a"), {})
    assert pools["b"] is b
    pools.adopt(catalogue("a", "b"), {})
    assert pools["b"] is b
