"""The lengths of vectors and the values of integers as linear forms over unknown lengths.

`d...` has the length len(d), `X: T[n, c, d...]` has 2 + len(d) axes. A `require len(K) = len(d)` makes two lengths the
same. What has no such form is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..language.syntax import Binder, Expr, FunctionDeclaration, Range
from .sorts import is_vector

Length = tuple[int, tuple[tuple[str, int], ...]]
"""A constant and the coefficients of unknown lengths, sorted by name, none of them zero."""


@dataclass(frozen=True)
class Lengths:
    """Knowledge while statements are read in order.

    vectors: lengths of named vectors, None when unknown; other names are numbers. axes: of tensors. numbers: values of
    named integers that are linear forms. flat: the names of lists of numbers. same: what `require` said about unknown
    lengths. scalars: the functions whose values are numbers. definitions: the functions with a body; a local one (kind
    function) sees all that is known.
    """

    vectors: Mapping[str, Length | None] = field(default_factory=dict)
    axes: Mapping[str, Length | None] = field(default_factory=dict)
    numbers: Mapping[str, Length] = field(default_factory=dict)
    flat: frozenset[str] = frozenset()
    same: Mapping[str, Length] = field(default_factory=dict)
    scalars: frozenset[str] = frozenset()
    definitions: Mapping[str, FunctionDeclaration] = field(default_factory=dict)


def equations(expr: Expr, known: Lengths) -> Iterator[tuple[str, Length]]:
    """The lengths that a condition fixes: `len(x) = form` or `x = list`, also behind `given x implies`."""
    match expr:
        case Expr(head="implies", args=(Expr(head="given"), Expr() as consequence)):
            yield from equations(consequence, known)
        case Expr(head="and"):
            for part in expr.children():
                yield from equations(part, known)
        case Expr(head="compare", args=(Expr() as left, "=", Expr() as right)):
            a, b = number(left, known), number(right, known)
            if a is None and b is None:
                a, b = length(left, known), length(right, known)
            if a is None or b is None or SCALAR in (a, b) or a == b:
                return
            for one, other in ((a, b), (b, a)):
                if one[0] == 0 and len(one[1]) == 1 and one[1][0][1] == 1:
                    yield one[1][0][0], substituted(other, known)
                    return
        case _:
            return


def named(known: Lengths, name: str, expr: Expr) -> Lengths:
    """The knowledge behind `let name = expr`."""
    value, vector = number(expr, known), length(expr, known)
    numbers = {**known.numbers, name: value} if value is not None else known.numbers
    vectors = {key: size for key, size in known.vectors.items() if key != name}
    return replace(known, numbers=numbers, vectors=vectors if vector == SCALAR else {**vectors, name: vector})


def inside(known: Lengths, ranges: tuple[Range, ...]) -> Lengths:
    """The knowledge inside ranges: the lengths of their index vectors."""
    dotted = {item.names[0]: length(item.bound, known) for item in ranges if item.dots}
    return replace(known, vectors={**known.vectors, **dotted}, flat=known.flat | frozenset(dotted))


SCALAR: Length = (0, (("", 1),))
"""The length of what is no vector: a form that no vector has."""


def length(expr: Expr, known: Lengths) -> Length | None:
    """The length of a vector, SCALAR for a number, None when unknown."""
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return known.vectors.get(name, SCALAR)
        case Expr(head="vector"):
            return len(expr.args), ()
        case Expr(head="neg", args=(Expr() as inner,)):
            return length(inner, known)
        case Expr(head="add" | "sub" | "mul" | "quotient" | "div" | "mod", args=(Expr() as left, Expr() as right)):
            return _componentwise(length(left, known), length(right, known), known)
        case Expr(head="concat", args=(Expr() as left, Expr() as right)):
            return total([length(left, known), length(right, known)])
        case Expr(head="ite", args=(_, Expr() as then, Expr() as other)):
            return _either([length(then, known), length(other, known)], known)
        case Expr(head="case"):
            return _either([length(arm, known) for arm in list(expr.children())[1:]], known)
        case Expr(head="comprehension", args=(_, _, Expr() as bound, None)):
            return number(bound, known)
        case Expr(head="collect", args=(_, Binder(domain=domain), None)):
            return length(domain, known)
        case Expr(head="fold", args=(_, *ranges, _, _, Expr() as body)):
            return length(body, inside(known, tuple(r for r in ranges if isinstance(r, Range))))
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *_)) if (
            name in known.axes or name in known.flat
        ):
            return SCALAR
        case Expr(head="int" | "float"):
            return SCALAR
        case Expr(head="call", args=(str() as name, *arguments)):
            return _called(name, [a for a in arguments if isinstance(a, Expr)], known)
        case _:
            return None


def _called(name: str, arguments: list[Expr], known: Lengths) -> Length | None:
    """The length of a function's value."""
    if name in known.definitions:
        return _applied(known.definitions[name], arguments, known)
    if name in known.scalars:
        return SCALAR
    match name, arguments:
        case "front" | "repeat", [_, count]:
            return number(count, known)
        case "back", [vector, count]:
            dropped = number(count, known)
            return None if dropped is None else total([length(vector, known), _times(dropped, -1)])
        case "shape", [Expr(head="var", args=(str() as tensor,))]:
            return known.axes.get(tensor)
        case "unflatten", [_, shape]:
            return length(shape, known)
        case "put" | "reverse" | "sorted" | "absolute", [vector, *_]:
            return length(vector, known)
        case "drop", [vector, _]:
            return total([length(vector, known), (-1, ())])
        case "insert", [vector, *_]:
            return total([length(vector, known), (1, ())])
        case "merge", [_, first, second]:
            return total([length(first, known), length(second, known)])
        case "minimum" | "maximum", [left, right]:
            return _componentwise(length(left, known), length(right, known), known)
        case "clip", [one, low, high]:
            limits = _componentwise(length(low, known), length(high, known), known)
            return _componentwise(length(one, known), limits, known)
        case "product", [vector]:
            return SCALAR if length(vector, known) is not None else None
        case "oneof", [left, right]:
            return _either([length(left, known), length(right, known)], known)
        case _:
            return None


def _applied(function: FunctionDeclaration, arguments: list[Expr], known: Lengths) -> Length | None:
    """The length of a definition's value: its body's, with the parameters standing for the arguments."""
    if function.body is None or len(arguments) != len(function.parameters):
        return None
    vectors: Mapping[str, Length | None] = {}
    numbers: Mapping[str, Length] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        size, value = length(argument, known), number(argument, known)
        if parameter.sort.name == "list":
            vectors = {**vectors, parameter.name: None if size == SCALAR else size}
        elif value is not None:
            numbers = {**numbers, parameter.name: value}
    flat = frozenset(p.name for p in function.parameters if is_vector(p.sort))
    remaining = {name: f for name, f in known.definitions.items() if name != function.name}
    if function.kind == "function":
        vectors, numbers = {**known.vectors, **vectors}, {**known.numbers, **numbers}
        return length(
            function.body,
            replace(known, vectors=vectors, numbers=numbers, flat=known.flat | flat, definitions=remaining),
        )
    return length(function.body, Lengths(vectors, {}, numbers, flat, known.same, known.scalars, remaining))


def number(expr: Expr, known: Lengths) -> Length | None:
    """The value of an integer expression as a linear form over lengths, None when it has none."""
    match expr:
        case Expr(head="int", args=(int() as value,)):
            return value, ()
        case Expr(head="var", args=(str() as name,)):
            return known.numbers.get(name)
        case Expr(head="call", args=("len", Expr() as vector)):
            size = length(vector, known)
            return size if size != SCALAR else None
        case Expr(head="add", args=(Expr() as left, Expr() as right)):
            return total([number(left, known), number(right, known)])
        case Expr(head="sub", args=(Expr() as left, Expr() as right)):
            subtrahend = number(right, known)
            return None if subtrahend is None else total([number(left, known), _times(subtrahend, -1)])
        case Expr(head="mul", args=(Expr(head="int", args=(int() as factor,)), Expr() as right)):
            product = number(right, known)
            return None if product is None else _times(product, factor)
        case _:
            return None


def _componentwise(left: Length | None, right: Length | None, known: Lengths) -> Length | None:
    """Lengths of operands agree; a number goes with each entry."""
    for one, other in ((left, right), (right, left)):
        if one is None or one == SCALAR:
            return other
    return _either([left, right], known)


def _either(lengths: list[Length | None], known: Lengths) -> Length | None:
    """The common length, None when one is unknown or they differ."""
    common = {None if item is None else substituted(item, known) for item in lengths}
    return common.pop() if len(common) == 1 else None


def _times(form: Length, factor: int) -> Length:
    return form[0] * factor, tuple((name, count * factor) for name, count in form[1] if count * factor)


def total(forms: list[Length | None]) -> Length | None:
    """The sum, None when one is unknown. SCALAR is no summand."""
    constant, counts = 0, dict[str, int]()
    for form in forms:
        if form is None or form == SCALAR:
            return None
        constant += form[0]
        for name, count in form[1]:
            counts[name] = counts.get(name, 0) + count
    return constant, tuple(sorted((name, count) for name, count in counts.items() if count))


def substituted(form: Length, known: Lengths) -> Length:
    """The form with the lengths that `require` fixed put in, once."""
    if form == SCALAR:
        return form
    parts: list[Length | None] = [(form[0], ())]
    parts += [_times(known.same.get(name, (0, ((name, 1),))), count) for name, count in form[1]]
    return total(parts) or form


def shown(form: Length) -> str:
    """The form as the text would write it."""
    terms = [f"len({name})" if count == 1 else f"{count} * len({name})" for name, count in form[1]]
    return " + ".join(([str(form[0])] if form[0] or not terms else []) + terms)
