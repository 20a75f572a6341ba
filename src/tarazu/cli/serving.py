"""`tarazu reload` and `tarazu drain`: what the services of this machine that are running are told."""

# ruff: noqa: PLC0415 - what finds them is loaded only by the commands that tell them something

from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tarazu.cli.acts import done
from tarazu.cli.errors import CommandError
from tarazu.cli.options import ConfigPath, duration_option
from tarazu.cli.output import say, say_aside
from tarazu.cli.program import as_typed, command_line, name_configuration

if TYPE_CHECKING:
    from tarazu.service.control import Ask, RunningService

SHOWN_MAX = 20
"""Services that are named where none was found."""
DRAIN_S = 10
"""Longer than load balancers take to see that an instance is not ready."""


def reload(*, config: ConfigPath = None) -> None:
    """Have the running service read its configuration again.

    Returns when it is in force in all workers. If it is refused, or a worker
    could not take it, the reasons are printed and the exit status is 1. It
    reaches the services of this machine that were started with the same
    configuration file, by the same user; root reaches those of all users.

    For example:

        tarazu reload
        tarazu reload --config /etc/tarazu/tarazu.toml
    """
    from tarazu.service.control import Ask

    for service in _running(config):
        with closing(service):
            reloaded = f"The configuration is reloaded: {_ask(service, Ask(act='reload'))}."
            done(reloaded)
            say(reloaded)


def drain(
    *,
    for_s: Annotated[
        int, duration_option("--for", "How long it goes on answering, so that load balancers see that it leaves.")
    ] = DRAIN_S,
    config: ConfigPath = None,
) -> None:
    """Stop the running service without cutting off any caller.

    GET /readyz fails at once, and each answer tells its caller that the
    connection is closed. After --for the service finishes what it has and
    ends; so does this command then. SIGTERM to the service makes it sooner.

    For example:

        tarazu drain
        tarazu drain --for 30s
    """
    from tarazu.service.control import Ask

    services = _running(config)
    for service in services:
        draining = f"The service is draining: {_ask(service, Ask(act='drain', for_s=for_s))}."
        done(draining)
        say(draining)
    for service in services:
        with closing(service):
            service.await_end()
    say("The service has ended.")


def _running(config: Path | None) -> "list[RunningService]":
    from tarazu.service.configuration import configuration_path
    from tarazu.service.configuration.loading import CONFIGURATION_FILE
    from tarazu.service.control import running_services

    name_configuration(config)
    path = configuration_path(config)
    services = list(running_services(path))
    if path is None:  # the file may have been moved away since
        services += running_services(CONFIGURATION_FILE)
    if not services:
        raise CommandError(
            "No service that runs by this configuration was found on this machine.",
            "\n".join([*_others(), f"Start one with: {command_line('serve', config)}"]),
        )
    return services


def _others() -> list[str]:
    """Tell of the services that do run, a line each, up to SHOWN_MAX."""
    from tarazu.service.control import all_running_services

    lines = []
    for service in islice(all_running_services(), SHOWN_MAX):
        with closing(service):
            path = service.configuration()
        by = path or ("the built-in demo catalogue" if path == "" else "a configuration that it does not tell")
        lines.append(f"There is one, process {service.process_id}, by {by}")
    return lines


def _ask(service: "RunningService", ask: "Ask") -> str:
    try:
        told = service.ask(ask)
    except OSError:
        raise CommandError("The service has ended before it answered; its log says why.") from None
    for note in told.notes:
        say_aside(f"tarazu: {as_typed(note)}")
    if told.problems:
        raise CommandError("\n".join(told.problems))
    return told.done
