"""What may be done to a graph without changing what it means: dead nodes removed, nodes listed in another order."""

from __future__ import annotations

from .kernel import Hints
from .scripts import smt

SCRIPTS = (
    smt("FewerNodes"),
    smt("DeadNodeRemoval", Hints(closed=("consistent", "starts", "part_of"))),
    smt("DeadNodesComputeNothing"),
    smt("Permutation"),
)
