"""The standing of what a runtime does to the ledger: as recorded, in another way, no longer, again, or not recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.model.values import Array

from .ledger import CRASH, PLAIN, TOOLS, Case, Deviation, Outcome, ledger

ROUNDING: Final = 1e-5
"""The relative distance up to which two values of runtimes are the same: deviations are larger than rounding."""
ENGINES: Final = {
    "reference": "onnx.reference",
    "onnxruntime": "onnxruntime",
    "onnxruntime-disabled": PLAIN,
}
"""The runtime that an engine executes, of those that the ledger speaks of."""
Free = Mapping[str, NDArray[np.bool_]]
Pair = tuple[str, str]
"""The kinds of an element that is due and of the one that a runtime gives instead."""
NUMBER: Final = "a number"
FORM: Final = ("type and shape", "type and shape")


class Recorded(StrEnum):
    """The standing of a result to the ledger. CONFORMS: nothing is recorded, and nothing deviates."""

    CONFORMS = ""
    RECORDED = "as recorded"
    CHANGED = "in another way"
    ALIKE = "alike"
    BACK = "again"
    GONE = "no longer"
    UNKNOWN = "not in the ledger"


def classify(entry: Case, runtime: str, version: str, outcome: Outcome, deviates: bool) -> Recorded:
    """The standing of what a runtime gives for the case of an entry to the entry. deviates: from the specification."""
    deviation = entry.deviation(runtime)
    if deviation is None:
        return Recorded.UNKNOWN if deviates else Recorded.CONFORMS
    if version in deviation.gone or deviation.outcome is None:
        return Recorded.BACK if deviates else Recorded.CONFORMS
    if not deviates:
        return Recorded.CONFORMS if deviation.where else Recorded.GONE
    named = outcome.refused == deviation.outcome.refused
    return Recorded.RECORDED if named and not difference(outcome, deviation.outcome) else Recorded.CHANGED


def deviations_of(runtime: str, version: str, operator: str) -> Iterator[tuple[Case, Outcome]]:
    """The entries on an operator, such as `Gemm-13`, that are not gone in a version, with what the runtime does."""
    for entry in ledger():
        deviation = entry.deviation(runtime) if f"{entry.operator}-{entry.version}" == operator else None
        if deviation is not None and deviation.outcome is not None and version not in deviation.gone:
            yield entry, deviation.outcome


def source(entry: Case, runtime: str) -> str:
    """Who reported what a runtime does with the case of an entry, and the optimizers that make it."""
    deviation = entry.deviation(runtime)
    return "" if deviation is None else f"{deviation.source}{_by(deviation)}"


def rewriters(rewrite: str) -> Iterator[str]:
    """A line for each case of a rewrite: who changes its model into one of another meaning."""
    for entry in ledger():
        if entry.rewrite and entry.operator == rewrite:
            made = [it for it in entry.deviations if it.versions and (it.passes or it.runtime in TOOLS)]
            told = [f"{it.runtime} {', '.join(it.versions)}{_by(it)}" for it in made]
            yield f"{entry.name}: {'; '.join(told) or 'none makes it now'}"


def _by(deviation: Deviation) -> str:
    return f" (by {' and '.join(deviation.passes)})" if deviation.passes else ""


# ---- Two outcomes -----------------------------------------------------------------------------


def difference(outcome: Outcome, expected: Outcome, free: Free | None = None, tolerance: float = ROUNDING) -> str:
    """The first difference between two outcomes, "" when there is none. Two refusals are the same unless one is a
    crash; elements that are free are not compared."""
    if outcome.outputs is None or expected.outputs is None:
        if outcome.outputs is None and expected.outputs is None:
            return "" if (outcome.refused == CRASH) == (expected.refused == CRASH) else f"refused: {outcome.refused}"
        return f"refused: {outcome.refused}" if outcome.outputs is None else f"computes {dict(outcome.outputs)}"
    for name, wanted in expected.outputs.items():
        one = outcome.outputs.get(name)
        if one is None:
            return f"{name} has no value"
        if (one.dtype, one.shape) != (wanted.dtype, wanted.shape):
            return f"{name} is {one.dtype}{list(one.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
        same = _same(one, wanted, tolerance)
        if free is not None and name in free:
            same |= free[name]
        if not same.all():
            return f"{name} is {one.tolist()} instead of {wanted.tolist()}"
    return ""


def _same(one: Array, wanted: Array, tolerance: float) -> NDArray[np.bool_]:
    if wanted.dtype.kind in "iubOUS":
        return np.asarray(one == wanted, np.bool_)
    a, b = one.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b) & (b != 0)
    near = finite & (np.abs(a - np.where(finite, b, 0)) <= tolerance * np.abs(np.where(finite, b, 0)))
    return np.asarray((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b) | near, np.bool_)


def kind(decimal: str) -> str:
    """The kind of an element by its decimal: NaN, an infinity, a zero with its sign, or a number."""
    text = decimal.strip().lower().removeprefix("+")
    if text in ("nan", "-nan", "inf", "-inf"):
        return text.removeprefix("-") if "nan" in text else text
    try:
        value = float(text)
    except ValueError:
        return NUMBER
    return NUMBER if value else "-0" if text.startswith("-") else "0"


def is_telling(pair: Pair) -> bool:
    """Two differences of this pair are likely to have one cause: it is not a number, or a zero, for another number."""
    return not {"nan", "inf", "-inf"}.isdisjoint(pair) or set(pair) == {"0", "-0"}


def pairs(expected: Outcome, outcome: Outcome) -> frozenset[Pair]:
    """The kinds of the elements in which two outcomes with values differ."""
    if expected.outputs is None or outcome.outputs is None:
        return frozenset()
    made: set[Pair] = set()
    for name, wanted in expected.outputs.items():
        one = outcome.outputs[name]
        if (one.dtype, one.shape) != (wanted.dtype, wanted.shape):
            made.add(FORM)
        else:
            apart = ~_same(one, wanted, ROUNDING).reshape(-1)
            elements = zip(wanted.reshape(-1)[apart].tolist(), one.reshape(-1)[apart].tolist(), strict=True)
            made |= {(kind(str(a)), kind(str(b))) for a, b in elements}
    return frozenset(made)
