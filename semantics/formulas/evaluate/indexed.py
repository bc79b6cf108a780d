"""Which quantifiers can run through the index of a relation instead of their whole domain. Syntax only.

`exists n in nodes(g): t in ins(n) and ...` needs only those n whose `ins` hold t, and so does
`forall n in nodes(g): t in ins(n) implies ...`: for every other member the instance is false (true, for `forall`).
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import NamedTuple

from sonnx.spec.language.syntax import Binder, Expr, FunctionDeclaration

Functions = Mapping[str, FunctionDeclaration]


class Index(NamedTuple):
    """The members x with `element in relation(x)`: the inverse of the fact `relation` at `element`."""

    relation: str
    element: Expr


def binders(expr: Expr) -> tuple[tuple[Binder, ...], Expr]:
    """The binders and the body of a quantifier."""
    *bound, body = expr.args
    if not isinstance(body, Expr):
        raise TypeError("a quantifier ends with its body")
    return tuple(item for item in bound if isinstance(item, Binder)), body


def index(quantifier: str, name: str, body: Expr, scope: Container[str], functions: Functions) -> Index | None:
    """An index that gives every member of the domain of `name` which matters to `quantifier`, None without one.

    scope: the variables bound outside of this quantifier. The element is an expression over those.
    """
    hidden = {name}
    if quantifier != "unique":
        while body.head == quantifier:
            inner, body = binders(body)
            hidden |= {binder.name for binder in inner}
    if quantifier == "forall":
        body = body.args[0] if body.head == "implies" and isinstance(body.args[0], Expr) else Expr("true")
    for conjunct in _conjuncts(body):
        match conjunct.args:
            case (Expr() as element, "in", Expr(head="call", args=(str() as relation, argument))):
                fact = functions.get(relation)
                usable = fact is not None and fact.kind == "fact" and fact.result.name == "set"
                if not usable or argument != Expr("var", (name,)):
                    continue
                if all(v in scope and v not in hidden for v in variables(element)):
                    return Index(relation, element)
    return None


def _conjuncts(expr: Expr) -> Iterator[Expr]:
    if expr.head == "and":
        for child in expr.children():
            yield from _conjuncts(child)
    else:
        yield expr


def variables(expr: Expr) -> Iterator[str]:
    """The names that occur as variables in `expr`, its own bound ones included."""
    if expr.head == "var":
        yield str(expr.args[0])
    for child in expr.children():
        yield from variables(child)
