"""The sort of an expression: one fold over `Expr` with one table, reporting what does not fit to a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from .operands import branches, meet, relate
from .presence import absence, presence
from .scope import Binding, Ledger, Scope, hint
from .sorts import (
    ANY,
    CLASH,
    ELEMENT,
    RATIONAL,
    VECTOR,
    accepts,
    adapt,
    agree,
    is_literal,
    is_map,
    is_number,
    is_vector,
    join,
    list_of,
    map_of,
    set_of,
)
from .syntax import BOOL, INT, TEXT, Arm, Binder, Expr, Range, Sort

FOLDS_WITH_START = frozenset({"sum", "prod", "max", "min"})
SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/", "div": "div", "mod": "mod", "neg": "-"}


def infer(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    """The sort of `expr` in `scope`; None when a mistake, which is reported, leaves it unknown."""
    return RULES[expr.head](expr, scope, ledger)


def check(expr: Expr, expected: Sort | None, scope: Scope, ledger: Ledger) -> Sort | None:
    """Infers, and reports a sort that `expected` does not accept. Fixes the sort of a name whose sort is still open."""
    if expr.head == "var" and expected is not None and expected != ANY:
        binding = scope.bindings.get(str(expr.args[0]))
        if binding is not None and ledger.sort_of(binding) is None and binding.origin == "configuration":
            ledger.solved[binding] = expected
    found = infer(expr, scope, ledger)
    if expected == ELEMENT:
        found = adapt(expr, found, ELEMENT)
    if not accepts(expected, found):
        ledger.report("sort/expected", expr.span, expected=expected, found=found)
    return found


def bind_all(binders: Iterable[Binder], scope: Scope, ledger: Ledger) -> tuple[Scope, tuple[Binding, ...]]:
    """The scope inside binders; a later domain may use earlier variables."""
    made = []
    for binder in binders:
        domain = infer(binder.domain, scope, ledger)
        if domain is not None and domain.name not in ("set", "list"):
            ledger.report("sort/domain", binder.domain.span, found=domain)
            domain = None
        ledger.check_fresh(binder.name, binder.span, scope)
        made.append(Binding(binder.name, domain.element if domain else None, "binder", binder.span))
        scope = scope.bind(made[-1])
    return scope, tuple(made)


def bind_ranges(ranges: Iterable[Range], scope: Scope, ledger: Ledger) -> tuple[Scope, tuple[Binding, ...]]:
    """The scope inside ranges, with the index variables. Bounds are read in the scope outside."""
    made: list[Binding] = []
    outside = scope
    for item in ranges:
        bound = infer(item.bound, outside, ledger)
        if item.dots:
            if not is_vector(bound):
                ledger.report("sort/vector-bound", item.bound.span, name=item.names[0], found=bound)
        elif len(item.names) > 1:
            if not is_vector(bound):
                ledger.report("sort/vector-bound", item.bound.span, name=item.names[0], found=bound)
            if item.bound.head == "vector" and len(item.bound.args) != len(item.names):
                ledger.report("arity/split", item.bound.span, expected=len(item.names), found=len(item.bound.args))
        elif bound not in (None, INT):
            dots = f"; write {item.names[0]}... for an index vector" if is_vector(bound) else ""
            ledger.report("sort/bound", item.bound.span, name=item.names[0], found=bound, hint=dots)
        for name in item.names:
            ledger.check_fresh(name, item.span, scope)
            made.append(Binding(name, VECTOR if item.dots else INT, "binder", item.span))
            scope = scope.bind(made[-1])
    return scope, tuple(made)


def _exprs(expr: Expr) -> tuple[Expr, ...]:
    return tuple(arg for arg in expr.args if isinstance(arg, Expr))


# ---- names ------------------------------------------------------------------------------------


def _var(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name = str(expr.args[0])
    binding = scope.bindings.get(name)
    if binding is None:
        if name in ledger.functions:
            ledger.report("name/no-parentheses", expr.span, name=name)
        elif name == "M" and scope.operator is None:
            ledger.report("name/memory", expr.span)
        else:
            ledger.unbound(name, expr.span, scope)
        return None
    ledger.used.add(binding)
    if binding.optional and name not in scope.present:
        ledger.report("given/unguarded", expr.span, name=name)
    return ledger.sort_of(binding)


def _given(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    name = str(expr.args[0])
    if scope.operator is None:
        ledger.report("given/graph", expr.span)
        return BOOL
    binding = scope.bindings.get(name)
    if binding is None:
        ledger.unbound(name, expr.span, scope)
        return BOOL
    ledger.used.add(binding)
    if not binding.optional:
        ledger.report("given/required", expr.span, name=name)
    return BOOL


def _call(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name, arguments = str(expr.args[0]), _exprs(expr)
    function = ledger.functions.get(name)
    if function is None:
        if name in scope.bindings:
            ledger.used.add(scope.bindings[name])
            ledger.report("name/variable-called", expr.span, name=name)
        else:
            ledger.report("name/function", expr.span, name=name, hint=hint(name, ledger.functions))
        for argument in arguments:
            infer(argument, scope, ledger)
        return None
    if scope.operator is not None and function.kind in ("fact", "inductive"):
        ledger.report("operator/fact", expr.span, function.span, name=name)
    if len(arguments) != len(function.parameters):
        ledger.report(
            "arity/arguments", expr.span, function.span,
            name=name, expected=len(function.parameters), found=len(arguments),
        )  # fmt: skip
        for argument in arguments:
            infer(argument, scope, ledger)
        return function.result if function.result != ANY else None
    common: Sort | None = ANY
    previous: Expr | None = None
    for argument, parameter in zip(arguments, function.parameters, strict=True):
        found = check(argument, parameter.sort, scope, ledger)
        if parameter.sort == ANY:
            common = found if previous is None else meet(previous, common, argument, found, name, ledger)
            previous = argument
    return common if function.result == ANY else function.result


# ---- logic ------------------------------------------------------------------------------------


def _logic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    """and, or, implies, iff, not: a later operand is read only where the earlier ones leave the matter open."""
    for part in _exprs(expr):
        check(part, BOOL, scope, ledger)
        if expr.head in ("and", "implies"):
            scope = scope.given(presence(part))
        elif expr.head == "or":
            scope = scope.given(absence(part))
    return BOOL


def _quantifier(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    binders, body = [a for a in expr.args if isinstance(a, Binder)], _exprs(expr)[-1]
    inner, made = bind_all(binders, scope, ledger)
    check(body, BOOL, inner, ledger)
    if expr.head == "forall" or body.head != "true":
        ledger.check_used(made)
    else:
        ledger.check_used(made[:-1])
    return BOOL


def _compare(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    operands = expr.args[::2]
    sorts = [infer(cast("Expr", operand), scope, ledger) for operand in operands]
    for position, relation in enumerate(expr.args[1::2]):
        left, right = cast("Expr", operands[position]), cast("Expr", operands[position + 1])
        relate(left, sorts[position], str(relation), right, sorts[position + 1], scope, ledger)
    return BOOL


def _ite(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    condition, then, other = _exprs(expr)
    check(condition, BOOL, scope, ledger)
    a = infer(then, scope.given(presence(condition)), ledger)
    b = infer(other, scope.given(absence(condition)), ledger)
    return branches(then, a, other, b, ledger)


def _case(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    arms = [a for a in expr.args if isinstance(a, Arm)]
    check(_exprs(expr)[0], TEXT, scope, ledger)
    seen: set[str] = set()
    common: Sort | None = None
    for position, arm in enumerate(arms):
        if not arm.labels and position < len(arms) - 1:
            ledger.report("case/else", arm.span)
        for label in arm.labels:
            if label in seen:
                ledger.report("case/label", arm.span, label=label)
            seen.add(label)
        found = infer(arm.body, scope, ledger)
        common = found if position == 0 else branches(arms[0].body, common, arm.body, found, ledger)
    return common


# ---- arithmetic -------------------------------------------------------------------------------


def _arithmetic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    left, right = _exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    result = meet(left, a, right, b, SYMBOLS[expr.head], ledger)
    if expr.head in ("div", "mod") and result in (ELEMENT, RATIONAL):
        ledger.report("sort/expected", expr.span, expected=INT, found=result)
    return RATIONAL if expr.head == "quotient" and result == INT else result


def _neg(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    (inner,) = _exprs(expr)
    found = infer(inner, scope, ledger)
    if not (is_number(found) or is_vector(found)):
        ledger.report("sort/number", inner.span, operator="-", found=found)
        return None
    return found


def _concat(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    """`++`: lists one after the other, or a map overridden by a map; a declared sort on the left may be one of maps."""
    left, right = _exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    if a is None or b is None:
        return a
    if a.name == "list" and b.name == "list" and agree(a, b):
        return join(a, b)
    declared = a.element is None and a.name in ledger.sorts
    if is_map(b) and (declared or (is_map(a) and agree(a, b))):
        return a
    ledger.report("sort/operands", right.span, operator="++", left=a, right=b)
    return None


# ---- lists, tensors, folds --------------------------------------------------------------------


def _index(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    base, *indices = _exprs(expr)
    sort = infer(base, scope, ledger)
    for index in indices:
        found = infer(index, scope, ledger)
        if found not in (None, INT) and not (is_vector(found) and sort is not None and sort.name == "Array"):
            vector = " or a list of integers" if sort is not None and sort.name == "Array" else ""
            ledger.report("sort/index", index.span, found=found, vector=vector)
    if sort is None:
        return None
    if sort.name == "list":
        if len(indices) != 1:
            ledger.report("arity/index", expr.span, found=len(indices))
        return sort.element
    if sort.name == "Array":
        return sort.element
    ledger.report("sort/not-indexable", base.span, found=sort)
    return None


def _vector(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    common: Sort | None = ANY
    for item in _exprs(expr):
        found = infer(item, scope, ledger)
        joined = join(common, found)
        if joined == CLASH:
            ledger.report("sort/elements", item.span, left=common, right=found)
        else:
            common = joined
    return list_of(common)


def _comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    body, name, bound, guard = expr.args
    item = Range((str(name),), False, cast("Expr", bound), expr.span)
    inner, made = bind_ranges((item,), scope, ledger)
    if isinstance(guard, Expr):
        check(guard, BOOL, inner, ledger)
    result = infer(cast("Expr", body), inner, ledger)
    if not is_literal(cast("Expr", body)):
        ledger.check_used(made)
    return list_of(result)


def _set_comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    inner, made = bind_all([a for a in expr.args if isinstance(a, Binder)], scope, ledger)
    if isinstance(expr.args[-1], Expr):
        check(expr.args[-1], BOOL, inner, ledger)
    result = infer(cast("Expr", expr.args[0]), inner, ledger)
    ledger.check_used(made)
    return set_of(result)


def _map_comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    inner, made = bind_all([a for a in expr.args if isinstance(a, Binder)], scope, ledger)
    key, value = (infer(part, inner, ledger) for part in _exprs(expr))
    ledger.check_used(made)
    return map_of(key, value)


def _fold(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name = str(expr.args[0])
    guard, start, body = expr.args[-3:]
    inner, made = bind_ranges([a for a in expr.args if isinstance(a, Range)], scope, ledger)
    if isinstance(guard, Expr):
        check(guard, BOOL, inner, ledger)
    truth = name in ("any", "all", "count")
    result = check(cast("Expr", body), BOOL if truth else None, inner, ledger)
    if not is_literal(cast("Expr", body)) and cast("Expr", body).head != "true":
        ledger.check_used(made)
    if not truth and not (is_number(result) or is_vector(result)):
        ledger.report("sort/number", cast("Expr", body).span, operator=name, found=result)
        result = None
    if isinstance(start, Expr):
        first = infer(start, scope, ledger)
        if name in FOLDS_WITH_START:
            result = meet(start, first, cast("Expr", body), result, name, ledger)
        else:
            ledger.report("fold/start", start.span, name=name)
    return {"any": BOOL, "all": BOOL, "count": INT, "argmax": INT, "argmin": INT}.get(name, result)


def _constant(sort: Sort) -> Callable[[Expr, Scope, Ledger], Sort | None]:
    return lambda _expr, _scope, _ledger: sort


RULES: Mapping[str, Callable[[Expr, Scope, Ledger], Sort | None]] = {
    "var": _var,
    "int": _constant(INT),
    "float": _constant(RATIONAL),
    "text": _constant(TEXT),
    "true": _constant(BOOL),
    "false": _constant(BOOL),
    **dict.fromkeys(("or", "and", "not", "implies", "iff"), _logic),
    "compare": _compare,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": _neg,
    "concat": _concat,
    **dict.fromkeys(("forall", "exists", "unique"), _quantifier),
    "ite": _ite,
    "case": _case,
    "fold": _fold,
    "index": _index,
    "call": _call,
    "given": _given,
    "vector": _vector,
    "comprehension": _comprehension,
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
}
"""For each head the rule that gives the sort."""
