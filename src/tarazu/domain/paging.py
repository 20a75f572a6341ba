"""The pages of a list: how many there are, which one is shown, and which ones lie around it. Pure."""

from typing import Final

from msgspec import Struct

AROUND = 2
"""So many pages are named before and after the one that is shown, beside the first and the last."""
PAGE_LENGTH: Final = 25


class Paging(Struct, frozen=True, kw_only=True):
    """A list of `count` things, of which the page `number` shows at most `length`; pages are counted from 1."""

    count: int
    number: int = 1
    length: int = PAGE_LENGTH

    @classmethod
    def of(cls, count: int, asked: int | None, *, length: int = PAGE_LENGTH) -> "Paging":
        """Take the page that is asked for; beyond either end it is the one at that end."""
        last = cls(count=count, length=length).last
        return cls(count=count, number=min(max(1, asked or 1), last), length=length)

    @property
    def last(self) -> int:
        """The number of the last page; a list of nothing has one."""
        return max(1, -(-self.count // self.length))

    @property
    def offset(self) -> int:
        """How many things come before the first that is shown."""
        return (self.number - 1) * self.length

    @property
    def end(self) -> int:
        """How many come before the page after this one."""
        return min(self.count, self.offset + self.length)

    @property
    def named(self) -> tuple[int | None, ...]:
        """List the pages that links lead to, this one included; None where some between them are left out."""
        near = {1, self.last, *range(max(1, self.number - AROUND), min(self.last, self.number + AROUND) + 1)}
        named: list[int | None] = []
        for number in sorted(near):
            before = named[-1] if named else 0
            if before is not None and number - before == AROUND:  # one page is no gap
                named.append(number - 1)
            elif before is not None and number - before > AROUND:
                named.append(None)
            named.append(number)
        return tuple(named)
