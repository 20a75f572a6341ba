"""A page as tests read it: its elements and its text."""

from html.parser import HTMLParser

VOID = {"link", "meta", "path", "br", "hr", "img"}


class Page(HTMLParser):
    """The page as a browser reads it: elements with their attributes, and the text between them."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.pieces: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Check that the element that ends is the one that is open."""
        if tag not in VOID:
            assert self.open.pop() == tag, f"{self.getpos()}: {tag}"

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.pieces.append(data)

    @property
    def text(self) -> str:
        """All text, with single spaces."""
        return " ".join(" ".join(self.pieces).split())

    def values(self, name: str) -> list[str]:
        """List the values of an attribute, in the order of the page."""
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]

    def count(self, tag: str) -> int:
        """Count the elements of one kind."""
        return sum(found == tag for found, _ in self.elements)
