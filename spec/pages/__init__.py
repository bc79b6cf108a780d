"""Pages and pictures of every layer: HTML from templates, SVG and other elements made by functions.

`templates.page` fills a template under a policy that loads nothing, `svg.drawing` makes a picture, `markup.e` an
element; all three escape what they are given. It must not know what is shown.
"""

from __future__ import annotations

from importlib.util import find_spec


class MissingExtraError(ImportError):
    """An optional dependency is not installed: a one-line message that says which extra brings it. Exit code 2."""


def check_installed() -> None:
    """Pages can be made. Raises MissingExtraError where the extra `html` is not installed."""
    if find_spec("jinja2") is None:
        raise MissingExtraError("pages are made with Jinja, which is not installed: install sonnx[html]")
