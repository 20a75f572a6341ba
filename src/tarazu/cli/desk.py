"""What commands work with: the configuration and the books. Their failures become errors for people."""

# ruff: noqa: PLC0415 - configuration and database are loaded only by the commands that use them

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu.cli.clock import system_clock
from tarazu.cli.errors import CommandError
from tarazu.cli.operator_name import operator_name
from tarazu.cli.program import command_line, name_configuration

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from tarazu.service.configuration import Configuration
    from tarazu.service.provisioning import Provisioning


def read_configuration(path: Path | None, *, needs_secrets: bool = False, looks_up: bool = False) -> "Configuration":
    """Read the configuration that --config or the surroundings name; only who asks backends needs their keys.

    Who will listen, or says whether that can be done, also `looks_up` the host.

    Raises:
        CommandError: it is not usable; all its problems are listed.
    """
    from tarazu.service.configuration import ConfigurationError, load, looked_up

    name_configuration(path)
    try:
        configuration = load(path, needs_secrets=needs_secrets)
        return looked_up(configuration) if looks_up else configuration
    except ConfigurationError as error:
        count = len(error.problems)
        problem = str(error) if count == 1 else f"The configuration has {count} problems.\n{error}"
        raise CommandError(problem, f"Put it right, and check it with: {command_line('check', path)}") from None


def base_url_of(configuration: "Configuration") -> str:
    """Tell the address for links: the public one, else that of the running service, else the configured one.

    So a link leads to what runs, also where it was started with --host and --port.
    """
    from tarazu.service.control import running_services

    server = configuration.server
    if server.public_url is not None:
        return server.public_url
    for service in running_services(configuration.path):
        with closing(service):
            address = service.address()
        if address:
            return address
    return server.base_url


@contextmanager
def books_errors(configuration: "Configuration") -> Iterator[None]:
    """Say to a person that the books cannot be used, and where they are looked for.

    Raises:
        CommandError: in place of BooksUnavailableError.
    """
    from tarazu.store.availability import BooksUnavailableError

    try:
        yield
    except BooksUnavailableError as error:
        raise CommandError(str(error), configuration.books_place) from None


@contextmanager
def open_books(configuration: "Configuration") -> Iterator["Engine"]:
    """Open the books for the length of a command, as they are: none are made or migrated.

    Raises:
        CommandError: they cannot be used, then or later.
    """
    from tarazu.service import books

    with books_errors(configuration):
        engine = books.open_books(configuration.database_url)
        try:
            yield engine
        finally:
            engine.dispose()


@contextmanager
def open_provisioning(configuration: "Configuration", *, by: str | None = None) -> Iterator["Provisioning"]:
    """Open the books for the acts of an operator: `by` if that is a name, else whoever runs the command.

    Raises:
        CommandError: the books cannot be used, or the act cannot be done.
    """
    from tarazu.service.provisioning import Provisioning
    from tarazu.service.provisioning_errors import ProvisioningError

    with open_books(configuration) as engine:
        try:
            yield Provisioning(engine, configuration.catalogue, system_clock, by=operator_name() if by is None else by)
        except ProvisioningError as error:
            raise CommandError(str(error) if error.hint is None else f"{error} {error.hint}") from None
