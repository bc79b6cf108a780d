"""The places where two values part: walked from the outputs to the arguments, as long as the heads agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.model.differences import first_of, unequal
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.model.values import Array

from .table import ApplicationId, Applied, Body, Given, Result, Stored, Table, ValueId

Pair = tuple[ValueId, ValueId]


@dataclass(frozen=True, slots=True)
class ConstantDifference:
    """Stored tensors that differ at one place. count: of elements that do; element: the first one, with its values.
    ulps: the greatest distance in units of the last place, None where there is none."""

    pair: Pair
    what: str
    count: int
    elements: int
    element: tuple[int, ...] | None
    values: tuple[str, str]
    ulps: int | None


@dataclass(frozen=True, slots=True)
class Island:
    """Two values whose heads differ. what: in words. cuts: the values of both on which they rest in common."""

    pair: Pair
    what: str
    cuts: tuple[ValueId, ...]


@dataclass(frozen=True, slots=True)
class Differences:
    """The leaves of an attempt to unify: all of them must be equal for the outputs to be shown equal. Empty when they
    are."""

    constants: tuple[ConstantDifference, ...]
    islands: tuple[Island, ...]

    def __bool__(self) -> bool:
        return bool(self.constants or self.islands)


def unify(
    table: Table, pairs: Iterable[Pair], applications: Iterable[tuple[ApplicationId, ApplicationId]] = ()
) -> Differences:
    """The differences between values of which each pair is to be equal, and between the arguments of applications."""
    constants: list[ConstantDifference] = []
    islands: list[Island] = []
    waiting, seen = list(pairs)[::-1], set[Pair]()
    for one, other in applications:
        inner = _arguments(table, one, other)
        if isinstance(inner, list):
            waiting += inner
        else:
            pair = table.result(one, 0), table.result(other, 0)
            islands.append(Island(pair, inner, common(table, *pair)))
    while waiting:
        a, b = waiting.pop()
        if a == b or (a, b) in seen:
            continue
        seen.add((a, b))
        x, y = table.values[a], table.values[b]
        if isinstance(x, Stored) and isinstance(y, Stored):
            constants.append(_constant(x.array, y.array, (a, b)))
            continue
        if isinstance(x, Result) and isinstance(y, Result) and x.position == y.position:
            inner = _arguments(table, x.application, y.application)
            if isinstance(inner, list):
                waiting += inner[::-1]
                continue
            islands.append(Island((a, b), inner, common(table, a, b)))
        else:
            islands.append(Island((a, b), f"{head(table, a)} stands where {head(table, b)} does", common(table, a, b)))
    return Differences(tuple(constants), tuple(islands))


def head(table: Table, value: ValueId) -> str:
    """A value in a few words."""
    match table.values[value]:
        case Given(depth=0, name=name):
            return f"the input {name}"
        case Given(name=name):
            return f"the input {name} of a body"
        case Stored(array=array):
            return f"a stored {type_text(type_of(array))}"
        case Result(application=application, position=position):
            it = table.applications[application]
            return it.name + (f" (output {position})" if position else "")


def _arguments(table: Table, a: ApplicationId, b: ApplicationId) -> list[Pair] | str:
    """The pairs that must be equal where two applications have one head; else in what the heads differ."""
    one, other = table.applications[a], table.applications[b]
    if one.name != other.name:
        return f"{one.name} stands where {other.name} does"
    if one.operator is None or other.operator is None:
        return f"the specification gives no meaning to {one.name}"
    if one.operator.first != other.operator.first or (one.name == "Scan" and one.version != other.version):
        return f"{one.name}-{one.version} and {other.name}-{other.version} have different definitions"
    if one.alone > 0 or other.alone > 0:
        return f"{one.name} draws its result, or leaves it open"
    said = _attributes(table, one, other)
    if said:
        return said
    if len(one.inputs) != len(other.inputs) or one.outputs != other.outputs:
        return f"{one.name} is given {len(one.inputs)} and {len(other.inputs)} inputs, or other outputs are asked of it"
    if one.inputs != other.inputs and one.inputs == other.inputs[::-1]:
        return f"the inputs of {one.name} stand in the other order"
    pairs: list[Pair] = []
    for k, (x, y) in enumerate(zip(one.inputs, other.inputs, strict=True)):
        if (x is None) != (y is None):
            return f"input {k} of {one.name} is given on one side alone"
        if x is not None and y is not None:
            pairs.append((x, y))
    inner = _bodies(one.bodies, other.bodies)
    if isinstance(inner, str):
        return f"{one.name}: {inner}"
    if all(x == y for x, y in pairs + inner):  # the applications are two nevertheless
        return f"{one.name} may leave elements open, and one side has more of it"
    return pairs + inner


def _attributes(table: Table, one: Applied, other: Applied) -> str:
    for name in sorted(one.attributes.keys() | other.attributes.keys()):
        x, y = one.attributes.get(name), other.attributes.get(name)
        if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
            same = table.stored(x) == table.stored(y)
        else:
            same = type(x) is type(y) and repr(x) == repr(y)
        if not same:
            return f"{one.name}: {name} is {_shown(x)} and {_shown(y)}"
    return ""


def _shown(item: object) -> str:
    if item is None:
        return "absent"
    if isinstance(item, np.ndarray):
        return f"a tensor {type_text(type_of(item))}"
    return str(list(item)) if isinstance(item, tuple) else str(item)


def _bodies(one: tuple[Body, ...], other: tuple[Body, ...]) -> list[Pair] | str:
    if [it.attribute for it in one] != [it.attribute for it in other]:
        return "other bodies"
    pairs: list[Pair] = []
    for x, y in zip(one, other, strict=True):
        if (x.inputs, len(x.outputs)) != (y.inputs, len(y.outputs)):
            return f"the body {x.attribute} has other inputs or outputs"
        if x.declared != y.declared:
            return f"the body {x.attribute} declares its outputs differently"
        pairs += zip(x.outputs, y.outputs, strict=True)
    if all(a == b for a, b in pairs) and [it.demands for it in one] != [it.demands for it in other]:
        return "a body may get stuck where the other one does not"
    return pairs


# ---- Stored tensors ------------------------------------------------------------------------------


def _constant(one: Array, other: Array, pair: Pair) -> ConstantDifference:
    kinds = [type_text(type_of(it)) for it in (one, other)]
    if kinds[0] != kinds[1]:
        return ConstantDifference(
            pair, f"stored are {kinds[0]} and {kinds[1]}", one.size, one.size, None, ("", ""), None
        )
    mask = unequal(one, other)
    at = first_of(mask)
    values = str(one[at]), str(other[at])
    count = int(mask.sum())
    return ConstantDifference(pair, f"stored {kinds[0]}", count, one.size, at, values, ulps(one, other, mask))


def ulps(one: Array, other: Array, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> int | None:
    """The greatest distance of two floating-point tensors, in units of the last place; None with NaNs, or of others."""
    element = element_of(one.dtype)
    if "float" not in element and element != "double":
        return None
    code = np.dtype(f"i{one.dtype.itemsize}")
    differing = [it[mask].reshape(-1) for it in (one, other)]  # of a scalar too it has one axis
    if any(bool(np.isnan(it.astype(np.float64)).any()) for it in differing):
        return None
    a, b = (it.view(code).astype(object) for it in differing)
    low = 1 << (8 * one.dtype.itemsize - 1)
    ordered = [[n if n >= 0 else -(n + low) for n in it.tolist()] for it in (a, b)]
    return max((abs(x - y) for x, y in zip(*ordered, strict=True)), default=0)


# ---- Cut points ----------------------------------------------------------------------------------


def cone(table: Table, value: ValueId) -> Iterator[ValueId]:
    """The values that a value rests on, itself included, those in bodies too."""
    waiting, seen = [value], {value}
    while waiting:
        v = waiting.pop()
        yield v
        for before in arguments(table, v):
            if before not in seen:
                seen.add(before)
                waiting.append(before)


def arguments(table: Table, value: ValueId) -> Iterator[ValueId]:
    """The values from which an application computes one, the outputs of its bodies included."""
    application = table.producer(value)
    if application is None:
        return
    it = table.applications[application]
    yield from (v for v in it.inputs if v is not None)
    yield from (v for body in it.bodies for v in body.outputs)


def common(table: Table, a: ValueId, b: ValueId, most: int = 64) -> tuple[ValueId, ...]:
    """The values of both cones nearest to the roots; the walk ends at them. Stored tensors are left out."""
    both = set(cone(table, a)) & set(cone(table, b))
    cuts: dict[ValueId, None] = {}
    for root in (a, b):
        waiting, seen = [root], {root}
        while waiting and len(cuts) < most:
            v = waiting.pop()
            if v in both:
                if not isinstance(table.values[v], Stored):
                    cuts[v] = None
                continue
            for before in arguments(table, v):
                if before not in seen:
                    seen.add(before)
                    waiting.append(before)
    return tuple(cuts)
