"""Independence of order: executions by the machine, R2, the three evaluators, two nodes at once, purity."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, smt

CONSISTENT = ("consistent", "starts", "padded", "tidy")
SCRIPTS = (
    smt("PlainNodes", Hints(closed=("tidy",))),
    smt("NodesWithBodies", Hints(closed=("tidy", "agree", "allowed"))),
    smt("Consistent", Hints(closed=("tidy", "gave", "allowed"))),
    smt("SinglePlain"),
    smt("SingleBodies", Hints(closed=("tidy", "allowed"))),
    smt("R2MakesFunctions", Hints(closed=("single", "functional", "padded"))),
    induction({"founded": "SameValues"}, Hints(closed=("allowed", "padded"))),
    smt(
        "OrderIndependence",
        Hints(unfold=("consistent", "starts"), closed=("consistent", "starts", "padded", "allowed")),
    ),
    smt("Determinism", Hints(closed=CONSISTENT)),
    induction({"folded": "TopologicalIsAnExecution"}, Hints(introduce=("macro",))),
    induction({"demanded": "DemandDriven"}, Hints(closed=("allowed", "padded"))),
    smt("EvaluatorsAgree", Hints(closed=CONSISTENT)),
    smt("PlainAdds", Hints(closed=("fires_plain", "fires_loop", "fires_scan", "fires_map", "adds"))),
    smt("ReadsKept"),
    smt("BothOrders"),
    smt("Diamond", Hints(closed=("fires_plain", "adds", "agree", "same"))),
    smt("StillEnabled", Hints(closed=("tidy",))),
    smt("SameStart", Hints(closed=("allowed",))),
    smt("Purity", Hints(closed=(*CONSISTENT, "same"))),
)
