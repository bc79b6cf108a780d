"""The sorts of lists, sets, maps, tensors and folds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from ...language.syntax import BOOL, INT, Binder, Expr, Range, Sort
from ..operands import branches, meet
from ..presence import presence
from ..scope import Binding, Ledger, Scope
from ..sorts import (
    ANY,
    CLASH,
    accepts,
    array_of,
    conversion,
    is_literal,
    is_number,
    is_vector,
    join,
    list_of,
    map_of,
    set_of,
)
from .expressions import Rule, bind_all, bind_ranges, check, exprs, infer

FOLDS_WITH_START = frozenset({"sum", "prod", "max", "min", "last"})
TRUTHS = frozenset({"any", "all", "count", "filter"})
"""The folds over conditions."""
RESULTS = {"any": BOOL, "all": BOOL, "count": INT, "argmax": INT, "argmin": INT, "filter": array_of(INT)}


def _index(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    base, *indices = exprs(expr)
    sort = infer(base, scope, ledger)
    for index in indices:
        found = infer(index, scope, ledger)
        if found not in (None, INT, ANY) and not (is_vector(found) and (sort is None or sort.name == "Array")):
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
    for item in exprs(expr):
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
    return _listed(cast("Expr", body), guard, inner, made, ledger)


def _collect(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    body, binder, guard = expr.args
    inner, made = bind_all((cast("Binder", binder),), scope, ledger)
    domain = ledger.sort_of(made[0])
    found = infer(cast("Binder", binder).domain, scope, Ledger(ledger.functions, ledger.sorts))
    if found is not None and domain is not None and found.name != "list":
        ledger.report("sort/list", cast("Binder", binder).domain.span, found=found)
    return _listed(cast("Expr", body), guard, inner, made, ledger)


def _listed(body: Expr, guard: object, scope: Scope, made: tuple[Binding, ...], ledger: Ledger) -> Sort:
    """The list of the values of the body where the guard holds."""
    if isinstance(guard, Expr):
        check(guard, BOOL, scope, ledger)
        scope = scope.given(presence(guard, scope))
    result = infer(body, scope, ledger)
    if not is_literal(body):
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
    key, value = (infer(part, inner, ledger) for part in exprs(expr))
    ledger.check_used(made)
    return map_of(key, value)


def _fold(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name = str(expr.args[0])
    guard, start, term = expr.args[-3:]
    body = cast("Expr", term)
    inner, made = bind_ranges([a for a in expr.args if isinstance(a, Range)], scope, ledger)
    if isinstance(guard, Expr):
        check(guard, BOOL, inner, ledger)
        inner = inner.given(presence(guard, inner))
    result = infer(body, inner, ledger)
    if name in TRUTHS and not accepts(BOOL, result):
        advice = conversion(BOOL, result) or "; a condition behind a fold stands in parentheses"
        ledger.report("sort/expected", body.span, expected=BOOL, found=result, hint=advice)
    if not is_literal(body) and body.head != "true":
        ledger.check_used(made)
    if name not in TRUTHS and name != "last" and not (is_number(result) or is_vector(result)):
        ledger.report("sort/number", body.span, operator=name, found=result)
        result = None
    if isinstance(start, Expr):
        first = infer(start, scope, ledger)
        if name == "last":
            result = branches(body, result, start, first, ledger)
        elif name in FOLDS_WITH_START:
            result = meet(start, first, body, result, name, ledger)
        else:
            ledger.report("fold/start", start.span, name=name)
    return RESULTS.get(name, result)


RULES: Mapping[str, Rule] = {
    "index": _index,
    "vector": _vector,
    "comprehension": _comprehension,
    "collect": _collect,
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
    "fold": _fold,
}
