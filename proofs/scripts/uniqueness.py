"""A node with a body computes a function of what it reads: two executions of it, followed run by run.

Each proof looks into few definitions; which ones are left closed decides whether it is found.
"""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, natural, smt

STEPS = ("fires", "enters", "goes_on", "leaves", "tidy")
GRAPHS = (*STEPS, "gave", "functional")
RUNS = (*GRAPHS, "alike", "like", "agree", "results_agree", "simple", "outside", "fresh", "traced")
SCRIPTS = (
    smt("FiringKinds"),
    smt("FiresPlainAlike"),
    smt("FiresLoopAlike"),
    smt("FiresScanAlike"),
    smt("FiresMapAlike"),
    smt("FiresAlike", Hints(closed=("fires_plain", "fires_loop", "fires_scan", "fires_map", "agree", "padded"))),
    smt("FiresOrRuns"),
    smt("FirstFramesAlike"),
    smt("EntersTheSame", Hints(closed=("like",))),
    smt("EntersFresh"),
    smt("GoesOnFrames", Hints(closed=("goes_on",))),
    smt("BeginWithTheSame", Hints(closed=("like", "agree", "same"))),
    smt("GoesOnWith"),
    smt("EntersWith"),
    smt("EntersKeeps", Hints(closed=("tidy", "enters", "fresh"))),
    smt("EntersAlike", Hints(closed=("tidy", "enters", "like", "run_begins"))),
    smt("GoesOnKeeps"),
    smt("GoesOnAlike", Hints(closed=("like", "goes_on", "run_begins", "outside"))),
    smt("LoopDecides"),
    smt("GoesOnOrLeaves", Hints(closed=("loop_goes_on", "loop_condition", "agree", "results_agree"))),
    smt("LeavesAlike", Hints(closed=("like", "results_agree", "agree"))),
    induction({"inside": "InsideIsARun"}, Hints(introduce=("begun", "macro"), closed=STEPS)),
    induction({"macro": "RunInside"}, Hints(introduce=("inside",), closed=STEPS)),
    induction({"begun": "BegunInside"}, Hints(introduce=("inside",), closed=STEPS)),
    induction({"begun": "BodyOfNode"}),
    smt("Based"),
    induction({"begun": "FreshRuns"}, Hints(closed=("fires", "enters", "leaves", "tidy"))),
    smt("GivesOn", Hints(closed=STEPS)),
    smt("GivesNow", Hints(closed=STEPS)),
    induction({"macro": "Traced"}, Hints(closed=(*STEPS, "gave"))),
    smt("GivesItsOutputs", Hints(closed=STEPS)),
    smt("OneGave", Hints(unfold=("functional",), closed=(*STEPS, "functional"))),
    smt("WriterGave", Hints(closed=(*STEPS, "gave"))),
    smt("BothGave", Hints(closed=(*STEPS, "gave", "starts", "traced"))),
    smt("SameReads", Hints(closed=(*STEPS, "gave", "seen"))),
    smt("ReadsDetermined", Hints(closed=(*STEPS, "both", "determined"))),
    smt("WritesDetermined", Hints(closed=(*GRAPHS, "agree", "both"))),
    induction({"founded": "NodesDetermined"}, Hints(closed=(*STEPS, "functional", "determined", "both"))),
    smt("SameExecutions", Hints(closed=(*STEPS, "functional", "simple", "both", "seen", "determined"))),
    smt("RunsStartAlike"),
    smt("RunTraced", Hints(closed=(*GRAPHS, "fresh", "outside", "traced"))),
    smt("RunsAlike", Hints(closed=(*STEPS, "gave", "same_start", "alike", "fresh", "outside", "traced"))),
    smt("StillAgrees", Hints(closed=(*STEPS, "gave", "same_start"))),
    smt("SameResults", Hints(closed=("simple", "both"))),
    smt("RunsGiveTheSame", Hints(closed=(*STEPS, "simple", "both", "alike", "agree", "results_agree"))),
    smt("FirstIsZero"),
    smt("CountsRuns"),
    induction({"begun": "CountedFromZero"}, Hints(closed=STEPS)),
    smt("LeavesFinished"),
    induction({"begun": "FirstRunAlike"}, Hints(closed=RUNS)),
    induction({"begun": "NextRunAlike"}, Hints(closed=RUNS)),
    induction({"begun": "RunsMatch"}, Hints(closed=RUNS)),
    smt("NoRunPast", Hints(closed=RUNS)),
    induction({"begun": "NoRunMore"}, Hints(closed=(*RUNS, "matched"))),
    smt("SameBody", Hints(closed=RUNS)),
    smt("AgreeTurned"),
    smt("LastRunsAlike", Hints(unfold=("matched",), closed=(*RUNS, "matched", "padded"))),
    induction({"does": "FiresOrLeaves"}, Hints(closed=(*STEPS, "outside"))),
    smt("LeavesTheSame", Hints(closed=(*RUNS, "padded"))),
    smt("NotBoth", Hints(closed=(*RUNS, "padded"))),
    smt("OneNode", Hints(closed=("fires", "leaves_body", "agree", "simple", "tidy", "padded"))),
    natural("ToAnyHeight", "k", Hints(closed=("functional", "padded"))),
    smt("NodesAreFunctions", Hints(closed=("functional", "padded"))),
)
