"""Nodes that run a body: seen from their graph they do what one step does, and the machine gets nowhere else.

Entering a body, going on with it and leaving it stay closed where only their order is of importance.
"""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, smt

STEPS = ("fires", "enters", "goes_on", "leaves", "tidy")
SCRIPTS = (
    smt("FiresAdds"),
    smt("EntersFramed"),
    smt("FramedTidy"),
    smt("BodyAdds"),
    smt("GoesOnFramed"),
    smt("LeavesAdds"),
    induction({"does": "NodeAdds", "inside": "BodyIsFramed"}, Hints(closed=(*STEPS, "framed", "adds"))),
    induction({"macro": "MacroTidy"}),
    induction({"stacked": "StackedTidy"}),
    smt("InAFrame"),
    smt("WholeNodes", Hints(introduce=("stacked", "macro", "inside"), cases=("stacked",), closed=STEPS)),
    smt("Enters", Hints(introduce=("stacked", "inside"), closed=STEPS)),
    smt("GoesOn", Hints(introduce=("stacked", "inside"), cases=("stacked",), closed=STEPS)),
    smt("Leaves", Hints(introduce=("does",), cases=("stacked",), closed=STEPS)),
    smt("EveryRule"),
    induction({"executes": "Stacked"}, Hints(introduce=("does", "stacked", "macro"), closed=(*STEPS, "moves"))),
    smt("Bottom", Hints(cases=("stacked",))),
    smt("BackAtTheBottom"),
)
