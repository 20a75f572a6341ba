"""How help looks: a heading and two columns, without boxes."""

# ruff: noqa: PLC0415 - drawing is loaded only when help is asked for, so that every command starts fast

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions
    from rich.text import Text

MARGIN = 2
"""Spaces before a line of a section."""


class HelpLayout:
    """The layout of every command's help."""

    def render_usage(self, console: "Console", _options: "ConsoleOptions", usage: "Text | str | None") -> None:
        """Print how the command is typed."""
        if usage:
            console.print(f"Usage: {str(usage).removeprefix('Usage: ').rstrip()}", soft_wrap=True)
            console.print()

    def __call__(self, console: "Console", options: "ConsoleOptions", panel: "HelpPanel") -> None:
        """Print one section: arguments, options or subcommands."""
        from cyclopts.help.specs import (
            AsteriskColumn,
            DefaultStyled,
            TableSpec,
            get_default_command_columns,
            get_default_parameter_columns,
        )
        from rich.padding import Padding

        if not panel.entries:
            return
        columns_of = get_default_command_columns if panel.format == "command" else get_default_parameter_columns
        columns = tuple(
            column for column in columns_of(console, options, panel.entries) if column is not AsteriskColumn
        )
        console.print(f"{panel.title}:", style="bold")
        console.print(DefaultStyled(Padding(TableSpec().build(columns, panel.entries), (0, 0, 1, MARGIN))))
