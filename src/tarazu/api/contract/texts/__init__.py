"""The prose of the contract, in CommonMark, with the figures filled in from the code."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from tarazu.domain.prompt import INPUT_CHARACTERS_MAX, MESSAGES_MAX

_environment = Environment(
    # Prose for JSON, not for HTML: nothing is escaped here, and the page escapes when it renders.
    autoescape=False,  # noqa: S701
    loader=PackageLoader("tarazu.api.contract", "texts"),
    undefined=StrictUndefined,
)


def text(name: str, **values: str) -> str:
    """Read the text `name`.md and fill in the values."""
    figures = {"input_characters_max": f"{INPUT_CHARACTERS_MAX:,}", "messages_max": f"{MESSAGES_MAX:,}"}
    return _environment.get_template(f"{name}.md").render(figures | values)
