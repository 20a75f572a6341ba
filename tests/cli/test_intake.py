"""`tarazu intake`."""

import pytest

from tests.cli.commands import Commands
from tests.support.rows import rows


def test_the_switch_stops_and_resumes(tarazu: Commands) -> None:
    """`intake stop` and `resume` print the switch as it is then, and `status` prints the same."""
    assert tarazu.json("intake", "status") == {"stopped": False, "retry_after_s": 300}
    stopped = {"stopped": True, "retry_after_s": 600}
    assert tarazu.json("intake", "stop", "--retry-after", "600") == stopped
    assert tarazu.json("intake", "status") == stopped
    assert tarazu.json("intake", "resume")["stopped"] is False
    assert tarazu.json("intake", "status")["stopped"] is False


@rows("decisions.beside_the_specification.1")
def test_a_person_reads_what_it_means(tarazu: Commands) -> None:
    """The switch is told in words, with the command that turns it back."""
    assert tarazu("intake", "status").out == "Intake is running: completions are taken.\n"
    meaning, advice = tarazu("intake", "stop").out.splitlines()
    assert meaning == "Intake is stopped: completions are refused, to be retried after 300 s."
    assert advice.endswith("intake resume")


@pytest.mark.parametrize("retry_after_s", ["0", "86401"])
def test_a_retry_time_out_of_bounds_is_refused(tarazu: Commands, retry_after_s: str) -> None:
    """Callers are never told to come back at once or after more than a day; the switch stays as it was."""
    ran = tarazu("intake", "stop", "--retry-after", retry_after_s)
    assert (ran.status, ran.err) == (1, "tarazu: The retry time must be 1 to 86400 seconds.\n")
    assert tarazu.json("intake", "status")["stopped"] is False
