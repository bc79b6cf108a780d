"""Every error message of the language, each with its golden text.

`SONNX_UPDATE=1 pytest tests/spec/language/test_errors.py` writes the golden texts anew; read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.language.errors import InternalError, SpecError, mistake, render, render_all
from sonnx.spec.language.messages import MESSAGES
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Span
from tables import table

CASES = sorted((Path(__file__).parent / "errors").glob("*.sonnx"))
UPDATE = os.environ.get("SONNX_UPDATE") == "1"


def errors_of(case: Path) -> tuple[SpecError, ...]:
    try:
        return elaborate([parse(case.read_text(encoding="utf-8"), case.name)]).errors
    except SpecError as error:
        return (error,)


@table("case", CASES, ids=lambda case: case.stem)
def test_the_message_is_as_expected(case: Path) -> None:
    text = render_all(errors_of(case), {case.name: case.read_text(encoding="utf-8")}) + "\n"
    golden = case.with_suffix(".expect")
    if UPDATE:
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


@table("case", CASES, ids=lambda case: case.stem)
def test_a_case_shows_the_kind_that_it_is_named_after(case: Path) -> None:
    kinds = {error.kind.replace("/", "-") for error in errors_of(case)}
    assert any(case.stem.startswith(kind) for kind in kinds) or case.stem in ALSO


ALSO = {"template-unbound", "transition-use-before-bind", "transition-unused-let"}
"""Cases of a message in a place that is worth a case of its own, named after the place."""


def test_every_message_has_a_case() -> None:
    elsewhere = {"added/kind"}  # of files that are added to the specification: test_additions.py
    assert {error.kind for case in CASES for error in errors_of(case)} == set(MESSAGES) - elsewhere


def test_every_golden_text_belongs_to_a_case() -> None:
    golden = {path.stem for path in (Path(__file__).parent / "errors").glob("*.expect")}
    assert golden == {case.stem for case in CASES}


def test_all_mistakes_are_reported_in_the_order_of_the_text() -> None:
    text = 'fact f(x: A): B "One."\nfact g(x: C): Int "Two."\n'
    found = elaborate([parse(text, "t")]).errors
    assert [(e.span.line, e.message) for e in found] == [
        (1, "no sort is named B"),
        (1, "no sort is named A"),
        (2, "no sort is named C"),
    ]


def test_the_order_of_files_decides_before_the_line() -> None:
    first, second = parse('\n\nfact f(): A "One."\n', "z"), parse('fact g(): B "Two."\n', "a")
    assert [e.span.file for e in elaborate([first, second]).errors] == ["z", "a"]


def test_an_error_without_its_source_is_rendered_without_the_line() -> None:
    error = mistake("name/sort", Span("f", 1, 2, 1, 3), name="A", hint="")
    assert render(error, {}) == "f:1:2: name error: no sort is named A"


def test_the_underline_ends_with_the_line_for_a_span_of_several_lines() -> None:
    error = mistake("name/sort", Span("f", 1, 4, 3, 2), name="A", hint="")
    assert render(error, {"f": "abcdef\nx\ny"}).splitlines()[1:] == ["1 | abcdef", "  |    ^^^"]


def test_a_kind_without_a_message_is_a_defect_of_the_package() -> None:
    with pytest.raises(InternalError):
        mistake("name/nonsense", Span("f", 1, 1, 1, 1))
