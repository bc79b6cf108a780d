"""The full-screen face of the debugger, made with Textual, the extra `tui`: `face.run_face` shows a session.

`panes`, `heatmap` and `console` are what is on the screen, `looks` and `grid` what they show, as data. It holds no
debugging logic: keys and clicks give command lines to the table, values come from the inspection.
"""

from __future__ import annotations

from importlib.util import find_spec

from sonnx.spec.pages import MissingExtraError


def check_installed() -> None:
    """Raises MissingExtraError where Textual is not installed."""
    if find_spec("textual") is None:
        raise MissingExtraError("the full-screen face is made with Textual, which is not installed: install sonnx[tui]")
