"""The functions of the rules that have a contract instead of a body, on values of the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...model.elements import CODES, FLOATS, INTEGERS, dtype_of, element_of
from ...model.graph import ValueType
from ...model.values import Array, Map, Optional, Sequence, Value, shown, zeros
from .evaluation import Denotation, Made, Representation, Undefined

Memory = Mapping[int, Value]


def _require(holds: bool, reason: str) -> None:
    if not holds:
        raise Undefined(reason)


# ---- Values -----------------------------------------------------------------------------------


def _array(x: Value) -> Array:
    if not isinstance(x, np.ndarray):
        raise Undefined(f"{shown(x)} is no tensor")
    return x


def _sequence(x: Value) -> Sequence:
    if not isinstance(x, Sequence):
        raise Undefined(f"{shown(x)} is no sequence")
    return x


def _tensor(t: ValueType, s: tuple[int, ...], entries: tuple[Any, ...]) -> Array:
    _require(len(entries) == math.prod(s), f"{len(entries)} elements are none of a tensor of shape {list(s)}")
    made = np.empty(len(entries), dtype_of(t.element))
    for place, entry in enumerate(entries):
        made[place] = entry
    return made.reshape(s)


def type_of(x: Value) -> ValueType:
    """The type of a value, without shapes."""
    match x:
        case np.ndarray():
            return ValueType("tensor", element_of(x.dtype))
        case Sequence():
            return ValueType("sequence", inner=x.inner)
        case Optional():
            return ValueType("optional", inner=x.inner)
        case Map():
            return ValueType("map", x.key, inner=x.inner)


# ---- Lists ------------------------------------------------------------------------------------


def _drop(v: tuple[Denotation, ...], k: int) -> tuple[Denotation, ...]:
    _require(0 <= k < len(v), f"no entry {k} in a list of {len(v)}")
    return (*v[:k], *v[k + 1 :])


def _insert(v: tuple[Denotation, ...], k: int, x: Denotation) -> tuple[Denotation, ...]:
    _require(0 <= k <= len(v), f"no place {k} in a list of {len(v)}")
    return (*v[:k], x, *v[k:])


def _back(v: tuple[Denotation, ...], k: int) -> tuple[Denotation, ...]:
    _require(k <= len(v), f"no place {k} in a list of {len(v)}")
    return v[max(k, 0) :]


def _flatten(i: tuple[int, ...], d: tuple[int, ...]) -> int:
    inside = len(i) == len(d) and all(0 <= a < b for a, b in zip(i, d, strict=True))
    _require(inside, f"{list(i)} is no index of a tensor of shape {list(d)}")
    place = 0
    for a, b in zip(i, d, strict=True):
        place = place * b + a
    return place


def _unflatten(k: int, d: tuple[int, ...]) -> tuple[int, ...]:
    _require(0 <= k < math.prod(d), f"no index {k} in a tensor of shape {list(d)}")
    index: list[int] = []
    for size in reversed(d):
        k, a = divmod(k, size)
        index.append(a)
    return tuple(reversed(index))


def _repeat(x: Denotation, k: int) -> tuple[Denotation, ...]:
    _require(k >= 0, f"no list of {k} entries")
    return (x,) * k


def _data_type(code: int) -> ValueType:
    _require(code in CODES, f"no element type has the number {code}")
    return ValueType("tensor", CODES[code])


def _cast(t: ValueType, e: Denotation) -> Denotation:
    return dtype_of(t.element).type(e)


# ---- Memories and frames ----------------------------------------------------------------------


def _lookup(memory: Memory, t: int) -> Value:
    _require(t in memory, "the memory gives it no value")
    return memory[t]


def _depth(frames: Made | None) -> int:
    return 0 if frames is None else 1 + _depth(frames.fields["pop"])


def representation(gives: Callable[[int, Memory], Denotation], stored: Callable[[int], Memory]) -> Representation:
    """The representation of values: those of the model. gives, stored: what they are for one model."""
    return Representation(
        records={"tensor": _tensor, "sequence": lambda t, items: Sequence(t, tuple(items))},
        fields={
            "entry_type": lambda x: type_of(_array(x)),
            "sizes": lambda x: _array(x).shape,
            "entries_of": lambda x: _array(x).reshape(-1),
            "member_type": lambda x: _sequence(x).inner,
            "items": lambda x: _sequence(x).items,
        },
        primitives={
            "dom": tuple,
            "lookup": _lookup,
            "gives": gives,
            "stored": stored,
            "depth": _depth,
            "type_of": type_of,
            "is_float": lambda t: t.kind == "tensor" and t.element in FLOATS,
            "is_integer": lambda t: t.kind == "tensor" and t.element in INTEGERS,
            "data_type": _data_type,
            "arbitrary": lambda t: zeros(t.element, (1,))[0],
            "cast": _cast,
            "truth": bool,
            "integer": int,
            "product": math.prod,
            "repeat": _repeat,
            "reverse": lambda v: v[::-1],
            "drop": _drop,
            "insert": _insert,
            "back": _back,
            "flatten": _flatten,
            "unflatten": _unflatten,
        },
    )
