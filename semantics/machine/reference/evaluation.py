"""The meaning of an expression of the rules on one state: one fold over the core with one table, nothing compiled.

A set and a list are tuples, the elements of a tensor an array with one axis; a map is a dictionary; a record is what
its arguments were. What is undefined raises Undefined with the reason: nothing is made up for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sonnx.spec.elaborate.core import Bound, Core

from ...errors import InternalError
from ...facts.structure import SetTable, Structure, Unknown
from ...formulas import reading
from ...model.graph import ValueType
from ...model.values import identical

Denotation = Any
"""A truth value, number or text; an element; a type; a tuple; a map; a value of the model; a record."""


class Undefined(Exception):  # noqa: N818 - it is no error
    """An expression has no value in this state. The text says the reason."""


@dataclass(frozen=True, slots=True)
class Made:
    """What a record has made of these arguments, by the names of its fields."""

    record: str
    fields: Mapping[str, Denotation]


@dataclass(frozen=True, slots=True)
class Representation:
    """The fold's knowledge of how values are held, beside `Made`. records: makes the values of a record that are held
    otherwise; fields: what these were made of; primitives: the functions with a contract, by name.
    """

    records: Mapping[str, Callable[..., Denotation]]
    fields: Mapping[str, Callable[[Denotation], Denotation]]
    primitives: Mapping[str, Callable[..., Denotation]]


@dataclass(frozen=True, slots=True)
class Work:
    """The facts of the model, and how values are held."""

    structure: Structure
    values: Representation


Context = reading.Context[Work, Denotation]
REFERENCE = reading.Reading[Context, Denotation]("the reference interpreter")
"""The table of the fold."""
rule, meaning = REFERENCE.rule, REFERENCE.meaning


def parts(core: Core, context: Context) -> list[Denotation]:
    """The meanings of the parts, from left to right."""
    return [meaning(part, context) for part in core.parts]


# ---- Logic ------------------------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, _context: Context) -> Denotation:
    return core.value


@rule("type")
def _type(core: Core, _context: Context) -> Denotation:
    return ValueType("tensor", core.name)


@rule("not")
def _not(core: Core, context: Context) -> Denotation:
    return not meaning(core.parts[0], context)


@rule("and")
def _and(core: Core, context: Context) -> Denotation:
    return all(meaning(part, context) for part in core.parts)


@rule("or")
def _or(core: Core, context: Context) -> Denotation:
    return any(meaning(part, context) for part in core.parts)


@rule("implies")
def _implies(core: Core, context: Context) -> Denotation:
    premise, conclusion = core.parts
    return not meaning(premise, context) or meaning(conclusion, context)


@rule("iff")
def _iff(core: Core, context: Context) -> Denotation:
    left, right = parts(core, context)
    return left is right


@rule("ite")
def _ite(core: Core, context: Context) -> Denotation:
    condition, then, other = core.parts
    return meaning(then if meaning(condition, context) else other, context)


@rule("case")
def _case(core: Core, context: Context) -> Denotation:
    subject, *bodies = core.parts
    value = meaning(subject, context)
    for labels, body in zip(core.labels, bodies, strict=True):
        if value in labels or not labels:
            return meaning(body, context)
    raise Undefined(f"no case for {value}")


def members(bound: tuple[Bound, ...], context: Context) -> Iterator[Context]:
    """The contexts in which the variables have each combination of values, the left-most slowest."""
    if not bound:
        yield context
        return
    domain, variable = meaning(bound[0].domain, context), bound[0].variable
    for member in range(domain) if isinstance(domain, int) else domain:
        yield from members(bound[1:], context.bind(variable, member))


@rule("forall", "exists", "unique")
def _quantifier(core: Core, context: Context) -> Denotation:
    truths = (meaning(core.parts[0], inner) for inner in members(core.bound, context))
    if core.head == "unique":
        return sum(truths) == 1
    return all(truths) if core.head == "forall" else any(truths)


# ---- Comparison and arithmetic ----------------------------------------------------------------

ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@rule("compare")
def _compare(core: Core, context: Context) -> Denotation:
    left, right = parts(core, context)
    match core.name:
        case "in" | "not in":
            return any(same(left, member) for member in right) is (core.name == "in")
        case "=" | "!=":
            sets = any(part.sort is not None and part.sort.name == "set" for part in core.parts)
            return (_same_members(left, right) if sets else same(left, right)) is (core.name == "=")
        case _:
            return ORDER[core.name](left, right)


def same(left: Denotation, right: Denotation) -> bool:
    """Equality; of values of the model in every bit."""
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, Made) and isinstance(right, Made):
        return left.record == right.record and same(left.fields, right.fields)
    if isinstance(left, (bool, int, str, ValueType)) or left is None:
        return type(left) is type(right) and left == right
    return identical(left, right)


def _same_members(left: Denotation, right: Denotation) -> bool:
    return all(any(same(a, b) for b in right) for a in left) and all(any(same(a, b) for a in left) for b in right)


def _floored(function: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def divided(left: int, right: int) -> int:
        if not right:
            raise Undefined("division by zero")
        return function(left, right)

    return divided


ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul,
    "div": _floored(operator.floordiv), "mod": _floored(operator.mod),
}  # fmt: skip


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Denotation:
    left, right = parts(core, context)
    if core.name not in ARITHMETIC or not isinstance(left, int) or not isinstance(right, int):
        raise InternalError(f"{core.span}: the reference interpreter has no {core.name} of these")
    return ARITHMETIC[core.name](left, right)


@rule("neg")
def _neg(core: Core, context: Context) -> Denotation:
    return -meaning(core.parts[0], context)


@rule("fold")
def _fold(core: Core, context: Context) -> Denotation:
    body, guard, *start = core.parts
    kept = (meaning(body, inner) for inner in members(core.bound, context) if meaning(guard, inner))
    if core.name not in ("sum", "count") or start:
        raise InternalError(f"{core.span}: the reference interpreter has no fold {core.name}")
    return sum(kept)


# ---- Sets, lists and maps ---------------------------------------------------------------------


@rule("set")
def _set(core: Core, context: Context) -> Denotation:
    image, guard = core.parts
    found: list[Denotation] = []
    for inner in members(core.bound, context):
        if meaning(guard, inner):
            member = meaning(image, inner)
            if not any(same(member, other) for other in found):
                found.append(member)
    return tuple(found)


@rule("list")
def _list(core: Core, context: Context) -> Denotation:
    image, guard = core.parts
    return tuple(meaning(image, inner) for inner in members(core.bound, context) if meaning(guard, inner))


@rule("map")
def _map(core: Core, context: Context) -> Denotation:
    key, value = core.parts
    return {meaning(key, inner): meaning(value, inner) for inner in members(core.bound, context)}


@rule("vector")
def _vector(core: Core, context: Context) -> Denotation:
    return tuple(parts(core, context))


@rule("index")
def _index(core: Core, context: Context) -> Denotation:
    entries, place = parts(core, context)
    if not 0 <= place < len(entries):
        raise Undefined(f"no entry {place} in a list of {len(entries)}")
    return entries[place]


@rule("size")
def _size(core: Core, context: Context) -> Denotation:
    return len(meaning(core.parts[0], context))


@rule("concat")
def _concat(core: Core, context: Context) -> Denotation:
    left, right = parts(core, context)
    if isinstance(left, Mapping):
        return {**left, **right}
    return (*left, *right)


# ---- Functions --------------------------------------------------------------------------------


@rule("fact")
def _fact(core: Core, context: Context) -> Denotation:
    key = parts(core, context)
    table = context.work.structure.table(core.name)
    place = key[0] if len(key) == 1 else tuple(key)
    if isinstance(table, SetTable):
        return table.rows.get(place, ())
    value = table.rows.get(place)
    if value is None or isinstance(value, Unknown):
        said = f": {value.reason}" if isinstance(value, Unknown) else ""
        raise Undefined(f"{core.name}({', '.join(map(repr, key))}) is undefined{said}")
    return value


@rule("fun")
def _primitive(core: Core, context: Context) -> Denotation:
    function = context.work.values.primitives.get(core.name)
    if function is None:
        raise InternalError(f"{core.span}: the reference interpreter has no primitive {core.name}")
    return function(*parts(core, context))


@rule("record")
def _record(core: Core, context: Context) -> Denotation:
    given = parts(core, context)
    make = context.work.values.records.get(core.name)
    if make is not None:
        return make(*given)
    names = [parameter.name for parameter in context.cores.functions[core.name].parameters]
    return Made(core.name, dict(zip(names, given, strict=True)))


@rule("field")
def _field(core: Core, context: Context) -> Denotation:
    (value,) = parts(core, context)
    read = context.work.values.fields.get(core.name)
    if read is not None:
        return read(value)
    if not isinstance(value, Made) or core.name not in value.fields:
        raise Undefined(f"{core.name} of what was not made with one")
    return value.fields[core.name]
