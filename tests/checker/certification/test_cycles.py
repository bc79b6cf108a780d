"""A violated rule about order names a cycle that is there, and the rechecker derives the same one."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.rechecker import Outcome


def scrambled(seed: int) -> onnx.ModelProto:
    """Nodes that read any tensors, also their own."""
    choose = random.Random(seed)
    count = choose.randint(1, 12)
    names = ["x", *(f"t{i}" for i in range(count))]
    nodes = [helper.make_node("Add", choose.choices(names, k=2), [f"t{i}"], f"n{i}") for i in range(count)]
    inputs, outputs = ([helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])] for name in ("x", names[-1]))
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def place(number: int) -> str:
    """The path of a node."""
    return f'/{number}:Add("n{number}")'


@pytest.mark.parametrize("seed", range(40))
def test_a_named_cycle_is_one_and_is_confirmed(seed: int, tmp_path: Path) -> None:
    model = scrambled(seed)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    report = certify(path, ("sonnx-2025-05",), others=False, witnesses=True)
    findings = next(rule for rule in report.rules if rule.id == "Acyclic").findings
    cycles = [finding.witness["cycle"] for finding in findings if "cycle" in finding.witness]
    nodes = model.graph.node
    reads = {place(i): [place(int(name[1:])) for name in node.input if name != "x"] for i, node in enumerate(nodes)}
    for cycle in cycles:
        assert isinstance(cycle, list)
        assert len(set(map(str, cycle))) == len(cycle)
        assert all(one in reads[str(other)] for one, other in pairwise([*map(str, cycle), str(cycle[0])]))
    assert bool(cycles) is bool(findings)
    assert recheck(seal(certificate(report)), path).outcome is Outcome.CONFIRMED
