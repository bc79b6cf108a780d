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
CAMPAIGN = pytest.mark.campaign
COUNTS = [pytest.param(range(2), id="sample"), pytest.param(range(2, 200), id="rest", marks=CAMPAIGN)]
"""The numbers of the applications of each operator and version."""
ABSENT = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
NAMES = [pytest.param(it, id=it.__name__.rpartition(".")[2]) for it in FAMILIES]


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize("engine", ["numpy", "reference", pytest.param("onnxruntime", marks=ABSENT)])
@pytest.mark.parametrize("count", COUNTS)
def test_what_an_engine_gives_is_allowed_or_known(family: ModuleType, engine: str, count: range) -> None:
    wrong, counted = unexplained(family.DRAWS, family.KNOWN, [engine], count)
    assert not wrong, wrong
    assert sum(counted.values()) == len(family.DRAWS) * len(count)
    if engine == "numpy":
        assert {word for _, _, word in counted} <= {"pass", "allowed freedom"}


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
