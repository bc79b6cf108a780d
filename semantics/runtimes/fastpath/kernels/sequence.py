"""Sequences of tensors, and optionals."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from ....model import schemas
from ....model.elements import element_of
from ....model.graph import ValueType
from ....model.values import Optional, Sequence, Value
from ..kernel import Allocate, Compute, Inputs, Kernel, KernelError, Outputs, Site, unprepared
from ..reading import integer, optional, require
from .shape import INT64

BOOL: Final = np.dtype(np.bool_)


def _plain(kind: ValueType) -> ValueType:
    """A type without shapes."""
    return ValueType(kind.kind, kind.element, None, None if kind.inner is None else _plain(kind.inner))


def _kind(value: Value) -> ValueType:
    """The type of a value, without shapes: that of what it holds, else the stated one."""
    match value:
        case np.ndarray():
            return ValueType("tensor", element_of(value.dtype))
        case Sequence(inner=inner, items=items):
            return ValueType("sequence", inner=_kind(items[0]) if items else _plain(inner))
        case Optional(inner=inner, item=item):
            return ValueType("optional", inner=_plain(inner) if item is None else _kind(item))
        case _:
            raise KernelError("no input is a map")


def _inner(value: Value) -> ValueType:
    return _kind(value).inner or ValueType("unset")


def _given(inputs: Inputs, position: int) -> Value:
    value = inputs[position] if position < len(inputs) else None
    if value is None:
        raise KernelError(f"input {position} is required and absent")
    return value


def _sequence(inputs: Inputs) -> Sequence:
    value = _given(inputs, 0)
    if not isinstance(value, Sequence):
        raise KernelError("the first input is a sequence")
    return value


def _position(inputs: Inputs, at: int, absent: int, size: int, most: int) -> int:
    """The position that an input names among `size` entries, counted from either end; at most `most`."""
    stated = optional(inputs, at)
    require(stated is None or stated.shape in ((), (1,)), "position is a scalar")
    k = absent if stated is None else int(stated.reshape(()))
    require(-size <= k <= most, "position is a position of the sequence, counted from either end")
    return k + size if k < 0 else k


@unprepared
def _construct(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    items = tuple(_given(inputs, position) for position in range(len(inputs)))
    return (Sequence(_kind(_given(inputs, 0)), items),)


def _empty(site: Site) -> Compute:
    element = schemas.element_types().get(integer(site, "dtype", 1))
    if element is None:
        raise KernelError("dtype is the number of an element type")
    made = Sequence(ValueType("tensor", element), ())
    return lambda _inputs, _allocate: (made,)


@unprepared
def _at(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    items = _sequence(inputs).items
    require(optional(inputs, 1) is not None, "position is given")
    return (items[_position(inputs, 1, 0, len(items), len(items) - 1)],)


@unprepared
def _insert(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    whole, x = _sequence(inputs), _given(inputs, 1)
    inner, items = _inner(whole), whole.items
    require(_kind(x) == inner, "the tensor has the type of the tensors of the sequence")
    k = _position(inputs, 2, len(items), len(items), len(items))
    return (Sequence(inner, (*items[:k], x, *items[k:])),)


@unprepared
def _erase(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    whole = _sequence(inputs)
    items = whole.items
    k = _position(inputs, 1, len(items) - 1, len(items), len(items) - 1)
    return (Sequence(_inner(whole), (*items[:k], *items[k + 1 :])),)


@unprepared
def _length(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    out = allocate((), INT64)
    out[...] = len(_sequence(inputs).items)
    return (out,)


# ---- optionals --------------------------------------------------------------------------------


def _optional(site: Site) -> Compute:
    stated = site.attributes.get("type")

    def compute(inputs: Inputs, _allocate: Allocate) -> Outputs:
        value = inputs[0] if inputs else None
        if value is not None:
            return (Optional(_kind(value), value),)
        if not isinstance(stated, ValueType):
            raise KernelError("an optional without an input states its type")
        return (Optional(_plain(stated), None),)

    return compute


@unprepared
def _has_element(_site: Site, inputs: Inputs, allocate: Allocate) -> Outputs:
    value = inputs[0] if inputs else None
    out = allocate((), BOOL)
    out[...] = value.item is not None if isinstance(value, Optional) else value is not None
    return (out,)


@unprepared
def _get_element(_site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
    value = _given(inputs, 0)
    item = value.item if isinstance(value, Optional) else value
    require(item is not None, "the optional holds a value")
    return (item,)


KERNELS: Final[Mapping[str, tuple[Kernel, ...]]] = {
    "SequenceConstruct": (Kernel(11, 11, _construct),),
    "SequenceEmpty": (Kernel(11, 11, _empty),),
    "SequenceAt": (Kernel(11, 11, _at),),
    "SequenceInsert": (Kernel(11, 11, _insert),),
    "SequenceErase": (Kernel(11, 11, _erase),),
    "SequenceLength": (Kernel(11, 11, _length),),
    "Optional": (Kernel(15, 28, _optional),),
    "OptionalHasElement": (Kernel(15, 28, _has_element),),
    "OptionalGetElement": (Kernel(15, 28, _get_element),),
}
