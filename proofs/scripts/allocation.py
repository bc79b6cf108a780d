"""Safety of the allocation: the linear memory with a usable plan keeps what the abstract memory has."""

from __future__ import annotations

from ..kernel.kernel import Hints
from .script import induction, smt

SCRIPTS = (
    induction({"runs": "AllocationSafety"}),
    smt("PlannedReads"),
    smt("InBounds"),
    smt("RegionsInBounds"),
    smt("Aligned"),
    smt("PlansSpare", Hints(closed=("keeps",))),
)
