"""G is a value: immutable, comparable, and its parts refer to each other by number."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest
from onnx import parser
from sonnx.semantics.model import graph as g
from sonnx.semantics.model.loader import load_proto
from tables import table

TEXT = """
<ir_version: 10, opset_import: ["": 18]>
m (float[2] x, bool c) => (float[2] y) {
    y = If (c) <then_branch = t () => (float[2] u) { u = Relu (x) },
                else_branch = e () => (float[2] v) { v = Neg (x) }>
}
"""


@table("kind", [g.ValueType, g.Storage, g.Constant, g.Attribute, g.Tensor, g.Node, g.Graph, g.ModelFile, g.Model])
def test_every_part_of_g_is_frozen_and_slotted(kind: type) -> None:
    assert "__slots__" in vars(kind)
    instance = object.__new__(kind)
    with pytest.raises(FrozenInstanceError):
        setattr(instance, fields(kind)[0].name, 1)


def test_loading_twice_gives_equal_models() -> None:
    assert load_proto(parser.parse_model(TEXT)) == load_proto(parser.parse_model(TEXT))


def test_all_references_are_in_range_and_agree() -> None:
    model = load_proto(parser.parse_model(TEXT))
    for n, node in enumerate(model.nodes):
        assert n in model.graphs[node.graph].nodes
        for _, body in node.bodies:
            assert model.graphs[body].holder == n
    listed = [n for graph in model.graphs for n in graph.nodes]
    assert sorted(listed) == list(range(len(model.nodes)))
    assert all(0 <= tensor.graph < len(model.graphs) for tensor in model.tensors)
    assert model.graphs[0].holder is None
