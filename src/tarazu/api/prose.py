"""Turn the contract's CommonMark into HTML: escaped, with tables that read well on a small screen too."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup
from msgspec import Struct

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_ROLES = {"table_open": "table", "tr_open": "row", "th_open": "columnheader", "td_open": "cell"}


class Section(Struct, frozen=True):
    """A part of a text under a heading; `slug` names it in addresses."""

    slug: str
    title: str
    html: Markup


def block(text: str) -> Markup:
    """Render paragraphs, lists, tables and code."""
    commonmark = _commonmark()
    tokens = commonmark.parse(text)
    _label_cells(tokens)
    return Markup(commonmark.renderer.render(tokens, commonmark.options, {}))  # noqa: S704 - the renderer escapes


def inline(text: str) -> Markup:
    """Render one line, without a paragraph around it."""
    return Markup(_commonmark().renderInline(text))  # noqa: S704 - the renderer escapes


def sections(text: str) -> tuple[Markup, tuple[Section, ...]]:
    """Split a text at its headings of the second level: what comes before them, and the sections."""
    opening, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    titled = (part.partition("\n") for part in rest)
    return block(opening), tuple(Section(slug(title), title, block(body)) for title, _, body in titled)


def slug(title: str) -> str:
    """Make a name for addresses out of a title."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


@cache
def _commonmark() -> "MarkdownIt":
    """Make the reader of CommonMark, for which raw HTML in a text stays text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a worker that is asked for no page starts without it

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("fence", _code)
    return reader


def _code(_renderer: object, tokens: "Sequence[Token]", index: int, _options: object, _env: object) -> str:
    """Render a block of code that can be scrolled with the keyboard too."""
    return Markup('<pre tabindex="0" role="group" aria-label="Code"><code>{}</code></pre>\n').format(
        tokens[index].content
    )


def _label_cells(tokens: "list[Token]") -> None:
    """Give every cell its column's title, which stands beside it where there is no room for columns.

    The roles keep a table a table for screen readers when the style sheet lays its rows out as blocks.
    """
    labels: list[str] = []
    column = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.type in _ROLES:
            token.attrSet("role", _ROLES[token.type])
        if token.type == "table_open":
            labels = []
        elif token.type == "tr_open":
            column = 0
        elif token.type == "th_open" and following is not None:
            labels.append(following.content.replace("`", ""))
        elif token.type == "td_open":
            token.attrSet("data-label", labels[column])
            column += 1
