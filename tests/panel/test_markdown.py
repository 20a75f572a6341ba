"""What a model writes in Markdown is shown so, and can do nothing to the page."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.panel.markdown import NESTING_MAX, markdown
from tests.support.visitor import Html

TAGS = frozenset(
    "p em strong s code pre ul ol li blockquote a br hr div table thead tbody tr th td".split()  # noqa: SIM905
)
ATTRIBUTES = frozenset({"dir", "class", "tabindex", "role", "aria-label", "href", "title", "target", "rel", "start"})
WRITTEN = st.lists(
    st.sampled_from(
        [
            "# ", "- ", "1. ", "> ", "```\n", "`", "**", "_", "~~", "[", "](", ")", "![", "<", ">", "|", "-|-", "\n",
            "\n\n", "    ", "&lt;", "&", '"', "'", "\\", "javascript:alert(1)", "https://a.example/", "data:text/html,",
            "<script>", "<img src=x onerror=alert(1)>", "onclick=", "\u202e", "\u2066", "سلام", "word ", "\x01",
        ]
    ),
    max_size=40,
).map("".join)  # fmt: skip


def _rendered(text: str) -> Html | None:
    rendered = markdown(text, code="Code", table="Table")
    return None if rendered is None else Html(rendered)


@given(WRITTEN)
def test_nothing_that_is_written_leaves_its_place(text: str) -> None:
    """There is no element, attribute or address beside the few that a text needs, and what is opened is closed."""
    html = _rendered(text)
    for tag, attributes in [] if html is None else html.elements:
        assert tag in TAGS
        assert set(attributes) <= ATTRIBUTES
        assert attributes.get("href", "https://").startswith(("http://", "https://", "mailto:"))
        assert attributes.get("rel", "noopener noreferrer nofollow") == "noopener noreferrer nofollow"
        assert ("target" in attributes) == ("href" in attributes)


@pytest.mark.parametrize(
    ("text", "tag", "seen"),
    [
        ("**bold**", "strong", "bold"),
        ("- one\n- two", "li", "one two"),
        ("1. one", "ol", "one"),
        ("```python\nprint(1)\n```", "pre", "print(1)"),
        ("|a|b|\n|-|-|\n|1|2|", "td", "a b 1 2"),
        ("[a](https://example.com/)", "a", "a"),
        ("a\nb", "br", "a b"),
        ("~~gone~~", "s", "gone"),
        ("> said", "blockquote", "said"),
        ("![a](https://example.com/a.png)", "a", "! a"),
    ],
)
def test_what_models_write_is_shown_as_it_is_meant(text: str, tag: str, seen: str) -> None:
    """The marks are gone, and the element is there."""
    html = _rendered(text)
    assert html is not None
    assert tag in [found for found, _ in html.elements]
    assert html.text == seen


@pytest.mark.parametrize(
    "text",
    ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[a](javascript:alert(1))", "<b onclick=x>y</b>"],
)
def test_what_could_load_or_run_stays_text(text: str) -> None:
    """It can be read."""
    html = _rendered(text)
    assert html is not None
    assert "alert(1)" in html.text or "onclick" in html.text
    assert {"script", "img", "b"}.isdisjoint(tag for tag, _ in html.elements)


def test_headings_are_not_those_of_the_page() -> None:
    """Who goes through a page by its headings finds the page's own."""
    html = _rendered("# One\n\n### Two")
    assert html is not None
    assert [tag for tag, _ in html.elements] == ["p", "p"]
    assert html.values("class") == ["heading", "heading"]


@pytest.mark.parametrize("mark", ["> ", "- ", "1. "])
def test_what_is_nested_beyond_all_measure_loses_no_word(mark: str) -> None:
    """It is shown as it is written."""
    assert _rendered(mark * (NESTING_MAX * 2) + "word") is None
    html = _rendered(mark * 3 + "word")
    assert html is not None
    assert "word" in html.text
