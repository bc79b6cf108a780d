"""The partition: cuts that are decided offer by offer, convexity, and runs of a graph part by part."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, smt

SCRIPTS = (
    smt("TogetherAlike"),
    smt("FeedsAlike", Hints(closed=("together", "unshared"))),
    smt("WaitsAlike", Hints(unfold=("waits",), introduce=("waits",), closed=("together", "unshared", "feeds"))),
    smt("WaitsNext", Hints(introduce=("waits",))),
    induction({"depends": "DependsWaits"}, Hints(introduce=("waits",), closed=("unshared",))),
    induction({"waits": "WaitsThrough"}, Hints(introduce=("waits",), closed=("together", "unshared", "feeds"))),
    smt("FedFromOutside"),
    smt("WaitsForItself", Hints(unfold=("waits",), introduce=("waits",), closed=("together", "unshared", "feeds"))),
    induction({"in_turn": "NoCycleOfParts"}, Hints(closed=("together", "unshared", "feeds"))),
    smt("OrderlyIsConvex", Hints(closed=("depends",))),
    induction({"grounded": "NoPartsInTurn"}, Hints(introduce=("in_turn",))),
    smt("GrownApart"),
    smt("AdmittedIsOrderly", Hints(closed=("unshared", "grows", "free"))),
    induction({"decided": "DecidedIsOrderly"}, Hints(closed=("grows", "admits", "refuses"))),
    smt("SameTogether"),
    induction({"in_turn": "SameInTurn"}, Hints(introduce=("in_turn",), closed=("together",))),
    smt("SameDecision", Hints(closed=("together",))),
    induction({"decided": "Counted"}, Hints(closed=("admits", "refuses", "grows"))),
    induction({"decided": "OneCut"}, Hints(unfold=("decided",), closed=("admits", "refuses", "orderly"))),
    smt("AloneTogether"),
    smt("AloneAdmitted", Hints(closed=("together", "unshared", "free"))),
    smt("AloneTaken", Hints(closed=("orderly", "admits", "refuses"))),
    induction({"decided": "Complete"}, Hints(closed=("admits", "refuses", "orderly"))),
    smt("MergedAlike"),
    smt("MergedFeedsAlike", Hints(closed=("together", "apart_in"))),
    smt("FedBefore"),
    smt("Beside"),
    smt("FedBeside", Hints(closed=("together", "apart_in", "feeds", "either"))),
    smt("FedJoined"),
    smt("BesideTogether"),
    induction(
        {"in_turn": "InTurnBeside"}, Hints(introduce=("in_turn",), closed=("together", "apart_in", "feeds", "either"))
    ),
    smt("InTurnJoined", Hints(introduce=("in_turn",), closed=("together", "apart_in", "feeds", "either"))),
    induction({"in_turn": "InTurnEarlier"}, Hints(closed=("together", "apart_in", "feeds", "either"))),
    smt("NotLater", Hints(closed=("apart_in",))),
    smt("StaysMaximal", Hints(closed=("together", "feeds", "merged", "neighbours"))),
    induction({"by_parts": "PartsPassOn"}),
    smt("ShadowFree"),
    smt("FilledConsistent", Hints(closed=("allowed",))),
    smt("ShadowStarts"),
    smt("PartFills", Hints(closed=("filled", "within", "passes_on"))),
    smt("FilledShadows", Hints(closed=("consistent", "answers"))),
    smt(
        "ShadowGrows", Hints(closed=("consistent", "answers", "unshared", "may_run", "hands_on", "filled", "faithful"))
    ),
    induction({"by_parts": "PartsAreConsistent"}, Hints(closed=("faithful", "passes", "shadows", "unshared"))),
    smt("PartsFollow", Hints(closed=("tidy", "stopped", "well_made", "single", "solves", "unshared", "faithful"))),
    smt("PassesOnRead"),
    smt("NonePassed", Hints(closed=("passes_on", "unshared"))),
    induction({"by_parts": "StartStays"}),
    smt("NotFed", Hints(closed=("passes_on", "within"))),
    induction(
        {"in_turn": "InTurnHasRun"}, Hints(closed=("may_run", "feeds", "passes_on", "within", "unshared", "covers"))
    ),
    smt("CutsCanBeScheduled"),
    induction({"by_parts": "OnlyOrderlyRuns"}, Hints(introduce=("in_turn",))),
    smt("PartIsAble", Hints(closed=("within", "passes_on", "answers"))),
    smt(
        "PartsAreNotStuck",
        Hints(
            closed=("tidy", "stopped", "well_made", "single", "faithful", "solves", "willing", "may_run", "passes_on")
        ),
    ),
)
