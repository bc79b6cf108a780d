"""The smt interpretation of operators, values and what an evaluation carries with it.

Ranks and lengths of lists are Python's, sizes and other integers are terms. Where the text asks for a length, a text or
a branch that the terms leave open, the evaluation raises Split: whoever explores the definition goes on with each case.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Protocol
from zlib import crc32

from sonnx.spec.language.syntax import Expr, FunctionDeclaration, Parameter, Span

from ...formulas.terms import FALSE, TRUE, Term
from .numbers import Int, Number, Real, both, opposite

ELSE = "(another text)"
"""Stands for every text that the definition does not mention."""


@dataclass(frozen=True, slots=True)
class ElementType:
    """An element type by its name, or a type variable of the header that no instance fixes."""

    name: str


@dataclass(frozen=True, slots=True)
class Element:
    """An element of a tensor; what the value is, is a matter of the algebra of elements."""

    value: object
    type: ElementType


@dataclass(frozen=True, slots=True)
class TextSymbol:
    """A text that nothing fixes."""

    name: str


@dataclass(frozen=True, slots=True)
class Open:
    """A list whose length is a term."""

    length: Int
    entry: Callable[[int], Value]


@dataclass(frozen=True, slots=True)
class Array:
    """A tensor: its shape, and what stands at an index in bounds."""

    name: str
    shape: tuple[Int, ...]
    read: Callable[[tuple[Int, ...], Scope], Value]
    type: ElementType
    entries: str = "Element"


@dataclass(frozen=True, slots=True)
class Function:
    """A local function with the scope that it was defined in."""

    name: str
    parameters: tuple[Parameter, ...]
    body: Expr
    env: Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Unranked:
    """A tensor of which the number of axes is open."""

    type: ElementType


@dataclass(frozen=True, slots=True)
class Listed:
    """A sequence or optional. kind: its type. forms: the entries in order where they are told apart, else what they can
    be like: each entry is like one of the forms, a size VARIES being any number.
    """

    kind: ElementType
    length: Int
    forms: tuple[Value, ...]
    told_apart: bool = False


VARIES = Term("varies")
"""Stands for a size that differs from entry to entry, within a `Listed` only."""

Value = (
    Int | Fraction | Real | Element | str | TextSymbol | ElementType | Array | Unranked | Listed | Function | Open
    | tuple["Value", ...]
)  # fmt: skip
"""A Bool is a Term. A list is a tuple that is no Term."""


class Split(Exception):  # noqa: N818 - no error: the evaluation goes on by cases
    """A term, text or condition is to be decided. candidates: the values. facts: what holds there beside the path's.

    soft: where the term can be anything else, it stays open.
    """

    def __init__(
        self, term: Term, candidates: tuple[int | str | bool, ...], scope: Scope, *, soft: bool = False
    ) -> None:
        super().__init__(str(term))
        self.term, self.candidates, self.soft = term, candidates, soft
        self.facts, self.symbols = (*scope.run.axioms, *scope.facts), dict(scope.run.symbols)


class Dead(Exception):  # noqa: N818 - no error: nothing is evaluated here
    """The conditions on the path contradict each other, or the value is undefined and an obligation says so."""


class Refused(Dead):
    """Whatever the sizes: a primitive has no value for these texts and numbers of axes."""


class Undefined(Exception):  # noqa: N818 - the counterpart of Stuck
    """On concrete shapes: the text has no value here. `kind` is that of the obligation which fails."""

    def __init__(self, kind: str, span: Span, goal: Term) -> None:
        super().__init__(f"{span}: {kind}: {goal}")
        self.kind, self.span = kind, span


@dataclass(frozen=True, slots=True)
class Obligation:
    """`facts` entail `goal`, or the text is undefined at `span`.

    about: the tensor or index concerned. stronger: a formula that entails the goal and is easier to prove.
    kind: require (on concrete shapes only), index, divisor, size, window, split, position, order, length, contract.
    """

    kind: str
    span: Span
    facts: tuple[Term, ...]
    goal: Term
    about: str = ""
    stronger: Term | None = None


class Algebra(Protocol):
    """The arithmetic of elements."""

    def literal(self, number: int | Fraction, kind: ElementType, scope: Scope) -> Element:
        """A numeral as an element."""

    def read(self, name: str, index: tuple[Int, ...], kind: ElementType, scope: Scope) -> Element:
        """The element of an input tensor."""

    def arithmetic(self, operator: str, left: Element, right: Element, scope: Scope) -> Element:
        """`+ - * /` in the element type."""

    def compare(self, relation: str, left: Element, right: Element, scope: Scope) -> Term:
        """`= != < <= > >=`."""

    def apply(self, name: str, kind: ElementType, arguments: Sequence[Value], scope: Scope) -> Element:
        """A primitive function whose value is an element of type `kind`."""

    def test(self, name: str, element: Element, scope: Scope) -> Term:
        """A primitive predicate: is_nan, is_infinite."""

    def lift(self, sort: str, element: Element, scope: Scope) -> Number:
        """The element as an exact value: sort is Int, Rational or Bool."""

    def choose(self, condition: Term, left: Element, right: Element, scope: Scope) -> Element:
        """The one or the other, by a condition that is no constant."""

    def fold(self, name: str, terms: Sequence[tuple[int, Element]], scope: Scope) -> Element | int:
        """max, min: the element; argmax, argmin: its position. Called with at least one term."""

    def abstract(self, kind: ElementType, scope: Scope) -> Element:
        """An element of which nothing is known."""


class Apply(Protocol):
    """What an operator that the text applies gives: its outputs."""

    def __call__(
        self,
        name: str,
        version: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Value],
        span: Span,
        scope: Scope,
    ) -> tuple[Value, ...]:
        """The outputs of one application."""


Reads = frozenset[tuple[str, tuple[int, ...]]]
"""Elements of tensors, by name and index."""


@dataclass(slots=True)
class Run:
    """What grows while one statement is evaluated. `texts`: the text literals of the definition.

    base: the symbols that are there before the statement: those that appear later stand for indices.
    journal: the elements that decided something, for algebras that keep it.
    whole: folds are unrolled and every size is a number. lazy: what stands at an index is evaluated when it is read,
    and there is no obligation about it. quiet: obligations are not collected, above zero.
    """

    functions: Mapping[str, FunctionDeclaration]
    apply: Apply
    algebra: Algebra
    texts: tuple[str, ...]
    decided: Mapping[Term, int | str | bool | None]
    path: tuple[Term, ...]
    whole: bool = False
    lazy: bool = False
    quiet: int = 0
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    axioms: list[Term] = field(default_factory=list)
    assumed: list[Term] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    base: frozenset[str] = frozenset()
    journal: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class Scope:
    """env: the names in scope. facts: the guards on the path within the statement. bound: quantified variables."""

    env: Mapping[str, Value]
    run: Run
    facts: tuple[Term, ...] = ()
    bound: tuple[str, ...] = ()

    def bind(self, names: Mapping[str, Value]) -> Scope:
        """The scope with these names."""
        return replace(self, env={**self.env, **names})

    def under(self, *conditions: Term) -> Scope:
        """The scope where these conditions hold. Raises Dead where one of them cannot."""
        new = [part for condition in conditions for part in conjuncts(condition) if part not in self.facts]
        if FALSE in new or any(opposite(part) in self.facts for part in new):
            raise Dead
        return replace(self, facts=(*self.facts, *new)) if new else self

    def knows(self, fact: Term) -> bool:
        """Whether a fact is among those of the path, word for word."""
        return fact == TRUE or fact in self.facts or fact in self.run.path


def conjuncts(term: Term) -> tuple[Term, ...]:
    """The parts of a conjunction, none for `true`."""
    if term == TRUE:
        return ()
    if term.op == "and":
        return tuple(part for arg in term.args if isinstance(arg, Term) for part in conjuncts(arg))
    return (term,)


def demand(scope: Scope, kind: str, span: Span, goal: Term, about: str = "", stronger: Term | None = None) -> None:
    """Record an obligation. Raises Dead after one that is false; on concrete shapes Undefined instead."""
    run = scope.run
    if run.whole:
        if goal == FALSE:
            raise Undefined(kind, span, goal)
        return
    if run.quiet == 0:
        open_parts = tuple(part for part in conjuncts(goal) if not scope.knows(part))
        if open_parts:
            facts = (*run.axioms, *run.assumed, *scope.facts)
            run.obligations.append(Obligation(kind, span, facts, both(*open_parts), about, stronger))
    if goal == FALSE:
        raise Dead


def fresh(scope: Scope, base: str, sort: str = "Int") -> Term:
    """A new symbol, a function of the quantified variables around it."""
    run = scope.run
    # The name depends on where it is made alone: what is decided elsewhere must not give it to another symbol.
    place = f".{crc32(str(scope.facts).encode()):x}" if scope.facts else ""
    stem, number = f"{base.replace(chr(39), '.prime')}{place}", 0
    while f"{stem}!{number}" in run.symbols:
        number += 1
    name = f"{stem}!{number}"
    run.symbols[name] = (len(scope.bound), sort)
    return Term(name, tuple(Term(variable) for variable in scope.bound))


def applied(scope: Scope, name: str, index: tuple[Int, ...], sort: str) -> Term:
    """What stands in tensor `name` at an index, as a function of the index."""
    symbol = f"{name.replace(chr(39), '.prime')}.{sort}"
    scope.run.symbols[symbol] = (len(index), sort)
    return Term(symbol, index)


def axiom(scope: Scope, fact: Term, *, assumed: bool = False) -> None:
    """Add what holds of the symbols introduced here, wherever the conditions on the path do.

    assumed: it does only if the obligations so far hold, so that it is used for those that follow and for no case.
    """
    if fact == TRUE:
        return
    if scope.facts:
        fact = Term("=>", (both(*scope.facts), fact))
    if scope.bound:
        fact = Term("forall", (*scope.bound, fact))
    (scope.run.assumed if assumed else scope.run.axioms).append(fact)


Body = Callable[[tuple[Int, ...], Scope], Value]
"""What stands at an index."""


def remembered(body: Body) -> Body:
    """The same on concrete indices, each evaluated once, with what it wrote into the journal."""
    done: dict[tuple[Int, ...], tuple[Value, set[tuple[str, tuple[int, ...]]]]] = {}

    def read(index: tuple[Int, ...], here: Scope) -> Value:
        run = here.run
        if index not in done:
            outside, run.journal = run.journal, set()
            try:
                done[index] = body(index, here), run.journal
            finally:
                run.journal = outside
        value, journal = done[index]
        run.journal |= journal
        return value

    return read


# ---- Sorts of values --------------------------------------------------------------------------
