"""The smt interpretation, meanings: what an expression denotes once the variables of quantifiers have values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

from sonnx.spec.language.syntax import BOOL, TEXT, Expr, FunctionDeclaration, Sort

from ...errors import InternalError
from ...facts.structure import Element, Structure
from ..terms import FALSE, TRUE, Argument, Term, implication
from .symbols import Symbols

Functions = Mapping[str, FunctionDeclaration]
Env = list[Element]


@dataclass(frozen=True, slots=True)
class Truth:
    """A Bool: a formula."""

    term: Callable[[Env], Argument]


@dataclass(frozen=True, slots=True)
class Scalar:
    """An Int, a Text or an element. value: what it is known to be, None when facts do not say; term: its symbol.

    rigid: no fact is involved (a variable or a literal), so the value is known and the term is a numeral. slot: where
    the value of a variable lies in the environment.
    """

    sort: Sort
    value: Callable[[Env], Element | None]
    term: Callable[[Env], Argument]
    rigid: bool = False
    slot: int | None = None


class Item(NamedTuple):
    """An element of a list: what it is known to be, and its term."""

    value: Element | None
    term: Argument


@dataclass(frozen=True, slots=True)
class Listing:
    """A list. items: None when its length is not known; length and at give terms in any case. literals: the elements of
    a list that is written out in the text.
    """

    element: Sort
    items: Callable[[Env], tuple[Item, ...] | None]
    length: Callable[[Env], Argument]
    at: Callable[[Env, int], Item]
    literals: frozenset[Element] | None = None


@dataclass(frozen=True, slots=True)
class Family:
    """A finite set. members: all elements that may belong to it, None when that is not known.

    condition: the formula that a member belongs, None where every one does. row: the symbol that says that these are
    the members, None where nothing need say it; whole: the same for the table as a whole. has: whether an element is
    among the members; contains: the formula that it belongs to the set, for a polarity.
    """

    element: Sort
    members: Callable[[Env], Iterable[Element] | None]
    row: Callable[[Env], Argument] | None
    whole: Argument | None
    has: Callable[[Env, Element], bool]
    contains: Callable[[Env, Element, int], Argument]
    condition: Callable[[Env, Element], Argument] | None = None


Meaning = Truth | Scalar | Listing | Family


@dataclass(frozen=True, slots=True)
class Context:
    """What the fold carries: the meanings of variables, the slots given out, the definitions being expanded.

    polarity: 1 where truth helps the formula, -1 where it hurts, 0 where it may do both. Inductive atoms need 1.
    clause: this is the body of an inductive predicate. Its clauses are read off tables that the goal assumes once.
    """

    functions: Functions
    structure: Structure
    symbols: Symbols
    slots: list[Sort]
    scope: Mapping[str, Meaning]
    expanding: tuple[str, ...] = ()
    polarity: int = 1
    clause: bool = False

    def bind(self, name: str, sort: Sort) -> tuple[int, Context]:
        """A slot for the values of a variable, and the context in which it is bound."""
        slot, number = len(self.slots), self.symbols.number
        self.slots.append(sort)
        meaning: Meaning
        if sort == BOOL:
            raise InternalError(f"the variable {name} ranges over truth values")
        meaning = Scalar(sort, itemgetter(slot), lambda env: number(env[slot]), True, slot)
        return slot, self._with({**self.scope, name: meaning}, self.polarity)

    def inner(self) -> Context:
        """The same, where truth may help and hurt."""
        return self.with_polarity(0)

    def with_polarity(self, polarity: int) -> Context:
        """The same, with another polarity."""
        return self if polarity == self.polarity else self._with(self.scope, polarity)

    def _with(self, scope: Mapping[str, Meaning], polarity: int) -> Context:
        """`dataclasses.replace`, which costs as much as the rest of a small query."""
        return Context(
            self.functions, self.structure, self.symbols, self.slots, scope, self.expanding, polarity, self.clause
        )


Rule = Callable[[Expr, Context], Meaning]
RULES: dict[str, Rule] = {}
"""The table of the fold: what each head means."""


def rule(*heads: str) -> Callable[[Rule], Rule]:
    """Enter a function in the table."""

    def enter(function: Rule) -> Rule:
        for head in heads:
            RULES[head] = function
        return function

    return enter


def meaning(expr: object, context: Context) -> Meaning:
    """The meaning of an expression. Raises InternalError for one that constraints may not contain."""
    if not isinstance(expr, Expr) or expr.head not in RULES:
        found = expr.head if isinstance(expr, Expr) else type(expr).__name__
        raise InternalError(f"the smt interpretation gives no meaning to '{found}'")
    return RULES[expr.head](expr, context)


def truth(expr: object, context: Context) -> Callable[[Env], Argument]:
    """The meaning of a formula."""
    found = meaning(expr, context)
    if not isinstance(found, Truth):
        raise InternalError("a formula was expected")
    return found.term


def scalar(expr: object, context: Context) -> Scalar:
    """The meaning of an expression for a number, a text or an element."""
    found = meaning(expr, context.inner())
    if not isinstance(found, Scalar):
        raise InternalError("a number, a text or an element was expected")
    return found


def literal(value: Element, sort: Sort, symbols: Symbols) -> Scalar:
    """A value that no fact is involved in."""
    number = symbols.number(value) if sort != TEXT else None
    if number is None:
        return Scalar(sort, lambda _env: value, lambda _env: symbols.number(value), rigid=True)
    return Scalar(sort, lambda _env: value, lambda _env: number, rigid=True)


def family(expr: object, context: Context) -> Family:
    """The meaning of an expression for a set; a list stands for the set of its elements."""
    found = meaning(expr, context.inner())
    if isinstance(found, Listing):
        return _elements(found)
    if not isinstance(found, Family):
        raise InternalError("a set was expected")
    return found


def _elements(listing: Listing) -> Family:
    def members(env: Env) -> Iterable[Element] | None:
        items = listing.items(env)
        values = [] if items is None else [item.value for item in items]
        if items is None or None in values:
            return None
        return dict.fromkeys(value for value in values if value is not None)

    def has(env: Env, x: Element) -> bool:
        return x in (members(env) or ())

    return Family(
        listing.element,
        members,
        None,
        None,
        has,
        lambda env, x, _p: TRUE if has(env, x) else FALSE,
    )


def under(assumed: Argument, result: Argument, polarity: int, symbols: Symbols) -> Argument:
    """A result that was read off a fact counts only where the fact is assumed: elsewhere it never helps the formula."""
    if polarity > 0:
        if isinstance(result, Term) and result.op == "and":
            return Term("and", (assumed, *result.args))
        return assumed if result is TRUE else FALSE if result is FALSE else Term("and", (assumed, result))
    if polarity < 0:
        return implication(assumed, result)
    return Term("ite", (assumed, result, symbols.irrelevant(BOOL)))
