"""The smt interpretation, expressions: connectives, comparison, arithmetic, choices and lists over ground symbols."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from sonnx.semantics.errors import InternalError
from sonnx.semantics.structure import Element
from sonnx.semantics.terms import (
    FALSE,
    TRUE,
    Argument,
    Term,
    conjunction,
    disjunction,
    equivalence,
    implication,
    negation,
)
from sonnx.spec.syntax import BOOL, INT, TEXT, Arm, Expr, Sort

from .ground_symbols import Symbols
from .ground_values import (
    Context,
    Env,
    Family,
    Item,
    Listing,
    Meaning,
    Scalar,
    Truth,
    literal,
    meaning,
    rule,
    scalar,
    truth,
    under,
)

SHORT = 4
"""Up to this length, membership in a list is written out as a disjunction of equalities."""

# ---- Leaves and connectives -------------------------------------------------------------------


@rule("true", "false")
def _truth_value(expr: Expr, _context: Context) -> Meaning:
    value = TRUE if expr.head == "true" else FALSE
    return Truth(lambda _env: value)


@rule("int", "text")
def _literal(expr: Expr, context: Context) -> Meaning:
    (value,) = expr.args
    if not isinstance(value, (int, str)):
        raise InternalError(f"a literal holds {value!r}")
    return literal(value, INT if expr.head == "int" else TEXT, context.symbols)


@rule("var")
def _variable(expr: Expr, context: Context) -> Meaning:
    name = str(expr.args[0])
    if name not in context.scope:
        raise InternalError(f"the variable {name} is not bound")
    return context.scope[name]


@rule("not")
def _not(expr: Expr, context: Context) -> Meaning:
    part = truth(expr.args[0], context.with_polarity(-context.polarity))
    return Truth(lambda env: negation(part(env)))


@rule("and", "or")
def _junction(expr: Expr, context: Context) -> Meaning:
    parts = [truth(part, context) for part in expr.args]
    unit, zero, join = (TRUE, FALSE, "and") if expr.head == "and" else (FALSE, TRUE, "or")

    def term(env: Env) -> Argument:
        found: list[Argument] = []
        for part in parts:
            one = part(env)
            if one is zero:
                return zero
            if one is not unit:
                found.append(one)
        return unit if not found else found[0] if len(found) == 1 else Term(join, tuple(found))

    return Truth(term)


@rule("implies")
def _implies(expr: Expr, context: Context) -> Meaning:
    left = truth(expr.args[0], context.with_polarity(-context.polarity))
    right = truth(expr.args[1], context)

    def term(env: Env) -> Argument:
        condition = left(env)
        return TRUE if condition is FALSE else implication(condition, right(env))

    return Truth(term)


@rule("iff")
def _iff(expr: Expr, context: Context) -> Meaning:
    left, right = (truth(part, context.inner()) for part in expr.args)
    return Truth(lambda env: equivalence(left(env), right(env)))


# ---- Choices ----------------------------------------------------------------------------------


@rule("ite")
def _ite(expr: Expr, context: Context) -> Meaning:
    condition = truth(expr.args[0], context.inner())
    return _choice(condition, *(meaning(part, context) for part in expr.args[1:]))


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

        return Scalar(one.sort, value, lambda env: _select(condition(env), one.term, two.term, env))
    raise InternalError("a choice is between formulas, or between numbers, texts or elements")


def _select(
    test: Argument, then: Callable[[Env], Argument], other: Callable[[Env], Argument], env: Env
) -> Argument:
    if test is TRUE:
        return then(env)
    if test is FALSE:
        return other(env)
    yes, no = then(env), other(env)
    return yes if yes == no else Term("ite", (test, yes, no))


@rule("case")
def _case(expr: Expr, context: Context) -> Meaning:
    """A subject whose value is known selects its arm under the guard that it has this value; else a chain of tests."""
    subject, symbols = scalar(expr.args[0], context), context.symbols
    arms: dict[str, Meaning] = {}
    tests: list[tuple[tuple[str, ...], Meaning]] = []
    default: Meaning | None = None
    for arm in expr.args[1:]:
        if isinstance(arm, Arm):
            body = meaning(arm.body, context)
            if arm.labels:
                tests.append((arm.labels, body))
                for label in arm.labels:
                    arms.setdefault(label, body)
            elif default is None:
                default = body
    sample = next(iter(arms.values()), default)
    if not isinstance(sample, (Truth, Scalar)):
        raise InternalError("a case has formulas, or numbers, texts or elements")
    sort = BOOL if isinstance(sample, Truth) else sample.sort

    def term(env: Env) -> Argument:
        value = subject.value(env)
        if value is not None:
            chosen = arms.get(str(value), default)
            result = symbols.unknown(sort) if chosen is None else _term(chosen, env)
            return result if subject.rigid else guarded(subject.term(env), value, result, sort, symbols)
        result = symbols.unknown(sort) if default is None else _term(default, env)
        for labels, body in reversed(tests):
            same: list[Argument] = [Term("=", (subject.term(env), symbols.number(label))) for label in labels]
            result = Term("ite", (disjunction(same), _term(body, env), result))
        return result

    def known(env: Env) -> Element | None:
        value = subject.value(env)
        chosen = None if value is None else arms.get(str(value), default)
        return chosen.value(env) if isinstance(chosen, Scalar) else None

    return Truth(term) if sort == BOOL else Scalar(sort, known, term)


def _term(found: Meaning, env: Env) -> Argument:
    if not isinstance(found, (Truth, Scalar)):
        raise InternalError("a formula, a number, a text or an element was expected")
    return found.term(env)


def guarded(subject: Argument, value: Element, result: Argument, sort: Sort, symbols: Symbols) -> Argument:
    """`result` where the subject has the value which the facts give it; elsewhere anything."""
    test = Term("=", (subject, symbols.number(value)))
    if result is TRUE:
        return Term("or", (test, symbols.irrelevant(sort)))
    if result is FALSE:
        return Term("and", (Term("not", (test,)), symbols.irrelevant(sort)))
    return Term("ite", (test, result, symbols.irrelevant(sort)))


# ---- Comparison -------------------------------------------------------------------------------


@rule("compare")
def _compare(expr: Expr, context: Context) -> Meaning:
    links = [
        _link(expr.args[i], str(expr.args[i + 1]), expr.args[i + 2], context) for i in range(0, len(expr.args) - 2, 2)
    ]
    return Truth(links[0]) if len(links) == 1 else Truth(lambda env: conjunction([link(env) for link in links]))


def _link(left: object, relation: str, right: object, context: Context) -> Callable[[Env], Argument]:
    one, other = meaning(left, context.inner()), meaning(right, context.inner())
    if relation in ("in", "not in"):
        if not isinstance(one, Scalar):
            raise InternalError("members of sets are numbers, texts and elements")
        inside = _contains(one, other, context.polarity if relation == "in" else -context.polarity, context.symbols)
        return inside if relation == "in" else lambda env: negation(inside(env))
    if relation in ("=", "!="):
        same = _equal(one, other, context.symbols)
        return same if relation == "=" else lambda env: negation(same(env))
    if not (isinstance(one, Scalar) and isinstance(other, Scalar) and one.sort == other.sort == INT):
        raise InternalError(f"'{relation}' compares integers")
    if relation in (">", ">="):
        one, other, relation = other, one, relation.replace(">", "<")
    return _ordered(relation, one, other)


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
        return _in_list(element, domain, symbols)
    if not isinstance(domain, Family):
        raise InternalError("'in' needs a set or a list")
    found = domain

    def term(env: Env) -> Argument:
        value = element.value(env)
        if element.rigid and value is not None:
            return found.contains(env, value, polarity)
        members, name = found.members(env), element.term(env)
        if members is None:
            return symbols.unknown(BOOL)
        same: list[Argument] = []
        for x in members:
            equal = Term("=", (name, symbols.number(x)))
            same.append(conjunction([found.condition(env, x), equal]) if found.condition else equal)
        return under(found.row(env), disjunction(same), polarity, symbols)

    return term


def _in_list(element: Scalar, listing: Listing, symbols: Symbols) -> Callable[[Env], Argument]:
    texts = listing.literals

    def term(env: Env) -> Argument:
        value = element.value(env)
        if texts is not None and value is not None:
            found = TRUE if value in texts else FALSE
            if element.rigid:
                return found
            if len(texts) > SHORT:
                return guarded(element.term(env), value, found, BOOL, symbols)
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


@rule(*ARITHMETIC)
def _arithmetic(expr: Expr, context: Context) -> Meaning:
    symbol, compute = ARITHMETIC[expr.head]
    left, right = (scalar(part, context) for part in expr.args)
    symbols, divides = context.symbols, expr.head in ("div", "mod")
    rigid = left.rigid and right.rigid and not divides

    def value(env: Env) -> Element | None:
        one, two = left.value(env), right.value(env)
        if not isinstance(one, int) or not isinstance(two, int) or (divides and two == 0):
            return None
        return compute(one, two)

    def term(env: Env) -> Argument:
        """Products and quotients stay linear: of two symbols one is replaced by its known value."""
        one, two = left.value(env), right.value(env)
        if rigid and isinstance(one, int) and isinstance(two, int):
            return compute(one, two)
        if divides:
            if not isinstance(two, int) or two == 0:
                return symbols.unknown(INT)
            return Term(symbol, (left.term(env), two))
        if symbol == "*" and isinstance(two, int):
            return Term("*", (two, left.term(env)))
        if symbol == "*" and isinstance(one, int):
            return Term("*", (one, right.term(env)))
        return symbols.unknown(INT) if symbol == "*" else Term(symbol, (left.term(env), right.term(env)))

    return Scalar(INT, value, term, rigid=rigid)


@rule("neg")
def _neg(expr: Expr, context: Context) -> Meaning:
    return _arithmetic(Expr("sub", (Expr("int", (0,)), *expr.args), expr.span), context)


# ---- Lists ------------------------------------------------------------------------------------


@rule("vector")
def _vector(expr: Expr, context: Context) -> Meaning:
    parts = [scalar(part, context) for part in expr.args]
    sort = parts[0].sort if parts else INT

    def items(env: Env) -> tuple[Item, ...]:
        return tuple(Item(part.value(env), part.term(env)) for part in parts)

    if all(isinstance(part, Expr) and part.head in ("int", "text") for part in expr.args):
        fixed = items([])
        literals = frozenset(item.value for item in fixed if item.value is not None)
        return replace(listed(sort, lambda _env: fixed, context.symbols), literals=literals)
    return listed(sort, items, context.symbols)


def listed(sort: Sort, items: Callable[[Env], tuple[Item, ...] | None], symbols: Symbols) -> Listing:
    """A list of which all is known as soon as its items are."""

    def length(env: Env) -> Argument:
        found = items(env)
        return symbols.unknown(INT) if found is None else len(found)

    def at(env: Env, position: int) -> Item:
        found = items(env)
        inside = found is not None and 0 <= position < len(found)
        return found[position] if found is not None and inside else Item(None, symbols.unknown(sort))

    return Listing(sort, items, length, at)


@rule("index")
def _index(expr: Expr, context: Context) -> Meaning:
    if len(expr.args) != 2:
        raise InternalError("a list takes one index")
    listing, position, symbols = meaning(expr.args[0], context.inner()), scalar(expr.args[1], context), context.symbols
    if not isinstance(listing, Listing):
        raise InternalError("only lists are indexed")
    found = listing

    def item(env: Env) -> Item:
        place = position.value(env)
        return found.at(env, place) if isinstance(place, int) else Item(None, symbols.unknown(found.element))

    return Scalar(found.element, lambda env: item(env).value, lambda env: item(env).term)


@rule("comprehension")
def _comprehension(expr: Expr, context: Context) -> Meaning:
    body, name, bound, guard = expr.args
    limit = scalar(bound, context)
    slot, inner = context.inner().bind(str(name), INT)
    image = scalar(body, inner)
    test = truth(guard, inner) if guard is not None else None

    def items(env: Env) -> tuple[Item, ...] | None:
        end = limit.value(env)
        if not isinstance(end, int):
            return None
        out = []
        for position in range(end):
            env[slot] = position
            held = TRUE if test is None else test(env)
            if held is TRUE:
                out.append(Item(image.value(env), image.term(env)))
            elif held is not FALSE:
                return None
        return tuple(out)

    return listed(image.sort, items, context.symbols)
