"""The ieee interpretation: what an application of an operator gives, in the operator's own element type.

Every operation is rounded to nearest, ties to even; folds run in the written order, bit for bit. The text is compiled
to a plan once for each definition, shapes, element types, attributes and present inputs; the plan is replayed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from struct import pack
from threading import Lock
from typing import Final, Protocol

import numpy as np
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import Span
from sonnx.spec.library import specification

from ...errors import InternalError, Unsupported
from ...model.elements import DType
from ..application import Application, Draw, Outputs, Stuck
from .code import Builder, Changed, Frame, Instruction, strided, within_budget
from .elements.ieee import IEEE, ElementTable
from .statements import (
    applied,
    apply_definition,
    attribute_value,
    check_attributes,
    check_types,
    definition,
)
from .terms import ELEMENT, Array, Layout, StuckError, Tensor, Value, row_strides
from .values import Entry, Held, Place, Whole, bound, collected, enter, place_of

PLANS: Final = 2048
"""The number of plans that are kept; the one that was not used for longest is dropped first."""
VARIANTS: Final = 8
"""The number of plans that are kept for applications that differ in data on which shapes depend."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan to which an application compiles. size: of the frame. results: for each output where it is, None if not
    asked.

    free: the same for the masks of elements that are left open. types: the element types of the outputs, where the
    arithmetic has arrays that do not tell them. largest: the bytes of the largest tensor it computes.
    """

    instructions: tuple[Instruction, ...]
    size: int
    results: tuple[Place, ...]
    free: tuple[tuple[Layout, tuple[int, ...]] | None, ...]
    types: tuple[DType | None, ...]
    largest: int


class Interpretation(Protocol):
    """An interpretation. given: by position of the input what stands in its place, as the arithmetic holds elements."""

    def __call__(self, application: Application, given: Sequence[Array | None] = ()) -> Outputs | Stuck:
        """The outputs of an application, or why there are none."""


def interpreter(algebra: ElementTable) -> Interpretation:
    """The interpretation with this arithmetic of elements. Raises Unsupported for an operator without definition."""
    kept = _Plans()

    def run(application: Application, given: Sequence[Array | None] = ()) -> Outputs | Stuck:
        operator = definition(application.op_type, application.version)
        key, frame = _entered(operator, application, given, algebra)
        try:
            with np.errstate(all="ignore"):
                for plan in kept.of(key, application):
                    within_budget(plan.largest, application.budget)
                    try:
                        return replay(plan, frame)
                    except Changed:
                        continue
                plan, outputs = build(operator, application, frame, algebra)
        except StuckError as error:
            return error.stuck
        kept.add(key, plan)
        return outputs

    def run_or_refuse(application: Application, given: Sequence[Array | None] = ()) -> Outputs | Stuck:
        try:
            return run(application, given)
        except (InternalError, TypeError, ValueError, LookupError, AttributeError) as error:
            place = added_place(application)
            if place is None:
                raise
            said = " ".join(str(error).split())
            raise Unsupported(
                f"{place}: the text of {application.op_type}-{application.version} gives no result on these types,"
                f" shapes and values ({said}): cast what differs in type, or state a requirement"
            ) from error

    return run_or_refuse


def added_place(application: Application) -> Span | None:
    """The place of the text of an operator that a user has added, whose mistakes are no defects here; None for ours."""
    added = specification().added
    span = definition(application.op_type, application.version).span if added else None
    return span if span is not None and span.file in {name for name, _ in added} else None


def _entered(
    operator: CoreOperator, application: Application, given: Sequence[Array | None], algebra: ElementTable
) -> tuple[Hashable, Frame]:
    """The signature that says which plans may fit, and the frame: tensors of inputs and attributes, where random
    numbers come from."""
    tensors: list[Array] = []
    instead: dict[int, Array] = {}
    # The operator itself, since another text may have the name too.
    signature: list[Hashable] = [operator, application.version, application.outputs]
    for position, value in enumerate(application.inputs):
        if value is None:
            signature.append(None)
            continue
        enter(value, signature, tensors)
        other = given[position] if position < len(given) else None
        if other is not None:
            instead[len(tensors) - 1] = other
    for name, item in sorted(application.attributes.items()) if application.attributes else ():
        if isinstance(item, np.ndarray):
            signature += (name, item.shape, item.dtype)
            tensors.append(item)
        else:
            signature += (name, _bits(item))
    frame: Frame = [*map(algebra.enter, tensors)]
    for k, x in instead.items():
        frame[k] = x
    frame.append(application.draw)
    return tuple(signature), frame


def _bits(item: Hashable) -> Hashable:
    """An attribute in a signature: 0.0 and -0.0 are equal numbers, but two values, and so are NaNs of other bits."""
    match item:
        case float():
            return pack("<d", item)
        case tuple():
            return tuple(pack("<d", it) if isinstance(it, float) else it for it in item)
        case _:
            return item


@dataclass(slots=True)
class _Kept:
    """The plans of a signature, and when they were asked for last, as a number that grows."""

    plans: list[Plan]
    asked: int


class _Plans:
    """The plans that are kept, by signature; several threads use them."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, _Kept] = {}
        self._lock = Lock()
        self._numbers = count()

    def of(self, key: Hashable, application: Application) -> Sequence[Plan]:
        """The plans of a signature. Raises Unsupported where an attribute cannot be part of one."""
        try:
            kept = self._kept.get(key)
        except TypeError:
            raise Unsupported(f"{application.op_type} has an attribute that is no number, text or tensor") from None
        if kept is None:
            return ()
        kept.asked = next(self._numbers)
        return kept.plans

    def add(self, key: Hashable, plan: Plan) -> None:
        with self._lock:
            plans = self._kept.setdefault(key, _Kept([], next(self._numbers))).plans
            plans.insert(0, plan)
            del plans[VARIANTS:]
            if len(self._kept) > PLANS:
                del self._kept[min(self._kept, key=lambda it: self._kept[it].asked)]


def build(
    operator: CoreOperator, application: Application, frame: Frame, algebra: ElementTable
) -> tuple[Plan, Outputs]:
    """The plan of an application, and what the application gives. Raises StuckError, Unsupported."""
    builder = Builder(algebra, f"{application.op_type}-{application.version}", list(frame), applied)
    builder.budget = application.budget
    builder.draw = len(frame) - 1
    tensors: list[Array] = []
    for value in application.inputs:
        if value is not None:
            enter(value, [], tensors)
    made = (input_tensor(slot, value) for slot, value in enumerate(tensors))
    inputs = [None if value is None else bound(value, made) for value in application.inputs]
    at = len(tensors)
    check_types(operator, application.version, inputs, builder.rule)
    check_attributes(operator, application.version, application.attributes, builder.rule)
    attributes: dict[str, Value] = {}
    for name in sorted(application.attributes):
        item = application.attributes[name]
        if isinstance(item, np.ndarray):
            attributes[name] = input_tensor(at, item)
            at += 1
        else:
            attributes[name] = attribute_value(item)
    found = apply_definition(operator, application.version, inputs, attributes, application.outputs, builder)
    results = tuple(place_of(value) for value in found[: len(application.outputs)])
    asked = found[: len(application.outputs)]
    free = () if algebra.codes else tuple(_free(t) for t in asked)
    free = free if any(free) else ()
    types = tuple(_element_type(t) for t in asked) if algebra.codes else ()
    plan = Plan(tuple(builder.instructions), len(builder.frame), results, free, types, builder.largest)
    frame, builder.frame = builder.frame, []  # code keeps the builder, not the data of this application
    return plan, collect(plan, frame)


def input_tensor(slot: int, value: Array) -> Tensor:
    """A tensor that lies in the frame from the start."""
    layout = Layout(slot, value.size, 0, row_strides(value.shape))
    return Tensor(ELEMENT, value.dtype, value.shape, lambda: layout, made=layout)


def _element_type(value: Value) -> DType | None:
    if isinstance(value, Tensor):
        return value.type
    if not isinstance(value, Held):
        return None
    return next((_element_type(item) for item in (value[1:] if value.kind.kind == "map" else value)), None)


def _free(value: Value) -> tuple[Layout, tuple[int, ...]] | None:
    if not isinstance(value, Tensor) or value.free is None:
        return None
    mask = value.free()
    return mask.layout, mask.shape


def replay(plan: Plan, inputs: Sequence[Array | Draw]) -> Outputs:
    """Runs a plan on tensors, and what says where random numbers come from. Raises Changed when it is not for these
    data, StuckError when a condition on data fails."""
    frame: Frame = [*inputs, *([None] * (plan.size - len(inputs)))]
    for instruction in plan.instructions:
        instruction(frame)
    return collect(plan, frame)


def collect(plan: Plan, frame: Frame) -> Outputs:
    """The outputs of a plan that has run: read-only arrays."""
    values = tuple([_value(frame, place) for place in plan.results])
    free = tuple([None if place is None else _array(frame, *place) for place in plan.free])
    return Outputs(values, free if any(mask is not None and mask.any() for mask in free) else (), plan.types)


def _value(frame: Frame, place: Place) -> Entry | None:
    if isinstance(place, Whole):
        return collected(place, lambda layout, shape: _array(frame, layout, shape))
    return None if place is None else _array(frame, *place)


def _array(frame: Frame, layout: Layout, shape: tuple[int, ...]) -> Array:
    base = frame[layout.slot]
    if base.shape == shape and layout.offset == 0 and layout.strides == row_strides(shape):
        found: Array = base.view()  # the base may be an input, which stays writeable
    else:
        found = strided(base, shape, layout.offset, layout.strides)
    found.flags.writeable = False
    return found


def _contiguous(x: Array) -> Array:
    return x if x.flags.c_contiguous else np.ascontiguousarray(x)


_apply: Final = interpreter(replace(IEEE, enter=_contiguous))


def apply(application: Application) -> Outputs | Stuck:
    """The outputs of an application, or why there are none. Raises Unsupported for an operator without definition, and
    MemoryError for more than the budget, though a view shows few elements again and again."""
    done = _apply(application)
    for value in done.values if isinstance(done, Outputs) else ():
        if isinstance(value, np.ndarray):
            within_budget(value.nbytes, application.budget)
    return done
