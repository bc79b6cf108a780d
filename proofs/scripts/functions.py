"""Functions: a call and the copied body in its place mean the same, and expansion ends without recursion."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import natural, smt

SCRIPTS = (
    smt("InlinedBody", Hints(closed=("allowed",))),
    smt("CallAnswered", Hints(closed=("consistent", "handed", "allowed", "sound"))),
    smt("CopiesOfNodes", Hints(closed=("allowed",))),
    smt("CopiesOfTheBody", Hints(closed=("allowed",))),
    smt("ImageGives"),
    smt("InlinedGraph", Hints(closed=("inlines", "flat", "answered", "image", "allowed"))),
    smt("Origins"),
    smt("Inlining", Hints(closed=("inlines", "consistent", "image", "handed", "apart", "flat", "answered", "sound"))),
    natural("ShortChainsExpand", "k", Hints(introduce=("expandable",))),
    smt("ExpansionEnds", Hints(closed=("short",))),
)
