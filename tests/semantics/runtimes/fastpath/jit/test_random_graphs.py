"""Operations that native code joins, leaves out or lays in one memory keep the meaning of each: random graphs give the
bits of NumPy's kernels where these are promised, and the bits of native code in which every tensor is a result."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
from sampling import seeds
from sonnx.semantics.runtimes.fastpath import RunError, Session

pytest.importorskip("numba", reason="native code needs the extra [jit]")
from native_runs import NAME, bits, guards
from random_native import ROUNDING, ZEROS, Case, drawn

KINDS = ("results with the bits of NumPy", "results with its bits but for signs of zeros", "other results")


def _said(session: Session, inputs: dict[str, Any]) -> str:
    """What a run says, but for the node: of several that fail any may be the first. Empty where it says nothing."""
    try:
        session.run(None, inputs)
    except RunError as error:
        return str(error).rpartition(": ")[2]
    return ""


def _native(session: Session, runs: int, ran: list[int]) -> bool:
    """True where these runs were in native code alone: where a node does not fit it, NumPy's kernels run."""
    parts = [it.provider for it in session.partitioning.assignments if it.nodes]
    return parts.count(NAME) * runs == len(ran) and set(parts) == {NAME}


def _check(case: Case, monkeypatch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    every = [it for it in case.values if it.name not in case.inputs]
    model = case.model(case.outputs)
    plain, native, apart = Session(model), Session(model, [NAME]), Session(case.model(every), [NAME])
    with guards(monkeypatch) as ran:
        first, second = (native.run(None, case.inputs) for _ in range(2))
    whole = _native(native, 2, ran)
    with guards(monkeypatch) as ran:
        alone = dict(zip([it.name for it in every], apart.run(None, case.inputs), strict=True))
    both = whole and _native(apart, 1, ran)
    counts["in native code"] += whole
    counts["in native code apart too"] += both
    for tensor, made, again, expected in zip(case.outputs, first, second, plain.run(None, case.inputs), strict=True):
        assert bits(made) == bits(again), tensor
        assert not both or bits(made) == bits(alone[tensor.name]), tensor
        assert (made.dtype, made.shape) == (expected.dtype, expected.shape), tensor
        counts[KINDS[tensor.free]] += 1
        if tensor.free == ZEROS:
            made, expected = made + made.dtype.type(0), expected + made.dtype.type(0)
        assert tensor.free == ROUNDING or bits(made) == bits(expected), tensor
    for name in case.indices:
        wrong = case.inputs[name].copy()
        wrong[(0,) * wrong.ndim] = 10**6
        said = [_said(it, case.inputs | {name: wrong}) for it in (plain, native, native)]
        assert len(set(said)) == 1, (name, said)
        counts["refusals"] += bool(said[0])
    counts["graphs"] += 1
    counts["nodes"] += len(case.nodes)


@pytest.mark.parametrize("numbers", seeds(5000, 30))
def test_a_graph_in_native_code_is_the_graph(numbers: range, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    with np.errstate(all="ignore"):
        for seed in numbers:
            try:
                _check(drawn(seed), monkeypatch, counts)
            except Exception as problem:
                problem.add_note(f"seed {seed}")
                raise
    sys.stdout.write(f"{dict(counts)}\n")
    assert counts["in native code apart too"] > len(numbers) // 2
    assert min(counts[it] for it in (*KINDS, "refusals")) > len(numbers) // 10
