"""The meanings of an operator differ: for each pair of its texts there is an application which tells them apart."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import version_cases_earlier
import version_cases_neural
import version_cases_numeric
import version_cases_structure
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader.text import from_text
from sonnx.semantics.operators.application import Stuck as MachineStuck
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.library import specification
from tables import table
from version_cases import FOREIGN, Case, Stuck, case, f32, fits, outcome, same

CASES = (
    *version_cases_earlier.CASES,
    *version_cases_neural.CASES,
    *version_cases_numeric.CASES,
    *version_cases_structure.CASES,
)
MANY = sorted(name for name, texts in specification().operators.items() if len(texts) > 1)
BY_RULE = {"Scan": {(8, 9)}}
"""Operators whose meaning is a rule of the machine; a test of its own tells the texts of these versions apart."""


def versions(op_type: str, version: int) -> list[int]:
    """The versions of the text that holds for a version."""
    texts = specification().operators[op_type]
    (text,) = (it for it in texts if it.first <= version <= it.last)
    return [s.version for s in signatures()[op_type] if text.first <= s.version <= text.last]


def pairs(op_type: str) -> list[tuple[int, int]]:
    """The first versions of each two texts of an operator."""
    firsts = [text.first for text in specification().operators[op_type]]
    return list(combinations(sorted(firsts), 2))


def told_apart(one: Case) -> set[tuple[int, int]]:
    """The pairs of texts that a case tells apart, by their first versions."""
    known = sorted(one.outcomes)
    found = [pair for pair in combinations(known, 2) if one.tells_apart(*pair)]
    return {(versions(one.op_type, a)[0], versions(one.op_type, b)[0]) for a, b in found}


@table("op_type", MANY)
def test_a_case_tells_each_two_meanings_apart(op_type: str) -> None:
    told = BY_RULE.get(op_type, set()).union(*(told_apart(it) for it in CASES if it.op_type == op_type))
    missing = [pair for pair in pairs(op_type) if pair not in told]
    assert not missing, f"{op_type}: no application tells the texts of these versions apart"


@table("given", [pytest.param(it, id=f"{it.op_type}-{at}") for at, it in enumerate(CASES)])
def test_each_version_gives_what_the_case_says(given: Case) -> None:
    for version, expected in given.outcomes.items():
        holding = versions(given.op_type, version)
        if expected is not FOREIGN:
            holding = [it for it in holding if fits(given, it)]
        assert holding, f"no version of the text of {given.op_type}-{version} has the application"
        for it in holding:
            found = outcome(given, it)
            assert same(found, expected), (it, found, expected)


def test_cases_are_of_operators_with_more_than_one_meaning() -> None:
    assert {it.op_type for it in CASES} | set(BY_RULE) <= set(MANY)


# ---- Scan ---------------------------------------------------------------------------------------

SCAN = """<ir_version: 8, opset_import: ["" : {version}]>
g (float[{batch}1] s, float[{batch}3] x) => (float[{batch}1] t, float[{batch}3] y) {{
  t, y = Scan <num_scan_inputs = 1, body = b (float[1] a, float e) => (float[1] c, float d) {{
    c = Add (a, e)
    d = Identity (e)
  }}> ({before}s, x)
}}"""


def scanned(version: int, batched: bool) -> Any:
    """The last state of a Scan that sums 1, 2 and 3 onto 10, with inputs as version 8 has them, or as version 9."""
    text = SCAN.format(version=version, batch="1, " if batched else "", before=", " if batched else "")
    s, x = f32([10]), f32([1, 2, 3])
    try:
        done = run(from_text(text.encode()), {"s": s[None] if batched else s, "x": x[None] if batched else x})
    except ModelError as error:
        return error
    return done.stuck or done.outputs["t"]


def test_scan_8_has_a_batch_axis_and_lengths_and_scan_9_has_neither() -> None:
    assert same(scanned(8, True), f32([[16]]))
    assert same(scanned(9, False), f32([16]))
    assert isinstance(scanned(9, True), (MachineStuck, ModelError))
    assert isinstance(scanned(8, False), (MachineStuck, ModelError))


# ---- the judgement itself -----------------------------------------------------------------------


def test_outcomes_that_differ_in_type_shape_or_sign_of_zero_are_not_the_same() -> None:
    assert same(f32([1, np.nan]), f32([1, np.nan]))
    assert not same(f32([0.0]), f32([-0.0]))
    assert not same(f32([1]), np.array([1.0]))
    assert not same(f32([1]), f32([[1]]))
    assert not same((f32([1]),), f32([1]))
    assert not same(Stuck("a"), Stuck("b"))
    assert not same(Stuck("a"), FOREIGN)


def test_a_case_with_the_same_outcome_tells_nothing_apart() -> None:
    alike = case("Relu", f32([-1]), {1: f32([0]), 6: f32([0])})
    assert told_apart(alike) == set()
    assert told_apart(case("Relu", f32([-1]), {1: f32([0])})) == set()
    assert told_apart(case("Relu", f32([-1]), {1: f32([0]), 14: FOREIGN})) == {(1, 6)}


@table(
    ("given", "version"),
    [
        (case("Relu", f32([1]), {}, alpha=1.0), 14),
        (case("Relu", (f32([1]), f32([1])), {}), 14),
        (case("Relu", np.array([1], np.int32), {}), 13),
        (case("Add", (f32([1]), np.array([1.0])), {}), 14),
        (case("Add", f32([1]), {}), 14),
        (case("Concat", (f32([1]), f32([1])), {}), 13),
        (case("Dropout", f32([1]), {}, outputs=3), 13),
        (case("Relu", f32([1]), {}), 7),
        (case("Pad", (None, f32([1])), {}), 13),
    ],
)
def test_an_application_that_the_schema_lacks_is_foreign(given: Case, version: int) -> None:
    assert not fits(given, version)
