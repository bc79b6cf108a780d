"""Ranks in operator definitions: how many indices a read gives, and how many axes the tensor has.

The length of a vector is a linear form over unknown lengths: `d...` has the length d, `X: T[n, c, d...]` has 2 + d
axes. A `require len(K) = len(d)` makes two lengths the same. What has no such form is unknown and passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from .scope import Ledger
from .syntax import Expr, FunctionDeclaration, Operator, Range

Length = tuple[int, tuple[tuple[str, int], ...]]
"""A constant and the coefficients of unknown lengths, sorted by name, none of them zero."""


@dataclass(frozen=True)
class Lengths:
    """What is known while statements are read in order.

    vectors: lengths of named vectors, None when unknown. axes: of tensors. numbers: values of named integers that are
    linear forms. same: what `require` said about unknown lengths. definitions: the functions with a body.
    """

    vectors: Mapping[str, Length | None] = field(default_factory=dict)
    axes: Mapping[str, Length | None] = field(default_factory=dict)
    numbers: Mapping[str, Length] = field(default_factory=dict)
    same: Mapping[str, Length] = field(default_factory=dict)
    definitions: Mapping[str, FunctionDeclaration] = field(default_factory=dict)


def check_ranks(operator: Operator, lists: Iterable[str], ledger: Ledger) -> None:
    """Reports each read of a tensor with a number of indices that differs from the number of its axes.

    `lists`: the attributes that are lists.
    """
    definitions = {name: f for name, f in ledger.functions.items() if f.kind == "define"}
    known = replace(_opening(operator, lists), definitions=definitions)
    for statement in operator.statements:
        if statement.kind == "require":
            known = replace(known, same={**known.same, **dict(_equations(statement.expr, known))})
    for statement in operator.statements:
        inner = _inside(known, statement.ranges)
        _reads(statement.expr, inner, ledger)
        if statement.kind == "let" and len(statement.names) == 1:
            known = _named(known, statement.names[0], statement.expr)
        elif statement.kind == "view":
            total = _total([_axes(item, known) for item in statement.ranges])
            known = replace(known, axes={**known.axes, statement.names[0]: total})


def _opening(operator: Operator, lists: Iterable[str]) -> Lengths:
    vectors: dict[str, Length | None] = {name: (0, ((name, 1),)) for name in lists}
    axes: dict[str, Length | None] = {}
    for port in operator.inputs:
        if port.shape is not None and port.mark != "*":
            dots = [d[0] for d in port.shape if not isinstance(d, int) and d[1]]
            vectors.update({name: (0, ((name, 1),)) for name in dots})
            axes[port.name] = _total([(len(port.shape) - len(dots), ()), *((0, ((name, 1),)) for name in dots)])
    return Lengths(vectors, axes)


def _equations(expr: Expr, known: Lengths) -> Iterator[tuple[str, Length]]:
    """The lengths that a condition fixes: `len(x) = form`, also behind `given x implies`."""
    match expr:
        case Expr(head="implies", args=(Expr(head="given"), Expr() as consequence)):
            yield from _equations(consequence, known)
        case Expr(head="and"):
            for part in expr.children():
                yield from _equations(part, known)
        case Expr(head="compare", args=(Expr() as left, "=", Expr() as right)):
            a, b = number(left, known), number(right, known)
            if a is not None and b is not None and a[0] == 0 and len(a[1]) == 1 and a[1][0][1] == 1 and a != b:
                yield a[1][0][0], b
        case _:
            return


def _named(known: Lengths, name: str, expr: Expr) -> Lengths:
    value, vector = number(expr, known), length(expr, known)
    numbers = {**known.numbers, name: value} if value is not None else known.numbers
    return replace(
        known, numbers=numbers, vectors={**known.vectors, name: vector} if vector != SCALAR else known.vectors
    )


def _inside(known: Lengths, ranges: tuple[Range, ...]) -> Lengths:
    dotted = {item.names[0]: length(item.bound, known) for item in ranges if item.dots}
    return replace(known, vectors={**known.vectors, **dotted})


def _axes(item: Range, known: Lengths) -> Length | None:
    return length(item.bound, known) if item.dots else (1, ())


def _reads(expr: Expr, known: Lengths, ledger: Ledger) -> None:
    match expr:
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *indices)) if name in known.axes:
            sizes = [length(i, known) if isinstance(i, Expr) else None for i in indices]
            given = _total([(1, ()) if size == SCALAR else size for size in sizes])
            axes = known.axes[name]
            expected = None if axes is None else _substitute(axes, known)
            if given is not None and expected is not None and _substitute(given, known) != expected:
                ledger.report(
                    "arity/rank", expr.span, name=name, expected=_show(expected), found=_show(_substitute(given, known))
                )
        case Expr(head="fold" | "comprehension"):
            ranges = tuple(a for a in expr.args if isinstance(a, Range))
            for child in expr.children():
                _reads(child, _inside(known, ranges), ledger)
            return
    for child in expr.children():
        _reads(child, known, ledger)


SCALAR: Length = (-1, ())
"""The length of what is no vector."""


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
            return _total([length(left, known), length(right, known)])
        case Expr(head="ite", args=(_, Expr() as then, Expr() as other)):
            return _either([length(then, known), length(other, known)], known)
        case Expr(head="case"):
            return _either([length(arm, known) for arm in list(expr.children())[1:]], known)
        case Expr(head="comprehension", args=(_, _, Expr() as bound, None)):
            return number(bound, known)
        case Expr(head="call", args=("front" | "repeat", _, Expr() as count)):
            return number(count, known)
        case Expr(head="call", args=("back", Expr() as vector, Expr() as count)):
            whole, dropped = length(vector, known), number(count, known)
            return None if dropped is None else _total([whole, _times(dropped, -1)])
        case Expr(head="call", args=("align", _, Expr() as shape)):
            return length(shape, known)
        case Expr(head="call", args=("maximum" | "minimum", Expr() as left, Expr() as right)):
            return _componentwise(length(left, known), length(right, known), known)
        case Expr(head="int" | "float" | "index" | "fold"):
            return SCALAR
        case Expr(head="call", args=("len", *_)):
            return SCALAR
        case Expr(head="call", args=(str() as name, *arguments)) if name in known.definitions:
            return _applied(known.definitions[name], [a for a in arguments if isinstance(a, Expr)], known)
        case _:
            return None


def _applied(function: FunctionDeclaration, arguments: list[Expr], known: Lengths) -> Length | None:
    """The length of a definition's value: its body's, with the parameters standing for the arguments."""
    if function.body is None or len(arguments) != len(function.parameters):
        return None
    vectors: dict[str, Length | None] = {}
    numbers: dict[str, Length] = {}
    for parameter, argument in zip(function.parameters, arguments, strict=True):
        size, value = length(argument, known), number(argument, known)
        if parameter.sort.name == "list":
            vectors[parameter.name] = None if size == SCALAR else size
        elif value is not None:
            numbers[parameter.name] = value
    remaining = {name: f for name, f in known.definitions.items() if name != function.name}
    return length(function.body, Lengths(vectors, {}, numbers, known.same, remaining))


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
            return _total([number(left, known), number(right, known)])
        case Expr(head="sub", args=(Expr() as left, Expr() as right)):
            subtrahend = number(right, known)
            return None if subtrahend is None else _total([number(left, known), _times(subtrahend, -1)])
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
    found = {None if item is None else _substitute(item, known) for item in lengths}
    return found.pop() if len(found) == 1 else None


def _times(form: Length, factor: int) -> Length:
    return form[0] * factor, tuple((name, count * factor) for name, count in form[1] if count * factor)


def _total(forms: list[Length | None]) -> Length | None:
    constant, counts = 0, dict[str, int]()
    for form in forms:
        if form is None:
            return None
        constant += form[0]
        for name, count in form[1]:
            counts[name] = counts.get(name, 0) + count
    return constant, tuple(sorted((name, count) for name, count in counts.items() if count))


def _substitute(form: Length, known: Lengths) -> Length:
    """The form with the lengths that `require` fixed put in, once."""
    if form == SCALAR:
        return form
    parts: list[Length | None] = [(form[0], ())]
    parts += [_times(known.same.get(name, (0, ((name, 1),))), count) for name, count in form[1]]
    return _total(parts) or form


def _show(form: Length) -> str:
    terms = [f"len({name})" if count == 1 else f"{count} * len({name})" for name, count in form[1]]
    return " + ".join(([str(form[0])] if form[0] or not terms else []) + terms)
