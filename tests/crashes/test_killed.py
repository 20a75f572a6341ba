"""All processes are killed under load, again and again: after each restart and sweep the books are exact."""

import time
from pathlib import Path
from random import Random

import pytest

from tests.support.backend import ScriptedBackend
from tests.support.load import Load
from tests.support.processes import pass_deadlines
from tests.support.scale import scaled
from tests.support.service import RunningService
from tests.support.stores import Store

ROUNDS = scaled(2.5, least=3)
"""Kills in all."""
KINDS = (("sqlite", 1), ("sqlite", 2), ("postgresql", 2))
REPLIES_MAX = 40
"""The most replies that are waited for before a kill."""
DELAY_MAX_S = 0.05
"""The longest that is then waited, so that the kill comes anywhere in the life of a request."""


def rounds_of(place: int) -> int:
    """Tell how many of the rounds the kind at this place has."""
    return (ROUNDS + place) // len(KINDS)


@pytest.mark.timeout(600 + 10 * ROUNDS)
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(kind, id=f"{store}-{workers}", marks=[pytest.mark.postgresql] * (store == "postgresql"))
        for kind, (store, workers) in enumerate(KINDS)
    ],
)
def test_killed_at_any_moment_the_books_stay_exact(
    kind: int, backend: ScriptedBackend, random: Random, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Every delivered reply is charged once, no id comes twice, nothing stays held, no other charge is unexplained."""
    name, workers = KINDS[kind]
    store: Store = request.getfixturevalue(f"{name}_store")
    with RunningService(
        tmp_path, backend.url, server=f"workers = {workers}", database_url=store.new_books(tmp_path)
    ) as service:
        load = Load(service, backend, random)
        for _ in range(rounds_of(kind)):
            with load:
                load.wait_for_replies(random.randint(1, REPLIES_MAX))
                time.sleep(random.uniform(0, DELAY_MAX_S))
                service.kill()
            pass_deadlines(service)  # so the sweep at the start finds them all
            service.start()
            # Whose request was cut may have been charged just before; that cannot be told from here.
            load.assert_books_exact(charged_unseen=load.cut)
        assert "Traceback" not in service.log.read_text()
