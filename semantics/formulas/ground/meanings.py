"""The smt interpretation, meanings: what an expression denotes once the variables of quantifiers have values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from sonnx.spec.elaborate.core import Binding, Core
from sonnx.spec.language.syntax import BOOL

from ...errors import InternalError
from ...facts.structure import Element, Structure
from .. import reading
from ..terms import FALSE, TRUE, Argument, Term, implication
from .symbols import Symbols

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

    members: Callable[[Env], Iterable[Element] | None]
    row: Callable[[Env], Argument] | None
    whole: Argument | None
    has: Callable[[Env, Element], bool]
    contains: Callable[[Env, Element, int], Argument]
    condition: Callable[[Env, Element], Argument] | None = None


Meaning = Truth | Scalar | Listing | Family


@dataclass(frozen=True, slots=True)
class Work:
    """What the fold reads and notes, and the variables that slots were given to.

    clause: this is the body of an inductive predicate. Its clauses are read off tables that the goal assumes once.
    """

    structure: Structure
    symbols: Symbols
    clause: bool = False
    slots: list[Binding] = field(default_factory=list)


Context = reading.Context[Work, Meaning]
"""Inductive atoms need polarity 1."""
GROUND = reading.Reading[Context, Meaning]("the ground interpretation")
"""The table of the fold, filled in the other modules of this package."""
rule, meaning = GROUND.rule, GROUND.meaning


def bind(variable: Binding, context: Context) -> tuple[int, Context]:
    """A slot for the values of a variable, and the context in which it is bound."""
    slots, number = context.work.slots, context.work.symbols.number
    slot = len(slots)
    slots.append(variable)
    if variable.sort == BOOL:
        raise InternalError(f"the variable {variable.name} ranges over truth values")
    return slot, context.bind(variable, Scalar(itemgetter(slot), lambda env: number(env[slot]), True, slot))


def truth(core: Core, context: Context) -> Callable[[Env], Argument]:
    """The meaning of a formula."""
    found = meaning(core, context)
    if not isinstance(found, Truth):
        raise InternalError("a formula was expected")
    return found.term


def scalar(core: Core, context: Context) -> Scalar:
    """The meaning of an expression for a number, a text or an element."""
    found = meaning(core, context.inner())
    if not isinstance(found, Scalar):
        raise InternalError("a number, a text or an element was expected")
    return found


def family(core: Core, context: Context) -> Family:
    """The meaning of an expression for a set; a list stands for the set of its elements."""
    found = meaning(core, context.inner())
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

    return Family(members, None, None, has, lambda env, x, _p: TRUE if has(env, x) else FALSE)


def under(assumed: Argument, result: Argument, polarity: int, symbols: Symbols) -> Argument:
    """A result that was read off a fact counts only where the fact is assumed: elsewhere it never helps the formula."""
    if polarity > 0:
        if isinstance(result, Term) and result.op == "and":
            return Term("and", (assumed, *result.args))
        return assumed if result is TRUE else FALSE if result is FALSE else Term("and", (assumed, result))
    if polarity < 0:
        return implication(assumed, result)
    return Term("ite", (assumed, result, symbols.irrelevant(BOOL)))
