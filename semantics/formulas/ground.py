"""The interpretation as ground terms: a constraint over one structure as ground, quantifier-free terms.

Closed world: a quantifier runs over the members that the facts list, a fact that does not list a member denies it.
What the model does not determine (an unknown or undefined value) is a free symbol. Inductive predicates become Horn
clauses, one for each instance that the formula can reach: facts, clauses and the negated formula have no model exactly
if the formula follows for the least fixpoint, since inductive atoms occur only positively.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import NamedTuple

from sonnx.spec.elaborate.core import TRUE as ALWAYS
from sonnx.spec.elaborate.core import Binding, Bound, Core, Definition
from sonnx.spec.elaborate.formulas import Cores, Functions, cores
from sonnx.spec.language.syntax import BOOL, INT, Constraint, FunctionDeclaration, Sort

from ..errors import InternalError
from ..facts.structure import Element, Key, SetTable, Structure, Unknown, Value, ValueTable
from ..resources.process import paused
from . import reading
from .evaluate import indexed
from .terms import FALSE, TRUE, Argument, Term, conjunction, disjunction, equivalence, implication, negation

# ---- Symbols: what a formula mentions of the facts ---------------------------------------------
#
# Sets are observed by rows: `ins.3` says that ins(3) has exactly the members listed. All rows without members share
# `use@ins`, which says that the table of ins is complete. Values have symbols of their own: `rank.5` is the rank of
# tensor 5, `constant.5@1` the second element of the list constant(5), `constant.5@len` its length. Texts are numbered.
# `free@k` stands for what no fact determines, `else@` for what cannot matter as long as the facts are assumed.
# Names are for the reader. Where nobody reads, the value stands in place of its symbol, and what the instances of a
# quantifier say alike is said once: each row is its table, `use@ins`, so that most rules have few different instances.

IMMATERIAL = "else@"
"""A Bool that is irrelevant wherever it occurs, once the facts are assumed; `else@Int` is its companion of sort Int."""


Observation = bool | int | tuple[Element, ...]
"""The knowledge of a symbol: truth, number, or the members of the row that it stands for."""


@dataclass(slots=True)
class Symbols:
    """The symbols of one query while it grows.

    named: values have symbols, which facts has for each fact with what is known: the truth of a Bool, the number of
    another value, the members of a row. assumed: the facts of which Bools or rows are mentioned. free: the symbols of
    which nothing is known, with their sorts. texts: the number of each text. numbers: the facts of which numbers are
    mentioned. resolved: the facts that the grounding itself looked up, for keys and lists. tables: the facts that
    clauses were read off, with the symbols that assume them. derived: the inductive atoms by predicate; agenda: those
    of them that still need their clause.
    """

    named: bool
    facts: dict[str, dict[str, Observation]] = field(default_factory=dict)
    assumed: dict[str, str] = field(default_factory=dict)
    free: dict[str, str] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, None] = field(default_factory=dict)
    resolved: dict[str, None] = field(default_factory=dict)
    immaterial: dict[str, str] = field(default_factory=dict)
    derived: dict[str, dict[Key, str]] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    agenda: list[tuple[str, Key, str]] = field(default_factory=list)

    def group(self, fact: str) -> dict[str, Observation]:
        """The known symbols of one fact."""
        return self.facts.setdefault(fact, {})

    def assume(self, fact: str) -> str:
        """The symbol that stands for the table of a fact as a whole."""
        name = self.assumed.get(fact)
        if name is None:
            name = self.assumed[fact] = assumption(fact)
        return name

    def known(self, fact: str, name: Callable[[], str], value: Value | None, sort: Sort) -> Argument:
        """The symbol of a single value of a fact, or the value; a free symbol where it is undefined or unknown."""
        if not self.named and type(value) is int:
            self.numbers[fact] = None
            return value
        if value is None or isinstance(value, Unknown):
            free = name()
            self.free[free] = smt_sort(sort)
            return free
        if isinstance(value, tuple):
            raise InternalError(f"{name()} is a list")
        if isinstance(value, bool):
            literal = self.assume(fact)
            return self._shown(fact, name, value) or (literal if value else negation(literal))
        self.numbers[fact] = None
        number = self.number(value)
        return self._shown(fact, name, number) or number

    def _shown(self, fact: str, name: Callable[[], str], value: Observation) -> str | None:
        """The symbol of a value, noted with it; None where values have none."""
        if not self.named:
            return None
        symbol = name()
        self.group(fact)[symbol] = value
        return symbol

    def unknown(self, sort: Sort | None) -> str:
        """A fresh free symbol."""
        name = f"free@{len(self.free)}"
        self.free[name] = smt_sort(sort)
        return name

    def irrelevant(self, sort: Sort | None) -> str:
        """A symbol for the other branch of a choice which the facts decide."""
        name = IMMATERIAL if sort == BOOL else IMMATERIAL + "Int"
        self.immaterial[name] = smt_sort(sort)
        return name

    def number(self, value: Element) -> int:
        """The numeral of an element: a text gets the next free number."""
        return self.texts.setdefault(value, len(self.texts)) if isinstance(value, str) else value


def assumption(fact: str) -> str:
    """The name of the symbol that assumes a fact."""
    return f"use@{fact}"


def smt_sort(sort: Sort | None) -> str:
    """The sort of symbols for values of a sort: elements and texts are numbered."""
    return "Bool" if sort == BOOL else "Int"


def symbol(fact: str, *parts: Element) -> str:
    """The name of a symbol: the fact and what it is about. It is plain ASCII, and no name that SMT-LIB defines."""
    if not parts:
        return fact + "."
    return fact + "".join(f".{part}" if type(part) is int else f".{_spelled(part)}" for part in parts)


def atom(fact: str, key: Key, *more: Element) -> str:
    """The name of the symbol for a fact at a key."""
    if type(key) is int and not more:
        return f"{fact}.{key}"
    return symbol(fact, *key, *more) if isinstance(key, tuple) else symbol(fact, key, *more)


def _spelled(part: Element) -> str:
    """A text or Bool inside of a name; every character but letters, digits and _ as $hex$, the empty text as $$."""
    text = str(part)
    if text.isidentifier() and text.isascii():
        return text
    return "".join(c if c.isascii() and (c.isalnum() or c == "_") else f"${ord(c):x}$" for c in text) or "$$"


# ---- Meanings ----------------------------------------------------------------------------------

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
    """The things that the fold reads and notes, and the variables that slots were given to.

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
    made = meaning(core, context)
    if not isinstance(made, Truth):
        raise InternalError("a formula was expected")
    return made.term


def scalar(core: Core, context: Context) -> Scalar:
    """The meaning of an expression for a number, a text or an element."""
    made = meaning(core, context.inner())
    if not isinstance(made, Scalar):
        raise InternalError("a number, a text or an element was expected")
    return made


def family(core: Core, context: Context) -> Family:
    """The meaning of an expression for a set; a list stands for the set of its elements."""
    made = meaning(core, context.inner())
    if isinstance(made, Listing):
        return _elements(made)
    if not isinstance(made, Family):
        raise InternalError("a set was expected")
    return made


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


def under(assumed: Argument, result: Argument, polarity: int, symbols: Symbols, sort: Sort | None = BOOL) -> Argument:
    """A result that was read off a fact counts only where the fact is assumed: elsewhere it never helps the formula."""
    if polarity > 0:
        if isinstance(result, Term) and result.op == "and":
            return Term("and", (assumed, *result.args))
        return assumed if result is TRUE else FALSE if result is FALSE else Term("and", (assumed, result))
    if polarity < 0:
        return implication(assumed, result)
    return Term("ite", (assumed, result, symbols.irrelevant(sort)))


# ---- Leaves and connectives -------------------------------------------------------------------


@rule("literal")
def _literal(core: Core, context: Context) -> Meaning:
    value, number = core.value, context.work.symbols.number
    if isinstance(value, bool):
        constant = TRUE if value else FALSE
        return Truth(lambda _env: constant)
    return Scalar(lambda _env: value, lambda _env: number(value), rigid=True)


@rule("not")
def _not(core: Core, context: Context) -> Meaning:
    part = truth(core.parts[0], context.with_polarity(-context.polarity))
    return Truth(lambda env: negation(part(env)))


@rule("and", "or")
def _junction(core: Core, context: Context) -> Meaning:
    parts = [truth(part, context) for part in core.parts]
    unit, zero, join = (TRUE, FALSE, "and") if core.head == "and" else (FALSE, TRUE, "or")

    def term(env: Env) -> Argument:
        arguments: list[Argument] = []
        for part in parts:
            one = part(env)
            if one is zero:
                return zero
            if one is not unit:
                arguments.append(one)
        return unit if not arguments else arguments[0] if len(arguments) == 1 else Term(join, tuple(arguments))

    return Truth(term)


@rule("implies")
def _implies(core: Core, context: Context) -> Meaning:
    left = truth(core.parts[0], context.with_polarity(-context.polarity))
    right = truth(core.parts[1], context)

    def term(env: Env) -> Argument:
        condition = left(env)
        return TRUE if condition is FALSE else implication(condition, right(env))

    return Truth(term)


@rule("iff")
def _iff(core: Core, context: Context) -> Meaning:
    left, right = (truth(part, context.inner()) for part in core.parts)
    return Truth(lambda env: equivalence(left(env), right(env)))


# ---- Choices ----------------------------------------------------------------------------------


@rule("ite")
def _ite(core: Core, context: Context) -> Meaning:
    condition = truth(core.parts[0], context.inner())
    return _choice(condition, *(meaning(part, context) for part in core.parts[1:]))


def _choice(condition: Callable[[Env], Argument], then: Meaning, other: Meaning) -> Meaning:
    if isinstance(then, Truth) and isinstance(other, Truth):
        yes, no = then.term, other.term
        return Truth(lambda env: _select(condition(env), yes, no, env))
    if isinstance(then, Scalar) and isinstance(other, Scalar):
        one, two = then, other

        def value(env: Env) -> Element | None:
            test = condition(env)
            left, right = one.value(env), two.value(env)
            return left if test is TRUE or left == right else right if test is FALSE else None

        return Scalar(value, lambda env: _select(condition(env), one.term, two.term, env))
    raise InternalError("a choice is between formulas, or between numbers, texts or elements")


def _select(test: Argument, then: Callable[[Env], Argument], other: Callable[[Env], Argument], env: Env) -> Argument:
    if test is TRUE:
        return then(env)
    if test is FALSE:
        return other(env)
    yes, no = then(env), other(env)
    return yes if yes == no else Term("ite", (test, yes, no))


@rule("case")
def _case(core: Core, context: Context) -> Meaning:
    """A subject whose value is known selects its arm under the guard that it has this value; else a chain of tests."""
    subject, symbols, sort = scalar(core.parts[0], context), context.work.symbols, core.sort
    polarity = context.polarity if sort == BOOL else 0
    bodies = [meaning(body, context) for body in core.parts[1:]]
    tests = [(labels, body) for labels, body in zip(core.labels, bodies, strict=True) if labels]
    arms = {label: body for labels, body in tests for label in labels}
    default = None if core.labels[-1] else bodies[-1]

    def term(env: Env) -> Argument:
        value = subject.value(env)
        if value is not None:
            chosen = arms.get(str(value), default)
            result = symbols.unknown(sort) if chosen is None else _term(chosen, env)
            return result if subject.rigid else guarded(subject.term(env), value, result, sort, polarity, symbols)
        result = symbols.unknown(sort) if default is None else _term(default, env)
        for labels, body in reversed(tests):
            same: list[Argument] = [Term("=", (subject.term(env), symbols.number(label))) for label in labels]
            result = Term("ite", (disjunction(same), _term(body, env), result))
        return result

    def known(env: Env) -> Element | None:
        value = subject.value(env)
        chosen = None if value is None else arms.get(str(value), default)
        return chosen.value(env) if isinstance(chosen, Scalar) else None

    return Truth(term) if sort == BOOL else Scalar(known, term)


def _term(meant: Meaning, env: Env) -> Argument:
    if not isinstance(meant, (Truth, Scalar)):
        raise InternalError("a formula, a number, a text or an element was expected")
    return meant.term(env)


def guarded(
    subject: Argument, value: Element, result: Argument, sort: Sort | None, polarity: int, symbols: Symbols
) -> Argument:
    """`result` where the subject has the value which the facts give it; elsewhere it never helps the formula, or, where
    the polarity is 0, anything."""
    return under(Term("=", (subject, symbols.number(value))), result, polarity, symbols, sort)


# ---- Comparison --------------------------------------------------------------------------------

SHORT = 4
"""Up to this length, membership in a list is written out as a disjunction of equalities."""


@rule("compare")
def _compare(core: Core, context: Context) -> Meaning:
    one, other = (meaning(part, context.inner()) for part in core.parts)
    relation, symbols = core.name, context.work.symbols
    match relation:
        case "in" | "not in":
            if not isinstance(one, Scalar):
                raise InternalError("members of sets are numbers, texts and elements")
            term = _contains(one, other, context.polarity if relation == "in" else -context.polarity, symbols)
        case "=" | "!=":
            term = _equal(one, other, symbols)
        case _:
            if not (isinstance(one, Scalar) and isinstance(other, Scalar)):
                raise InternalError(f"'{relation}' compares numbers")
            low, high = (other, one) if relation[0] == ">" else (one, other)
            return Truth(_ordered(relation.replace(">", "<"), low, high))
    return Truth((lambda env: negation(term(env))) if relation in ("!=", "not in") else term)


def _ordered(relation: str, low: Scalar, high: Scalar) -> Callable[[Env], Argument]:
    decide: Callable[[int, int], bool] = operator.lt if relation == "<" else operator.le

    def term(env: Env) -> Argument:
        if low.rigid and high.rigid:
            left, right = low.value(env), high.value(env)
            if isinstance(left, int) and isinstance(right, int):
                return TRUE if decide(left, right) else FALSE
        return Term(relation, (low.term(env), high.term(env)))

    return term


def _equal(one: Meaning, other: Meaning, symbols: Symbols) -> Callable[[Env], Argument]:
    match one, other:
        case Truth(left), Truth(right):
            return lambda env: equivalence(left(env), right(env))
        case Scalar(), Scalar():
            first, second = one, other
            if first.rigid and second.rigid:
                return lambda env: TRUE if first.value(env) == second.value(env) else FALSE
            return lambda env: Term("=", (first.term(env), second.term(env)))
        case Listing(), Listing():
            lists = one, other
            return lambda env: _equal_lists(*lists, env, symbols)
        case Family(), Family():
            sets = one, other
            return lambda env: _equal_sets(*sets, env, symbols)
        case _:
            raise InternalError("'=' compares values of one kind")


def _equal_lists(one: Listing, other: Listing, env: Env, symbols: Symbols) -> Argument:
    known = [items for items in (one.items(env), other.items(env)) if items is not None]
    if not known:
        return symbols.unknown(BOOL)
    lengths = Term("=", (one.length(env), other.length(env)))
    if len(known) == 2 and len(known[0]) != len(known[1]):
        return lengths
    pairs = ((one.at(env, i).term, other.at(env, i).term) for i in range(len(known[0])))
    return conjunction([lengths, *(Term("=", pair) for pair in pairs)])


def _equal_sets(one: Family, other: Family, env: Env, symbols: Symbols) -> Argument:
    left, right = one.members(env), other.members(env)
    if left is None or right is None:
        return symbols.unknown(BOOL)
    both = dict.fromkeys([*left, *right])
    return conjunction([equivalence(one.contains(env, x, 0), other.contains(env, x, 0)) for x in both])


def _contains(element: Scalar, domain: Meaning, polarity: int, symbols: Symbols) -> Callable[[Env], Argument]:
    if isinstance(domain, Listing):
        return _in_list(element, domain, polarity, symbols)
    if not isinstance(domain, Family):
        raise InternalError("'in' needs a set or a list")
    family, value_of, contains = domain, element.value, domain.contains

    def rigid(env: Env) -> Argument:
        value = value_of(env)
        return symbols.unknown(BOOL) if value is None else contains(env, value, polarity)

    def term(env: Env) -> Argument:
        members, name = family.members(env), element.term(env)
        if members is None:
            return symbols.unknown(BOOL)
        same: list[Argument] = []
        for x in members:
            equal = Term("=", (name, symbols.number(x)))
            same.append(conjunction([family.condition(env, x), equal]) if family.condition else equal)
        result = disjunction(same)
        return under(family.row(env), result, polarity, symbols) if family.row else result

    return rigid if element.rigid else term


def _in_list(element: Scalar, listing: Listing, polarity: int, symbols: Symbols) -> Callable[[Env], Argument]:
    texts = listing.literals

    def term(env: Env) -> Argument:
        value = element.value(env)
        if texts is not None and value is not None:
            listed = TRUE if value in texts else FALSE
            if element.rigid:
                return listed
            if len(texts) > SHORT:
                return guarded(element.term(env), value, listed, BOOL, polarity, symbols)
        items = listing.items(env)
        if items is None:
            return symbols.unknown(BOOL)
        name = element.term(env)
        return disjunction([Term("=", (name, item.term)) for item in items])

    return term


# ---- Arithmetic -------------------------------------------------------------------------------

ARITHMETIC: Mapping[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("+", operator.add),
    "sub": ("-", operator.sub),
    "mul": ("*", operator.mul),
    "div": ("div", operator.floordiv),
    "mod": ("mod", operator.mod),
}


@rule("arithmetic")
def _arithmetic(core: Core, context: Context) -> Meaning:
    symbol, compute = ARITHMETIC[core.name]
    left, right = (scalar(part, context) for part in core.parts)
    symbols, divides = context.work.symbols, core.name in ("div", "mod")
    rigid = left.rigid and right.rigid and not divides

    def value(env: Env) -> Element | None:
        one, two = left.value(env), right.value(env)
        if not isinstance(one, int) or not isinstance(two, int) or (divides and two == 0):
            return None
        return compute(one, two)

    def term(env: Env) -> Argument:
        """Products and quotients stay linear: of two symbols one is replaced by its known value. It is asked for its
        term all the same, so that the query knows the facts behind it."""
        one, two = left.value(env), right.value(env)
        if rigid and isinstance(one, int) and isinstance(two, int):
            return compute(one, two)
        if divides:
            if not isinstance(two, int) or two == 0:
                return symbols.unknown(INT)
            right.term(env)
            return Term(symbol, (left.term(env), two))
        first, second = left.term(env), right.term(env)
        if symbol == "*" and isinstance(two, int):
            return Term("*", (two, first))
        if symbol == "*" and isinstance(one, int):
            return Term("*", (one, second))
        return symbols.unknown(INT) if symbol == "*" else Term(symbol, (first, second))

    return Scalar(value, term, rigid=rigid)


@rule("neg")
def _neg(core: Core, context: Context) -> Meaning:
    zero = Core("literal", INT, span=core.span, value=0)
    return _arithmetic(Core("arithmetic", INT, (zero, *core.parts), core.span, "sub"), context)


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(core: Core, context: Context) -> Meaning:
    parts = [scalar(part, context) for part in core.parts]
    sort, symbols = core.sort and core.sort.element, context.work.symbols

    def items(env: Env) -> tuple[Item, ...]:
        return tuple(Item(part.value(env), part.term(env)) for part in parts)

    if all(part.head == "literal" for part in core.parts):
        fixed = items([])
        literals = frozenset(item.value for item in fixed if item.value is not None)
        return replace(listed(sort, lambda _env: fixed, symbols), literals=literals)
    return listed(sort, items, symbols)


def listed(sort: Sort | None, items: Callable[[Env], tuple[Item, ...] | None], symbols: Symbols) -> Listing:
    """A list of which all is known as soon as its items are."""

    def length(env: Env) -> Argument:
        listed = items(env)
        return symbols.unknown(INT) if listed is None else len(listed)

    def at(env: Env, position: int) -> Item:
        listed = items(env)
        inside = listed is not None and 0 <= position < len(listed)
        return listed[position] if listed is not None and inside else Item(None, symbols.unknown(sort))

    return Listing(items, length, at)


@rule("index")
def _index(core: Core, context: Context) -> Meaning:
    base, index = core.parts
    listing, position, symbols = meaning(base, context.inner()), scalar(index, context), context.work.symbols
    if not isinstance(listing, Listing):
        raise InternalError("only lists are indexed")
    at = listing.at

    def item(env: Env) -> Item:
        place = position.value(env)
        return at(env, place) if isinstance(place, int) else Item(None, symbols.unknown(core.sort))

    return Scalar(lambda env: item(env).value, lambda env: item(env).term)


@rule("list")
def _list(core: Core, context: Context) -> Meaning:
    (bound,), (element, guard) = core.bound, core.parts
    limit = scalar(bound.domain, context)
    slot, inner = bind(bound.variable, context.inner())
    image, test = scalar(element, inner), truth(guard, inner)

    def items(env: Env) -> tuple[Item, ...] | None:
        end = limit.value(env)
        if not isinstance(end, int):
            return None
        out = []
        for position in range(end):
            env[slot] = position
            kept = test(env)
            if kept is TRUE:
                out.append(Item(image.value(env), image.term(env)))
            elif kept is not FALSE:
                return None
        return tuple(out)

    return listed(core.sort and core.sort.element, items, context.work.symbols)


# ---- Applications: facts become symbols, definitions are expanded, inductive atoms collected ---

KeyOf = Callable[[Env], Key | None]
"""The key of a table, None when an argument is not known."""


@rule("fact")
def _fact(core: Core, context: Context) -> Meaning:
    declaration = context.cores.functions[core.name]
    table, key = context.work.structure.table(core.name), _key(core, context)
    if isinstance(table, SetTable):
        return _set_of_fact(declaration, table, key, context)
    if declaration.result.name == "list":
        return _list_of_fact(declaration, table, key, context)
    return _value_of_fact(declaration, table, key, context)


def _key(core: Core, context: Context) -> KeyOf:
    parts = [scalar(argument, context) for argument in core.parts]
    looked_up = [
        argument.name or "len"
        for part, argument in zip(parts, core.parts, strict=True)
        if not part.rigid and argument.head in ("fact", "define", "size")
    ]
    if not looked_up:
        return _joined(parts)
    joined, resolved = _joined(parts), context.work.symbols.resolved
    facts = dict.fromkeys(looked_up)

    def key(env: Env) -> Key | None:
        resolved.update(facts)
        return joined(env)

    return key


def _joined(parts: Sequence[Scalar]) -> KeyOf:
    if len(parts) == 1:
        return parts[0].value

    def several(env: Env) -> Key | None:
        values = [part.value(env) for part in parts]
        known = [value for value in values if value is not None]
        return tuple(known) if len(known) == len(values) else None

    return several


@rule("inductive")
def _inductive(core: Core, context: Context) -> Meaning:
    name, symbols = core.name, context.work.symbols
    if context.polarity != 1:
        raise InternalError(f"the inductive predicate {name} stands below a negation: Horn clauses cannot say that")
    key, atoms, agenda = _key(core, context), symbols.derived.setdefault(name, {}), symbols.agenda

    def term(env: Env) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        spelled = atoms.get(place)
        if spelled is None:
            spelled = atoms[place] = atom(name, place)
            agenda.append((name, place, spelled))
        return spelled

    return Truth(term)


def _value_of_fact(declaration: FunctionDeclaration, table: object, key: KeyOf, context: Context) -> Meaning:
    if not isinstance(table, ValueTable):
        raise InternalError(f"{declaration.name} has no table of values")
    name, sort, find, symbols = declaration.name, declaration.result, table.rows.get, context.work.symbols

    def term(env: Env) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(sort)
        return symbols.known(name, lambda: atom(name, place), find(place), sort)

    def value(env: Env) -> Element | None:
        place = key(env)
        known = None if place is None else find(place)
        return known if type(known) is int or not isinstance(known, (Unknown, tuple)) else None

    return Truth(term) if sort == BOOL else Scalar(value, term)


def _list_of_fact(declaration: FunctionDeclaration, table: object, key: KeyOf, context: Context) -> Meaning:
    """The length and each element have symbols of their own."""
    if not isinstance(table, ValueTable) or declaration.result.element is None:
        raise InternalError(f"{declaration.name} has no table of lists")
    name, sort, rows, symbols = declaration.name, declaration.result.element, table.rows, context.work.symbols

    def row(env: Env) -> tuple[Callable[[], str], tuple[Value, ...] | None]:
        symbols.resolved[name] = None
        place = key(env)
        if place is None:
            unknown = symbols.unknown(INT)
            return lambda: unknown, None
        entry = rows.get(place)
        return lambda: atom(name, place), entry if isinstance(entry, tuple) else None

    def at(env: Env, position: int) -> Item:
        base, entries = row(env)
        value = entries[position] if entries is not None and 0 <= position < len(entries) else None
        term = symbols.known(name, lambda: f"{base()}@{position}", value, sort)
        return Item(value if isinstance(value, (int, str)) else None, term)

    def items(env: Env) -> tuple[Item, ...] | None:
        entries = row(env)[1]
        return None if entries is None else tuple(at(env, position) for position in range(len(entries)))

    def length(env: Env) -> Argument:
        base, entries = row(env)
        return symbols.known(name, lambda: f"{base()}@len", None if entries is None else len(entries), INT)

    return Listing(items, length, at)


def _set_of_fact(declaration: FunctionDeclaration, table: SetTable, key: KeyOf, context: Context) -> Meaning:
    """A row has one symbol; membership is known under it. In a clause nothing needs one: the goal assumes the table."""
    name, rows, symbols = declaration.name, table.rows, context.work.symbols
    complete = symbols.assume(name)
    find, known, spelled = rows.get, symbols.group(name), dict[Key, str]()

    def members(env: Env) -> Iterable[Element] | None:
        place = key(env)
        return None if place is None else find(place, ())

    def has(env: Env, x: Element) -> bool:
        place = key(env)
        return place is not None and x in _row(table, place)

    def symbol_of(place: Key) -> str:
        if not symbols.named:
            return complete
        symbol = spelled.get(place)
        if symbol is None:
            listed = rows.get(place)
            symbol = spelled[place] = atom(name, place) if listed else complete
            if listed:
                known[symbol] = listed
        return symbol

    def row(env: Env) -> Argument:
        place = key(env)
        return symbols.unknown(BOOL) if place is None else symbol_of(place)

    def contains(env: Env, x: Element, polarity: int) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        belongs = TRUE if x in _row(table, place) else FALSE
        if polarity and (belongs is TRUE) is (polarity < 0):
            return belongs
        return under(symbol_of(place), belongs, polarity, symbols)

    def contains_in_clause(env: Env, x: Element, _polarity: int) -> Argument:
        place = key(env)
        if place is None:
            return symbols.unknown(BOOL)
        return TRUE if x in _row(table, place) else FALSE

    if context.work.clause:
        symbols.tables[name] = complete
        return Family(members, None, None, has, contains_in_clause)
    return Family(members, row, complete, has, contains)


LONG = 8
"""Rows longer than this are looked up in a hashed set."""


def _row(table: SetTable, key: Key) -> Collection[Element]:
    row = table.rows.get(key, ())
    return row if len(row) <= LONG else table.sets[key]


@rule("size")
def _size(core: Core, context: Context) -> Meaning:
    """The length of a list; the number of members of a set, counted by the formulas that they are members."""
    (argument,) = core.parts
    listing, symbols = meaning(argument, context.inner()), context.work.symbols
    if isinstance(listing, Listing):
        items_of = listing.items

        def value(env: Env) -> Element | None:
            items = items_of(env)
            return None if items is None else len(items)

        return Scalar(value, listing.length)
    members = family(argument, context)
    condition = members.condition

    def number(env: Env) -> Element | None:
        known = members.members(env)
        return None if known is None or condition else len(list(known))

    def count(env: Env) -> Argument:
        known = members.members(env)
        if known is None:
            return symbols.unknown(INT)
        if condition:
            return Term("+", (0, 0, *(Term("ite", (condition(env, x), 1, 0)) for x in known)))
        size = len(list(known))
        return Term("ite", (members.row(env), size, symbols.irrelevant(INT))) if members.row else size

    return Scalar(number, count)


# ---- Finite sets: bounded quantifiers are expanded over their members --------------------------
#
# The world is closed: what a row does not list is no member. So an expansion counts only where the row is assumed:
# `exists` and `unique` rest on the row itself, `forall` on the table as a whole.


class Domain(NamedTuple):
    """members: those to run through, None when they are not known. tables and row: what says that no others matter.

    condition: the formula that a member belongs to the domain, None where every one does.
    """

    members: Callable[[Env], Iterable[Element] | None]
    tables: tuple[Argument, ...]
    row: Callable[[Env], Argument] | None
    condition: Callable[[Env, Element], Argument] | None


FEW = 6
"""Up to this many alternatives, "exactly one" is written with pairs; beyond, by counting."""


def _domain(quantifier: str, bound: Bound, body: Core, context: Context) -> Domain:
    """The members that matter, through an index where the body gives one."""
    whole, symbols = family(bound.domain, context), context.work.symbols
    tables: tuple[Argument, ...] = () if whole.whole is None or quantifier != "forall" else (whole.whole,)
    direct = Domain(whole.members, tables, None if quantifier == "forall" else whole.row, whole.condition)
    index = indexed(quantifier, bound.variable, body, context.scope)
    table = context.work.structure.table(index.relation) if index else None
    if index is None or not isinstance(table, SetTable):
        return direct
    inverse, at, complete = table.inverse, scalar(index.element, context), symbols.assume(index.relation)
    if not at.rigid:
        return direct

    def looked_up(env: Env) -> Iterable[Element] | None:
        element = at.value(env)
        if element is None or whole.members(env) is None:
            return whole.members(env)
        return [key for key in inverse.get(element, ()) if not isinstance(key, tuple) and whole.has(env, key)]

    if context.work.clause:
        symbols.tables[index.relation] = complete
        return direct._replace(members=looked_up)
    return direct._replace(members=looked_up, tables=(*tables, complete))


@rule("forall", "exists")
def _quantified(core: Core, context: Context) -> Meaning:
    first, *rest = core.bound
    remaining = replace(core, bound=tuple(rest)) if rest else core.parts[0]
    members_of, tables, row, condition = _domain(core.head, first, remaining, context)
    slot, inner = bind(first.variable, context)
    run, symbols, polarity = truth(remaining, inner), context.work.symbols, context.polarity
    universal = core.head == "forall"
    unit, zero, join = (TRUE, FALSE, "and") if universal else (FALSE, TRUE, "or")

    def expanded(env: Env, members: Iterable[Element]) -> Argument:
        instances: dict[Argument, None] = {}
        for member in members:
            env[slot] = member
            one = run(env)
            if condition is not None:
                belongs = condition(env, member)
                one = implication(belongs, one) if universal else conjunction([belongs, one])
            if one is zero:
                return zero
            if one is not unit:
                instances[one] = None
        return Term(join, tuple(instances)) if len(instances) > 1 else next(iter(instances), unit)

    def term(env: Env) -> Argument:
        members = members_of(env)
        if members is None:
            return symbols.unknown(BOOL)
        result = expanded(env, members) if members else unit
        if row is not None:
            result = under(row(env), result, polarity, symbols)
        for symbol in tables:
            result = under(symbol, result, polarity, symbols)
        return result

    return Truth(term)


@rule("unique")
def _unique(core: Core, context: Context) -> Meaning:
    (body,) = core.parts
    loops, inner = _loops("unique", core.bound, body, context.inner())
    run, symbols, polarity = truth(body, inner), context.work.symbols, context.polarity

    def term(env: Env) -> Argument:
        alternatives: list[Argument] = []
        rows: dict[Argument, None] = {}
        for conditions in _each(loops, env, rows):
            if conditions is None:
                return symbols.unknown(BOOL)
            one = conjunction([*conditions, run(env)])
            if one is not FALSE:
                alternatives.append(one)
        result = exactly_one(alternatives)
        for row in rows:
            result = under(row, result, polarity, symbols)
        return result

    return Truth(term)


def exactly_one(terms: list[Argument]) -> Argument:
    """One of the formulas holds and no other."""
    if len(terms) == 1:
        return terms[0]
    if len(terms) > FEW:
        return Term("=", (1, Term("+", tuple(Term("ite", (term, 1, 0)) for term in terms))))
    pairs = [negation(conjunction([a, b])) for i, a in enumerate(terms) for b in terms[i + 1 :]]
    return conjunction([disjunction(terms), *pairs])


Loop = tuple[int, Domain]


def _loops(quantifier: str, bound: Sequence[Bound], body: Core, context: Context) -> tuple[list[Loop], Context]:
    loops: list[Loop] = []
    for position, item in enumerate(bound):
        last = position == len(bound) - 1
        domain = _domain(quantifier, item, body if last else ALWAYS, context)
        slot, context = bind(item.variable, context)
        loops.append((slot, domain))
    return loops, context


def _each(
    loops: Sequence[Loop], env: Env, rows: dict[Argument, None], conditions: tuple[Argument, ...] = ()
) -> Iterator[tuple[Argument, ...] | None]:
    """Set the variables to each assignment in turn: the formulas that it is one, None where a domain is not known.

    rows collects the symbols of the rows that were read.
    """
    if not loops:
        yield conditions
        return
    (slot, domain), *rest = loops
    members = domain.members(env)
    if members is None:
        yield None
        return
    rows.update(dict.fromkeys(domain.tables))
    if domain.row is not None:
        rows[domain.row(env)] = None
    for member in members:
        env[slot] = member
        belongs = domain.condition(env, member) if domain.condition else TRUE
        yield from _each(rest, env, rows, conditions if belongs is TRUE else (*conditions, belongs))


@rule("set")
def _set(core: Core, context: Context) -> Meaning:
    """For each element the disjunction of the conditions under which it is an image."""
    element, guard = core.parts
    loops, inner = _loops("exists", core.bound, guard, context.inner())
    test, image, symbols = truth(guard, inner), scalar(element, inner), context.work.symbols

    def conditions(env: Env) -> dict[Element, Argument] | None:
        guards_of: dict[Element, list[Argument]] = {}
        rows: dict[Argument, None] = {}
        for guards in _each(loops, env, rows):
            held = TRUE if guards is None else test(env)
            if held is FALSE:
                continue
            value = None if guards is None else image.value(env)
            if guards is None or value is None:
                return None
            guards_of.setdefault(value, []).append(conjunction([*guards, held]))
        joined = {value: disjunction(parts) for value, parts in guards_of.items()}
        return {value: _under_all(rows, term) for value, term in joined.items() if term is not FALSE}

    def _under_all(rows: Iterable[Argument], term: Argument) -> Argument:
        for row in rows:
            term = under(row, term, 0, symbols)
        return term

    def condition(env: Env, value: Element) -> Argument:
        by_value = conditions(env)
        return symbols.unknown(BOOL) if by_value is None else by_value.get(value, FALSE)

    def contains(env: Env, value: Element, _polarity: int) -> Argument:
        return condition(env, value)

    def has(env: Env, value: Element) -> bool:
        return value in (conditions(env) or {})

    return Family(conditions, None, None, has, contains, condition)


# ---- Constraints ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """A constraint over one structure.

    facts: by fact, the symbols with what is known of them: truth, number, or the members of the row they stand for;
    none where values have no symbols. assumed: the facts of which Bools or rows are mentioned, each with the symbol
    that assumes it. free: the symbols of which nothing is known, with their sorts; immaterial: those that do not matter
    once the facts are assumed. clauses: head and body for each inductive atom. texts: the number of each text.
    signatures: for each fact and predicate the sorts of its arguments and of its value. numbers: the facts of which
    numbers are mentioned; resolved: those that were looked up for keys and lists.
    """

    name: str
    doc: str
    facts: Mapping[str, Mapping[str, Observation]]
    assumed: Mapping[str, str]
    free: Mapping[str, str]
    immaterial: Mapping[str, str]
    clauses: tuple[tuple[str, Argument], ...]
    formula: Argument
    texts: Mapping[str, int]
    signatures: Mapping[str, tuple[str, ...]]
    numbers: frozenset[str]
    resolved: frozenset[str]

    def undefined(self) -> Mapping[str, str]:
        """Every symbol that no fact defines, with its sort."""
        derived = dict.fromkeys((head for head, _ in self.clauses), "Bool")
        return {**dict.fromkeys(self.assumed.values(), "Bool"), **derived, **self.free, **self.immaterial}

    def fixed(self) -> frozenset[str]:
        """The facts that the query takes for granted: their numbers are put in, or they were looked up for keys."""
        return self.numbers | self.resolved


def query(constraint: Constraint, functions: Functions, structure: Structure, *, named: bool = False) -> Query:
    """Ground a constraint. named: values have symbols, for a reader; the formula says the same without.

    Raises InternalError for an inductive predicate below a negation.
    """
    with paused():
        return _query(constraint, functions, structure, Symbols(named))


def _query(constraint: Constraint, functions: Functions, structure: Structure, symbols: Symbols) -> Query:
    text = cores(functions)
    formula = _ground(text.constraint(constraint), text, structure, symbols)([])
    clauses: list[tuple[str, Argument]] = []
    bodies: dict[str, Callable[[list[Element]], Argument]] = {}
    while symbols.agenda:
        predicate, key, name = symbols.agenda.pop()
        body = bodies.get(predicate)
        if body is None:
            body = bodies[predicate] = _ground(text.definition(predicate), text, structure, symbols)
        clauses.append((name, body(_arguments(key))))
    conjuncts = formula.args if isinstance(formula, Term) and formula.op == "and" else (formula,)
    formula = conjunction([*symbols.tables.values(), *conjuncts])
    used = {*symbols.assumed, *(name for name, group in symbols.facts.items() if group), *bodies}
    return Query(
        name=constraint.name,
        doc=constraint.doc,
        facts={name: symbols.facts[name] for name in sorted(symbols.facts) if symbols.facts[name]},
        assumed={name: symbols.assumed[name] for name in sorted(symbols.assumed)},
        free=symbols.free,
        immaterial=symbols.immaterial,
        clauses=tuple(clauses),
        formula=formula,
        texts=symbols.texts,
        signatures={name: _signature(functions[name]) for name in sorted(used)},
        numbers=frozenset(symbols.numbers),
        resolved=frozenset(symbols.resolved),
    )


def _arguments(key: Key) -> list[Element]:
    return list(key) if isinstance(key, tuple) else [key]


def _signature(declaration: FunctionDeclaration) -> tuple[str, ...]:
    return (*(str(parameter.sort) for parameter in declaration.parameters), str(declaration.result))


def _ground(
    definition: Definition, text: Cores, structure: Structure, symbols: Symbols
) -> Callable[[list[Element]], Argument]:
    """The ground instances of a formula; one with parameters is the body of an inductive predicate."""
    context: Context = reading.Context(text, Work(structure, symbols, clause=bool(definition.parameters)))
    for parameter in definition.parameters:
        _, context = bind(parameter, context)
    term = truth(definition.body, context)
    env: Env = [0] * len(context.work.slots)

    def instance(values: list[Element]) -> Argument:
        env[: len(values)] = values
        return term(env)

    return instance


# ---- Unknown facts below inductive predicates -------------------------------------------------


def optimistic(query: Query) -> Query:
    """The same query with every occurrence of a free symbol read in favour of the formula and of the clauses.

    An atom with a free symbol becomes true where it stands positively and false where it stands negatively. The
    clauses then derive every instance that some values of the unknown facts would, so if facts, clauses and negated
    formula still have a model, the formula is false whatever the unknown facts are.
    """
    free = frozenset(query.free)
    return replace(
        query,
        free={},
        clauses=tuple((head, _favoured(body, free, positive=True)) for head, body in query.clauses),
        formula=_favoured(query.formula, free, positive=True),
    )


CONNECTIVES = frozenset({"and", "or", "not", "=>"})


def _favoured(term: Argument, free: Container[str], *, positive: bool) -> Argument:
    if isinstance(term, Term) and term.op in CONNECTIVES:
        flips = {"not": (True,), "=>": (True, False)}.get(term.op, (False,) * len(term.args))
        parts = (_favoured(p, free, positive=positive != flip) for p, flip in zip(term.args, flips, strict=True))
        return Term(term.op, tuple(parts))
    if isinstance(term, Term) and term.op == "ite" and not mentions(term.args[0], free):
        condition, *arms = term.args
        return Term("ite", (condition, *(_favoured(arm, free, positive=positive) for arm in arms)))
    if not mentions(term, free):
        return term
    return TRUE if positive else FALSE


def mentions(term: Argument, names: Container[str]) -> bool:
    """True where one of the symbols occurs in a term."""
    if isinstance(term, str):
        return term in names
    return isinstance(term, Term) and any(mentions(part, names) for part in term.args)
