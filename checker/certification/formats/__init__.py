"""The formats of a report: text, JSON, SARIF, HTML with drawings, and what a notebook shows.

`render` gives a report as one text, `text.write` prints it to a console. A format decides nothing: it reads `report`,
and must not know the certifier or the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..report import Report


def _json(report: Report) -> str:
    """`report.schema.json` in this package is its schema."""
    from .json_report import to_json

    return to_json(report)


def _sarif(report: Report) -> str:
    from .sarif import to_sarif

    return to_sarif(report)


def _html(report: Report) -> str:
    from .html import to_html

    return to_html(report)


FORMATS: Final[Mapping[str, Callable[[Report], str]]] = {"json": _json, "sarif": _sarif, "html": _html}
"""The formats by name, as `sonnx certify --format` offers them. Each is imported when it is asked for."""


def render(report: Report, form: str) -> str:
    """The report in a format. Equal reports give equal texts. Raises KeyError for a form that is none of `FORMATS`."""
    return FORMATS[form](report)


def notebook(report: Report) -> str | None:
    """The report as a notebook shows it: isolated in a frame, since it is a whole page with its own styles. None, for
    which a notebook takes the text, where no page can be made."""
    from sonnx.spec.pages import MissingExtraError

    from .html import to_frame

    try:
        return to_frame(report)
    except MissingExtraError:
        return None
