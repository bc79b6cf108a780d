"""Terms as SMT-LIB 2.6: the one writer of all queries.

A quantifier binds names of integers, or terms `name(sort)`. Floor division is spelled out: SMT-LIB's rounds such that
the remainder is not negative. What one kind of query adds to the operators of SMT-LIB is a table of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sonnx.semantics.errors import InternalError
from sonnx.semantics.formulas.terms import Argument, Term

Heads = Mapping[str, Callable[[tuple[Argument, ...], "Heads"], str]]
"""The text of a term by its operator, from its arguments."""


def spell(term: Argument, heads: Heads | None = None) -> str:
    """A term as text; recursion is as deep as the formula, not as the graph. heads: FLOOR unless told otherwise."""
    if type(term) is str:
        return term
    if not isinstance(term, Term):
        return numeral(int(term))
    op, args = term
    if not args:
        return op
    table = FLOOR if heads is None else heads
    head = table.get(op)
    if head is not None:
        return head(args, table)
    return f"({op} {' '.join([arg if type(arg) is str else spell(arg, table) for arg in args])})"


def numeral(value: int) -> str:
    """An integer; SMT-LIB has no negative numerals."""
    return str(value) if value >= 0 else f"(- {-value})"


def declared(name: str, arguments: Iterable[str], sort: str) -> str:
    """The declaration of a symbol, on a line."""
    return f"(declare-fun {name} ({' '.join(arguments)}) {sort})\n"


def asserted(term: Argument, heads: Heads | None = None) -> str:
    """The assertion of a formula, on a line."""
    return f"(assert {spell(term, heads)})\n"


def quantifier(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of a quantifier: all arguments but the last one are what it binds."""

    def written(args: tuple[Argument, ...], heads: Heads) -> str:
        return f"({op} ({' '.join(map(_binder, args[:-1]))}) {spell(args[-1], heads)})"

    return written


def _binder(binder: Argument) -> str:
    match binder:
        case str():
            return f"({binder} Int)"
        case Term(op=name, args=(str() as sort,)):
            return f"({name} {sort})"
    raise InternalError("a quantifier binds a variable of a sort")


def renamed(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of an operator that has another name in SMT-LIB."""
    return lambda args, heads: f"({op} {' '.join([spell(arg, heads) for arg in args])})"


def _floor(op: str) -> Callable[[tuple[Argument, ...], Heads], str]:
    """The head of a floor division: for a negative divisor both signs are changed."""

    def turned(dividend: str, divisor: str) -> str:
        text = f"({op} (- {dividend}) {divisor})"
        return text if op == "div" else f"(- {text})"

    def written(args: tuple[Argument, ...], heads: Heads) -> str:
        dividend, divisor = spell(args[0], heads), args[1]
        if not isinstance(divisor, int):
            by = spell(divisor, heads)
            return f"(ite (> {by} 0) ({op} {dividend} {by}) {turned(dividend, f'(- {by})')})"
        if divisor == 0:
            raise InternalError("a divisor is a numeral other than 0")
        return f"({op} {dividend} {divisor})" if divisor > 0 else turned(dividend, str(-divisor))

    return written


QUANTIFIERS = ("forall", "exists")
PLAIN: Heads = {op: quantifier(op) for op in QUANTIFIERS}
"""SMT-LIB's own operators."""
FLOOR: Heads = {**PLAIN, "div": _floor("div"), "mod": _floor("mod")}
"""Division rounds downwards."""
