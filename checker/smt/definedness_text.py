"""SMT-LIB 2.6 text of a definedness obligation: the facts, and that the goal fails. unsat: the obligation is proved.

Facts that share no symbol with the goal, directly or through others, may be left out. Floor division by a term is
spelled out: SMT-LIB's rounds such that the remainder is not negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from sonnx.semantics.formulas.terms import Argument, Term
from sonnx.semantics.operators.symbolic.numbers import Int, add, multiply

from .writer import FLOOR, QUANTIFIERS, Heads, declared, renamed, spell

Symbols = Mapping[str, tuple[int, str]]
"""The symbols with the number of their arguments, which are integers, and their sort."""
SPELLED = {"r+": "+", "r-": "-", "r*": "*", "r/": "/", "r<": "<", "r<=": "<=", "r=": "=", "rite": "ite", "iff": "="}


def question(
    facts: Sequence[Term], goal: Term, symbols: Symbols, comments: Iterable[str] = (), *, every: bool = False
) -> Iterator[str]:
    """The text in pieces, without the final `(check-sat)`. every: with facts that are not connected with the goal."""
    yield "".join(f"; {ascii(line)[1:-1]}\n" for line in comments)
    yield "(set-info :smt-lib-version 2.6)\n(set-logic ALL)\n"
    yield from asserted(facts if every else relevant(facts, goal), goal, symbols)


def asserted(kept: Sequence[Term], goal: Term, symbols: Symbols) -> Iterator[str]:
    """The declarations, the facts and that the goal fails."""
    named = Named()
    told = [named.plain(fact) for fact in kept]
    denied = named.plain(goal)
    yield from declarations((*kept, goal), symbols)
    for name in (*named.parts.values(), *(name for pair in named.quotients.values() for name in pair)):
        yield f"(declare-const {name.op} Int)\n"
    for definition in (*named.definitions, *told):
        yield f"(assert {_spelled(definition)})\n"
    yield f"(assert (not {_spelled(denied)}))\n"


@dataclass(slots=True)
class Named:
    """Quotients by terms and alternatives of integers as symbols that axioms define: the solver's arithmetic of
    products knows how to deal with these. Below quantifiers they stay as they are.
    """

    known: dict[int, tuple[Term, Argument]] = field(default_factory=dict)
    parts: dict[Term, Term] = field(default_factory=dict)
    quotients: dict[tuple[Argument, Argument], tuple[Term, Term]] = field(default_factory=dict)
    definitions: list[Term] = field(default_factory=list)

    def plain(self, term: Term) -> Term:
        """The term with symbols in these places."""
        rewritten = self._plain(term)
        return rewritten if isinstance(rewritten, Term) else term

    def _plain(self, term: Argument) -> Argument:
        if not isinstance(term, Term) or not term.args or term.op in QUANTIFIERS:
            return term
        known = self.known.get(id(term))  # by place, since the hash of a tuple goes through all of it
        if known is None:
            known = self.known[id(term)] = term, self._rewritten(term.op, tuple(map(self._plain, term.args)))
        return known[1]

    def _rewritten(self, op: str, args: tuple[Argument, ...]) -> Argument:
        if op in ("div", "mod") and isinstance(args[1], Term):
            return self._quotient(args[0], args[1])[0 if op == "div" else 1]
        return self._part(Term(op, args)) if op == "ite" else Term(op, args)

    def _part(self, term: Term) -> Term:
        known = self.parts.get(term)
        if known is None:
            condition, left, right = term.args
            known = self.parts[term] = Term(f"part!!{len(self.parts)}")
            self.definitions += [
                Term("=>", (condition, Term("=", (known, left)))),
                Term("or", (condition, Term("=", (known, right)))),
            ]
        return known

    def _quotient(self, dividend: Argument, divisor: Argument) -> tuple[Term, Term]:
        known = self.quotients.get((dividend, divisor))
        if known is None:
            number = len(self.quotients)
            whole, rest = Term(f"quotient!!{number}"), Term(f"rest!!{number}")
            known = self.quotients[dividend, divisor] = whole, rest
            product = Term("+", (Term("*", (divisor, whole)), rest))
            self.definitions += [
                Term("or", (Term("=", (divisor, 0)), Term("=", (dividend, product)))),
                Term("=>", (Term("<=", (1, divisor)), Term("and", (at_least(rest, 0), below(rest, divisor))))),
                Term("=>", (Term("<=", (divisor, -1)), Term("and", (below(divisor, rest), at_least(0, rest))))),
            ]
        return known


def at_least(left: Argument, right: Argument) -> Term:
    """left >= right."""
    return Term("<=", (right, left))


def below(left: Argument, right: Argument) -> Term:
    """left < right."""
    return Term("<=", (Term("+", (left, 1)), right))


def declarations(terms: Sequence[Term], symbols: Symbols) -> Iterator[str]:
    """The declarations of the symbols that occur."""
    used: set[str] = set()
    for term in terms:
        used |= names(term)
    for name in sorted(used & symbols.keys()):
        arity, sort = symbols[name]
        yield declared(name, ["Int"] * arity, sort)
    for name in sorted(used - symbols.keys()):
        if name.startswith("unflat."):
            yield declared(name, ["Int"] * int(name.rpartition(".")[2]), "Int")


def relevant(facts: Sequence[Term], goal: Term) -> list[Term]:
    """The facts that are connected with the goal through symbols, in their order; all for a goal without symbols."""
    reached = set(names(goal))
    if not reached:
        return list(facts)
    mentioned = [names(fact) for fact in facts]
    kept = [False] * len(facts)
    grown = True
    while grown:
        grown = False
        for position, mentions in enumerate(mentioned):
            if not kept[position] and (mentions & reached or not mentions):
                kept[position] = grown = True
                reached |= mentions
    return [fact for fact, keep in zip(facts, kept, strict=True) if keep]


@lru_cache(maxsize=200_000)
def names(term: Argument) -> frozenset[str]:
    """The symbols that occur free or bound; operators are no symbols."""
    if isinstance(term, Term):
        if term.op in QUANTIFIERS:
            return names(term.args[-1])
        own = frozenset() if term.op in OPERATORS else frozenset((_symbol(term),))
        return own.union(*map(names, term.args))
    return frozenset((term,)) if isinstance(term, str) else frozenset()


OPERATORS = frozenset(
    {"true", "false", "and", "or", "not", "=>", "=", "<=", "+", "*", "div", "mod", "ite", "flat", "rational"}
    | {"to_real", "to_int", *SPELLED, *QUANTIFIERS}
)


def _symbol(term: Term) -> str:
    """The name of the function: a component of an index by its position and how many arguments it has."""
    return f"unflat.{term.args[0]}.{len(term.args) - 1}" if term.op == "unflat" else term.op


def _unflat(args: tuple[Argument, ...], heads: Heads) -> str:
    return f"({_symbol(Term('unflat', args))} {' '.join([spell(arg, heads) for arg in args[1:]])})"


HEADS: Heads = {
    **FLOOR,
    **{op: renamed(spelled) for op, spelled in SPELLED.items()},
    "rational": lambda args, _: _fraction(args[0], args[1]),
    "flat": lambda args, heads: spell(_flat(args), heads),
    "unflat": _unflat,
}
"""The heads that the operators' interpretation adds: rationals, and functions of indices."""


@lru_cache(maxsize=200_000)
def _spelled(term: Argument) -> str:
    """A term as SMT-LIB; the same facts stand in many questions."""
    return spell(term, HEADS)


def _fraction(above: Argument, below: Argument) -> str:
    top = f"{above}.0" if isinstance(above, int) and above >= 0 else f"(- {-int(str(above))}.0)"
    return top if below == 1 else f"(/ {top} {below}.0)"


def _flat(args: tuple[Argument, ...]) -> Int:
    half = len(args) // 2
    place: Int = 0
    for index, size in zip(args[:half], args[half:], strict=True):
        place = add(multiply(place, _int(size)), _int(index))
    return place


def _int(part: Argument) -> Int:
    return Term(part) if isinstance(part, str) else part
