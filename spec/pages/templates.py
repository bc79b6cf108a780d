"""Pages of HTML from Jinja templates, which lie beside the code that fills them. Jinja is the extra `html`.

A template extends `page.html`, the frame of all pages. Every value is made inert and escaped, unless a template says
`|safe` of it, which only what `markup` and `svg` made may be called.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from ..terminal import inert
from . import check_installed

if TYPE_CHECKING:
    from jinja2 import Environment

FRAME = "page.html"


def page(package: str, template: str, style: str | None = None, **values: object) -> str:
    """The page that a template of a package makes of values; equal values give equal bytes.

    style: the style sheet in the package, the only one that the page's policy admits. Raises MissingExtraError.
    """
    sheet = "" if style is None else files(package).joinpath(style).read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(sheet.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return templates().get_template(f"{package}:{template}").render(style=sheet, policy=policy, **values)


@cache
def templates() -> Environment:
    """The environment that fills templates, named `package:file`. Raises MissingExtraError where Jinja is not
    installed."""
    check_installed()
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def source(name: str) -> str:
        package, _, file = (name if name != FRAME else f"{__package__}:{FRAME}").partition(":")
        return files(package).joinpath(file).read_text(encoding="utf-8")

    return Environment(
        loader=FunctionLoader(source),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_harmless,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _harmless(value: object) -> object:
    """The value with control characters as escapes; markup stays as it is."""
    return value if hasattr(value, "__html__") else inert(str(value))
