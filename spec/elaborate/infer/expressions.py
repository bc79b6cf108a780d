"""The sort of an expression: one fold over `Expr` with one table, reporting what does not fit to a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache

from ...language.syntax import INT, Binder, Expr, Range, Sort
from ..scope import Binding, Ledger, Scope
from ..sorts import ANY, ELEMENT, VECTOR, accepts, adapt, conversion, is_vector

Rule = Callable[[Expr, Scope, Ledger], Sort | None]


def infer(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    """The sort of `expr` in `scope`; None when a mistake, which is reported, leaves it unknown."""
    return rules()[expr.head](expr, scope, ledger)


@cache
def rules() -> Mapping[str, Rule]:
    """For each head the rule that gives the sort."""
    # imported here: the rules call `infer`
    from . import lists as infer_lists
    from . import names as infer_names
    from . import terms as infer_terms

    return {**infer_names.RULES, **infer_terms.RULES, **infer_lists.RULES}


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
        ledger.report("sort/expected", expr.span, expected=expected, found=found, hint=conversion(expected, found))
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
        elif bound not in (None, INT, ANY):
            dots = f"; write {item.names[0]}... for an index vector" if is_vector(bound) else ""
            ledger.report("sort/bound", item.bound.span, name=item.names[0], found=bound, hint=dots)
        for name in item.names:
            ledger.check_fresh(name, item.span, scope)
            made.append(Binding(name, VECTOR if item.dots else INT, "binder", item.span))
            scope = scope.bind(made[-1])
    return scope, tuple(made)


def exprs(expr: Expr) -> tuple[Expr, ...]:
    """The arguments that are expressions themselves."""
    return tuple(arg for arg in expr.args if isinstance(arg, Expr))
