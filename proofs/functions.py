"""Functions: a call and the copied body in its place mean the same, and expansion ends without recursion."""

from __future__ import annotations

from .kernel import Hints
from .scripts import lemmas, natural, smt

MAIN = frozenset({"InlinedBody", "Inlining", "ShortChainsExpand", "ExpansionEnds"})
"""The theorems; all others here are lemmas on the way to them."""
STEPWISE = (
    smt("InlinedBody"),
    smt("CallAnswered", Hints(closed=("consistent", "handed"))),
    smt("CopiesOfNodes"),
    smt("CopiesOfTheBody"),
    smt("ImageGives"),
    smt("InlinedGraph", Hints(closed=("inlines", "flat", "answered", "image"))),
    smt("Origins"),
    smt("Inlining", Hints(closed=("inlines", "consistent", "image", "handed", "apart", "flat", "answered"))),
    natural("ShortChainsExpand", "k", Hints(introduce=("expandable",))),
    smt("ExpansionEnds", Hints(closed=("short",))),
)
SCRIPTS = lemmas(STEPWISE, MAIN)
