"""The formats of reports: text, JSON, SARIF, JUnit, HTML with drawings, and what a notebook shows.

`render` gives the outcome for one model as one text, `render_all` that for several; `text.write` and `text.summarize`
print to a console, `html.write_pages` writes a folder of pages. A format decides nothing: it reads `report`, and must
not know the certifier or the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..report import Outcome, Report


def _json(outcomes: Sequence[Outcome], *, several: bool) -> str:
    """`report.schema.json` in this package is the schema of one, and of the `report` in each line of several."""
    from .json_report import to_json, to_lines

    return to_lines(outcomes) if several else "".join(to_json(it.report) for it in outcomes if it.report is not None)


def _sarif(outcomes: Sequence[Outcome], *, several: bool) -> str:
    from .sarif import to_sarif

    return to_sarif(outcomes)


def _junit(outcomes: Sequence[Outcome], *, several: bool) -> str:
    from .junit import to_junit

    return to_junit(outcomes)


def _html(outcomes: Sequence[Outcome], *, several: bool) -> str:
    from .html import to_html, to_index

    return to_index(outcomes) if several else "".join(to_html(it.report) for it in outcomes if it.report is not None)


FORMATS: Final[Mapping[str, Callable[..., str]]] = {"json": _json, "sarif": _sarif, "junit": _junit, "html": _html}
"""The formats by name, as `sonnx certify --format` offers them. Each is imported when it is asked for."""


def render(report: Report, form: str) -> str:
    """The report in a format. Equal reports give equal texts. Raises KeyError for a form that is none of `FORMATS`."""
    from ..report import Outcome

    return render_one([Outcome(report.model.path or report.model.name, 0, report)], form)


def render_one(outcomes: Sequence[Outcome], form: str) -> str:
    """The same from the outcome for one model, in a list."""
    return FORMATS[form](outcomes, several=False)


def render_all(outcomes: Sequence[Outcome], form: str) -> str:
    """The outcomes for several models in a format: JSON has a line for each, HTML is the index of the pages."""
    return FORMATS[form](outcomes, several=True)


def notebook(report: Report) -> str | None:
    """The report as a notebook shows it: isolated in a frame, since it is a whole page with its own styles. None, for
    which a notebook takes the text, where no page can be made."""
    from sonnx.spec.pages import MissingExtraError

    from .html import to_frame

    try:
        return to_frame(report)
    except MissingExtraError:
        return None
