"""Turn a model's reply, written in Markdown, into HTML: nothing in it can load, run or break out of its place.

Raw HTML stays text, and a picture is a link: it would tell its server who reads what. Each block finds its direction,
since replies mix languages. A text that is nested too deeply to be shown whole stays as it is written.
"""

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MARKDOWN_CHARACTERS_MAX = 24_000
"""Of all replies of a page together: half a second of work at the very worst, 20 ms as models write."""
NESTING_MAX = 20
LINKS = ("http://", "https://", "mailto:")
_DIRECTED = frozenset({"paragraph_open", "heading_open", "blockquote_open", "bullet_list_open", "ordered_list_open"})


def markdown(text: str, *, code: str, table: str) -> Markup | None:
    """Render a text; None where it is better shown as it is. `code` and `table` name these to who hears the page."""
    reader = _reader()
    tokens = reader.parse(text)
    if any(token.level >= NESTING_MAX - 2 for token in tokens):
        return None
    for token in tokens:
        if token.type in _DIRECTED:
            token.attrSet("dir", "auto")
        if token.type in {"heading_open", "heading_close"}:  # the headings of the page are not a model's to write
            token.tag = "p"
            if token.nesting == 1:
                token.attrSet("class", "heading")
    return Markup(reader.renderer.render(tokens, reader.options, {"code": code, "table": table}))  # noqa: S704 - the renderer escapes


@cache
def _reader() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 - a worker that is asked for no page starts without it

    reader = MarkdownIt("commonmark", {"html": False, "breaks": True, "maxNesting": NESTING_MAX})
    reader.enable(["table", "strikethrough"]).disable("image")
    reader.validateLink = lambda url: url.lower().startswith(LINKS)  # type: ignore[method-assign]
    for name in ("fence", "code_block"):
        reader.add_render_rule(name, _code)
    reader.add_render_rule("table_open", _table)
    reader.add_render_rule("table_close", _table_end)
    reader.add_render_rule("link_open", _link)
    return reader


def _code(_renderer: object, tokens: "Sequence[Token]", index: int, _options: object, env: dict[str, str]) -> str:
    """Render a block of code that can be scrolled with the keyboard too."""
    block = Markup('<pre dir="ltr" tabindex="0" role="group" aria-label="{}"><code>{}</code></pre>\n')
    return block.format(env["code"], tokens[index].content)


def _table(_renderer: object, _tokens: object, _index: object, _options: object, env: dict[str, str]) -> str:
    """Begin a table that can be scrolled alone, with the keyboard too."""
    begin = Markup(
        '<div class="wide-table" tabindex="0" role="group" aria-label="{}"><table class="figures" dir="auto">\n'
    )
    return begin.format(env["table"])


def _table_end(*_: object) -> str:
    return "</table></div>\n"


def _link(renderer: object, tokens: "Sequence[Token]", index: int, options: object, env: object) -> str:
    """Open a link beside the page, and tell its target nothing of it."""
    tokens[index].attrSet("target", "_blank")
    tokens[index].attrSet("rel", "noopener noreferrer nofollow")
    rendered: str = renderer.renderToken(tokens, index, options, env)  # type: ignore[attr-defined]
    return rendered
