"""Instances of quantified facts at the indices that a goal is about, so that most questions need no quantifiers.

What a requirement says of every element of a tensor is taken at the elements that the goal mentions; what it says of
every index `y` is taken at the indices of that name. The instances follow from the facts; there may be too few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product

from sonnx.semantics.formulas.terms import TRUE, Argument, Term
from sonnx.semantics.operators.symbolic.numbers import Int, substitute_term

from ..smt.definedness_text import OPERATORS, QUANTIFIERS

MOST = 24
"""How many instances one fact may have."""


def grounded(facts: Sequence[Term], goal: Term) -> tuple[Term, ...]:
    """The facts without quantifiers, and instances of the others."""
    plain = [fact for fact in facts if not quantified(fact)]
    atoms = frozenset().union(_atoms(goal), *map(_atoms, plain))
    near = _atoms(goal)
    made = [instance for fact in facts if quantified(fact) for instance in _instances(fact, near, atoms)]
    return tuple(dict.fromkeys((*plain, *made)))


@lru_cache(maxsize=50_000)
def quantified(term: Argument) -> bool:
    """Whether a quantifier occurs."""
    return isinstance(term, Term) and (term.op in QUANTIFIERS or any(map(quantified, term.args)))


@lru_cache(maxsize=50_000)
def _atoms(term: Argument) -> frozenset[Term]:
    """The symbols and applications of functions outside of quantifiers."""
    if not isinstance(term, Term) or term.op in QUANTIFIERS:
        return frozenset()
    own = frozenset() if term.op in OPERATORS else frozenset((term,))
    return own.union(*map(_atoms, term.args))


def _instances(fact: Term, near: frozenset[Term], atoms: frozenset[Term]) -> Iterator[Term]:
    """Instances of a fact that is quantified itself or whose parts are."""
    if fact.op == "forall":
        names, body = [str(name) for name in fact.args[:-1]], fact.args[-1]
        if not isinstance(body, Term):
            return
        choices = [_choices(name, body, near) or _choices(name, body, atoms) for name in names]
        for values in islice(product(*choices), MOST):
            instance: Int = body
            for name, value in zip(names, values, strict=True):
                instance = substitute_term(instance, Term(name), value)
            if isinstance(instance, Term) and not quantified(instance) and instance != TRUE:
                yield instance
    elif fact.op in ("or", "=>", "and"):
        inner = [k for k, part in enumerate(fact.args) if quantified(part)]
        last = fact.args[inner[-1]]
        if len(inner) == 1 and isinstance(last, Term) and last.op == "forall":
            for instance in _instances(last, near, atoms):
                yield Term(fact.op, (*fact.args[: inner[0]], instance, *fact.args[inner[0] + 1 :]))


def _choices(name: str, body: Term, atoms: frozenset[Term]) -> list[Term]:
    """What a variable may stand for: the arguments of functions in its place, the indices of its name."""
    found: dict[Term, None] = {}
    variable = Term(name)
    places = [(atom.op, k) for atom in _patterns(body) for k, arg in enumerate(atom.args) if arg == variable]
    for atom in sorted(atoms, key=str):
        for op, k in places:
            if atom.op == op and len(atom.args) > k and isinstance(atom.args[k], Term):
                found[atom.args[k]] = None  # type: ignore[index]
        if not atom.args and "!" in atom.op and _stem(atom.op) == _stem(name):
            found[atom] = None
    return list(found)


def _patterns(term: Argument) -> Iterator[Term]:
    """The applications of functions in a term."""
    if isinstance(term, Term):
        if term.op not in OPERATORS and term.args:
            yield term
        for part in term.args:
            yield from _patterns(part)


def _stem(name: str) -> str:
    """The name in the text of an index variable."""
    return name.partition("!")[0].partition(".")[0]
