"""A search for an input on which the sides of a rule differ: few elements, special values, run on the machine."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.model.elements import FLOATS, INTEGERS, dtype_of, element_of, limits
from sonnx.semantics.operators.application import Application, AttributeData, Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.operators.compiled.elements.exact import EXACT
from sonnx.semantics.operators.compiled.elements.ieee import IEEE, ElementTable
from sonnx.semantics.operators.compiled.terms import StuckError
from sonnx.spec.elaborate.core import CoreOperator

from .rules import Instance, Rule, Witness, is_open, shapes, types
from .sides import texts

Array = NDArray[np.generic]

MOST = 10
"""A witness has so many elements, at most."""
SHAPES = 150
"""So many choices of sizes and attributes are tried, and for each so many choices of elements:"""
FILLS = 24
SPECIAL = (
    "0",
    "-0.0",
    "1",
    "-1",
    "2",
    "0.5",
    "-2.5",
    "3",
    "nan",
    "inf",
    "-inf",
    "1e-40",
    "3e38",
    "-3e38",
    "1e-45",
    "7",
    "0.1",
)
"""Elements of floating-point types that are tried first; they are rounded to the type."""


@dataclass(frozen=True, slots=True)
class Input:
    """Tensors by port, None for one that is absent, and attributes."""

    tensors: Mapping[str, Array | None]
    attributes: Mapping[str, AttributeData]


def search(
    rule: Rule, failed: Sequence[Instance] = (), *, seed: int = 0, tries: int = SHAPES, fills: int = FILLS
) -> Witness | None:
    """A witness, None where none is found. failed: the instances that were not proved, which are tried first."""
    draw = random.Random(f"{rule.name} {seed}")
    for number, instance in enumerate(islice(_instances(rule, failed, draw), tries)):
        template = _template(rule, instance, draw, bare=number % 4 == 3)
        if template is None:
            continue
        found = _differ(rule, template, draw, fills)
        if found is not None:
            return found
    return None


def _instances(rule: Rule, failed: Sequence[Instance], draw: random.Random) -> Iterator[Instance]:
    """Instances with types: those that failed again and again between others."""
    every = list(shapes(rule, 3))
    kinds = types(rule)
    preferred = [
        chosen for chosen in kinds if set(chosen.values()) <= {"float", "int64", "int32", "float16", "bool", "double"}
    ]
    while True:
        for instance in failed or (None,):
            chosen = draw.choice(preferred or kinds) if kinds else {}
            if instance is not None and draw.random() < 0.8:
                concrete = not any(map(is_open, instance.types.values()))
                yield instance if concrete and draw.random() < 0.7 else replace(instance, types=chosen)
            elif every:
                yield replace(draw.choice(every), types=chosen)


def _template(rule: Rule, instance: Instance, draw: random.Random, *, bare: bool) -> Input | None:
    """Tensors with sizes, and attributes; None where they have too many elements. bare: no attribute is stated that
    need not be, for of many at once hardly any choice has a meaning.
    """
    sizes: dict[str, int] = {}

    def size(name: str) -> int:
        if name not in sizes:
            sizes[name] = draw.choice((0, 1, 1, 2, 2, 2, 3))
        return sizes[name]

    tensors: dict[str, Array | None] = {}
    total = 0
    for port in rule.left.inputs:
        if port.mark == "?" and not instance.given.get(port.name, True):
            tensors[port.name] = None
            continue
        names = [f"{port.name}.{k}" for k in range(instance.counts[port.name])] if port.mark == "*" else [port.name]
        for name in names:
            shape: list[int] = []
            for item in port.shape if port.shape is not None else ((name, True),):
                if isinstance(item, int):
                    shape.append(item)
                elif item[1]:
                    rank = instance.ranks[port.name if port.shape is None else item[0]]
                    shape += [size(f"{item[0]}.{axis}") for axis in range(rank)]
                else:
                    shape.append(size(item[0]))
            kind = instance.types.get(port.type, port.type)
            tensors[name] = np.zeros(shape, dtype_of(kind))
            total += int(np.prod(shape))
    if total > MOST:
        return None
    rank = max(instance.ranks.values(), default=1)
    attributes: dict[str, AttributeData] = {}
    for it in rule.left.attributes:
        if it.mark == "?" and (bare or draw.random() < 0.4):
            continue
        value = _attribute(it.kind, rule.left, rank, draw)
        if value is None:
            return None
        attributes[it.name] = value
    return Input(tensors, attributes)


def _attribute(kind: str, operator: CoreOperator, rank: int, draw: random.Random) -> AttributeData | None:
    match kind:
        case "int":
            return draw.choice((0, 1, 1, 2, -1, 3, -2))
        case "ints":
            length = draw.choice((rank, rank, rank, 2 * rank, rank - 2, 1, 2, max(0, 2 * rank - 4)))
            if draw.random() < 0.5:
                order = list(range(max(length, 0)))
                draw.shuffle(order)
                return tuple(order)
            return tuple(draw.choice((0, 1, 1, 2, -1)) for _ in range(length))
        case "float":
            return draw.choice((1.0, 0.0, 2.0, 0.5, -1.0, float(np.float32(1e-5)), float(np.float32(0.1))))
        case "floats":
            return tuple(draw.choice((1.0, 0.0, 2.0)) for _ in range(draw.choice((1, 2))))
        case "string":
            return draw.choice(texts(operator) or ("",))
        case _:
            return None


# ---- Elements -----------------------------------------------------------------------------------


def _filled(data: Array, kind: str, draw: random.Random, round_: int) -> Array:
    """Elements: the first time 1, 2, 3, ..., then special and random ones."""
    n = data.size
    made: Array
    if kind == "string":
        made = np.array([str(draw.randrange(9)).encode() for _ in range(n)], object)
    elif kind == "bool":
        made = np.array([draw.random() < 0.5 for _ in range(n)], np.bool_)
    elif kind in INTEGERS:
        least, most = map(int, limits(kind) or (0, 1))
        wide = [least, most, most - 1]
        small = [n for n in (0, 1, 2, 3, -1, -2) if least <= n <= most]
        choices = small if round_ % 3 else [*small, *wide]
        made = np.array([draw.choice(choices) if round_ else min(most, 1 + k % 3) for k in range(n)]).astype(data.dtype)
    elif kind in FLOATS:
        with np.errstate(all="ignore"):
            if not round_:
                values = [float(k + 1) for k in range(n)]
            elif round_ % 3 == 1:
                values = [float(draw.choice(SPECIAL)) for _ in range(n)]
            elif round_ % 3 == 2:
                values = [float(draw.choice(SPECIAL[:8])) for _ in range(n)]
            else:
                values = [draw.uniform(-3, 3) for _ in range(n)]
            made = np.array(values, np.float64).astype(data.dtype)
    else:
        made = np.zeros(n, data.dtype)
    return made.reshape(data.shape)


# ---- Runs -----------------------------------------------------------------------------------------


Result = Outputs | Stuck | None


def run(operator: CoreOperator, given: Input, table: ElementTable = IEEE) -> Result:
    """What a side gives on the machine, or without rounding by another table; None where there is no such value."""
    inputs = []
    for port in operator.inputs:
        if port.mark == "*":
            inputs += [data for name, data in given.tensors.items() if name.startswith(f"{port.name}.")]
        else:
            inputs.append(given.tensors.get(port.name))
    outputs = (True,) * len(operator.outputs)
    application = Application(operator.name, operator.first, tuple(inputs), given.attributes, outputs)
    try:
        frame = [table.enter(x) for x in inputs if x is not None]
        frame += [x for _, x in sorted(given.attributes.items()) if isinstance(x, np.ndarray)]
        with np.errstate(all="ignore"):
            return ieee.build(operator, application, [*frame, application.draw], table)[1]
    except StuckError as error:
        return error.stuck
    except Unsupported:
        return None
    except (InternalError, TypeError, ValueError, LookupError, AttributeError):
        return None


def _differ(rule: Rule, template: Input, draw: random.Random, fills: int) -> Witness | None:
    kinds: dict[str, str] = {}
    for port in rule.left.inputs:
        for name in template.tensors:
            if name == port.name or name.startswith(f"{port.name}."):
                kinds[name] = port.type
    seen: set[bytes] = set()
    for round_ in range(fills):
        tensors = {
            name: None if data is None else _filled(data, element_kind(data), draw, round_)
            for name, data in template.tensors.items()
        }
        key = b"".join(x.tobytes() if x is not None and x.dtype != object else b"" for x in tensors.values())
        if key in seen and round_:
            continue
        seen.add(key)
        given = Input(tensors, template.attributes)
        if rule.claim == "reals":
            found = _unequal(rule, given)
            if found is not None:
                return found
            continue
        left = run(rule.left, given)
        if not isinstance(left, Outputs):
            if round_ > 7:
                return None
            continue
        right = run(rule.right, given)
        found = None if right is None else _compared(rule, given, left, right)
        if found is not None:
            return found
    return None


def _unequal(rule: Rule, given: Input) -> Witness | None:
    """The input, where the sides have different exact values, or the right one has none."""
    left = run(rule.left, given, EXACT)
    right = run(rule.right, given, EXACT) if isinstance(left, Outputs) else None
    if not isinstance(left, Outputs) or right is None:
        return None
    if isinstance(right, Stuck):
        return _witness(given, "defined", f"undefined: {right.message}")
    for position, port in enumerate(rule.left.outputs):
        one, other = left.values[position], right.values[position]
        if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
            continue
        if one.shape != other.shape:
            return _witness(given, f"shape {list(one.shape)}", f"shape {list(other.shape)}", port.name)
        for index in np.ndindex(one.shape):
            if one[index] != other[index]:
                told = f"exactly {one[index]}", f"exactly {other[index]}"
                return _replayed(rule, _witness(given, *told, f"{port.name}{list(index)}"), given)
    return None


def _replayed(rule: Rule, found: Witness, given: Input) -> Witness | None:
    """The witness, if the machine runs both sides on it."""
    both = run(rule.left, given), run(rule.right, given)
    return found if all(isinstance(it, Outputs) for it in both) else None


def element_kind(data: Array) -> str:
    """The element type of a tensor."""
    return element_of(data.dtype)


def _compared(rule: Rule, given: Input, left: Outputs, right: Outputs | Stuck) -> Witness | None:
    if isinstance(right, Stuck):
        return _witness(given, "defined", f"undefined: {right.message}")
    for position, port in enumerate(rule.left.outputs):
        one, other = left.values[position], right.values[position]
        if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
            continue
        if one.shape != other.shape:
            return _witness(given, f"shape {list(one.shape)}", f"shape {list(other.shape)}", port.name)
        if one.dtype != other.dtype:
            return _witness(given, str(one.dtype), str(other.dtype), port.name)
        free = left.free[position] if left.free else None
        for index in np.ndindex(one.shape):
            if free is not None and free[index]:
                continue
            if not same_element(np.asarray(one[index]), np.asarray(other[index])):
                return _witness(given, str(one[index]), str(other[index]), f"{port.name}{list(index)}")
    return None


def same_element(a: Array, b: Array) -> bool:
    """Two elements are one: one NaN, two zeros."""
    if a.dtype == object:
        return bool(a == b)
    return bool(a != a and b != b) or a.tobytes() == b.tobytes()


def _witness(given: Input, left: str, right: str, place: str = "") -> Witness:
    inputs = {
        name: (element_kind(data), data.shape, tuple(map(_shown, data.reshape(-1).tolist())))
        for name, data in given.tensors.items()
        if data is not None
    }
    attributes = {name: value for name, value in given.attributes.items() if not isinstance(value, np.ndarray)}
    return Witness(inputs, attributes, left, right, place)


def _shown(element: object) -> str:
    return element.decode("utf-8", "backslashreplace") if isinstance(element, bytes) else str(element)
