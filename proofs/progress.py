"""Progress, completeness and termination of executions."""

from __future__ import annotations

from .kernel import Hints
from .scripts import induction, natural, smt

TIDY = Hints(closed=("tidy",))
SCRIPTS = (
    induction({"macro": "KeepsValues"}, TIDY),
    induction({"macro": "AllOrNothing"}, TIDY),
    induction({"founded": "Progress"}, TIDY),
    smt("EveryNodeFires", Hints(closed=("tidy", "starts", "supplied", "stopped"))),
    induction({"valued": "ValuedHasValue", "executable": "ExecutableFires"}, Hints(unfold=("valued",), closed=("tidy",))),
    smt("OutputsHaveValues", Hints(closed=("tidy", "starts", "supplied", "stopped"))),
    smt("FiringUses", TIDY),
    smt("FiresOnce"),
    natural("NoMoreUnfired", "k"),
    natural("OneLessUnfired", "k"),
    natural("UnfiredInRange", "k"),
    induction({"takes": "TakesTidy"}),
    smt("EachStepCounts", TIDY),
    induction({"takes": "StepsAreCounted"}, TIDY),
    smt("Termination", TIDY),
)
