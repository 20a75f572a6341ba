"""The beats of an event loop: it is in doubt after it stood still, and for a while only."""

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from tarazu.service import pulse as module
from tarazu.service.pulse import Pulse
from tests.support.at_once import wait_until


def test_after_a_standstill_it_is_in_doubt_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything that came meanwhile is looked at. Otherwise it is not."""
    for name, value in (("BEAT_S", 0.05), ("STALL_S", 0.3), ("DOUBT_S", 0.2)):
        monkeypatch.setattr(module, name, value)
    beats: list[float] = []

    async def live() -> None:
        pulse = Pulse()
        pulse.start(lambda: beats.append(time.monotonic()))
        assert repr(pulse) == "<Pulse>"
        await asyncio.sleep(0)
        time.sleep(0.5)  # noqa: ASYNC251 - this is the standstill
        while not pulse.is_in_doubt:  # noqa: ASYNC110 - what comes first is the claim
            await asyncio.sleep(0)
        await asyncio.to_thread(wait_until, lambda: not pulse.is_in_doubt)
        pulse.stop()

    with capture_logs() as logs:
        asyncio.run(live())
    assert len(beats) >= 3
    assert "event_loop_stood_still" in {line["event"] for line in logs}
