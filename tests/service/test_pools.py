"""The pools of a catalogue that changes: what is known of a backend's health outlives a change of something else."""

import pytest
from msgspec.structs import replace

from tarazu.backends.http_client import HttpClient
from tarazu.domain.catalogue import BackendSpec, Catalogue
from tarazu.service.pools import Pools, local_paths
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


def test_a_backend_that_is_disabled_is_in_no_pool() -> None:
    """The others keep their names; its key is not read, nor its process started."""
    off = BackendSpec(kind="openai", url="http://127.0.0.1:1/v1", model="m", api_key_env="NO_KEY", enabled=False)
    local = BackendSpec(kind="local", enabled=False)
    sold = catalogue("a", backends=(off, SERVER, local))
    assert local_paths(sold) == set()
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(sold, {})
    assert [member.backend.name for member in pools["a"].members] == ["a#2"]


def test_a_backend_that_is_enabled_again_gets_a_new_pool() -> None:
    """A change of the switch is a change of the backends."""
    pools = Pools(HttpClient(), {}, Clock())
    pools.adopt(catalogue("a", backends=(SERVER, replace(SERVER, enabled=False))), {})
    pools.adopt(catalogue("a", backends=(SERVER, SERVER)), {})
    assert [member.backend.name for member in pools["a"].members] == ["a#1", "a#2"]


def test_a_pool_that_takes_the_place_of_another_is_told_of() -> None:
    """What was known of its backends' health is gone with the other one; a reload that changes nothing says nothing."""
    changes: list[None] = []
    pools = Pools(HttpClient(), {}, Clock(), on_change=lambda: changes.append(None))
    pools.adopt(catalogue("a"), {})
    changes.clear()
    pools.adopt(catalogue("a"), {})
    assert changes == []
    pools.adopt(catalogue("a", timeout_s=7.0), {})
    assert len(changes) == 1
