"""The commands that operators and callers type."""

from importlib.metadata import version

from cyclopts import App

app = App(name="tarazu", help="A metered chat-completion service.", version=version("tarazu"))


def main() -> None:
    """Run the command that the process's arguments name."""
    app()
