"""The smt interpretation, meanings: what an expression denotes once the variables of quantifiers have values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from sonnx.semantics.errors import InternalError
from sonnx.semantics.structure import Element, Structure
from sonnx.semantics.terms import TRUE, Argument
from sonnx.spec.syntax import BOOL, TEXT, Expr, FunctionDeclaration, Sort

from .ground_symbols import Symbols

Functions = Mapping[str, FunctionDeclaration]
Env = list[Element]


@dataclass(frozen=True, slots=True)
class Truth:
    """A Bool: a formula."""

    term: Callable[[Env], Argument]


@dataclass(frozen=True, slots=True)
class Scalar:
    """An Int, a Text or an element. value: what it is known to be, None when facts do not say; term: its symbol.

    rigid: no fact is involved (a variable or a literal), so the value is known and the term is a numeral.
    """

    sort: Sort
    value: Callable[[Env], Element | None]
    term: Callable[[Env], Argument]
    rigid: bool = False


class Item(NamedTuple):
    """An element of a list: what it is known to be, and its term."""

    value: Element | None
    term: Argument


@dataclass(frozen=True, slots=True)
class Listing:
    """A list. items: None when its length is not known; length and at give terms in any case."""

    element: Sort
    items: Callable[[Env], tuple[Item, ...] | None]
    length: Callable[[Env], Argument]
    at: Callable[[Env, int], Item]


@dataclass(frozen=True, slots=True)
class Family:
    """A finite set. members: all elements that may belong to it, None when that is not known; guarded: each with the
    formula that says so. has: whether an element is among the members; contains: the formula for that.

    conditional: whether a member belongs is itself a formula and not just an observed fact.
    """

    element: Sort
    members: Callable[[Env], Iterable[Element] | None]
    guarded: Callable[[Env], Iterable[tuple[Element, Argument]] | None]
    has: Callable[[Env, Element], bool]
    contains: Callable[[Env, Element], Argument]
    conditional: bool = False


Meaning = Truth | Scalar | Listing | Family


@dataclass(frozen=True, slots=True)
class Context:
    """What the fold carries: the meanings of variables, the slots given out, the definitions being expanded.

    positive: an inductive atom may stand here, since no negation is around it.
    """

    functions: Functions
    structure: Structure
    symbols: Symbols
    slots: list[Sort]
    scope: Mapping[str, Meaning]
    expanding: tuple[str, ...] = ()
    positive: bool = True

    def bind(self, name: str, sort: Sort) -> tuple[int, Context]:
        """A slot for the values of a variable, and the context in which it is bound."""
        slot, number = len(self.slots), self.symbols.number
        self.slots.append(sort)
        meaning: Meaning
        if sort == BOOL:
            raise InternalError(f"the variable {name} ranges over truth values")
        meaning = Scalar(sort, lambda env: env[slot], lambda env: number(env[slot]), rigid=True)
        return slot, replace(self, scope={**self.scope, name: meaning})

    def inner(self) -> Context:
        """The same, where inductive atoms may not stand."""
        return replace(self, positive=False) if self.positive else self


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
        values = None if items is None else [item.value for item in items]
        if values is None or None in values:
            return None
        return dict.fromkeys(value for value in values if value is not None)

    def unsupported(_env: Env, _element: Element) -> Argument:
        raise InternalError("membership in a list is decided by its elements")

    def guarded(env: Env) -> Iterable[tuple[Element, Argument]] | None:
        values = members(env)
        return None if values is None else [(value, TRUE) for value in values]

    return Family(listing.element, members, guarded, lambda env, x: x in (members(env) or ()), unsupported)

