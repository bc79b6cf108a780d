"""Faults that a transition may give rise to: NaN, infinities, overflow, subnormals, open elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ...machine.phases import Apply
from ...machine.regions import load_value
from ...machine.state import tensor_path, value_of
from ...model.differences import first_of
from ...model.elements import is_float
from ...model.values import Array
from ..display.texts import subnormal
from ..timeline.history import History, Moment

KINDS: Final = ("nan", "inf", "overflow", "subnormal", "precondition", "undefined", "divergence")
"""Faults to catch. overflow: an infinity of finite inputs. precondition: a requirement fails, so the run is stuck.
undefined: the text leaves an element open. divergence: another value than a recorded run has."""
SENTENCES: Final = {
    "nan": "not a number",
    "inf": "an infinity",
    "overflow": "an infinity of finite inputs",
    "subnormal": "a subnormal number",
    "undefined": "the text leaves it open",
}


@dataclass(frozen=True, slots=True)
class Fault:
    """path, element, value: where it is met first, in row-major order. count: of how many elements, of `size`."""

    what: str
    path: str
    element: tuple[int, ...] | None
    value: Array | None
    count: int
    size: int


def faults(history: History, moment: Moment, what: str) -> Iterator[Fault]:
    """The faults of a kind that the transition to a moment gave rise to, one for each tensor that it wrote."""
    came = moment.came
    if came is None or what in ("precondition", "divergence"):
        return
    if what == "undefined":
        yield from _open(history, moment)
        return
    finite: bool | None = None
    for t, where in zip(came.tensors, came.places, strict=True):
        if where.type.kind != "tensor" or not where.length:
            continue
        value = load_value(moment.state.store, where)
        if not isinstance(value, np.ndarray) or value.dtype == object:
            continue
        mask = mask_of(value, what)
        if mask is None or not mask.any():
            continue
        if what == "overflow":
            finite = _finite_inputs(history, moment) if finite is None else finite
            if not finite:
                return
        yield _fault(what, tensor_path(moment.state, t), value, mask)


def mask_of(value: Array, what: str) -> NDArray[np.bool_] | None:
    """Which elements have a fault that can be seen in the value; None where the type has none of them."""
    if value.dtype.kind == "c":
        return np.isnan(value) if what == "nan" else np.isinf(value) if what in ("inf", "overflow") else None
    if not is_float(value.dtype):
        return None
    match what:
        case "nan":
            return np.asarray(np.isnan(value), np.bool_)
        case "inf" | "overflow":
            return np.asarray(np.isinf(value), np.bool_)
        case _:
            return subnormal(value)


def _fault(what: str, path: str, value: Array, mask: NDArray[np.bool_]) -> Fault:
    element = first_of(mask)
    return Fault(SENTENCES[what], path, element, np.asarray(value[element], value.dtype), int(mask.sum()), mask.size)


def _finite_inputs(history: History, moment: Moment) -> bool:
    if moment.came is None:
        return False
    before = history.at(moment.index - 1).state
    for t in before.program.reads[moment.came.node]:
        value = value_of(before, t)
        if isinstance(value, np.ndarray) and is_float(value.dtype) and not np.isfinite(value).all():
            return False
    return True


def _open(history: History, moment: Moment) -> Iterator[Fault]:
    if moment.came is None or not moment.came.open:
        return
    for phase in history.phases(moment.index - 1):
        if isinstance(phase, Apply):
            for t, value, mask in zip(phase.tensors, phase.values, phase.free, strict=False):
                if mask is not None and mask.any() and isinstance(value, np.ndarray):
                    whole = np.broadcast_to(mask, value.shape)
                    yield _fault("undefined", tensor_path(moment.state, t), value, np.asarray(whole))
