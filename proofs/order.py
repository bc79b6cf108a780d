"""Independence of order: executions, the three evaluators, two nodes at once, purity."""

from __future__ import annotations

from .kernel import Hints
from .scripts import induction, smt

SCRIPTS = (
    induction({"reachable": "Consistent"}),
    induction({"founded": "SameValues"}),
    smt("OrderIndependence", Hints(unfold=("consistent", "starts"), closed=("consistent", "starts"))),
    smt("Determinism", Hints(closed=("consistent", "starts"))),
    induction({"folded": "TopologicalIsAnExecution"}, Hints(introduce=("reachable",))),
    induction({"demanded": "DemandDriven"}),
    smt("EvaluatorsAgree", Hints(closed=("consistent", "starts"))),
    smt("Diamond"),
    smt("StillEnabled"),
    smt("SameStart"),
    smt("Purity", Hints(closed=("consistent", "starts", "same"))),
)
