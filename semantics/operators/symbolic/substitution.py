"""The smt interpretation of operators, substitution: a formula with a number in place of a term, computed anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

from ...formulas.terms import FALSE, TRUE, Argument, Term, implication
from .numbers import Int, add, at_most, both, choose, either, equal, floor_div, floor_mod, multiply, opposite


def substitute_term(value: Int, term: Term, number: Int) -> Int:
    """The value with a number in place of a term, computed anew."""
    if not isinstance(value, Term):
        return value
    if value == term:
        return number
    if not value.args:
        return value
    parts = [substitute_term(part, term, number) if isinstance(part, Term) else part for part in value.args]
    if all(new is old for new, old in zip(parts, value.args, strict=True)):
        return value
    return _rebuilt(value.op, parts)


def _rebuilt(op: str, parts: list[Argument]) -> Int:
    terms = [part for part in parts if isinstance(part, int | Term)]
    match op:
        case "+":
            return reduce(add, terms)
        case "*":
            return reduce(multiply, terms)
        case "div":
            return floor_div(terms[0], terms[1]) if terms[1] != 0 else Term(op, tuple(parts))
        case "mod":
            return floor_mod(terms[0], terms[1]) if terms[1] != 0 else Term(op, tuple(parts))
        case "<=":
            return at_most(terms[0], terms[1])
        case "=":
            return equal(terms[0], terms[1])
        case "ite":
            return choose(_formula(terms[0]), terms[1], terms[2])
        case "and":
            return both(*map(_formula, terms))
        case "or":
            return either(*map(_formula, terms))
        case "not":
            return opposite(_formula(terms[0]))
        case "=>":
            return _formula(implication(terms[0], terms[1]))
        case "forall" | "exists":
            return _listed(op, [str(part) for part in parts[:-1]], _formula(terms[-1]))
        case _:
            return Term(op, tuple(parts))


def _listed(op: str, variables: list[str], body: Term) -> Term:
    """A quantified formula, instance by instance where numbers bound its variables."""
    counts = [_bound(Term(variable), op, body) for variable in variables]
    if None in counts:
        return body if body in (TRUE, FALSE) else Term(op, (*variables, body))
    bodies = [body]
    for variable, count in zip(variables, counts, strict=True):
        bodies = [_formula(substitute_term(b, Term(variable), k)) for b in bodies for k in range(count or 0)]
    return both(*bodies) if op == "forall" else either(*bodies)


def _bound(variable: Term, op: str, body: Term) -> int | None:
    """The number that the body says the variable is below, where that is small."""
    for part in body.args if body.op == ("or" if op == "forall" else "and") else (body,):
        match part:
            case Term("<=", (int() as size, Term() as name)) if op == "forall" and name == variable:
                return size if size <= 8 else None
            case Term("<=", (Term("+", (Term() as name, 1)), int() as size)) if op == "exists" and name == variable:
                return size if size <= 8 else None
            case Term("<=", (Term() as name, int() as size)) if op == "exists" and name == variable:
                return size + 1 if size < 8 else None
    return None


def _formula(found: Argument) -> Term:
    return found if isinstance(found, Term) else Term(str(found))


def definitions(facts: Iterable[Term]) -> Mapping[str, Term]:
    """The symbols of sizes and elements that an equation among the facts defines, with what they are."""
    found: dict[str, Term] = {}
    for fact in facts:
        match fact:
            case Term("=", (Term(name, ()), Term() as value)) if ".size." in name or ".entry." in name:
                found.setdefault(name, value)
            case _:
                pass
    return found
