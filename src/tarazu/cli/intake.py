"""`tarazu intake`: stop and resume taking requests."""

from pathlib import Path
from typing import Annotated

from tarazu.cli.acts import done
from tarazu.cli.desk import open_provisioning, read_configuration
from tarazu.cli.options import AsJson, ConfigPath, command_group, number_option
from tarazu.cli.output import print_json, say
from tarazu.cli.program import command_line
from tarazu.domain.accounts import Intake

intake_app = command_group("intake", "Stop and resume taking requests, everywhere at once.")


@intake_app.command
def stop(
    *,
    retry_after: Annotated[
        int, number_option("--retry-after", "After how many seconds callers are told to come back.", metavar="S")
    ] = Intake().retry_after_s,
    as_json: AsJson = False,
    config: ConfigPath = None,
) -> None:
    """Refuse completions from the next request on.

    They are answered with 503 system_stopped. Requests that are running are
    finished, and the other endpoints still answer.

    For example:

        tarazu intake stop
        tarazu intake stop --retry-after 600
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        intake = provisioning.stop_intake(retry_after_s=retry_after)
        done("Intake is stopped.")
    _print_intake(intake, config, as_json=as_json)


@intake_app.command
def resume(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Take completions again, from the next request on.

    For example:

        tarazu intake resume
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        intake = provisioning.resume_intake()
        done("Intake is running.")
    _print_intake(intake, config, as_json=as_json)


@intake_app.command
def status(*, as_json: AsJson = False, config: ConfigPath = None) -> None:
    """Tell whether completions are taken.

    For example:

        tarazu intake status
    """
    with open_provisioning(read_configuration(config)) as provisioning:
        intake = provisioning.intake()
    _print_intake(intake, config, as_json=as_json)


def _print_intake(intake: Intake, config: Path | None, *, as_json: bool) -> None:
    if as_json:
        print_json(intake)
    elif intake.stopped:
        say(f"Intake is stopped: completions are refused, to be retried after {intake.retry_after_s} s.")
        say(f"Take them again with: {command_line('intake resume', config)}")
    else:
        say("Intake is running: completions are taken.")
