"""Random applications of operators by families: what a runtime does otherwise is an entry of the ledger."""

from __future__ import annotations

from importlib.util import find_spec
from types import ModuleType

import pytest
from drawn import attention, bits, matrices, parts, sampling, signal
from drawn.drawing import Known, unexplained
from sonnx.checker.runtimes.deviations.ledger import ledger
from sonnx.checker.runtimes.deviations.standing import ENGINES
from tables import table

FAMILIES = (signal, sampling, matrices, bits, parts, attention)
ABSENT = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
OURS, THEIRS = ("numpy", "reference"), ("onnxruntime",)
SETS = [
    pytest.param(range(2), OURS, id="sample"),
    pytest.param(range(2), THEIRS, marks=ABSENT, id="sample-onnxruntime"),
    pytest.param(range(2, 200), OURS + THEIRS, marks=[ABSENT, pytest.mark.campaign], id="rest"),
]
"""The numbers of the applications of each operator and version, and the engines that execute them."""
NAMES = [pytest.param(it, id=it.__name__.rpartition(".")[2]) for it in FAMILIES]


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize(("count", "engines"), SETS)
def test_what_engines_give_is_allowed_or_known(family: ModuleType, count: range, engines: tuple[str, ...]) -> None:
    wrong, counted = unexplained(family.DRAWS, family.KNOWN, engines, count)
    assert not wrong, wrong
    assert sum(counted.values()) == len(family.DRAWS) * len(count) * len(engines)
    assert {word for engine, _, word in counted if engine == "numpy"} <= {"pass", "allowed freedom"}


@table("known", [it for family in FAMILIES for it in family.KNOWN], ids=lambda it: it.entry)
def test_what_is_known_of_a_runtime_stands_in_the_ledger(known: Known) -> None:
    entry = next((it for it in ledger() if it.name == known.entry), None)
    if "/" in known.entry or entry is not None:
        assert entry is not None and entry.deviation(ENGINES[known.engine]) is not None
        assert entry.operator in known.operators.split()


def test_a_difference_without_an_entry_is_told() -> None:
    wrong, counted = unexplained({("Swish", 24): attention.DRAWS["Swish", 24]}, (), ["numpy"], range(3))
    assert not wrong and len(counted) == 1
    draws = {("NonMaxSuppression", 11): parts.DRAWS["NonMaxSuppression", 11]}
    known = tuple(it for it in parts.KNOWN if it.entry != "NonMaxSuppression-11/scalar")
    wrong, _ = unexplained(draws, known, ["reference"], range(8))
    assert wrong and all("IndexError" in it for it in wrong)
