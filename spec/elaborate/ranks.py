"""Ranks in operator definitions: how many indices a read gives, and how many axes the tensor has.

Lengths are the linear forms of `lengths`; what has no such form is unknown and passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..language.syntax import INT, Binder, Expr, FunctionDeclaration, Operator, Range, Sort, Statement
from .lengths import SCALAR, Length, Lengths, equations, inside, length, named, shown, substituted, total
from .scope import Ledger
from .sorts import is_vector

NUMBERS = frozenset({"Int", "Rational", "Element", "Bool", "Type", "Text"})
"""The sorts of values that have no length."""


def check_ranks(operator: Operator, sorts: Mapping[str, Sort | None], ledger: Ledger) -> None:
    """Reports each read of a tensor with a number of indices that differs from the number of its axes.

    `sorts`: those of the names of the definition, local ones included.
    """
    known = _opening(operator, sorts, ledger.functions)
    for statement in operator.statements:
        if statement.kind == "require":
            known = replace(known, same={**known.same, **dict(equations(statement.expr, known))})
    for statement in operator.statements:
        known = _statement(statement, known, ledger)


def _opening(
    operator: Operator, sorts: Mapping[str, Sort | None], functions: Mapping[str, FunctionDeclaration]
) -> Lengths:
    vectors: dict[str, Length | None] = {
        name: None for name, sort in sorts.items() if sort is None or sort.name not in NUMBERS
    }
    vectors |= {name: (0, ((name, 1),)) for name, sort in sorts.items() if sort is not None and sort.name == "list"}
    vectors |= {name: None for statement in operator.statements for name in statement.names}
    axes: dict[str, Length | None] = {}
    for port in operator.inputs:
        if port.shape is not None and port.mark != "*":
            dots = [d[0] for d in port.shape if not isinstance(d, int) and d[1]]
            axes[port.name] = total([(len(port.shape) - len(dots), ()), *((0, ((name, 1),)) for name in dots)])
    scalars = frozenset(name for name, f in functions.items() if f.result.name in NUMBERS)
    definitions = {name: f for name, f in functions.items() if f.kind == "define"}
    flat = frozenset(name for name, sort in sorts.items() if sort is not None and is_vector(sort))
    return Lengths(vectors, axes, flat=flat, scalars=scalars, definitions=definitions)


def _statement(statement: Statement, known: Lengths, ledger: Ledger) -> Lengths:
    """Checks a statement; what is known behind it."""
    within = inside(known, statement.ranges)
    match statement.kind:
        case "function":
            declaration = FunctionDeclaration(
                "function", statement.names[0], statement.parameters, INT, "", statement.expr
            )
            lists = {p.name: None for p in statement.parameters if p.sort.name == "list"}
            _reads(statement.expr, replace(known, vectors={**known.vectors, **lists}), ledger)
            return replace(known, definitions={**known.definitions, statement.names[0]: declaration})
        case "along":
            made = {view.names[0]: _axes(view, known) for view in statement.body}
            known = replace(known, axes={**known.axes, **made})
            for view in statement.body:
                _reads(view.expr, inside(known, view.ranges), ledger)
            return known
        case "view":
            _reads(statement.expr, within, ledger)
            return replace(known, axes={**known.axes, statement.names[0]: _axes(statement, known)})
        case "let" if len(statement.names) == 1:
            _reads(statement.expr, known, ledger)
            return named(known, statement.names[0], statement.expr)
        case _:
            _reads(statement.expr, within, ledger)
            return known


def _axes(statement: Statement, known: Lengths) -> Length | None:
    """The number of axes of the tensor that a view or equation makes."""
    return total([length(item.bound, known) if item.dots else (1, ()) for item in statement.ranges])


def _reads(expr: Expr, known: Lengths, ledger: Ledger) -> None:
    match expr:
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *indices)) if name in known.axes:
            sizes = [length(i, known) if isinstance(i, Expr) else None for i in indices]
            given = total([(1, ()) if size == SCALAR else size for size in sizes])
            axes = known.axes[name]
            expected = None if axes is None else substituted(axes, known)
            actual = None if given is None else substituted(given, known)
            if actual is not None and expected is not None and actual != expected:
                ledger.report("arity/rank", expr.span, name=name, expected=shown(expected), found=shown(actual))
        case Expr(head="fold", args=args):
            known = inside(known, tuple(a for a in args if isinstance(a, Range)))
        case Expr(head="collect", args=(_, Binder(name=name), _)):
            known = replace(known, vectors={**known.vectors, name: None})
        case Expr(head="ite", args=(Expr() as condition, Expr() as then, Expr() as other)):
            _reads(condition, known, ledger)
            _reads(then, replace(known, same={**known.same, **dict(equations(condition, known))}), ledger)
            _reads(other, known, ledger)
            return
        case _:
            pass
    for child in expr.children():
        _reads(child, known, ledger)
