"""The value of a formula in a finite model, computed without a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from sonnx.semantics.errors import InternalError

from .formulas import Argument, Term

NUMERIC = frozenset({"<", "<=", "+", "-", "*", "mod"})
"""The operators on numbers."""
Tables = Mapping[str, Mapping[tuple[Argument, ...], Argument]]
"""For each symbol its value at each arguments."""
Domains = Mapping[str, Sequence[Argument]]
"""For each sort what its quantifiers are read over."""


def truth(formula: Argument, env: Mapping[str, Argument], tables: Tables, domains: Domains) -> Argument:
    """The value of a formula or term in a model: `true`, `false`, a number or an element."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return env[formula] if formula in env else _looked_up(formula, (), tables)
    if formula.op in ("forall", "exists"):
        *binders, body = formula.args
        pairs = [(b.op, str(b.args[0])) for b in binders if isinstance(b, Term)]
        ranges = [domains[sort] for _, sort in pairs]
        names = [name for name, _ in pairs]
        wanted = "false" if formula.op == "forall" else "true"
        found = any(
            truth(body, {**env, **dict(zip(names, values, strict=True))}, tables, domains) == wanted
            for values in product(*ranges)
        )
        return _said(found == (formula.op == "exists"))
    return _computed(formula, env, tables, domains)


def _computed(formula: Term, env: Mapping[str, Argument], tables: Tables, domains: Domains) -> Argument:
    def of(position: int) -> Argument:
        return truth(formula.args[position], env, tables, domains)

    values = range(len(formula.args))
    match formula.op:
        case "true" | "false":
            return formula.op
        case "and":
            return _said(all(of(k) == "true" for k in values))
        case "or":
            return _said(any(of(k) == "true" for k in values))
        case "not":
            return _said(of(0) != "true")
        case "=>":
            return _said(of(0) != "true" or of(1) == "true")
        case "=":
            return _said(of(0) == of(1))
        case "ite":
            return of(1) if of(0) == "true" else of(2)
        case op if op in NUMERIC:
            return computed(op, of(0), of(1))
        case _:
            return _looked_up(formula.op, tuple(of(k) for k in values), tables)


def computed(op: str, left: Argument, right: Argument) -> Argument:
    """An operator on two numbers; a remainder by 0, which may be anything, is 0."""
    if not isinstance(left, int) or not isinstance(right, int):
        raise InternalError(f"{op} of {left} and {right}")
    match op:
        case "<":
            return _said(left < right)
        case "<=":
            return _said(left <= right)
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "mod":
            return left % abs(right) if right else 0
        case _:
            raise InternalError(f"{op} is not evaluated in finite models")


def _looked_up(symbol: str, arguments: tuple[Argument, ...], tables: Tables) -> Argument:
    found = tables.get(symbol, {}).get(arguments)
    if found is None:
        raise InternalError(f"{symbol} has no value at {arguments} in the model")
    return found


def _said(value: bool) -> str:
    return "true" if value else "false"
