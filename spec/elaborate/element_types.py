"""Element types in the texts of operators that declare their own: for each choice of types, as far as it is known.

A text is followed once for each type that its variables may stand for. Branches whose condition is about types alone
are told apart; what is not known agrees with everything, and so does a numeral, which becomes an element of any type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod

from ..language.syntax import BOOL, Span
from .core import Binding, Core, CoreOperator, CoreStatement
from .scope import Ledger
from .sorts import ELEMENT, ELEMENT_TYPES, TYPE, array_of, list_of

Known = str | bool | None
"""An element type, "" for what is no element, a truth value; None for what is not known."""
Bodies = Callable[[str], tuple[Sequence[str], Core] | None]
"""A definition by its name: the names of the parameters, and the body."""

MOST = 200
"""So many choices of types are followed."""
DEEP = 50
ELEMENTS = (ELEMENT, array_of(ELEMENT), list_of(ELEMENT), list_of(array_of(ELEMENT)))
SIGNS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/"}
OF_TYPE = frozenset(("cast", "saturate", "nan", "infinity", "arbitrary", "reinterpret"))
"""Primitives whose first argument is the type of their value."""
ALIKE = frozenset(("maximum", "minimum", "clip", "absolute", "oneof", "remainder", "put", "insert", "merge"))
FIRST = frozenset(("power", "front", "back", "drop", "reverse", "repeat", "product", "type_of"))
"""Primitives whose value has the type of their first argument."""
FLOATING = frozenset((
    "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
    "atanh", "erf",
))  # fmt: skip
STRINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "joined": ("string", ("string", "string")), "pieces": ("int64", ("string", "string", "int64")),
    "piece": ("string", ("string", "string", "int64", "int64")), "lowercase": ("string", ("string",)),
    "uppercase": ("string", ("string",)), "matches": ("bool", ("string", "string")),
}  # fmt: skip
"""Primitives on strings: the type of the value, and of each argument."""


Test = Callable[[str], bool]


def is_integer(kind: str) -> bool:
    """The type is one of integers."""
    return kind.startswith(("int", "uint"))


def is_float(kind: str) -> bool:
    """The type is a floating-point type."""
    return kind.startswith(("float", "double", "bfloat"))


def is_signed(kind: str) -> bool:
    """The type is one of numbers some of which are negative."""
    return kind.startswith("int") or (is_float(kind) and kind != "float8e8m0")


TESTS: Mapping[str, Test] = {"is_integer": is_integer, "is_float": is_float, "is_signed": is_signed}
NEEDS: Mapping[str, tuple[Test, str]] = {
    "truth": (lambda kind: kind == "bool", "bool"),
    "integer": (is_integer, "a type of integers"),
    "values": (is_integer, "a type of integers"),
    "lowest": (lambda kind: is_integer(kind) or is_float(kind), "a type of numbers"),
    "highest": (lambda kind: is_integer(kind) or is_float(kind), "a type of numbers"),
    "bits": (lambda kind: kind != "string", "a type of numbers"),
    "bit_and": (is_integer, "a type of integers"),
    **dict.fromkeys(FLOATING, (is_float, "a floating-point type")),
}
"""Primitives that need elements of certain types: which, and in words."""


def check_element_types(operators: Sequence[CoreOperator], bodies: Bodies, ledger: Ledger) -> None:
    """Reports operations on elements of different types, and outputs of another type than they are declared with."""
    for operator in operators:
        allowed = {it.name: it.allowed for it in operator.types}
        if prod(map(len, allowed.values())) > MOST:
            allowed = {name: types[:3] for name, types in allowed.items()}
        said: set[Span] = set()
        for chosen in product(*allowed.values()):
            types = dict(zip(allowed, chosen, strict=True))
            open_ = [f"{name} = {kind}" for name, kind in types.items() if len(allowed[name]) > 1]
            walk = _Walk(bodies, f" where {' and '.join(open_)}" if open_ else "", ledger, said)
            _follow(operator, {**types}, walk)


@dataclass(slots=True)
class _Walk:
    """where: the choice of types, in words. said: where a mistake was found. depth: of calls. unsure: of branches that
    are perhaps never taken for these types."""

    bodies: Bodies
    where: str
    ledger: Ledger
    said: set[Span]
    depth: int = 0
    unsure: int = 0
    local: dict[str, tuple[tuple[Binding, ...], Core]] = field(default_factory=dict)

    def report(self, what: str, span: Span, **fields: str) -> None:
        if span not in self.said:
            self.said.add(span)
            self.ledger.report(what, span, None, where=self.where, **fields)


Names = dict[str, Known]
Ask = Callable[[Core, Names, "_Walk"], Known]


def _follow(operator: CoreOperator, names: Names, walk: _Walk) -> None:
    wanted = {port.name: port.type for port in operator.outputs}
    for port in operator.inputs:
        kind = None if port.others else names.get(port.type, port.type if port.type in ELEMENT_TYPES else None)
        names[port.name] = kind  # the entries of a group have several types
    for statement in operator.statements:
        if statement.kind in ("require", "restrict") and _truth(statement.body, names, walk) is False:
            return
        _statement(statement, names, walk, wanted)


def _statement(it: CoreStatement, names: Names, walk: _Walk, wanted: Mapping[str, str]) -> None:
    match it.kind:
        case "let" if len(it.binds) == 1:
            names[it.binds[0].name] = _value(it.body, names, walk)
        case "function":
            walk.local[it.binds[0].name] = (it.parameters, it.body)
        case "view" | "type":
            names.update({own.name: _kind(it.body, names, walk) for own in it.binds})
        case "along":
            names.update(dict.fromkeys(own.name for own in it.binds))
            for view in it.inner:
                _kind(view.body, names, walk)
        case _:
            kind = _kind(it.body, names, walk)
            stated = wanted.get(it.name, "")
            want = names.get(stated, stated if stated in ELEMENT_TYPES else None)
            if isinstance(want, str) and want and kind and kind != want and it.body.sort in ELEMENTS:
                walk.report("types/output", it.body.span, name=it.name, expected=want, found=kind)


def _value(core: Core, names: Names, walk: _Walk) -> Known:
    if core.sort == BOOL:
        _kind(core, names, walk)
        return _truth(core, names, walk)
    return _kind(core, names, walk)


def _alike(core: Core, parts: Sequence[Core], names: Names, walk: _Walk, operator: str) -> str | None:
    """The one type that the parts have."""
    kinds = [_kind(part, names, walk) for part in parts]
    known = list(dict.fromkeys(kind for kind in kinds if kind))
    if len(known) > 1:
        walk.report("types/operands", core.span, operator=operator, left=known[0], right=known[1])
        return None
    return known[0] if known else None if None in kinds else ""


def _kind(core: Core, names: Names, walk: _Walk) -> str | None:
    """The element type of an expression, or the type that it is."""
    match core.head:
        case "variable" if core.variable is not None:
            held = names.get(core.variable.name)
            return held if isinstance(held, str) else None if core.sort in (*ELEMENTS, TYPE) else ""
        case "type":
            return core.name
        case "arithmetic" | "neg":
            name = SIGNS.get(core.name, core.name or "-")
            kind = _alike(core, core.parts, names, walk, name)
            if kind == "string" and not walk.unsure:
                walk.report(
                    "types/needed", core.span, name=core.name or "a sign", needed="a type of numbers", found=kind
                )
            return kind
        case "ite":
            test, then, other = core.parts
            holds = _truth(test, names, walk)
            _kind(test, names, walk)
            if holds is not None:
                return _kind(then if holds else other, names, walk)
            return _one_of(core, (then, other), names, walk, "if")
        case "case":
            _kind(core.parts[0], names, walk)
            return _one_of(core, core.parts[1:], names, walk, "case")
        case "compare" if core.parts[0].sort in ELEMENTS or core.parts[1].sort in ELEMENTS:
            if core.name not in ("in", "not in"):
                _alike(core, core.parts, names, walk, core.name)
            return ""
        case "and" | "or" | "implies":
            for part in core.parts:
                _kind(part, names, walk)
                if _truth(part, names, walk) is (core.head == "or"):
                    break
            return ""
        case "fold":
            _below(core, names, walk)
            kind = _alike(core, (core.parts[0], *core.parts[2:]), names, walk, core.name)
            return kind if core.name in ("sum", "prod", "max", "min", "last") else ""
        case "vector" | "concat":
            return _alike(core, core.parts, names, walk, "a list") if core.sort in ELEMENTS else _all(core, names, walk)
        case "list":
            _below(core, names, walk)
            return _kind(core.parts[0], names, walk)
        case "index":
            for part in core.parts[1:]:
                _kind(part, names, walk)
            return _kind(core.parts[0], names, walk)
        case "define" | "local":
            held = _called(core, names, walk, _kind)
            return held if isinstance(held, str) else None
        case "fun":
            return _primitive(core, names, walk)
        case _:
            return _all(core, names, walk)


def _one_of(core: Core, parts: Sequence[Core], names: Names, walk: _Walk, operator: str) -> str | None:
    """The type of expressions of which one is chosen by what is not known here. Elements are then of one type, unless
    it is what a node states that chooses, as between the labels of ZipMap.
    """
    walk.unsure += 1
    kinds = {_kind(part, names, walk) for part in parts}
    walk.unsure -= 1
    elements = {kind for kind in kinds if kind != ""}
    known = sorted(kind for kind in elements if kind)
    if len(known) > 1 and core.sort in ELEMENTS and not _is_given(core.parts[0]):
        walk.report("types/operands", core.span, operator=operator, left=known[0], right=known[1])
    return elements.pop() if len(elements) == 1 else None if elements else ""


def _is_given(test: Core) -> bool:
    """True for a condition that asks only for what a node states."""
    return test.head == "given" or (test.head in ("not", "and", "or") and all(map(_is_given, test.parts)))


def _below(core: Core, names: Names, walk: _Walk) -> None:
    for it in core.bound:
        _kind(it.domain, names, walk)
    for part in core.parts[1:]:
        _kind(part, names, walk)


def _all(core: Core, names: Names, walk: _Walk) -> str | None:
    for part in core.children():
        _kind(part, names, walk)
    return None if core.sort in (*ELEMENTS, TYPE) or core.sort is None else ""


def _called(core: Core, names: Names, walk: _Walk, ask: Ask) -> Known:
    values = [_value(part, names, walk) for part in core.parts]
    if core.head == "local" and core.name in walk.local:
        parameters, body = walk.local[core.name]
        inner = {**names, **dict(zip((it.name for it in parameters), values, strict=True))}
    else:
        written = walk.bodies(core.name)
        if written is None:
            return None
        inner, body = dict(zip(written[0], values, strict=True)), written[1]
    if walk.depth > DEEP:
        return None
    walk.depth += 1
    found = ask(body, inner, walk)
    walk.depth -= 1
    return found


def _primitive(core: Core, names: Names, walk: _Walk) -> str | None:
    name, parts = core.name, core.parts
    if name in ALIKE:
        kind = _alike(core, parts[1:] if name == "merge" else parts, names, walk, name)
        return kind if core.sort in ELEMENTS else ""
    kinds = [_kind(part, names, walk) for part in parts]
    if name in NEEDS and kinds[0] and not walk.unsure and not NEEDS[name][0](kinds[0]):
        walk.report("types/needed", core.span, name=name, needed=NEEDS[name][1], found=kinds[0])
    if name in STRINGS:
        result, wanted = STRINGS[name]
        for kind, want in zip(kinds, wanted, strict=True):
            if kind and kind != want and not walk.unsure:
                walk.report("types/needed", core.span, name=name, needed=want, found=kind)
        return result
    if name in OF_TYPE or name in FIRST or name in FLOATING or name == "bit_and":
        return kinds[0]
    if name in ("uniform", "normal"):
        return "double"
    return None if core.sort in (*ELEMENTS, TYPE) else ""


def _truth(core: Core, names: Names, walk: _Walk) -> bool | None:
    """A condition about types; None for any other."""
    match core.head:
        case "literal":
            return core.value if isinstance(core.value, bool) else None
        case "variable" if core.variable is not None:
            held = names.get(core.variable.name)
            return held if isinstance(held, bool) else None
        case "not":
            held = _truth(core.parts[0], names, walk)
            return None if held is None else not held
        case "and" | "or":
            parts = [_truth(part, names, walk) for part in core.parts]
            ends = core.head == "or"
            return ends if ends in parts else None if None in parts else not ends
        case "implies":
            left, right = (_truth(part, names, walk) for part in core.parts)
            return True if left is False or right is True else None if None in (left, right) else False
        case "iff":
            left, right = (_truth(part, names, walk) for part in core.parts)
            return None if None in (left, right) else left == right
        case "compare" if core.parts[0].sort == TYPE:
            return _about_types(core, names, walk)
        case "fun" if core.name in TESTS:
            kind = _kind(core.parts[0], names, walk)
            return TESTS[core.name](kind) if kind else None
        case "define" | "local":
            held = _called(core, names, walk, _truth)
            return held if isinstance(held, bool) else None
        case _:
            return None


def _about_types(core: Core, names: Names, walk: _Walk) -> bool | None:
    left = _kind(core.parts[0], names, walk)
    listed = core.parts[1].parts if core.parts[1].head == "vector" else core.parts[1:]
    others = [_kind(part, names, walk) for part in listed]
    if not left or None in others or core.name not in ("=", "!=", "in", "not in"):
        return None
    return (left in others) == (core.name in ("=", "in"))
