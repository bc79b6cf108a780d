"""Progress, completeness and termination of executions."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, natural, smt

STEPS = ("fires", "enters", "goes_on", "leaves", "tidy")
RULES = (
    "fires_plain", "fires_loop", "fires_scan", "fires_map", "enters_if", "enters_loop", "enters_scan", "enters_map",
    "goes_on_loop", "goes_on_scan", "goes_on_map", "leaves_if", "leaves_loop", "leaves_scan", "leaves_map",
)  # fmt: skip
SERVED = Hints(closed=("serves", "loop_starts", "loop_decided"))
CHOSEN = Hints(closed=(*RULES, "serves", "loop_starts", "loop_decided", "is_over", "is_begun", "enabled"))
ENDED = Hints(closed=("serves", "finished", "loop_goes_on", "loop_condition"))
NEXT = Hints(closed=(*RULES, "serves", "finished", "loop_goes_on", "loop_condition", "is_begun"))
TIDY = Hints(closed=("tidy",))
SCRIPTS = (
    induction({"macro": "KeepsValues"}, TIDY),
    induction({"macro": "AllOrNothing"}, TIDY),
    induction({"founded": "Progress"}, TIDY),
    smt("EveryNodeFires", Hints(closed=("tidy", "starts", "supplied", "stopped"))),
    induction(
        {"valued": "ValuedHasValue", "executable": "ExecutableFires"}, Hints(unfold=("valued",), closed=("tidy",))
    ),
    smt("OutputsHaveValues", Hints(closed=("tidy", "starts", "supplied", "stopped"))),
    smt("ExecutableGives", Hints(unfold=("executable",), closed=("equipped",))),
    smt("ValuedByNode", Hints(unfold=("valued",))),
    smt("ExecutableStep"),
    natural("ExecutableUpTo", "k"),
    smt("AllExecutable"),
    smt("Firing"),
    smt("Branching"),
    smt("Looping", SERVED),
    smt("Scanning"),
    smt("Mapping"),
    smt("PlainApplies", CHOSEN),
    smt("IfApplies", CHOSEN),
    smt("LoopEnters", CHOSEN),
    smt("ScanEnters", CHOSEN),
    smt("MapEnters", CHOSEN),
    smt("LoopSkips", SERVED),
    smt("ScanSkips", SERVED),
    smt("MapSkips", SERVED),
    smt("NodeApplies", Hints(closed=(*RULES, "serves", "loop_starts", "loop_decided"))),
    smt("Movements"),
    smt("EnabledMoves", Hints(closed=(*STEPS, "moves", "fits", "closes", "equipped"))),
    smt("EntersCounted"),
    smt("GoesOnCounted"),
    induction({"begun": "RunsCounted"}, Hints(closed=(*STEPS, "asked_for", "outside"))),
    smt("CountedHere", Hints(closed=(*STEPS, "outside"))),
    smt("IfLeaves", ENDED),
    smt("LoopAgain", ENDED),
    smt("ScanAgain", ENDED),
    smt("MapAgain", ENDED),
    smt("LoopGoesOn", NEXT),
    smt("LoopLeaves", ENDED),
    smt("ScanGoesOn", NEXT),
    smt("ScanLeaves", ENDED),
    smt("MapGoesOn", NEXT),
    smt("MapLeaves", ENDED),
    smt("FinishedApplies", Hints(closed=(*RULES, "serves", "loop_goes_on", "loop_condition", "finished"))),
    smt("RunBody"),
    smt("FinishedMoves", Hints(closed=(*STEPS, "moves", "fits", "closes", "equipped", "asked_for", "finished"))),
    smt("EntersSupplied"),
    smt("GoesOnSupplied"),
    induction({"begun": "RunsSupplied"}, Hints(introduce=("begun",), closed=(*STEPS, "equipped"))),
    smt("RunsStart", Hints(closed=("tidy", "equipped"))),
    smt("RunFinishes", Hints(closed=("tidy", "equipped", "starts", "supplied", "stopped"))),
    smt("StoppedFinishes", Hints(unfold=("executable",), closed=("tidy", "equipped", "stopped", "finished"))),
    smt("NotStuckInside", Hints(unfold=("executable",), closed=("tidy", "equipped", "met", "can_move", "finished"))),
    smt(
        "NeverStuck",
        Hints(unfold=("executable", "stacked"), closed=("tidy", "equipped", "starts", "supplied", "met", "can_move")),
    ),
    smt("FiringUses", TIDY),
    smt("FiresOnce"),
    natural("NoMoreUnfired", "k"),
    natural("OneLessUnfired", "k"),
    natural("UnfiredInRange", "k"),
    induction({"takes": "TakesTidy"}),
    smt("EachStepCounts", Hints(closed=("tidy", "unfired"))),
    induction({"takes": "StepsAreCounted"}, TIDY),
    smt("Termination", TIDY),
)
