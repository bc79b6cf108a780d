"""The onnx wheel's node tests with a single node, for every operator that the specification defines.

The tolerances are those of the wheel's own runner for node tests (rtol 1e-3, atol 1e-7); integers, booleans and strings
are compared exactly. What the text leaves open is not compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.defs
import pytest
from node_tests import SINGLE
from node_values import attribute, value_of
from sonnx.semantics.model.values import Optional, Sequence
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply
from sonnx.spec import library
from sonnx.spec.elaborate.statements import is_rule

OPERATORS = sorted(library.specification().operators)
MACHINE = {name for name, texts in library.specification().operators.items() if all(map(is_rule, texts))}


@pytest.fixture(scope="session")
def cases() -> dict[str, list[Any]]:
    """The single-node cases by operator."""
    from onnx.backend.test.case.node import collect_testcases

    found: dict[str, list[Any]] = {}
    with np.errstate(all="ignore"):
        every = collect_testcases(None)
    for case in every:
        nodes = case.model.graph.node
        if len(nodes) == 1 and nodes[0].domain == "" and not case.model.functions:
            found.setdefault(nodes[0].op_type, []).append(case)
    return found


@pytest.mark.parametrize("op_type", [name for name in OPERATORS if name not in MACHINE])
@pytest.mark.filterwarnings("ignore")
def test_the_node_tests_of_the_wheel_pass(op_type: str, cases: dict[str, list[Any]]) -> None:
    failures = []
    for case in cases.get(op_type, []):
        reason = _failure(case)
        if (reason == "") == (case.name in SINGLE):
            failures.append(f"{case.name}: {reason or 'passes, though it is listed as known'}")
    assert not failures, "\n".join(failures)


def _failure(case: Any) -> str:
    """Why a case fails, "" when it passes."""
    (node,) = case.model.graph.node
    opset = next(o.version for o in case.model.opset_import if o.domain == "")
    version = onnx.defs.get_schema(node.op_type, opset).since_version
    types = {value.name: value.type for value in (*case.model.graph.input, *case.model.graph.output)}
    attributes = {a.name: attribute(a) for a in node.attribute}
    names = [value.name for value in case.model.graph.input]
    for inputs, outputs in case.data_sets:
        given = {name: value_of(x, types[name]) for name, x in zip(names, inputs, strict=True)}
        asked = tuple(bool(name) for name in node.output)
        outcome = apply(Application(node.op_type, version, tuple(given.get(n) for n in node.input), attributes, asked))
        if not isinstance(outcome, Outputs):
            return f"stuck: {outcome.premise}: {outcome.message}"
        free = outcome.free or (None,) * len(outcome.values)
        named = {n: (v, f) for n, v, f in zip(node.output, outcome.values, free, strict=True) if n}
        for name, expected in zip((v.name for v in case.model.graph.output), outputs, strict=True):
            reason = _difference(*named[name], value_of(expected, types[name]), case)
            if reason:
                return f"{name}: {reason}"
    return ""


def _difference(found: Any, free: Any, expected: Any, case: Any) -> str:
    if isinstance(expected, Sequence):
        pairs = zip(found.items, expected.items, strict=True)
        return next((r for r in (_difference(a, None, b, case) for a, b in pairs) if r), "")
    if isinstance(expected, Optional):
        if (found.item is None) != (expected.item is None):
            return "one of the two optionals is empty"
        return "" if found.item is None else _difference(found.item, None, expected.item, case)
    if found.dtype != expected.dtype or found.shape != expected.shape:
        return f"{found.dtype}{list(found.shape)} instead of {expected.dtype}{list(expected.shape)}"
    if found.dtype == object or found.dtype.kind in "iub" or "int" in found.dtype.name:
        agree = np.asarray(found == expected)
    else:
        with np.errstate(all="ignore"):
            kind = np.complex128 if found.dtype.kind == "c" else np.float64
            agree = np.isclose(
                found.astype(kind), expected.astype(kind), rtol=case.rtol, atol=case.atol, equal_nan=True
            )
    if free is not None:
        agree = agree | free
    if np.all(agree):
        return ""
    at = tuple(int(k[0]) for k in np.nonzero(~agree)) if agree.ndim else ()
    return f"{(~agree).sum()} of {agree.size} elements differ, at {at}: {found[at]!r} instead of {expected[at]!r}"
