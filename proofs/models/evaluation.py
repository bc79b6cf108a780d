"""The value of a formula in a finite model, computed without a solver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonnx.semantics.errors import InternalError

from ..kernel.formulas import Argument, Term

NUMERIC = frozenset({"<", "<=", "+", "-", "*", "mod"})
"""The operators on numbers."""
Tables = Mapping[str, Mapping[tuple[Argument, ...], Argument]]
"""For each symbol its value at each arguments."""
Domains = Mapping[str, Sequence[Argument]]
"""For each sort what its quantifiers are read over."""


def truth(formula: Argument, env: Mapping[str, Argument], tables: Tables, domains: Domains) -> Argument:
    """The value of a formula or term in a model: `true`, `false`, a number or an element."""
    return _truth(formula, env, tables, domains, {})


Literal = tuple[Argument, str]
"""A formula and the value that it must have."""
SearchOrder = tuple[tuple[str, str, tuple[Literal, ...]], ...]
"""Variables in the order in which they are bound, each with its sort and what is decided as soon as it is."""
Plans = dict[int, SearchOrder]
"""The readings of the quantifiers of a formula, by their identities."""


def _truth(formula: Argument, env: Mapping[str, Argument], tables: Tables, domains: Domains, plans: Plans) -> Argument:
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return env[formula] if formula in env else _looked_up(formula, (), tables)
    if formula.op in ("forall", "exists"):
        wanted = "false" if formula.op == "forall" else "true"
        plan = plans.get(id(formula))
        if plan is None:
            plan = plans[id(formula)] = _plan(formula, wanted)
        return _said(_witness(plan, 0, dict(env), tables, domains, plans) == (formula.op == "exists"))
    return _computed(formula, env, tables, domains, plans)


def _plan(formula: Term, wanted: str) -> SearchOrder:
    """The search for values for which the body has the wanted value: what few variables decide is asked first."""
    *binders, body = formula.args
    sorts = {it.op: str(it.args[0]) for it in binders if isinstance(it, Term)}
    waiting = [(it, _free(it[0]) & sorts.keys()) for it in _literals(body, wanted)]
    bound: list[str] = []
    plan: list[tuple[str, str, tuple[Literal, ...]]] = []
    while len(bound) < len(sorts):
        open_ = [names.difference(bound) for _, names in waiting]
        least = min((it for it in open_ if it), key=len, default=sorts.keys() - set(bound))
        for name in sorted(least):
            bound.append(name)
            ready = tuple(it for it, names in waiting if names.issubset(bound))
            waiting = [it for it in waiting if not it[1].issubset(bound)]
            plan.append((name, sorts[name], ready))
    return tuple(plan)


def _witness(
    plan: SearchOrder, at: int, env: dict[str, Argument], tables: Tables, domains: Domains, plans: Plans
) -> bool:
    """True where there are values for the variables from a position on."""
    if at == len(plan):
        return True
    name, sort, ready = plan[at]
    for value in domains[sort]:
        env[name] = value
        decided = all(_truth(it, env, tables, domains, plans) == wanted for it, wanted in ready)
        if decided and _witness(plan, at + 1, env, tables, domains, plans):
            return True
    return False


def _literals(formula: Argument, wanted: str) -> list[Literal]:
    """The parts that must be so where a formula has the wanted value."""
    match formula, wanted:
        case (Term(op="and", args=parts), "true") | (Term(op="or", args=parts), "false"):
            return [it for part in parts for it in _literals(part, wanted)]
        case Term(op="not", args=(part,)), _:
            return _literals(part, "true" if wanted == "false" else "false")
        case Term(op="=>", args=(*conditions, conclusion)), "false":
            return [*(it for part in conditions for it in _literals(part, "true")), *_literals(conclusion, "false")]
        case _:
            return [(formula, wanted)]


def _free(formula: Argument) -> frozenset[str]:
    """The names in a formula that no quantifier of it binds."""
    if isinstance(formula, int):
        return frozenset()
    if isinstance(formula, str):
        return frozenset((formula,))
    if formula.op in ("forall", "exists"):
        *binders, body = formula.args
        return _free(body).difference(it.op for it in binders if isinstance(it, Term))
    return frozenset().union(*(_free(part) for part in formula.args))


def _computed(formula: Term, env: Mapping[str, Argument], tables: Tables, domains: Domains, plans: Plans) -> Argument:
    def of(position: int) -> Argument:
        return _truth(formula.args[position], env, tables, domains, plans)

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
    row = tables.get(symbol, {}).get(arguments)
    if row is None:
        raise InternalError(f"{symbol} has no value at {arguments} in the model")
    return row


def _said(value: bool) -> str:
    return "true" if value else "false"
