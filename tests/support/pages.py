"""Pages as the tests see them: their tags, identifiers and links, and whether every tag is closed in its turn."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = {"meta", "hr", "br", "input"}


class Page(HTMLParser):
    """A parsed page. wrong: the tags that are closed out of turn; open: those that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.wrong: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def values(self, name: str) -> Iterator[str]:
        return (value for _, attributes in self.tags if (value := attributes.get(name)) is not None)
