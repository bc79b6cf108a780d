"""The scope: every version of its operators that is in force at some opset from 7 on has a meaning."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnx.defs
import pytest
from sonnx.spec.elaborate.coverage import coverage, inside
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.library import specification
from tables import table

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
OLDEST = 7
PRIORITIES = (
    *("Conv", "ConvInteger", "MaxPool", "Resize", "QuantizeLinear", "DequantizeLinear", "Add", "Mul", "Relu", "Concat"),
    *("Gemm", "MatMul", "Abs", "Sub", "ReduceSum", "Gelu", "LeakyRelu", "LayerNormalization", "Softmax"),
)
"""onnx/working-groups@652b76b, safety-related-profile/deliverables/scope/scope.md: Airbus, priorities 1 and 2."""
RECURRENT = ("LSTM", "GRU", "RNN")
MADE_UP = frozenset(("Fake_1", "Fake_2"))
"""What control-flow/nested_local_function.onnx applies of ONNX's domain and ONNX does not define."""


def missing(operator: str) -> list[int]:
    """The versions without a meaning that are in force at an opset from `OLDEST` on."""
    kinds = coverage(specification().operators, specification().functions)[operator]
    newest = onnx.defs.onnx_opset_version()
    known = [s.version for s in signatures()[operator] if s.version <= newest]
    in_force = {max((v for v in known if v <= opset), default=0) for opset in range(OLDEST, newest + 1)}
    return sorted(v for v in in_force if kinds.get(v) in ("missing", "deprecated"))


def subset() -> Iterator[str]:
    """The operators of the profile, as `in_subset` lists them."""
    body = specification().functions["in_subset"].body
    assert body is not None
    yield from (str(expr.args[0]) for expr in inside(body) if expr.head == "text")


def nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of its bodies."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                yield from nodes(body)


def test_an_operator_without_a_definition_is_missing_in_every_version() -> None:
    assert missing("ImageDecoder") == [20]


@table("operator", sorted({*subset(), *PRIORITIES, *RECURRENT}))
def test_an_operator_of_the_profile_has_a_meaning_in_every_version(operator: str) -> None:
    assert missing(operator) == []


def test_the_operators_of_the_light_models_have_a_meaning_in_every_version() -> None:
    models = [onnx.load(path, load_external_data=False) for path in sorted(LIGHT.glob("*.onnx"))]
    applied = {node.op_type for model in models for node in nodes(model.graph) if node.domain in ("", "ai.onnx")}
    assert len(models) == 9
    assert {operator: missing(operator) for operator in applied if missing(operator)} == {}


@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")
def test_the_operators_of_the_shared_models_have_a_meaning_in_every_version() -> None:
    with (MODELS / "MANIFEST.tsv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if not row["path"].startswith("invalid/")]
    applied = {operator for row in rows for operator in (row["ops"] or "").split(",") if operator}
    applied = {operator for operator in applied if "::" not in operator} - MADE_UP
    assert applied
    assert {operator: missing(operator) for operator in applied if missing(operator)} == {}
