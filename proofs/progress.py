"""Progress, completeness and termination of executions."""

from __future__ import annotations

from .kernel import Hints
from .scripts import induction, natural, smt

SCRIPTS = (
    induction({"reachable": "KeepsValues"}),
    induction({"reachable": "AllOrNothing"}),
    induction({"founded": "Progress"}),
    smt("EveryNodeFires"),
    induction({"valued": "ValuedHasValue", "executable": "ExecutableFires"}, Hints(unfold=("valued",))),
    smt("OutputsHaveValues"),
    smt("FiringUses"),
    smt("FiresOnce"),
    natural("NoMoreUnfired", "k"),
    natural("OneLessUnfired", "k"),
    natural("UnfiredInRange", "k"),
    smt("EachStepCounts"),
    induction({"takes": "StepsAreCounted"}),
    smt("Termination"),
)
