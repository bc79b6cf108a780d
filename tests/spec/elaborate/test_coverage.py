"""Coverage: how the text gives each version of an operator its meaning."""

from __future__ import annotations

import pytest
from sonnx.spec.elaborate.coverage import coverage, coverage_lines, in_force, kind_of, used_definitions
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import FunctionDeclaration, Operator
from tables import table

TEXT = """
fun order(x: Array): Array Int "A tensor."
define two(): Int "Two." = 2
define four(): Int "Four." = two() + two()
define six(): Int "Six." = 6
operator Relu @ 6..13 (X: T[d...]) -> Y: T "Doc."
  along t < four() { view H[t < 3] = 1 }
  Y[i... < d] = X[i] + H[0]
operator Relu @ 14 (X: T[d...]) -> Y: T "Doc."
  Y = Relu@13(X)
operator Abs @ 6 (X: T) -> Y: T "Doc."
  Y = order(X)
operator If @ 1 (cond: B) -> outputs*: V "Doc."
  by rule Step/if
"""
DECLARATIONS = parse(TEXT, "t").declarations
FUNCTIONS = {d.name: d for d in DECLARATIONS if isinstance(d, FunctionDeclaration)}
RELU = tuple(d for d in DECLARATIONS if isinstance(d, Operator) and d.name == "Relu")
OPERATORS = {d.name: (d,) for d in DECLARATIONS if isinstance(d, Operator)} | {"Relu": RELU}


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("Relu", ["defined", "composed"]), ("Abs", ["primitive"]), ("If", ["rule"])],
)
def test_the_statements_say_how_an_operator_is_defined(name: str, kinds: list[str]) -> None:
    assert [kind_of(operator, FUNCTIONS) for operator in OPERATORS[name]] == kinds


def test_every_version_of_every_operator_is_counted() -> None:
    found = coverage(OPERATORS, FUNCTIONS)
    assert found["Relu"] == {1: "earlier", 6: "defined", 13: "defined", 14: "composed"}
    assert set(found["Conv"].values()) == {"missing"}
    assert found["Upsample"] == {1: "earlier", 7: "missing", 9: "missing", 10: "deprecated"}
    lines = coverage_lines(found)
    assert lines[0].startswith("operators by version: 2 defined, 1 composed, 1 primitive, 1 rule, ")
    assert "  Relu                   earlier 1; defined 6, 13; composed 14" in lines
    assert lines[-1].startswith("missing at every version (") and " Conv, " in lines[-1]


def test_the_verdicts_on_definedness_stand_beside_the_versions() -> None:
    lines = coverage_lines(coverage(OPERATORS, FUNCTIONS), {"Relu": {6: "proved", 14: "stale"}, "Abs": {6: "proved"}})
    assert {
        line.split()[0]: line.partition(" | ")[2] for line in lines if "defined 6" in line or "primitive 6" in line
    } == {
        "Relu": "proved 6; stale 14",
        "Abs": "proved",
    }


@table(("opset", "found"), [(5, 1), (6, RELU[0]), (12, RELU[0]), (14, RELU[1]), (99, RELU[1]), (0, 0)])
def test_the_meaning_in_force_is_that_of_the_newest_version_up_to_the_opset(opset: int, found: object) -> None:
    assert in_force(RELU, "Relu", opset) == found


def test_the_definitions_that_a_text_uses_are_found_through_each_other() -> None:
    assert [f.name for f in used_definitions(RELU[0], FUNCTIONS)] == ["four", "two"]
