"""The smt interpretation of operators, values and what an evaluation carries with it.

Ranks and lengths of lists are Python's, sizes and other integers are terms. Where the text asks for a length, a text or
a branch that the terms leave open, the evaluation raises Split: whoever explores the definition goes on with each case.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Protocol, cast
from zlib import crc32

from sonnx.spec.elaborate.core import Binding
from sonnx.spec.elaborate.formulas import Cores
from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from ...model.elements import ELEMENT_TYPES
from ..reading import Function
from .numbers import (
    Int,
    Number,
    Real,
    add,
    at_most,
    both,
    choose,
    either,
    equal,
    floor_div,
    floor_mod,
    less,
    multiply,
    opened_goal,
    opposite,
    order,
    rational,
    real,
    substitute_term,
    subtract,
    within,
)

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
    """A text that nothing fixes. code: the same number for the same text, of an entry of a list of open length."""

    name: str
    code: Term | None = None


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


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Entries of a list that stand together, as many as `length` says; `entry` has the one at a position from 0 on.

    value: the entry, where there is one alone. code: the symbol of the list whose entries from `start` on these are;
    whole: all of them. sizes: of the axes of a tensor, so that none is negative. ordered: the list of which these are
    the entries in ascending order.
    """

    length: Int
    entry: Callable[[Int, Scope], Value]
    value: Value | None = None
    code: Term | None = None
    start: Int = 0
    whole: bool = False
    sizes: bool = False
    ordered: Row | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A list of any length: its parts, one behind the other."""

    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A tensor of any number of axes: its shape, and what stands at an index in bounds."""

    name: str
    shape: Row
    read: Callable[[Row, Scope], Value]
    type: ElementType


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
    | Row | Field
    | tuple["Value", ...]
)  # fmt: skip
"""A Bool is a Term. A list is a tuple that is no Term."""


@dataclass(frozen=True, slots=True)
class Given:
    """The name under which a scope has whether something is there that some nodes leave out."""

    variable: Binding


Name = Binding | Given
Env = Mapping[Name, Value]
"""The names in scope."""


class Split(Exception):  # noqa: N818 - no error: the evaluation goes on by cases
    """A term, text or condition is to be decided. candidates: the values. facts: what holds there beside the path's.

    soft: where the term can be anything else, it stays open. length: it is the length of a list that data or an
    attribute decide, of which the candidates are the first ones only.
    """

    def __init__(
        self,
        term: Term,
        candidates: tuple[int | str | bool, ...],
        scope: Scope,
        *,
        soft: bool = False,
        length: bool = False,
    ) -> None:
        super().__init__(str(term))
        self.term, self.candidates, self.soft, self.length = term, candidates, soft, length
        certain = (fact for fact in scope.facts if fact not in scope.run.owed)
        self.facts, self.symbols = (*scope.run.axioms, *certain), dict(scope.run.symbols)


class Dead(Exception):  # noqa: N818 - no error: nothing is evaluated here
    """The conditions on the path contradict each other, or the value is undefined and an obligation says so."""


class Refused(Dead):
    """Whatever the sizes: a primitive has no value for these texts and numbers of axes."""


class Bounded(InternalError):  # noqa: N818 - no error: the definition is judged at few numbers of axes
    """A number of axes or entries stays open, and there is no rule that does with an open one."""


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


class AsTerm(Protocol):
    """A fold of elements over steps of which the number is open: an element, of `argmax` and `argmin` a position."""

    def __call__(
        self,
        name: str,
        symbols: tuple[Term, ...],
        sizes: tuple[Int, ...],
        guard: Term,
        body: Element,
        start: Element | None,
        scope: Scope,
    ) -> Element | Term:
        """symbols: stand for any step in the guard and the body."""


class Apply(Protocol):
    """The outputs of an operator that the text applies."""

    def __call__(
        self,
        name: str,
        version: int,
        inputs: Sequence[Value | None],
        attributes: Mapping[str, Value],
        span: Span,
        scope: Scope,
        count: int,
    ) -> tuple[Value, ...]:
        """The outputs of one application, of which so many are asked for."""


Reads = frozenset[tuple[str, tuple[int, ...]]]
"""Elements of tensors, by name and index."""


@dataclass(slots=True)
class Evaluation:
    """The lists that grow while one statement is evaluated. `texts`: the text literals of the definition.

    base: the symbols that are there before the statement: those that appear later stand for indices.
    products: how many indices there are below shapes of open length, by their codes. lengths: of
    lists that are asked for entries. told: the terms of which all that
    is known has been said.
    journal: the elements that decided something, for algebras that keep it. owed: what is taken for granted since it is
    an obligation, so that no case may be left out by it.
    every: ranks and lengths of lists are open, and no case is drawn by them.
    positions: the lemmas about positions that were used, inverse and converted.
    whole: folds are unrolled and every size is a number. lazy: what stands at an index is evaluated when it is read,
    and there is no obligation about it. quiet: obligations are not collected, above zero.
    types: the element types that the names of open ones stand for, where that is known.
    """

    cores: Cores
    apply: Apply
    algebra: Algebra
    texts: tuple[str, ...]
    decided: Mapping[Term, int | str | bool | None]
    path: tuple[Term, ...]
    every: bool = False
    whole: bool = False
    lazy: bool = False
    quiet: int = 0
    symbols: dict[str, tuple[int, str]] = field(default_factory=dict)
    axioms: list[Term] = field(default_factory=list)
    assumed: list[Term] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    base: frozenset[str] = frozenset()
    products: dict[Term, Int] = field(default_factory=dict)
    lengths: dict[Term, Int] = field(default_factory=dict)
    told: set[Term] = field(default_factory=set)
    journal: set[tuple[str, tuple[int, ...]]] = field(default_factory=set)
    owed: set[Term] = field(default_factory=set)
    asks: Callable[[Scope, Term, bool], bool] | None = None
    folded: AsTerm | None = None
    strict: bool = False
    tensors: int = 0
    positions: dict[str, None] = field(default_factory=dict)
    at: tuple[int, tuple[Int, ...]] = (0, ())
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def types_of(self, name: str) -> tuple[str, ...]:
        """The element types that a name stands for; none where that is not known."""
        return (name,) if name in ELEMENT_TYPES else self.types.get(name, ())


@dataclass(frozen=True, slots=True)
class Scope:
    """env: the names in scope. facts: the guards on the path within the statement. bound: quantified variables."""

    env: Env
    run: Evaluation
    facts: tuple[Term, ...] = ()
    bound: tuple[str, ...] = ()

    @property
    def cores(self) -> Cores:
        """The cores of the functions of the text."""
        return self.run.cores

    @property
    def scope(self) -> Mapping[Any, Any]:
        """The names in scope, for the rules that interpretations share."""
        return self.env

    def bind(self, names: Mapping[Any, Any]) -> Scope:
        """The scope with these names."""
        return self.among({**self.env, **names})

    def among(self, names: Env) -> Scope:
        """The same place where these names alone are in scope."""
        return Scope(names, self.run, self.facts, self.bound)

    def inner(self) -> Scope:
        """The scope of an argument."""
        return self

    def inside(self, _name: str, names: Mapping[Any, Any]) -> Scope:
        """The scope of a function's body."""
        return self.among(names)

    def under(self, *conditions: Term) -> Scope:
        """The scope where these conditions hold. Raises Dead where one of them cannot."""
        new = [part for condition in conditions for part in conjuncts(condition) if part not in self.facts]
        if FALSE in new or any(opposite(part) in self.facts for part in new):
            raise Dead
        return Scope(self.env, self.run, (*self.facts, *new), self.bound) if new else self

    def knows(self, fact: Term, *, quick: bool = False) -> bool:
        """True if a fact is among those of the path, word for word, or follows where a prover is asked."""
        if fact == TRUE or fact in self.facts or fact in self.run.path:
            return True
        return fact != FALSE and self.run.asks is not None and self.run.asks(self, fact, quick)


def conjuncts(term: Term) -> tuple[Term, ...]:
    """The parts of a conjunction, none for `true`."""
    if term == TRUE:
        return ()
    if term.op == "and":
        return tuple(part for arg in term.args if isinstance(arg, Term) for part in conjuncts(arg))
    return (term,)


def substituted(formula: Term, term: Term, number: Int) -> Term:
    """The formula with a number in place of a term."""
    found = substitute_term(formula, term, number)
    if not isinstance(found, Term):
        raise InternalError(f"{formula} is no formula")
    return found


def demand(scope: Scope, kind: str, span: Span, goal: Term, about: str = "", stronger: Term | None = None) -> None:
    """Record an obligation. Raises Dead after one that is false; on concrete shapes Undefined instead."""
    run = scope.run
    if run.whole:
        if goal == FALSE:
            raise Undefined(kind, span, goal)
        return
    if run.quiet == 0:
        open_parts = tuple(part for part in conjuncts(goal) if not scope.knows(part))
        if run.every:
            open_parts = tuple(map(opened_goal, open_parts))
        if open_parts:
            facts = (*run.axioms, *run.assumed, *scope.facts)
            run.obligations.append(Obligation(kind, span, facts, both(*open_parts), about, stronger))
    elif run.strict and goal == FALSE:
        run.obligations.append(Obligation(kind, span, (*run.axioms, *run.assumed, *scope.facts), FALSE, about))
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
    """The element of tensor `name` at an index, as a function of the index."""
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
    if scope.run.every:
        fact = _closed(fact, scope)
    elif scope.bound:
        fact = Term("forall", (*scope.bound, fact))
    (scope.run.assumed if assumed else scope.run.axioms).append(fact)


def _closed(fact: Term, scope: Scope) -> Term:
    """The fact for all values of the quantified variables that it mentions, in one quantifier."""
    names = [name for name in scope.bound if mentions(fact, (name,))]
    if not names:
        return fact
    match fact:
        case Term("forall", (*more, Term() as body)):
            return Term("forall", (*names, *more, body))
        case _:
            return Term("forall", (*names, fact))


Body = Callable[[tuple[Int, ...], Scope], Value]
"""The element at an index."""


def remembered(body: Body) -> Body:
    """The same, at each index evaluated once, with what it wrote into the journal.

    Where an index is no number, the facts that prune branches, and the variables around, are those of the reader.
    """
    done: dict[object, tuple[Value, set[tuple[str, tuple[int, ...]]]]] = {}

    def read(index: tuple[Int, ...], here: Scope) -> Value:
        run = here.run
        key: object = index if run.whole else (index, here.facts, here.bound, len(run.path))
        if key not in done:
            outside, run.journal = run.journal, set()
            try:
                done[key] = body(index, here), run.journal
            finally:
                run.journal = outside
        value, journal = done[key]
        run.journal |= journal
        return value

    return read


# ---- Sorts of values --------------------------------------------------------------------------


# The smt interpretation of operators, cases: what an open number, condition or text is on a path.


def settle(scope: Scope, term: Int, candidates: Sequence[int]) -> int:
    """The number that the term is on this path. Raises Split where that is open, Dead where there is none."""
    if not isinstance(term, Term):
        return term
    known = _decided(scope, term)
    if isinstance(known, int):
        return known
    fixed = fixed_value(scope, term)
    if fixed is not None:
        return fixed
    if scope.run.every and (candidates is LENGTHS or mentions(term, scope.bound)):
        raise Bounded(f"a number of entries is open: {term}")
    raise Split(term, tuple(candidates), scope, length=candidates is LENGTHS)


def settle_softly(scope: Scope, term: Int) -> Int:
    """The number that the term is on this path where it can be one of a few numbers only, else the term."""
    if not isinstance(term, Term) or scope.run.whole or not steady(scope, term):
        return term
    if term in scope.run.decided:
        known = scope.run.decided[term]
        return known if type(known) is int else term
    fixed = fixed_value(scope, term)
    if fixed is not None:
        return fixed
    raise Split(term, tuple(LENGTHS), scope, soft=True)


def fixed_value(scope: Scope, term: Term) -> int | None:
    """The number that a fact says the term is; an alternative counts when the others are denied."""
    for fact in (*scope.facts, *scope.run.path):
        for part in conjuncts(fact):
            if part.op == "or" and term in _atoms(part):
                open_parts = [p for p in part.args if isinstance(p, Term) and not scope.knows(opposite(p))]
                part = open_parts[0] if len(open_parts) == 1 else TRUE
            for equation in conjuncts(part):
                if equation.op == "=" and equation.args[0] == term and isinstance(equation.args[1], int):
                    return equation.args[1]
    return None


@lru_cache(maxsize=50_000)
def _atoms(term: Term) -> frozenset[Term]:
    """The terms that are equated anywhere in a disjunction."""
    if term.op == "=":
        return frozenset(part for part in term.args if isinstance(part, Term))
    return frozenset().union(*(_atoms(part) for part in term.args if isinstance(part, Term)))


def steady(scope: Scope, term: Int) -> bool:
    """True if the term is made of symbols that are there before the statement, so that it can be settled by cases."""
    if not isinstance(term, Term):
        return True
    if not term.args:
        return term.op in scope.run.base and term.op not in scope.bound
    return all(steady(scope, part) for part in term.args if isinstance(part, Term))


def decide(scope: Scope, condition: Term) -> bool:
    """True if the condition holds on this path. Raises Split where that is open."""
    if condition in (TRUE, FALSE):
        return condition == TRUE
    if scope.knows(condition):
        return True
    if scope.knows(opposite(condition)):
        return False
    if scope.run.every and mentions(condition, scope.bound):
        raise Bounded(f"a case that depends on a quantified variable: {condition}")
    return bool(_decided(scope, condition, (True, False)))


def mentions(term: Term, symbols: Collection[str]) -> bool:
    """True if one of the symbols occurs in the term."""
    if not symbols:
        return False
    parts = (part for part in term.args if isinstance(part, Term))
    return term.op in symbols or any(mentions(part, symbols) for part in parts)


def settle_text(scope: Scope, value: Value) -> str:
    """The text; ELSE for one that the definition does not mention."""
    if isinstance(value, TextSymbol) and value.code is not None:
        raise Bounded(f"a case for each text that an entry of a list may be: {value.name}")
    if isinstance(value, TextSymbol):
        return str(_decided(scope, Term(value.name), (*scope.run.texts, ELSE)))
    return str(value)


def _decided(scope: Scope, term: Term, candidates: tuple[int | str | bool, ...] = ()) -> int | str | bool | None:
    if term in scope.run.decided:
        known = scope.run.decided[term]
        if known is None:
            raise Dead
        return known
    if candidates:
        raise Split(term, candidates, scope)
    return None


LENGTHS = range(9)
"""The lengths that a list of open length may have."""


def number(value: Value) -> Number:
    """The value as an exact number."""
    if isinstance(value, int | Fraction | Real | Term):
        return value
    raise InternalError(f"{value!r} is no exact number")


def whole(value: Value) -> Int:
    """The value as an integer."""
    if isinstance(value, Term | int):
        return value
    if isinstance(value, Fraction) and value.denominator == 1:
        return value.numerator
    raise InternalError(f"{value!r} is no integer")


def entries(value: Value, scope: Scope) -> tuple[Value, ...]:
    """The entries of a list; the length of an open one is settled."""
    if isinstance(value, Open):
        return tuple(value.entry(k) for k in range(settle(scope, value.length, LENGTHS)))
    if is_list(value):
        return cast("tuple[Value, ...]", value)
    if isinstance(value, Listed) and value.told_apart:
        return value.forms
    if isinstance(value, Row):
        if all(part.value is not None for part in value.parts):
            return tuple(part.value for part in value.parts if part.value is not None)
        raise Bounded("a list of open length where its entries are to be told apart")
    raise InternalError(f"{value!r} is no list")


def is_list(value: Value) -> bool:
    """True if the value is a list of known length."""
    return type(value) is tuple


# The smt interpretation of operators, relations, branches and arithmetic: component by component where lists meet.


@dataclass(frozen=True, slots=True)
class OfRows:
    """What relations, branches and arithmetic do where a list of any length is among the operands."""

    relate: Callable[[str, Value, Value, Scope], Term]
    member: Callable[[Value, Value, Scope], Term]
    merge: Callable[[Term, Value, Value, Scope], Row | None]
    componentwise: Callable[[Callable[[Value, Value, Scope], Value], Value, Value, Span, Scope], Row]
    each: Callable[[Callable[[Value, Scope], Value], Row, Scope], Row]


ENTERED: list[OfRows] = []
"""The rules for lists of any length, which `selections` enters: they are made of what stands here."""


def of_rows() -> OfRows:
    """The rules for lists of any length."""
    return ENTERED[0]


# ---- Relations --------------------------------------------------------------------------------


def same_truth(left: Term, right: Term) -> Term:
    """True if two Bools are the same."""
    for one, other in ((left, right), (right, left)):
        if one in (TRUE, FALSE):
            return other if one == TRUE else opposite(other)
    return TRUE if left == right else Term("iff", (left, right))


def relate(relation: str, left: Value, right: Value, scope: Scope) -> Term:
    """True if a relation holds between two values; between lists when it holds in every component."""
    if type(left) is int and type(right) is int:
        return order(relation, left, right)
    if relation == "!=":
        return opposite(relate("=", left, right, scope)) if compound(left, right) else _scalar("!=", left, right, scope)
    if relation == "not in":
        return opposite(member(left, right, scope))
    if relation == "in":
        return member(left, right, scope)
    if isinstance(left, Row) or isinstance(right, Row):
        return of_rows().relate(relation, left, right, scope)
    if compound(left, right):
        if relation == "=":
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Open) and is_list(other):
                    return _same_list(one, entries(other, scope), scope)
        pairs = pairs_of(left, right, scope)
        return FALSE if pairs is None else both(*(relate(relation, a, b, scope) for a, b in pairs))
    return _scalar(relation, left, right, scope)


def _same_list(left: Open, right: tuple[Value, ...], scope: Scope) -> Term:
    """True if a list of open length is a list."""
    same = [relate("=", left.entry(k), item, scope) for k, item in enumerate(right)]
    return both(equal(left.length, len(right)), *same)


_LISTS: Final = frozenset({tuple, Open, Row})


def compound(left: Value, right: Value) -> bool:
    """True if one of the two is a list."""
    return type(left) in _LISTS or type(right) in _LISTS


def pairs_of(left: Value, right: Value, scope: Scope) -> list[tuple[Value, Value]] | None:
    """The components of two lists, a number beside a list going with each; None when the lengths differ."""
    a = entries(left, scope) if compound(left, left) else None
    b = entries(right, scope) if compound(right, right) else None
    if a is None:
        return [(left, y) for y in b or ()]
    if b is None:
        return [(x, right) for x in a]
    return None if len(a) != len(b) else list(zip(a, b, strict=True))


def _scalar(relation: str, left: Value, right: Value, scope: Scope) -> Term:
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.compare(relation, one, other, scope)
    if any(isinstance(value, TextSymbol) and value.code is not None for value in (left, right)):
        codes = [_text_code(value, scope) for value in (left, right)]
        if codes[0] is not None and codes[1] is not None:
            same = equal(codes[0], codes[1])
            return same if relation == "=" else opposite(same)
    if isinstance(left, str | TextSymbol):
        same = TRUE if settle_text(scope, left) == settle_text(scope, right) else FALSE
        return same if relation == "=" else opposite(same)
    if isinstance(left, ElementType) and isinstance(right, ElementType):
        same = same_type(left, right, scope)
        return same if relation == "=" else opposite(same)
    if isinstance(left, Term) and isinstance(right, Term) and is_truth(left, scope) and is_truth(right, scope):
        same = same_truth(left, right)
        return same if relation == "=" else opposite(same)
    return order(relation, number(left), number(right))


def _text_code(value: Value, scope: Scope) -> Int | None:
    """The code of a text: of one that the definition mentions a number of its own."""
    if isinstance(value, str) and value in scope.run.texts:
        return scope.run.texts.index(value)
    return value.code if isinstance(value, TextSymbol) else None


BOOLS = frozenset({"true", "false", "and", "or", "not", "iff", "=", "<=", "=>", "r<", "r<=", "r=", "forall", "exists"})
BOOLS |= {"@=", "@<", "@<=", "@.truth", "@.is_nan", "@.is_infinite", "@.casts"}
"""The operators whose terms are Bools, those on elements that are terms included."""


def is_truth(term: Term, scope: Scope) -> bool:
    """True if a term is a Bool."""
    return term.op in BOOLS or scope.run.symbols.get(term.op, (0, ""))[1] == "Bool"


def elements(left: Value, right: Value, scope: Scope) -> tuple[Element, Element]:
    """Two operands of which one is an element; a numeral takes its type."""
    return element(left, _type(right), scope), element(right, _type(left), scope)


def _type(value: Value) -> ElementType:
    return value.type if isinstance(value, Element) else ElementType("")


def element(value: Value, kind: ElementType, scope: Scope) -> Element:
    """The value as an element of a type: a numeral is adapted, an exact value cast."""
    if isinstance(value, Element):
        return value
    if isinstance(value, int | Fraction):
        return scope.run.algebra.literal(value, kind, scope)
    if isinstance(value, Term | Real):
        return scope.run.algebra.apply("cast", kind, (value,), scope)
    raise InternalError(f"{value!r} is no element")


def member(left: Value, right: Value, scope: Scope) -> Term:
    """`in`: an index below a size, an index vector in a shape, a value in a list."""
    if not compound(right, right):
        return within(whole(left), whole(right))
    if isinstance(left, Row) or isinstance(right, Row):
        return of_rows().member(left, right, scope)
    if compound(left, left):
        pairs = pairs_of(left, right, scope)
        return FALSE if pairs is None else both(*(within(whole(a), whole(b)) for a, b in pairs))
    return either(*(relate("=", left, softly(item, scope), scope) for item in entries(right, scope)))


def softly(value: Value, scope: Scope) -> Value:
    """An integer of which the text asks where a list has it, settled where it can be one of a few numbers only."""
    return settle_softly(scope, value) if isinstance(value, Term) and not is_truth(value, scope) else value


# ---- Branches ---------------------------------------------------------------------------------


def branch(asked: Term, then: Callable[[Scope], Value], other: Callable[[Scope], Value], scope: Scope) -> Value:
    """One value or the other; where the two have no common form, the condition is decided."""
    if asked in (TRUE, FALSE):
        return then(scope) if asked == TRUE else other(scope)
    if scope.knows(asked, quick=True):
        return then(scope)
    if scope.knows(opposite(asked), quick=True):
        return other(scope)
    if scope.run.decided.get(asked) is not None:
        return then(scope.under(asked)) if decide(scope, asked) else other(scope.under(opposite(asked)))
    try:
        left = then(scope.under(asked))
    except Dead:
        return other(scope.under(opposite(asked)))
    try:
        right = other(scope.under(opposite(asked)))
    except Dead:
        return left
    merged = merge(asked, left, right, scope)
    if merged is None:
        return left if decide(scope, asked) else right
    return merged


def merge(asked: Term, left: Value, right: Value, scope: Scope) -> Value | None:
    """The value that depends on a condition; None when the two have no common form."""
    if left == right or asked in (TRUE, FALSE):
        return right if asked == FALSE else left
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.choose(asked, one, other, scope)
    if isinstance(left, Row) or isinstance(right, Row):
        return of_rows().merge(asked, left, right, scope)
    left, right = listed(left, scope.under(asked)), listed(right, scope.under(opposite(asked)))
    if isinstance(left, Open) or isinstance(right, Open):
        return _open(asked, left, right, scope)
    if is_list(left) and is_list(right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            return None
        parts = [merge(asked, a, b, scope) for a, b in pairs]
        return None if None in parts else tuple(part for part in parts if part is not None)
    if isinstance(left, Fraction | Real) or isinstance(right, Fraction | Real):
        return Real(Term("rite", (asked, real(number(left)), real(number(right)))))
    if isinstance(left, int | Term) and isinstance(right, int | Term):
        if any(isinstance(side, Term) and is_truth(side, scope) for side in (left, right)):
            return either(both(asked, cast("Term", left)), both(opposite(asked), cast("Term", right)))
        return choose(asked, left, right)
    return None


def listed(value: Value, scope: Scope) -> Value:
    """A list of open length whose length the facts fix as the list that it is; any other value as it is."""
    if isinstance(value, Open) and isinstance(value.length, Term):
        fixed = fixed_value(scope, value.length)
        return value if fixed is None else tuple(value.entry(k) for k in range(fixed))
    return entries(value, scope) if isinstance(value, Open) else value


def _open(asked: Term, left: Value, right: Value, scope: Scope) -> Value:
    """One list or the other as a list of open length."""
    sizes = [value.length if isinstance(value, Open) else len(entries(value, scope)) for value in (left, right)]

    def entry(position: int) -> Value:
        parts = []
        for value in (left, right):
            items = () if isinstance(value, Open) else entries(value, scope)
            if isinstance(value, Open) or position < len(items):
                parts.append(value.entry(position) if isinstance(value, Open) else items[position])
        merged = merge(asked, parts[0], parts[1], scope) if len(parts) == 2 else parts[0]
        if merged is None:
            raise InternalError("entries of lists that have no common form")
        return merged

    return Open(choose(asked, *sizes), entry)


# ---- Arithmetic -------------------------------------------------------------------------------

OPERATORS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/"}
INTEGERS: Mapping[str, Callable[[Int, Int], Int]] = {
    "add": add, "sub": subtract, "mul": multiply, "div": floor_div, "mod": floor_mod,
}  # fmt: skip


def arithmetic(operator: str, left: Value, right: Value, span: Span, scope: Scope) -> Value:
    """`add sub mul quotient div mod`, component by component where a list is involved."""
    if type(left) is int and type(right) is int and operator in (INTEGERS if right else ("add", "sub", "mul")):
        return INTEGERS[operator](left, right)
    if isinstance(left, Row) or isinstance(right, Row):

        def of_two(a: Value, b: Value, here: Scope) -> Value:
            return arithmetic(operator, a, b, span, here)

        return of_rows().componentwise(of_two, left, right, span, scope)
    if compound(left, right):
        pairs = pairs_of(left, right, scope)
        if pairs is None:
            demand(scope, "length", span, FALSE)
            raise Dead
        return tuple(arithmetic(operator, a, b, span, scope) for a, b in pairs)
    if isinstance(left, Element) or isinstance(right, Element):
        one, other = elements(left, right, scope)
        return scope.run.algebra.arithmetic(OPERATORS[operator], one, other, scope)
    a, b = number(left), number(right)
    if operator in ("div", "mod", "quotient"):
        demand(scope, "divisor", span, order("!=", b, 0))
    if operator == "quotient" or isinstance(a, Fraction | Real) or isinstance(b, Fraction | Real):
        return rational(OPERATORS[operator], a, b)
    return INTEGERS[operator](a, b)


def negative(value: Value, scope: Scope) -> Value:
    """The value with the other sign; an element's is its own primitive, since 0 - x is not -x."""
    if isinstance(value, Row):
        return of_rows().each(negative, value, scope)
    if compound(value, value):
        return tuple(negative(item, scope) for item in entries(value, scope))
    if isinstance(value, Element):
        return scope.run.algebra.apply("negative", value.type, (value,), scope)
    operand = number(value)
    return rational("*", -1, operand) if isinstance(operand, Fraction | Real) else multiply(-1, operand)


# ---- Element types ----------------------------------------------------------------------------


def same_type(left: ElementType, right: ElementType, scope: Scope) -> Term:
    """True if two element types are one; a symbol where one of them is open."""
    if left == right:
        return TRUE
    one, other = (scope.run.types_of(kind.name) for kind in (left, right))
    if one and other and not {*one} & {*other}:
        return FALSE
    name = "same.{}.{}".format(*sorted((left.name, right.name)))
    scope.run.symbols[name] = (0, "Bool")
    return Term(name)


# The smt interpretation of operators, sequences and optionals whose length or entries are not all known.


def entry(source: Listed, at: Int, span: Span, scope: Scope) -> Value:
    """The entry at a position, which must be one of the list."""
    demand(scope, "position", span, within(at, source.length))
    if source.told_apart and isinstance(at, int):
        return source.forms[at]
    form = one_of(source.forms, scope)
    if isinstance(form, Listed) and not source.kind.name.startswith("optional"):
        return replace(form, length=_size(scope), told_apart=False)  # each entry has a length of its own
    return form


def inserted(source: Listed, at: Int, item: Value, span: Span, scope: Scope) -> Listed:
    """The list with an entry more, before a position or at the end."""
    demand(scope, "contract", span, both(at_most(0, at), at_most(at, source.length)), "insert")
    length = add(source.length, 1)
    if source.told_apart and isinstance(at, int):
        return replace(source, length=length, forms=(*source.forms[:at], item, *source.forms[at:]))
    return replace(source, length=length, forms=(*source.forms, item), told_apart=False)


def dropped(source: Listed, at: Int, span: Span, scope: Scope) -> Listed:
    """The list without the entry at a position."""
    demand(scope, "contract", span, both(at_most(0, at), less(at, source.length)), "drop")
    length = add(source.length, -1)
    if source.told_apart and isinstance(at, int):
        return replace(source, length=length, forms=source.forms[:at] + source.forms[at + 1 :])
    return replace(source, length=length, told_apart=False)


def content(value: Value) -> Value:
    """The content of an optional; a tensor or a sequence itself."""
    return value if isinstance(value, Listed) and value.kind.name.startswith("optional") else (value,)


def type_of(value: Value) -> ElementType:
    """The type of a value."""
    match value:
        case Array() | Field() | Unranked():
            return value.type
        case Listed():
            return value.kind
        case _:
            raise InternalError(f"{value!r} is no tensor, sequence or optional")


def one_of(forms: tuple[Value, ...], scope: Scope) -> Value:
    """Something that is like one of the forms."""
    if not forms:
        raise Dead
    first = forms[0]
    if all(isinstance(form, Array) for form in forms):
        arrays = [form for form in forms if isinstance(form, Array)]
        kinds = {array.type for array in arrays}
        kind = arrays[0].type if len(kinds) == 1 else ElementType("")
        if len({len(array.shape) for array in arrays}) > 1:
            return Unranked(kind)
        sizes = zip(*(array.shape for array in arrays), strict=True)
        shape = tuple(row[0] if len(set(row)) == 1 and row[0] != VARIES else _size(scope) for row in sizes)
        return Array("entry", shape, lambda _index, here: here.run.algebra.abstract(kind, here), kind)
    if all(isinstance(form, Array | Unranked) for form in forms):
        kinds = {type_of(form) for form in forms}
        return Unranked(type_of(first) if len(kinds) == 1 else ElementType(""))
    lists = [form for form in forms if isinstance(form, Listed)]
    if len(lists) < len(forms):
        raise InternalError("a tensor or a sequence")
    if len(lists) == 1:
        return lists[0]
    return Listed(lists[0].kind, _size(scope), tuple(form for listed in lists for form in listed.forms))


def _size(scope: Scope) -> Int:
    size = fresh(scope, "entry.size")
    axiom(scope, at_most(0, size))
    return size
