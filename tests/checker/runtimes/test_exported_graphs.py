"""Graphs as exporters write them, end to end: certified, rechecked, computed alike by the machine and by engines."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import exported_graphs as exported
import pytest
from planted_engines import outside
from sonnx.checker import Verdict, certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.report import RuleVerdict
from sonnx.checker.runtimes.differential.comparison import Verdict as Agreement
from sonnx.checker.runtimes.differential.comparison import compare
from sonnx.semantics.runtimes.engines.own import MACHINE, NUMPY
from sonnx.semantics.runtimes.engines.registry import engine

OWED = {
    "decoder_block": {
        "TensorScatter-24/not_before_cache": 2,
        "TensorScatter-24/not_behind_cache": 2,
        "RotaryEmbedding-23/positions_in_range": 2,
    },
    "bert_layer": {},
    "yolo_head": {"GatherND-12/indices_in_range": 2},
    "region_head": {"RoiAlign-16/members_of_batch": 1, "RoiAlign-16/finite_regions": 1},
}
"""The requirements that the data of a run decide, with the numbers of nodes."""
SIZES = {"decoder_block"}
"""The graphs that conform for some sizes only: all tokens must have a place in the cache."""
KNOWN = {"yolo_head": ["Sigmoid-13"]}
"""The nodes at which onnxruntime leaves the bound: its Sigmoid is a quotient of polynomials, which for numbers below -2
is off by more than exp may be (accuracy 3 in the specification)."""


@pytest.mark.parametrize("name", exported.GRAPHS)
def test_a_graph_conforms_with_the_obligations_that_data_decide(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(exported.GRAPHS[name]().model)
    report = certify(path)
    owed = {rule.id: rule.obligations for rule in report.rules if rule.verdict is RuleVerdict.OBLIGATION}
    assert (report.verdict, owed) == (Verdict.CONFORMS, OWED[name])
    conditional = [rule for rule in report.rules if rule.verdict is RuleVerdict.CONDITIONAL]
    assert bool(conditional) == (name in SIZES)


@pytest.mark.parametrize(
    "name", [pytest.param(it, marks=pytest.mark.campaign if it == "yolo_head" else ()) for it in exported.GRAPHS]
)
def test_the_certificate_of_a_graph_is_confirmed(name: str, tmp_path: Path) -> None:
    """That of the detector in half a minute: the rechecker asks for each box whether sizes alone decide on it."""
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(exported.GRAPHS[name]().model)
    again = recheck(seal(certificate(certify(path, witnesses=True))), path)
    assert (again.outcome, again.reasons) == ("CONFIRMED", ())


@pytest.mark.parametrize("name", exported.GRAPHS)
def test_the_fast_path_stays_within_the_bound(name: str) -> None:
    graph = exported.GRAPHS[name]()
    (found,) = compare(graph.model, (MACHINE, NUMPY), [(name, graph.feeds)])
    assert (found.verdict, found.sides[1].failure, outside(found)) == (Agreement.AGREE, None, [])


@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
@pytest.mark.parametrize("name", exported.GRAPHS)
def test_onnxruntime_stays_within_the_bound(name: str) -> None:
    graph = exported.GRAPHS[name]()
    (found,) = compare(graph.model, (MACHINE, engine("onnxruntime-disabled")), [(name, graph.feeds)])
    assert found.sides[1].failure is None
    assert outside(found) == KNOWN.get(name, [])
