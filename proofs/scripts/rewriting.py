"""Changes of a graph that keep its meaning: dead nodes removed, nodes listed in another order."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import smt

CLOSED = ("consistent", "starts", "part_of", "padded", "tidy")
SCRIPTS = (
    smt("FewerNodes", Hints(closed=("allowed",))),
    smt("DeadNodeRemoval", Hints(closed=CLOSED)),
    smt("DeadNodesComputeNothing", Hints(closed=("tidy",))),
    smt("Permutation", Hints(closed=("starts", "padded", "tidy"))),
)
