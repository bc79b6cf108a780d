"""The smt interpretation of operators, expressions: one fold over the core with one table.

Conditions and indices may be terms; a branch is evaluated under its condition, and what must hold for its value to be
defined is demanded under it. Arithmetic, comparison and branches go through lists component by component.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sonnx.spec.elaborate.core import Core
from sonnx.spec.language.syntax import Span

from ...errors import InternalError
from ...formulas.terms import FALSE, TRUE, Term
from .. import reading
from ..reading import Answers, links
from . import calls, folds, rows, selections
from . import values as lists
from .numbers import Int, both, either, equal, less, opposite, within
from .values import (
    LENGTHS,
    Array,
    Dead,
    ElementType,
    Field,
    Given,
    Listed,
    Open,
    Row,
    Scope,
    TextSymbol,
    Value,
    arithmetic,
    branch,
    compound,
    decide,
    demand,
    entries,
    fixed_value,
    merge,
    negative,
    relate,
    same_truth,
    settle,
    settle_text,
    steady,
    whole,
)


def truth(core: Core, scope: Scope) -> Term:
    """The value of a Bool."""
    value = evaluate(core, scope)
    if not isinstance(value, Term):
        raise InternalError(f"{core.span}: {value!r} is no truth value")
    return value


# ---- The answers to the shared rules ----------------------------------------------------------


def _where(condition: Core, scope: Scope) -> Scope | None:
    holds = truth(condition, scope)
    return scope.under(holds) if decide(scope, holds) else None


def _apply(
    core: Core, inputs: Sequence[Value | None], attributes: Mapping[str, Value], scope: Scope, count: int
) -> tuple[Value, ...]:
    if not isinstance(core.value, int):
        raise InternalError(f"{core.span}: {core.name} has no version")
    return scope.run.apply(core.name, core.value, inputs, attributes, core.span, scope, count)[:count]


def _undefined(kind: str, span: Span, scope: Scope, about: str = "") -> Dead:
    demand(scope, kind, span, FALSE, about)
    return Dead()


def _entries(value: Value, scope: Scope) -> tuple[Value, ...]:
    """The entries of a list, also of one of an open length that a requirement fixes."""
    if isinstance(value, Row) and isinstance(length := rows.length_of(value), Term):
        count = fixed_value(scope, length)
        if count is not None:
            return tuple(rows.entry(value, k, scope) for k in range(count))
    return entries(value, scope)


ANSWERS: Answers[Scope, Value] = Answers(
    truth=lambda value: TRUE if value else FALSE,
    text=lambda value, scope: settle_text(scope, value),
    entries=lambda value, _core, scope: _entries(value, scope),
    below=lambda value, scope: range(settle(scope, whole(value), LENGTHS)),
    where=_where,
    primitive=calls.call,
    apply=_apply,
    no_arm=lambda core, text, scope: _undefined("case", core.span, scope, text),
    uneven=lambda statement, scope: _undefined("length", statement.span, scope),
)
SYMBOLIC = reading.reading("the smt interpretation", ANSWERS)
"""The table of the fold."""
rule, evaluate = SYMBOLIC.rule, SYMBOLIC.meaning


@rule("variable")
def _variable(core: Core, scope: Scope) -> Value:
    binding = core.variable
    value = None if binding is None else scope.env.get(binding)
    if value is None:
        if binding is not None and Given(binding) in scope.env:
            raise Dead  # absent: under the condition that it is given nothing is evaluated
        return ElementType(core.name)
    return value


@rule("type")
def _type(core: Core, _scope: Scope) -> Value:
    return ElementType(core.name)


@rule("given")
def _given(core: Core, scope: Scope) -> Value:
    if core.variable is None:
        raise InternalError(f"{core.span}: {core.name} is no name")
    return scope.env[Given(core.variable)]


# ---- Logic ------------------------------------------------------------------------------------


@rule("and")
def _and(core: Core, scope: Scope) -> Value:
    if core.name == "chain":
        return _compare(core, scope)
    truths: list[Term] = []
    for part in core.parts:
        try:
            truths.append(truth(part, scope.under(*truths)))
        except Dead:
            truths.append(FALSE)
        if truths[-1] == FALSE:
            return FALSE
    return both(*truths)


@rule("or")
def _or(core: Core, scope: Scope) -> Value:
    truths: list[Term] = []
    for part in core.parts:
        try:
            truths.append(truth(part, scope.under(*map(opposite, truths))))
        except Dead:
            truths.append(TRUE)
        if truths[-1] == TRUE:
            return TRUE
    return either(*truths)


@rule("implies")
def _implies(core: Core, scope: Scope) -> Value:
    left, right = core.parts
    condition = truth(left, scope)
    if condition == FALSE:
        return TRUE
    try:
        return either(opposite(condition), truth(right, scope.under(condition)))
    except Dead:
        return TRUE


@rule("iff")
def _iff(core: Core, scope: Scope) -> Value:
    left, right = (truth(part, scope) for part in core.parts)
    return same_truth(left, right)


@rule("not")
def _not(core: Core, scope: Scope) -> Value:
    return opposite(truth(core.parts[0], scope))


# ---- Relations --------------------------------------------------------------------------------


@rule("compare")
def _compare(core: Core, scope: Scope) -> Term:
    first, *others = links(core)
    values = [evaluate(part, scope) for part in (*first.parts, *(link.parts[1] for link in others))]
    return both(*(relate(link.name, values[k], values[k + 1], scope) for k, link in enumerate((first, *others))))


# ---- Branches ---------------------------------------------------------------------------------


@rule("ite")
def _ite(core: Core, scope: Scope) -> Value:
    condition, then, other = core.parts
    asked = truth(condition, scope)
    return branch(asked, lambda inner: evaluate(then, inner), lambda inner: evaluate(other, inner), scope)


CASED = SYMBOLIC.rules["case"]
"""The shared rule, for texts that are told apart by cases."""


@rule("case")
def _case(core: Core, scope: Scope) -> Value:
    """An entry of a list of texts is told apart by its code: one value out of those of all arms, without cases."""
    subject, *bodies = core.parts
    if not scope.run.every or not isinstance(text := evaluate(subject, scope), TextSymbol) or text.code is None:
        return CASED(core, scope)

    def arm(position: int, here: Scope) -> Value:
        if position == len(bodies):
            raise _undefined("case", core.span, here, text.name)
        body, labels = bodies[position], core.labels[position]
        if not labels:
            return evaluate(body, here)
        same = either(*(relate("=", text, label, here) for label in labels))
        return branch(same, lambda inner: evaluate(body, inner), lambda inner: arm(position + 1, inner), here)

    return arm(0, scope)


# ---- Arithmetic -------------------------------------------------------------------------------


@rule("arithmetic")
def _arithmetic(core: Core, scope: Scope) -> Value:
    left, right = (evaluate(part, scope) for part in core.parts)
    return arithmetic(core.name, left, right, core.span, scope)


@rule("neg")
def _neg(core: Core, scope: Scope) -> Value:
    return negative(evaluate(core.parts[0], scope), scope)


# ---- Lists and tensors ------------------------------------------------------------------------


@rule("index")
def _index(core: Core, scope: Scope) -> Value:
    base, *parts = core.parts
    source = evaluate(base, scope)
    indices = [evaluate(part, scope) for part in parts]
    if isinstance(source, Field) or (isinstance(source, Array) and any(isinstance(index, Row) for index in indices)):
        spliced = rows.joined(*(rows.row_of(i if compound(i, i) else (i,), scope) for i in indices))
        return read_row(core.span, source, spliced, scope)
    if isinstance(source, Array):
        flat: list[Int] = []
        for index in indices:
            flat += map(whole, entries(index, scope)) if compound(index, index) else [whole(index)]
        return read(core.span, source, tuple(flat), scope)
    at = whole(indices[0])
    if isinstance(source, Listed):
        return lists.entry(source, at, core.span, scope)
    if isinstance(source, Row) or (scope.run.every and not isinstance(at, int)):
        row = rows.row_of(source, scope)
        there = within(at, rows.length_of(row))
        demand(scope, "position", core.span, there)
        return rows.entry(row, at, scope.under(there))
    if isinstance(source, Open) and isinstance(at, int) and at in LENGTHS:
        demand(scope, "position", core.span, less(at, source.length))
        return source.entry(at)
    return pick(core.span, entries(source, scope), at, scope)


def read(span: Span, source: Array, index: tuple[Int, ...], scope: Scope) -> Value:
    """An element of a tensor; the index must lie in bounds."""
    if len(index) != len(source.shape):
        demand(scope, "length", span, FALSE, source.name)
        raise Dead
    demand(scope, "index", span, both(*(within(i, n) for i, n in zip(index, source.shape, strict=True))), source.name)
    return source.read(index, scope)


def read_row(span: Span, source: Array | Field, index: Row, scope: Scope) -> Value:
    """An element at an index of open length."""
    shape = rows.row_of(source.shape, scope)
    rows.demand_inside(index, shape, "index", span, scope, source.name)
    if isinstance(source, Field):
        return source.read(index, scope)
    inner = scope.under(equal(rows.length_of(index), len(source.shape)))
    return source.read(tuple(whole(rows.entry(index, k, inner)) for k in range(len(source.shape))), inner)


def pick(span: Span, items: tuple[Value, ...], index: Int, scope: Scope) -> Value:
    """An entry of a list; the position must be below its length."""
    demand(scope, "position", span, within(index, len(items)))
    if isinstance(index, int):
        return _at(items, index)
    if steady(scope, index):
        return _at(items, settle(scope, index, range(len(items))))
    chosen: Value | None = items[-1] if items else None
    for position in reversed(range(len(items) - 1)):
        chosen = None if chosen is None else merge(equal(index, position), items[position], chosen, scope)
    return _at(items, settle(scope, index, range(len(items)))) if chosen is None else chosen


def _at(items: tuple[Value, ...], position: int) -> Value:
    """The entry at a position; behind the list there is none, as an obligation says."""
    if not 0 <= position < len(items):
        raise Dead
    return items[position]


@rule("fold")
def _fold(core: Core, scope: Scope) -> Value:
    return folds.fold(core, scope, evaluate)


@rule("concat")
def _concat(core: Core, scope: Scope) -> Value:
    left, right = (evaluate(part, scope) for part in core.parts)
    if isinstance(left, Row) or isinstance(right, Row):
        return rows.joined(rows.row_of(left, scope), rows.row_of(right, scope))
    return (*entries(left, scope), *entries(right, scope))


LISTED = SYMBOLIC.rules["list"]
"""The shared rule, for lists of which the number of entries is known."""


@rule("list")
def _list(core: Core, scope: Scope) -> Value:
    (bound,), (body, guard) = core.bound, core.parts
    if not scope.run.every:
        return LISTED(core, scope)
    domain = evaluate(bound.domain, scope)
    if isinstance(domain, int) or lists.is_list(domain):
        return LISTED(core, scope)
    every = guard.head == "literal" and guard.value is True

    def made(length: Int, item: rows.Entry) -> Row:
        def inner(k: Int, here: Scope) -> Scope:
            return here.among({**scope.env, bound.variable: item(k, here)})

        read: rows.Entry = lambda k, here: evaluate(body, inner(k, here))  # noqa: E731
        if every:
            return rows.generic(length, read, scope)
        return selections.chosen(length, lambda k, here: truth(guard, inner(k, here)), read, scope)

    if isinstance(domain, Row):
        return rows.joined(*(made(part.length, part.entry) for part in domain.parts))
    return made(rows.not_negative(whole(domain), scope), lambda k, _here: k)


@rule("size")
def _size(core: Core, scope: Scope) -> Value:
    return calls.call("len", (evaluate(core.parts[0], scope),), core.span, scope)
