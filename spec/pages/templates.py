"""Pages of HTML from Jinja templates, which lie beside the code that fills them. Jinja is the extra `html`.

A template extends `page.html`, the frame of all pages. Every value is made inert and escaped, unless a template says
`|safe` of it, which only what `markup` and `svg` made may be called.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from ..terminal import inert
from . import check_installed

if TYPE_CHECKING:
    from jinja2 import Environment

FRAME = "page.html"


@dataclass(frozen=True, slots=True)
class Parts:
    """A style sheet and a script of our own, which a page has besides."""

    style: str
    script: str


NONE: Final = Parts("", "")


def page(package: str, template: str, style: str | None = None, *, parts: Parts = NONE, **values: object) -> str:
    """The page that a template of a package makes of values; equal values give equal bytes.

    style: the style sheet in the package. It and the parts are all that the page's policy admits: a script that comes
    in with a value is not run. Raises MissingExtraError.
    """
    sheet = "" if style is None else files(package).joinpath(style).read_text(encoding="utf-8")
    sheet += parts.style
    admitted = f"style-src '{_digest(sheet)}'" + (f"; script-src '{_digest(parts.script)}'" if parts.script else "")
    policy = f"default-src 'none'; {admitted}; base-uri 'none'; form-action 'none'"
    filled = templates().get_template(f"{package}:{template}")
    return filled.render(style=sheet, script=parts.script, policy=policy, **values)


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


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
