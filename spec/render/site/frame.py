"""The frame of every page of the site: its title as heading, and the links to the overviews above it."""

from __future__ import annotations

from ...pages.markup import Content, e, serialize
from ...pages.templates import page as filled
from .places import COVERAGE, DEMANDS, NAMES

INDEX = "index.html"
NAVIGATION = ((INDEX, "Specification"), (COVERAGE, "Operators"), (NAMES, "Names"), (DEMANDS, "Demands"))


def page(title: str, *body: Content) -> str:
    """A page."""
    main = serialize(e("main", e("h1", title), *body))
    return filled(__package__, "site.html", "style.css", title=title, links=NAVIGATION, main=main)
