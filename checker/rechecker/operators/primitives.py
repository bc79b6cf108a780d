"""The primitives of the language, as `spec/primitives.sonnx` says by contract: one entry for each name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import reduce
from itertools import product as all_of
from math import floor
from typing import cast

import numpy as np

from . import elements as el
from . import formulas as fm
from . import operations as ops
from .formulas import Int, Poly, Symbol, Unknown
from .lists import dropped, inserted, is_optional
from .operations import LOOKED_AT
from .proving import within
from .values import Dead, Element, Entries, Kind, Listed, Opaque, Open, Ratio, Refused, Run, Tensor, Value, shown

# ---- Equations of Einsum ------------------------------------------------------------------------


DOTS = "..."


def labels(equation: str, ranks: Sequence[int]) -> tuple[list[list[int]], int, int]:
    """The labels of the axes of each operand as numbers, how many there are, and how many of them the output has.

    The labels of the output come first, in its order, the others in alphabetical order.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(ranks):
        raise Refused
    spreads = {r - len(t.replace(DOTS, "")) for t, r in zip(written, ranks, strict=True) if DOTS in t}
    spread = min(spreads, default=0)
    if len(spreads) > 1 or spread < 0:
        raise Refused
    dots = [f".{k:03d}" for k in range(spread)]
    terms = []
    for term, rank in zip(written, ranks, strict=True):
        before, dots_written, behind = term.partition(DOTS)
        count = rank - len(before) - len(behind)
        if count < 0 or (not dots_written and count):
            raise Refused
        terms.append([*before, *(dots if dots_written else ()), *behind])
    uses = Counter(label for term in terms for label in term)
    if arrow:
        before, dots_written, behind = right.partition(DOTS)
        output = [*before, *(dots if dots_written else ()), *behind]
    else:
        output = [*dots, *sorted(label for label, n in uses.items() if n == 1 and label not in dots)]
    if len(set(output)) != len(output) or not set(output) <= {*uses, *dots}:
        raise Refused
    others = sorted(label for label in uses if label not in output)
    numbers = {label: k for k, label in enumerate([*output, *others])}
    return [[numbers[label] for label in term] for term in terms], len(numbers), len(output)


# ---- The primitives -----------------------------------------------------------------------------


Arguments = Sequence[Value]
Primitive = Callable[[Arguments, Run], Value]


# ---- Lists --------------------------------------------------------------------------------------


def _len(arguments: Arguments, run: Run) -> Value:
    source = arguments[0]
    if isinstance(source, Tensor) and source.shape:
        return source.shape[0]
    if isinstance(source, Listed):
        return source.length
    return len(ops.entries(source))


def _number(value: Value, run: Run, most: int) -> int:
    """A number of entries."""
    count = ops.settled(value, run, "the length of a list")
    if count < 0:
        raise Dead
    if count > most:
        raise Open("a list is too long")
    return count


def _repeat(arguments: Arguments, run: Run) -> Value:
    return (arguments[0],) * _number(arguments[1], run, LOOKED_AT)


def _cut(arguments: Arguments, run: Run) -> tuple[tuple[Value, ...], int]:
    items = ops.entries(arguments[0])
    place = max(ops.settled(arguments[1], run, "the length of a list"), 0)
    if place > len(items):
        raise Dead
    return items, place


def _front(arguments: Arguments, run: Run) -> Value:
    items, place = _cut(arguments, run)
    return items[:place]


def _back(arguments: Arguments, run: Run) -> Value:
    items, place = _cut(arguments, run)
    return items[place:]


def _place(arguments: Arguments, run: Run, more: int = 0) -> tuple[tuple[Value, ...], int]:
    items = ops.entries(arguments[0])
    place = ops.settled(arguments[1], run, "a position in a list")
    if not 0 <= place < len(items) + more:
        raise Dead
    return items, place


def _put(arguments: Arguments, run: Run) -> Value:
    items, place = _place(arguments, run)
    return (*items[:place], arguments[2], *items[place + 1 :])


def _somewhere(arguments: Arguments, run: Run) -> bool:
    """The entries of a list are not told apart, or it is changed at a place that is not known."""
    source = arguments[0]
    if isinstance(source, Listed):
        return True
    if not isinstance(source, Entries):
        return False
    try:
        ops.settled(arguments[1], run, "a position in a list")
    except Open:
        return True
    return False


def _drop(arguments: Arguments, run: Run) -> Value:
    if _somewhere(arguments, run):
        return dropped(arguments[0])
    items, place = _place(arguments, run)
    return items[:place] + items[place + 1 :]


def _insert(arguments: Arguments, run: Run) -> Value:
    if _somewhere(arguments, run):
        return inserted(arguments[0], arguments[2])
    items, place = _place(arguments, run, 1)
    return (*items[:place], arguments[2], *items[place:])


def _merge(arguments: Arguments, run: Run) -> Value:
    places = [ops.settled(p, run, "a position in a list") for p in ops.entries(arguments[0])]
    inner, outer = ops.entries(arguments[1]), ops.entries(arguments[2])
    size = len(inner) + len(outer)
    if len(places) != len(inner) or len(set(places)) != len(places) or not all(0 <= p < size for p in places):
        raise Dead
    at, rest = dict(zip(places, inner, strict=True)), iter(outer)
    return tuple(at[k] if k in at else next(rest) for k in range(size))


def _sorted(arguments: Arguments, run: Run) -> Value:
    items = [ops.settled(item, run, "the order of a list") for item in ops.entries(arguments[0])]
    return tuple(sorted(items))


# ---- Shapes and indices -------------------------------------------------------------------------


def _product(arguments: Arguments, run: Run) -> Value:
    items = ops.entries(arguments[0])
    return reduce(lambda a, b: ops.arithmetic("mul", a, b, run), items[1:], items[0]) if items else 1


def _array(value: Value) -> Tensor:
    if isinstance(value, Tensor):
        if value.shape is None:
            raise Open(value.reason, data=value.on_data)
        return value
    raise Open("no tensor is known here")


def _shape(arguments: Arguments, run: Run) -> Value:
    return _array(arguments[0]).shape or ()


def _sizes(value: Value) -> list[Int]:
    return [ops.as_int(item) for item in ops.entries(value)]


def _broadcast(arguments: Arguments, run: Run) -> Value:
    a, b = _sizes(arguments[0]), _sizes(arguments[1])
    size = max(len(a), len(b))
    one: list[Int] = [1]
    a, b = one * (size - len(a)) + a, one * (size - len(b)) + b
    return tuple(_joined(x, y, run) for x, y in zip(a, b, strict=True))


def _joined(x: Int, y: Int, run: Run) -> Int:
    if x == y or y == 1:
        return x
    if x == 1:
        return y
    if run.holds(fm.opposite(fm.equal(x, 1))):  # then y is x or 1
        if run.holds(fm.opposite(fm.either(fm.equal(x, y), fm.equal(y, 1)))):
            raise Dead
        return x
    if run.holds(fm.opposite(fm.equal(y, 1))) or run.holds(fm.equal(x, 1)):
        if run.holds(fm.opposite(fm.either(fm.equal(x, y), fm.equal(x, 1)))):
            raise Dead
        return y
    if run.holds(fm.equal(x, y)) or run.holds(fm.equal(y, 1)):
        return x
    return fm.chosen(fm.equal(x, 1), y, x)


def _flatten(arguments: Arguments, run: Run) -> Value:
    index, shape = _sizes(arguments[0]), _sizes(arguments[1])
    if len(index) != len(shape):
        raise Dead
    place: Int = 0
    for i, n in zip(index, shape, strict=True):
        place = fm.add(fm.multiply(place, n), i)
    return place


def _unflatten(arguments: Arguments, run: Run) -> Value:
    place, shape = ops.as_int(arguments[0]), _sizes(arguments[1])
    index: list[Value] = []
    for n in reversed(shape[1:]):
        if n == 0:
            raise Dead
        if isinstance(n, Poly) and not run.holds(fm.at_least(n, 1)):
            raise Open("an index into a tensor of open size", data=fm.on_data(fm.equal(n, 0)))
        index.append(fm.floor_mod(place, n))
        place = fm.floor_div(place, n)
    return (place, *reversed(index)) if shape else ()


# ---- From data to shapes ------------------------------------------------------------------------


def _elements(value: Value, run: Run) -> list[Element]:
    tensor = _array(value)
    sizes: list[int] = []
    for n in tensor.shape or ():
        sizes.append(ops.settled(n, run, "the number of elements of a tensor"))
    if np.prod(sizes, dtype=object) > LOOKED_AT:
        raise Open("a tensor that stands for a list is too large", data=tensor.constant is None)
    items = [ops.read(tensor, index, run) for index in all_of(*map(range, sizes))]
    return [item if isinstance(item, Element) else el.as_element(tensor.kind, item) for item in items]


def _values(arguments: Arguments, run: Run) -> Value:
    return tuple(el.as_integer(item) for item in _elements(arguments[0], run))


def _rationals(arguments: Arguments, run: Run) -> Value:
    return tuple(el.as_rational(item) for item in _elements(arguments[0], run))


# ---- Exact arithmetic ---------------------------------------------------------------------------


def _clip(arguments: Arguments, run: Run) -> Value:
    item, low, high = arguments
    return ops.extreme(ops.extreme(item, low, run, least=False), high, run, least=True)


def _absolute(arguments: Arguments, run: Run) -> Value:
    item = arguments[0]
    if isinstance(item, tuple):
        return tuple(_absolute((part,), run) for part in item)
    if isinstance(item, Element):
        if isinstance(item.value, np.floating):
            return Element(item.kind, cast("np.floating", np.abs(item.value)))
        if isinstance(item.value, int) and not isinstance(item.value, bool):
            return el.integral(item.kind, abs(item.value))
        return el.opaque(item.kind, f"abs({shown(item)})")
    return ops.extreme(item, ops.minus(item), run, least=False)


def _floor(arguments: Arguments, run: Run) -> Value:
    value = arguments[0]
    if isinstance(value, Opaque):
        return fm.poly(Symbol(f"floor({value.name})", "data"))
    number = ops.as_number(value)
    match number:
        case Fraction():
            return floor(number)
        case Ratio(above, below):
            return fm.floor_div(above, below)
        case _:
            return number


# ---- Types --------------------------------------------------------------------------------------

CODES = (
    "", "float", "uint8", "int8", "uint16", "int16", "int32", "int64", "string", "bool", "float16", "double", "uint32",
    "uint64", "complex64", "complex128", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4", "int4", "float4e2m1", "float8e8m0", "uint2", "int2", "float6e2m3", "float6e3m2",
)  # fmt: skip
"""TensorProto.DataType by number."""
BITS = {
    **{name: int("".join(c for c in name if c.isdigit())) for name in el.INTEGERS}, "bool": 8, "float": 32,
    "double": 64, "float16": 16, "bfloat16": 16, "complex64": 64, "complex128": 128,
    **{name: int(name[5]) for name in el.FLOATS if name[5:6].isdigit() and name != "float16"},
}  # fmt: skip


def _data_type(arguments: Arguments, run: Run) -> Value:
    code = ops.settled(arguments[0], run, "an element type")
    if not 0 < code < len(CODES):
        raise Dead
    return Kind(CODES[code])


def _type_of(arguments: Arguments, run: Run) -> Value:
    value = arguments[0]
    if isinstance(value, Tensor):
        return Kind(value.kind)
    if isinstance(value, Entries | Listed):
        return Kind(value.kind)
    if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
        return Kind(f"seq({value[0].kind})")
    raise Open("the type of a value is open")


def _wrapping(word: str) -> Primitive:
    return lambda arguments, run: Kind(f"{word}({_kind(arguments[0])})")


def _kind(value: Value) -> str:
    name = el.kind_of(value).name
    if not name:
        raise Open("an element type is open")
    return name


def _about_type(test: Callable[[str], bool]) -> Primitive:
    return lambda arguments, run: test(_kind(arguments[0]))


def _bits(arguments: Arguments, run: Run) -> Value:
    kind = _kind(arguments[0])
    if kind not in BITS:
        raise Dead
    return BITS[kind]


_HIGHEST = {
    "float": Fraction(float(np.finfo(np.float32).max)), "double": Fraction(float(np.finfo(np.float64).max)),
    "float16": Fraction(65504), "bfloat16": Fraction((2**8 - 1) * 2**120),
}  # fmt: skip


def _limit(*, high: bool) -> Primitive:
    def primitive(arguments: Arguments, run: Run) -> Value:
        kind = _kind(arguments[0])
        if kind in el.INTEGERS:
            return el.INTEGERS[kind][high]
        if kind in _HIGHEST:
            return _HIGHEST[kind] if high else -_HIGHEST[kind]
        raise Open(f"the limits of {kind} are not known here")

    return primitive


# ---- Elements -----------------------------------------------------------------------------------


def _cast(arguments: Arguments, run: Run) -> Value:
    kind = el.kind_of(arguments[0]).name
    value = arguments[1]
    if isinstance(value, tuple):
        raise Open("a list is no element")
    return el.as_element(kind, value)


def _free(arguments: Arguments, run: Run) -> Value:
    return el.opaque(el.kind_of(arguments[0]).name, run.name("free"))


def _oneof(arguments: Arguments, run: Run) -> Value:
    kind = next((a.kind for a in arguments if isinstance(a, Element)), "")
    return el.opaque(kind, run.name("free"))


def _special(name: str) -> Primitive:
    def primitive(arguments: Arguments, run: Run) -> Value:
        kind = el.kind_of(arguments[0]).name
        if kind in el.COMPUTED:
            return Element(kind, el.COMPUTED[kind](name))
        return el.opaque(kind, name)

    return primitive


def _saturate(arguments: Arguments, run: Run) -> Value:
    kind, value = el.kind_of(arguments[0]).name, arguments[1]
    number = value.value if isinstance(value, Element) else value
    if kind in el.INTEGERS and isinstance(number, int) and not isinstance(number, bool):
        low, high = el.INTEGERS[kind]
        return Element(kind, min(max(number, low), high))
    return el.opaque(kind, f"saturate({shown(value)})")


def _of_strings(name: str, kind: str) -> Primitive:
    """A function of strings, which is not computed here."""
    return lambda arguments, run: el.opaque(kind, f"{name}({','.join(map(shown, arguments))})")


PLAIN = re.compile(r"(?!.*(\(\?|[*+?][*+]|\)[*+]))[A-Za-z0-9.()\[\]|?*+-]{1,200}", re.ASCII)
"""Patterns that mean to Python what they mean to RE2, and for which its search is quick: no group is repeated."""


def _matches(arguments: Arguments, run: Run) -> Value:
    texts = [item.value if isinstance(item, Element) else None for item in arguments]
    match texts:
        case [str() as text, str() as pattern]:
            if (
                PLAIN.fullmatch(pattern)
                and len(text) < 1000
                and (text.isascii() or "." not in pattern.replace("[.]", ""))
            ):
                with suppress(re.error):
                    return Element("bool", re.fullmatch(pattern, text) is not None)
            raise Open("whether a text matches a pattern is not derived here, for one that is long or no plain one")
    return _of_strings("matches", "bool")(arguments, run)


def _is_pattern(arguments: Arguments, run: Run) -> Value:
    if isinstance(pattern := arguments[0], str):
        if PLAIN.fullmatch(pattern):
            with suppress(re.error):
                return bool(re.compile(pattern))
        raise Open("which texts are patterns of RE2 is derived for plain ones only")
    return Unknown(f"is_pattern({shown(arguments[0])})")


def _reinterpret(arguments: Arguments, run: Run) -> Value:
    return el.opaque(el.kind_of(arguments[0]).name, f"digits({shown(arguments[1])})")


def _lifted(how: Callable[[Element], Value]) -> Primitive:
    return lambda arguments, run: how(arguments[0]) if isinstance(arguments[0], Element) else arguments[0]


def _tested(name: str) -> Primitive:
    return lambda arguments, run: el.tested(name, arguments[0]) if isinstance(arguments[0], Element) else False


def _of_elements(name: str) -> Primitive:
    def primitive(arguments: Arguments, run: Run) -> Value:
        kind = next((a.kind for a in arguments if isinstance(a, Element)), "")
        return el.function(name, [a if isinstance(a, Element) else el.as_element(kind, a) for a in arguments])

    return primitive


# ---- Sorting, values, text ----------------------------------------------------------------------


def _order(arguments: Arguments, run: Run) -> Value:
    source, axis = _array(arguments[0]), ops.settled(arguments[1], run, "an axis")
    shape = source.shape or ()
    if not 0 <= axis < len(shape):
        raise Dead
    size = shape[axis]

    def place(index: tuple[Int, ...]) -> Value:
        symbol = run.symbol("data", f"order({source.name})", 0, size - 1 if isinstance(size, int) and size else None)
        run.assume(fm.either(fm.at_least(0, size), fm.both(*within(symbol, size))))
        return symbol

    return Tensor(f"order({source.name})", "", shape, place)


def _drawn(name: str) -> Primitive:
    def primitive(arguments: Arguments, run: Run) -> Value:
        return Tensor(name, "double", tuple(_sizes(arguments[0])), lambda _index: el.opaque("double", run.name("free")))

    return primitive


def _outcomes(arguments: Arguments, run: Run) -> Value:
    source = _array(arguments[0])
    shape = source.shape or ()
    if not shape:
        raise Dead
    size = shape[-1]

    def place(index: tuple[Int, ...]) -> Value:
        symbol = run.symbol("data", f"outcomes({source.name})", 0, size - 1 if isinstance(size, int) and size else None)
        run.assume(fm.either(fm.at_least(0, size), fm.both(*within(symbol, size))))
        return symbol

    return Tensor(f"outcomes({source.name})", "", (*shape[:-1], ops.as_int(arguments[1])), place)


def _content(arguments: Arguments, run: Run) -> Value:
    value = arguments[0]
    if isinstance(value, Entries | Listed) and is_optional(value.kind):
        return value
    return (value,)


def _lower(arguments: Arguments, run: Run) -> Value:
    return "".join(chr(ord(c) + 32) if "A" <= c <= "Z" else c for c in str(arguments[0]))


def _einsum(part: int) -> Primitive:
    def primitive(arguments: Arguments, run: Run) -> Value:
        ranks = [ops.settled(r, run, "a rank") for r in ops.entries(arguments[1])]
        terms, count, kept = labels(str(arguments[0]), ranks)
        if part == 0:
            return count
        if part == 1:
            return kept
        position = ops.settled(arguments[2], run, "an operand")
        if len(terms) != len(ranks) or not 0 <= position < len(terms) or len(terms[position]) != ranks[position]:
            raise Dead
        return tuple(terms[position])

    return primitive


PRIMITIVES: Mapping[str, Primitive] = {
    "len": _len, "repeat": _repeat, "front": _front, "back": _back, "put": _put, "drop": _drop,
    "insert": _insert, "merge": _merge, "reverse": lambda arguments, run: ops.entries(arguments[0])[::-1],
    "sorted": _sorted, "product": _product,
    "shape": _shape, "broadcast": _broadcast, "flatten": _flatten, "unflatten": _unflatten,
    "values": _values, "rationals": _rationals,
    "minimum": lambda arguments, run: ops.extreme(arguments[0], arguments[1], run, least=True),
    "maximum": lambda arguments, run: ops.extreme(arguments[0], arguments[1], run, least=False),
    "clip": _clip, "absolute": _absolute, "floor": _floor,
    "content": _content, "data_type": _data_type, "type_of": _type_of,
    "sequence_of": _wrapping("seq"), "optional_of": _wrapping("optional"),
    "map_of": lambda arguments, run: Kind(f"map({_kind(arguments[0])},{_kind(arguments[1])})"),
    "is_float": _about_type(lambda kind: kind in el.FLOATS),
    "is_integer": _about_type(lambda kind: kind in el.INTEGERS),
    "is_signed": _about_type(
        lambda kind: (kind in el.FLOATS and kind != "float8e8m0") or (kind in el.INTEGERS and el.INTEGERS[kind][0] < 0)
    ),
    "bits": _bits, "lowest": _limit(high=False), "highest": _limit(high=True),
    "cast": _cast, "saturate": _saturate, "reinterpret": _reinterpret, "nan": _special("nan"),
    "infinity": _special("inf"), "arbitrary": _free, "oneof": _oneof, "truth": _lifted(el.as_truth),
    "integer": _lifted(el.as_integer),
    "rational": _lifted(el.as_rational), "is_nan": _tested("is_nan"), "is_infinite": _tested("is_infinite"),
    **{name: _of_elements(name) for name in (
        "exp", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh",
        "atanh", "erf", "power", "remainder", "bit_and", "round_even", "round_down", "round_up",
    )},
    **{name: _of_strings(name, "string") for name in ("joined", "piece", "lowercase", "uppercase")},
    "pieces": _of_strings("pieces", "int64"), "matches": _matches,
    "is_pattern": _is_pattern,
    "order": _order, "uniform": _drawn("uniform"), "normal": _drawn("normal"), "outcomes": _outcomes,
    "lower": _lower, "einsum_labels": _einsum(0), "einsum_outputs": _einsum(1),
    "einsum_term": _einsum(2),
}  # fmt: skip
"""Each primitive by its name."""
