"""The frame of every page: a whole document without scripts, under a policy that loads nothing."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files

from .markup import Content, e, serialize
from .places import COVERAGE, DEMANDS, NAMES

INDEX = "index.html"
NAVIGATION = ((INDEX, "Specification"), (COVERAGE, "Operators"), (NAMES, "Names"), (DEMANDS, "Demands"))


@cache
def style() -> str:
    """The style of all pages."""
    return files(__package__).joinpath("style.css").read_text(encoding="utf-8")


@cache
def policy() -> str:
    """The policy of all pages: it admits their own style and nothing else."""
    digest = base64.b64encode(hashlib.sha256(style().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def page(title: str, *body: Content) -> str:
    """A page with its title as heading, and the links to the overviews above it."""
    head = e(
        "head",
        e("meta", charset="utf-8"),
        e("meta", http_equiv="Content-Security-Policy", content=policy()),
        e("meta", name="viewport", content="width=device-width, initial-scale=1"),
        e("title", title),
        e("style", style()),
    )
    links = e("nav", [e("a", label, href=address) for address, label in NAVIGATION])
    document = e("html", head, e("body", links, e("main", e("h1", title), *body)), lang="en")
    return f"<!DOCTYPE html>\n{serialize(document)}\n"
