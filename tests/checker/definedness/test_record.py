"""The record of what is proved defined: a row counts as long as the definition means what it meant."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sonnx.checker.definedness.record import Record, definedness_line, digest, read_records, verdicts, write_records
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import FunctionDeclaration, Operator
from tables import table

TEXT = """
define one(): Int "One." = 1
define two(): Int "Two." = one() + 1
fun order(x: Array): Array Int "A tensor."
fun fraction(x: Element): Element "A part." accuracy 2 "two units"
operator Relu @ 6..13 (X: T[d...]) -> Y: T "Doc."
  require at_least_two: len(d) >= two() "At least two."
    demanded ONNX
  Y[i... < d] = fraction(X[i])
operator Relu @ 14 (X: T[d...]) -> Y: T "Doc."
  Y = Relu@13(X)
operator If @ 1 (cond: B) -> outputs*: V "Doc."
  by rule Step/if
"""
Operators = Mapping[str, tuple[Operator, ...]]


def declared(text: str = TEXT) -> tuple[Operators, Mapping[str, FunctionDeclaration]]:
    declarations = parse(text, "t").declarations
    operators = [d for d in declarations if isinstance(d, Operator)]
    functions = {d.name: d for d in declarations if isinstance(d, FunctionDeclaration)}
    return {name: tuple(o for o in operators if o.name == name) for name in ("Relu", "If")}, functions


def digests(text: str = TEXT) -> tuple[str, str]:
    """Of the two definitions of Relu."""
    operators, functions = declared(text)
    first, second = (digest(operator, operators, functions) for operator in operators["Relu"])
    return first, second


@table(
    ("old", "new"),
    [
        ('"At least two."', '"Two or more."'),
        ("demanded ONNX", 'demanded SONNX/R1\n    note "Why."'),
        ('"Doc."\n  require', '"Another sentence."\n  source "any"\n  require'),
        ('"Two."', '"A number."'),
        ("\noperator Relu @ 6", "\n# A comment.\noperator Relu @ 6"),
        ("  Y[i... < d]", '  restrict few: len(d) < 4 "Few."\n    demanded SONNX/R1\n  Y[i... < d]'),
        ("accuracy 2", "accuracy 3"),
        ("Array Int", "Array Bool"),
    ],
)
def test_what_is_said_about_a_meaning_or_not_used_does_not_change_its_digest(old: str, new: str) -> None:
    assert TEXT.replace(old, new) != TEXT
    assert digests(TEXT.replace(old, new)) == digests()


@table(
    ("old", "new"),
    [
        ("len(d) >= two()", "len(d) > two()"),
        ("= fraction(X[i])\n", "= fraction(X[i]) + X[i]\n"),
        ("X: T[d...]) -> Y: T \"Doc.\"\n  require", "X: T[m, d...]) -> Y: T \"Doc.\"\n  require"),
        ("= one() + 1", "= one() + 2"),
        (' = 1\n', " = 3\n"),
        ("fraction(x: Element)", "fraction(y: Element)"),
    ],
)  # fmt: skip
def test_a_change_of_the_meaning_changes_the_digest_of_all_that_use_it(old: str, new: str) -> None:
    assert TEXT.replace(old, new) != TEXT
    changed = digests(TEXT.replace(old, new))
    assert changed[0] != digests()[0]
    assert changed[1] != digests()[1]


def row(verdict: str, digest_: str, first: int = 6, *, left: tuple[str, ...] = ()) -> Record:
    return Record("Relu", first, 13 if first == 6 else 14, digest_, verdict, "every", 5, left)


def test_a_table_is_read_as_it_was_written() -> None:
    rows = (row("listed", "00ff", left=("contract f", "short axes")), row("proved", "0011", 14))
    assert read_records(write_records(reversed(rows))) == rows


def test_a_table_with_other_columns_is_refused() -> None:
    with pytest.raises(ValueError, match="columns"):
        read_records("operator\tverdict\nRelu\tproved\n")


def test_a_row_counts_while_the_definition_means_the_same() -> None:
    first, second = digests()
    rows = [row("proved", first), row("listed", second, 14)]
    assert verdicts(rows, *declared()) == {"Relu": {6: "proved", 14: "listed"}}
    changed = declared(TEXT.replace("= one() + 1", "= one() + 2"))
    assert verdicts(rows, *changed) == {"Relu": {6: "stale", 14: "stale"}}
    assert verdicts(rows[:1], *declared()) == {"Relu": {6: "proved", 14: "not recorded"}}


def test_the_counts_say_what_has_no_verdict() -> None:
    found = {"Relu": {6: "proved", 14: "stale"}, "Abs": {6: "proved"}}
    assert definedness_line(found) == "definedness of 3 definitions: 2 proved, 0 tested, 0 listed, 1 stale"
