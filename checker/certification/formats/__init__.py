"""The formats of a report: text, JSON, SARIF, HTML with drawings, and what a notebook shows.

`render` gives a report as one text, `text.write` prints it to a console. A format decides nothing: it reads `report`,
and must not know the certifier or the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ..report import Report

Form = Literal["json", "sarif", "html", "notebook"]


def render(report: Report, form: Form) -> str:
    """The report in a format. json: `report.schema.json` in this package is its schema. notebook: the page of html in
    a sandboxed frame. Equal reports give equal texts.
    """
    match form:
        case "json":
            from .json_report import to_json

            return to_json(report)
        case "sarif":
            from .sarif import to_sarif

            return to_sarif(report)
        case "html":
            from .html import to_html

            return to_html(report)
        case "notebook":
            from .html import to_frame

            return to_frame(report)


def notebook(report: Report) -> str | None:
    """The report as a notebook shows it: isolated in a frame, since it is a whole page with its own styles. None, for
    which a notebook takes the text, where no page can be made."""
    from sonnx.spec.pages import MissingExtraError

    try:
        return render(report, "notebook")
    except MissingExtraError:
        return None
