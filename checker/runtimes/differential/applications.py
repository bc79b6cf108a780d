"""Applications of operators drawn at random: sizes and attributes from a solution, types and elements by chance.

Whether the specification gives a result is found by asking it, so that nothing about any operator is written here.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from sonnx.semantics.machine.inputs import random_tensor
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.schemas import AttributeSchema, Formal, Schema, schema_of
from sonnx.semantics.model.values import Array, Map, Optional, Sequence, Value
from sonnx.semantics.operators.application import Application, AttributeData
from sonnx.semantics.operators.symbolic.calls import PROPERTIES
from sonnx.semantics.operators.symbolic.definedness import is_list, is_map
from sonnx.semantics.operators.symbolic.statements import definition
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import Port

from .sizes import Finder, Solution, all_instances
from .special_values import special

COMMON: Final = ("float", "float", "float", "double", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")
"""Element types that are drawn more often than the others."""
REALS: Final = (0.5, 1.0, 0.0, 2.0, -1.0, 0.001, 1e-5, 3.25)
CODED: Final = ("to", "dtype", "output_dtype", "stash_type", "precision")
"""Attributes that are numbers of element types."""
TRIES: Final = 4
"""The number of paths that are drawn until one leads to a solution."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An application with what is known of how it came about. fed: by position, the inputs that were there before.

    violated: the requirement that was broken on purpose, "" for none.
    """

    application: Application
    fed: Mapping[int, str]
    violated: str = ""
    edge: bool = False
    ranks: str = ""


def drawn(
    op_type: str,
    version: int,
    finder: Finder,
    choose: random.Random,
    *,
    there: Mapping[str, Value] | None = None,
    outside: bool = False,
    demand: int | None = None,
    element: str = "",
) -> Drawn | None:
    """An application of an operator's version, None where chance leads to none.

    there: values that inputs may be. outside: a requirement is broken, the one of the number `demand` where that is
    given. element: the type of the first input, "" for one that is drawn.
    """
    operator = definition(op_type, version)
    form = schema_of(op_type, version)
    if form is None or not form.outputs:
        return None
    fed: dict[str, str] = {}
    instance, fixed = None, {}
    types = {form.inputs[0].type: element} if element and form.inputs else {}
    if there:
        port = operator.inputs[0] if operator.inputs else None
        formal = form.inputs[0] if form.inputs else None
        fits = [
            name for name, value in there.items() if formal is not None and port is not None and _fits(value, formal)
        ]
        if fits and port is not None and formal is not None:
            name = choose.choice(fits[-8:])
            array = there[name]
            rank = getattr(array, "ndim", 0)
            ranked = [it for it in all_instances(operator) if it.ranks[port.name][:1] == (rank,)]
            if ranked and isinstance(array, np.ndarray):
                instance = choose.choice(ranked)
                label = f"{port.name}.0" if is_list(operator, port) else port.name
                fixed = {f"{label}.{axis}": size for axis, size in enumerate(array.shape)}
                fed[port.name] = name
                types[formal.type] = _element(array)
    for _ in range(TRIES):
        solution = finder.find(operator, choose, outside=outside, demand=demand, fixed=fixed, instance=instance)
        if solution is not None:
            numbers = np.random.default_rng(choose.getrandbits(63))
            return _made(op_type, version, _Making(form, operator, solution, choose, numbers, there or {}, fed, types))
    return None


@dataclass(frozen=True, slots=True)
class _Making:
    """An application in the making. there: values that inputs may be; fed: those that some ports get, by name.
    types: the element types that are chosen, by type variable."""

    form: Schema
    operator: CoreOperator
    solution: Solution
    choose: random.Random
    numbers: np.random.Generator
    there: Mapping[str, Value]
    fed: Mapping[str, str]
    types: dict[str, str]


def _made(op_type: str, version: int, m: _Making) -> Drawn | None:
    form, solution = m.form, m.solution
    inputs: list[Value | None] = []
    positions: dict[int, str] = {}
    for port, formal in zip(m.operator.inputs, form.inputs, strict=False):
        value = _input(port, formal, m)
        if value is _IMPOSSIBLE:
            return None
        made = value if isinstance(value, list) else [value]
        if port.name in m.fed and made and (made[0] is not None or isinstance(value, list)):
            positions[len(inputs)] = m.fed[port.name]
        inputs += made
    while inputs and inputs[-1] is None:
        inputs.pop()
    if len(inputs) < form.min_inputs:
        return None
    attributes = {}
    for attribute in form.attributes.values():
        data = _attribute(attribute, m)
        if data is not None:
            attributes[attribute.name] = data
        elif attribute.required:
            return None
    count = max(form.min_outputs, 1)
    if form.outputs[-1].option == "variadic":
        lists = [len(solution.instance.ranks[port.name]) for port in m.operator.outputs if port.mark == "*"]
        count = len(form.outputs) - 1 + (lists[0] if lists else 1)
    elif len(form.outputs) > count and m.choose.random() < 0.5:
        count = len(form.outputs)
    application = Application(op_type, version, tuple(inputs), attributes, (True,) * count, budget=1 << 26)
    return Drawn(application, positions, solution.violated, solution.edge, solution.instance.label)


_IMPOSSIBLE: Final = Optional(ValueType("impossible"), None)
"""Stands for an input that cannot be made."""


def _input(port: Port, formal: Formal, m: _Making) -> Value | list[Value | None] | None:
    if port.mark == "?" and not _given(f"given.{port.name}", m):
        return None
    if is_map(m.operator, port):
        return _map(port, formal, m)
    if formal.type in m.types and f"tensor({m.types[formal.type]})" not in formal.types:
        return _IMPOSSIBLE
    elements: list[str] = []
    for it in formal.group or (formal,):
        chosen = _type(it, m.choose, m.solution)
        elements.append(m.types.setdefault(it.type, chosen) if it.homogeneous else chosen)
    if not all(elements):
        return _IMPOSSIBLE
    listed = is_list(m.operator, port)
    made: list[Value | None] = []
    for number, rank in enumerate(m.solution.instance.ranks[port.name]):
        element = elements[number % len(elements)]
        name = f"{port.name}.{number}" if listed else port.name
        sizes = [m.solution.numbers.get(f"{name}.{axis}", 1) for axis in range(rank)]
        shape = tuple(size for size in sizes if type(size) is int)
        if port.name in m.fed and not number:
            made.append(m.there[m.fed[port.name]])
        else:
            made.append(_tensor(name, element, shape, m))
    if not listed:
        return made[0]
    if port.mark == "*":
        return made
    inner = ValueType("tensor", elements[0])
    items = tuple(it for it in made if it is not None)
    if formal.types and formal.types[0].startswith("seq("):
        return Sequence(inner, items)
    return Optional(inner, items[0] if items else None)


def _map(port: Port, formal: Formal, m: _Making) -> Map:
    """A map of a type that the schema admits: small keys, the values drawn."""
    key, _, held = m.choose.choice(formal.types).removeprefix("map(").removesuffix(")").partition(",")
    element = held.removeprefix("tensor(").removesuffix(")")
    size = m.solution.numbers.get(f"{port.name}.0.0", 0)
    numbers = sorted(m.choose.sample(range(8), min(size, 8) if type(size) is int else 0))
    values = random_tensor(element, (len(numbers),), m.numbers)
    keys = [f"{number}".encode() if key == "string" else number for number in numbers]
    items = tuple((name, values[k : k + 1].reshape(())) for k, name in enumerate(keys))
    return Map(key, ValueType("tensor", element), items)


def _tensor(name: str, element: str, shape: tuple[int, ...], m: _Making) -> Array:
    """A tensor: the elements that requirements read are those of the solution, the others drawn, some special."""
    made = np.array(random_tensor(element, shape, m.numbers))
    if element != "string" and m.choose.random() < 0.5 and made.size:
        table = special(element)
        chosen = m.numbers.random(shape) < m.choose.choice((0.05, 0.3))
        made[chosen] = table[m.numbers.integers(len(table), size=int(chosen.sum()))]
    for (symbol, index), number in m.solution.entries.items():
        source, _, _ = symbol.rpartition(".")
        if source == name and len(index) == len(shape) and all(i < n for i, n in zip(index, shape, strict=True)):
            made[index] = np.asarray(_plain(number)).astype(made.dtype)
    made.flags.writeable = False
    return made


def _attribute(attribute: AttributeSchema, m: _Making) -> AttributeData | None:
    """The value of an attribute; None where it is not stated."""
    name = attribute.name
    if f"given.{name}" in m.solution.numbers:
        if not m.solution.numbers[f"given.{name}"]:
            return None
    elif not attribute.required and attribute.default is None and m.choose.random() < 0.5:
        return None
    match attribute.kind:
        case "INT":
            number = m.solution.numbers.get(name)
            if name in CODED:
                return _type_code(m.form, m.choose) if attribute.default is None or m.choose.random() < 0.3 else None
            if type(number) is int:
                return number
            return m.choose.choice((0, 1)) if attribute.default is not None or attribute.required else None
        case "FLOAT":
            exact = m.solution.numbers.get(name)
            return float(np.float32(_plain(exact))) if exact is not None else m.choose.choice(REALS)
        case "STRING":
            text = m.solution.texts.get(name)
            if text is None and attribute.default is not None:
                default = attribute.default.value
                return default.decode() if isinstance(default, bytes) else None
            return text
        case "INTS" | "FLOATS" | "STRINGS":
            return _list(attribute, m)
        case "TENSOR":
            size = m.solution.numbers.get(f"{name}.0", m.choose.choice((1, 3)))
            dims = (size,) if type(size) is int else (1,)
            element = m.choose.choice([it for it in COMMON if it in DTYPES])
            return _tensor(name, element, dims, m)
        case _:
            return None


def _list(attribute: AttributeSchema, m: _Making) -> AttributeData | None:
    length = m.solution.numbers.get(f"len.{attribute.name}")
    if type(length) is not int:
        if attribute.default is not None or not attribute.required:
            return None
        length = m.choose.randint(0, 3)
    if attribute.kind == "STRINGS":
        return tuple(m.solution.texts.get(attribute.name, "") for _ in range(length))
    entries = [m.solution.numbers.get(f"{attribute.name}.{k}") for k in range(length)]
    if attribute.kind == "FLOATS":
        return tuple(float(np.float32(_plain(it))) if it is not None else m.choose.choice(REALS) for it in entries)
    return tuple(it if type(it) is int else m.choose.choice((0, 1, 2)) for it in entries)


def _given(symbol: str, m: _Making) -> bool:
    known = m.solution.numbers.get(symbol)
    return bool(known) if known is not None else m.choose.random() < 0.6


def _type(formal: Formal, choose: random.Random, solution: Solution | None = None) -> str:
    """An element type that the formal input admits, and that is what a solution says of it; "" where there is none."""
    inner = [text[text.index("tensor(") + 7 :].rstrip(")") for text in formal.types if "tensor(" in text]
    said = {} if solution is None else solution.numbers
    wanted = [(test, said.get(f"{name}.{formal.type}")) for name, test in PROPERTIES.items()]
    allowed = [it for it in inner if it in DTYPES and all(known in (None, test(it)) for test, known in wanted)]
    if not allowed:
        return ""
    common = [it for it in COMMON if it in allowed]
    return choose.choice(common) if common and choose.random() < 0.75 else choose.choice(allowed)


def _type_code(form: Schema, choose: random.Random) -> int:
    from sonnx.semantics.model.type_protos import ELEMENT_CODES

    return ELEMENT_CODES[_type(form.outputs[0], choose) or "float"]


def _fits(value: Value, formal: Formal) -> bool:
    return isinstance(value, np.ndarray) and f"tensor({_element(value)})" in formal.types and value.ndim <= 5


def _element(value: Value) -> str:
    from sonnx.semantics.model.elements import element_of

    return element_of(value.dtype) if isinstance(value, np.ndarray) else ""


def _plain(number: int | bool | str) -> float:
    """A number of the solver: an integer, a fraction as `(/ 1.0 3.0)`, a decimal."""
    if isinstance(number, int):
        return float(number)
    text = number.replace("(", " ").replace(")", " ").split()
    sign = -1 if "-" in text else 1
    digits = [Fraction(it) for it in text if it not in ("-", "/")]
    value = digits[0] / digits[1] if "/" in text and len(digits) > 1 and digits[1] else (digits or [Fraction(0)])[0]
    return float(sign * value)
