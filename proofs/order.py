"""Independence of order: executions, the three evaluators, two nodes at once, purity."""

from __future__ import annotations

from .scripts import induction, smt

SCRIPTS = (
    induction({"reachable": "Consistent"}),
    induction({"founded": "SameValues"}),
    smt("OrderIndependence"),
    smt("Determinism", closed=("consistent", "starts")),
    induction({"folded": "TopologicalIsAnExecution"}, "reachable"),
    induction({"demanded": "DemandDriven"}),
    smt("EvaluatorsAgree", closed=("consistent", "starts")),
    smt("Diamond"),
    smt("StillEnabled"),
    smt("SameStart"),
    smt("Purity", closed=("consistent", "starts", "same")),
)
