"""The sort of an expression: one fold over `Expr` with one table, reporting what does not fit to a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import cast

from ..language.syntax import BOOL, INT, TEXT, Arm, Binder, Expr, Keyword, Parameter, Range, Sort, Span
from .composition import applied_signature
from .operands import alike, branches, meet, relate
from .presence import absence, presence
from .schema import FormalPort
from .scope import Binding, Ledger, Scope, held, hint
from .sorts import (
    ANY,
    CLASH,
    ELEMENT,
    ELEMENT_TYPES,
    RATIONAL,
    TYPE,
    VECTOR,
    accepts,
    adapt,
    agree,
    array_of,
    conversion,
    instance,
    is_literal,
    is_map,
    is_number,
    is_vector,
    join,
    list_of,
    map_of,
    part,
    set_of,
)

Rule = Callable[[Expr, Scope, Ledger], Sort | None]


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


# ---- Names: variables, `given`, calls of functions, applications of operators -------------------

CASTS = {"cast": (ELEMENT, INT, RATIONAL, BOOL, TEXT), "saturate": (ELEMENT, INT, RATIONAL, BOOL)}
"""The functions that make an element, and of what."""
NUMERIC = frozenset({"minimum", "maximum", "clip", "absolute"})
"""The functions that are arithmetic: a number goes with each entry of a list."""
OPAQUE = frozenset({"GRAPH", "GRAPHS", "TYPE_PROTOS", "SPARSE_TENSORS", "TENSORS"})
"""The kinds of attributes that a text can only ask for."""
INSTEAD = {
    "rank": "; write len(shape(x))",
    "position": "; write find(x, v)",
    "element_type": "; write data_type(code)",
}
"""What an operator says where a constraint would name a fact of graphs."""


def _var(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name = str(expr.args[0])
    binding = scope.bindings.get(name)
    if binding is None:
        if name in ELEMENT_TYPES:
            return TYPE
        if name in ledger.functions:
            ledger.report("name/no-parentheses", expr.span, name=name)
        elif name == "M" and scope.operator is None:
            ledger.report("name/memory", expr.span)
        else:
            ledger.unbound(name, expr.span, scope)
        return None
    ledger.used.add(binding)
    if binding.origin == "function":
        ledger.report("name/no-parentheses", expr.span, name=name)
    elif binding.origin == "result":
        ledger.report("operator/read-output", expr.span, binding.span, name=name)
        return None
    elif binding.sort is not None and binding.sort.name in OPAQUE:
        ledger.report("given/opaque", expr.span, name=name, sort=binding.sort)
        return None
    elif binding.optional and name not in scope.present:
        ledger.report("given/unguarded", expr.span, name=name)
    return ledger.sort_of(binding)


def _given(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    name = str(expr.args[0])
    if scope.operator is None:
        ledger.report("given/graph", expr.span)
        return BOOL
    binding = scope.bindings.get(f"given {name}") or scope.bindings.get(name)
    if binding is None:
        ledger.unbound(name, expr.span, scope)
        return BOOL
    ledger.used.add(binding)
    if not binding.optional:
        ledger.report("given/required", expr.span, name=name)
    return BOOL


def _call(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name, arguments = str(expr.args[0]), exprs(expr)
    if name == "len" and _is_outputs(arguments, scope):
        return INT
    binding, function = scope.bindings.get(name), ledger.functions.get(name)
    if binding is not None and binding.origin == "function":
        ledger.used.add(binding)
        return _applied(expr, name, binding.parameters, binding.sort, binding.span, scope, ledger)
    if function is not None:
        if scope.operator is not None and function.kind in ("fact", "inductive"):
            ledger.report("operator/fact", expr.span, function.span, name=name, hint=INSTEAD.get(name, ""))
            for argument in arguments:
                infer(argument, scope, ledger)
            return None
        parameters = function.parameters if function.kind == "fun" else held(function.parameters)
        return _applied(expr, name, parameters, function.result, function.span, scope, ledger)
    if binding is not None:
        ledger.used.add(binding)
        ledger.report("name/variable-called", expr.span, name=name)
    else:
        known = {*ledger.functions, *(b.name for b in scope.bindings.values() if b.origin == "function")}
        ledger.report("name/function", expr.span, name=name, hint=hint(name, known))
    for argument in arguments:
        infer(argument, scope, ledger)
    return None


def _is_outputs(arguments: tuple[Expr, ...], scope: Scope) -> bool:
    """Whether the one argument is a list of outputs; how many there are may be asked."""
    match arguments:
        case (Expr(head="var", args=(str() as name,)),):
            binding = scope.bindings.get(name)
            return binding is not None and binding.origin == "result" and binding.sort is not None
        case _:
            return False


def _applied(
    expr: Expr,
    name: str,
    parameters: tuple[Parameter, ...],
    result: Sort | None,
    span: Span,
    scope: Scope,
    ledger: Ledger,
) -> Sort | None:
    """The sort of a function's value. What stands for Any in the parameters stands for it in the result."""
    arguments = exprs(expr)
    if len(arguments) != len(parameters):
        ledger.report("arity/arguments", expr.span, span, name=name, expected=len(parameters), found=len(arguments))
        for argument in arguments:
            infer(argument, scope, ledger)
        return result if result is not None and part(result, result) != ANY else None
    listed = any(p.sort != ANY and part(p.sort, p.sort) == ANY for p in parameters)
    common: Sort | None = ANY
    previous: Expr | None = None
    for argument, parameter in zip(arguments, parameters, strict=True):
        found = check(argument, parameter.sort, scope, ledger)
        if part(parameter.sort, parameter.sort) != ANY:
            continue
        if name in CASTS and found is not None and found not in CASTS[name]:
            expected = " or ".join(map(str, CASTS[name]))
            ledger.report("sort/expected", argument.span, expected=expected, found=found, hint="")
        own = part(parameter.sort, found)
        if previous is None:
            common = own
        elif listed or name not in NUMERIC:
            common = alike(previous, common, argument, own, name, ledger)
        else:
            common = meet(previous, common, argument, own, name, ledger)
        previous = argument
    return result if result is None else instance(result, common)


def _apply(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    """An operator applied: a tensor. Its inputs and attributes are those of the schema at the pinned version."""
    name, version = str(expr.args[0]), int(str(expr.args[1]))
    signature = applied_signature(expr, name, version, ledger)
    attributes = {} if signature is None else signature.attributes
    formals = () if signature is None else signature.inputs
    given = [argument for argument in expr.args[2:] if not isinstance(argument, Keyword)]
    for position, argument in enumerate(given):
        if isinstance(argument, Expr):
            formal = formals[min(position, len(formals) - 1)] if formals else None
            _check_input(argument, formal, scope, ledger)
    for keyword in expr.args:
        if isinstance(keyword, Keyword):
            attribute = attributes.get(keyword.name)
            check(keyword.value, None if attribute is None else attribute.sort, scope, ledger)
    return array_of(ELEMENT)


def _check_input(argument: Expr, formal: FormalPort | None, scope: Scope, ledger: Ledger) -> None:
    """An input of an applied operator; a variadic one takes single values and lists of them."""
    expected = array_of(ELEMENT) if formal is None else formal.sort
    if formal is not None and formal.mark == "*":
        found = infer(argument, scope, Ledger(ledger.functions, ledger.sorts))
        expected = list_of(expected) if found is not None and found.name == "list" else expected
    check(argument, expected, scope, ledger)


def _every(expr: Expr, _scope: Scope, ledger: Ledger) -> Sort | None:
    """All elements of a sort, in `forall x: S`."""
    sort = Sort(str(expr.args[0]))
    return set_of(sort) if ledger.check_sort(sort, expr.span, any_allowed=False) else None


def _step(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    """`(G, M, K) ~> (G', M', K')`: the components agree in their sorts; the node stands behind the rule."""
    _, at, *rest = expr.args
    states = [state for state in rest if isinstance(state, Expr)]
    if isinstance(at, Expr):
        infer(at, scope, ledger)
    half = len(states) // 2
    for left, right in zip(states[:half], states[half:], strict=True):
        check(right, infer(left, scope, ledger), scope, ledger)
    return BOOL


SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/", "div": "div", "mod": "mod", "neg": "-"}


# ---- Logic --------------------------------------------------------------------------------------


def _logic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    """and, or, implies, iff, not: a later operand is read only where the earlier ones leave the matter open."""
    for operand in exprs(expr):
        check(operand, BOOL, scope, ledger)
        if expr.head in ("and", "implies"):
            scope = scope.given(presence(operand, scope))
        elif expr.head == "or":
            scope = scope.given(absence(operand, scope))
    return BOOL


def _quantifier(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    binders, body = [a for a in expr.args if isinstance(a, Binder)], exprs(expr)[-1]
    inner, made = bind_all(binders, scope, ledger)
    check(body, BOOL, inner, ledger)
    if expr.head == "forall" or body.head != "true":
        ledger.check_used(made)
    else:
        ledger.check_used(made[:-1])
    return BOOL


def _compare(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    operands = expr.parts()
    sorts = [infer(operand, scope, ledger) for operand in operands]
    for position, relation in enumerate(expr.args[1::2]):
        left, right = operands[position : position + 2]
        relate(left, sorts[position], str(relation), right, sorts[position + 1], scope, ledger)
    return BOOL


def _ite(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    condition, then, other = exprs(expr)
    check(condition, BOOL, scope, ledger)
    a = infer(then, scope.given(presence(condition, scope)), ledger)
    b = infer(other, scope.given(absence(condition, scope)), ledger)
    return branches(then, a, other, b, ledger)


def _case(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    arms = [a for a in expr.args if isinstance(a, Arm)]
    check(exprs(expr)[0], TEXT, scope, ledger)
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


# ---- Arithmetic ---------------------------------------------------------------------------------


def _arithmetic(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    left, right = exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    result = meet(left, a, right, b, SYMBOLS[expr.head], ledger)
    if expr.head in ("div", "mod") and result in (ELEMENT, RATIONAL):
        ledger.report("sort/expected", expr.span, expected=INT, found=result, hint="")
    return RATIONAL if expr.head == "quotient" and result == INT else result


def _neg(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    (inner,) = exprs(expr)
    found = infer(inner, scope, ledger)
    if not (is_number(found) or is_vector(found)):
        ledger.report("sort/number", inner.span, operator="-", found=found)
        return None
    return found


def _concat(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    """`++`: lists one after the other, or a map overridden by a map; a declared sort may be one of maps."""
    left, right = exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    if a is None or b is None:
        return a
    if a.name == "list" and b.name == "list" and agree(a, b):
        return join(a, b)
    declared = a.element is None and a.name in ledger.sorts
    if (declared and (is_map(b) or a == b)) or (is_map(a) and is_map(b) and agree(a, b)):
        return a
    ledger.report("sort/operands", right.span, operator="++", left=a, right=b, hint="")
    return None


def _constant(sort: Sort) -> Rule:
    return lambda _expr, _scope, _ledger: sort


# ---- Lists, sets, maps, tensors and folds -------------------------------------------------------

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
    item = Range((str(expr.args[1]),), False, expr.part(2), expr.span)
    inner, made = bind_ranges((item,), scope, ledger)
    return _listed(expr, inner, made, ledger)


def _collect(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    binder = expr.args[1]
    inner, made = bind_all((cast("Binder", binder),), scope, ledger)
    domain = ledger.sort_of(made[0])
    found = infer(cast("Binder", binder).domain, scope, Ledger(ledger.functions, ledger.sorts))
    if found is not None and domain is not None and found.name != "list":
        ledger.report("sort/list", cast("Binder", binder).domain.span, found=found)
    return _listed(expr, inner, made, ledger)


def _listed(expr: Expr, scope: Scope, made: tuple[Binding, ...], ledger: Ledger) -> Sort:
    """The list of the values of the body where the guard holds."""
    body, guard = expr.part(0), expr.args[-1]
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
    result = infer(expr.part(0), inner, ledger)
    ledger.check_used(made)
    return set_of(result)


def _map_comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Sort:
    inner, made = bind_all([a for a in expr.args if isinstance(a, Binder)], scope, ledger)
    key, value = (infer(part, inner, ledger) for part in exprs(expr))
    ledger.check_used(made)
    return map_of(key, value)


def _fold(expr: Expr, scope: Scope, ledger: Ledger) -> Sort | None:
    name = str(expr.args[0])
    guard, start = expr.args[-3:-1]
    body = expr.part(-1)
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


# ---- The table ----------------------------------------------------------------------------------

RULES: Mapping[str, Rule] = {
    "var": _var,
    "given": _given,
    "call": _call,
    "apply": _apply,
    "every": _every,
    "step": _step,
    "int": _constant(INT),
    "float": _constant(RATIONAL),
    "text": _constant(TEXT),
    "true": _constant(BOOL),
    "false": _constant(BOOL),
    **dict.fromkeys(("or", "and", "not", "implies", "iff"), _logic),
    "compare": _compare,
    **dict.fromkeys(("forall", "exists", "unique"), _quantifier),
    "ite": _ite,
    "case": _case,
    **dict.fromkeys(("add", "sub", "mul", "quotient", "div", "mod"), _arithmetic),
    "neg": _neg,
    "concat": _concat,
    "index": _index,
    "vector": _vector,
    "comprehension": _comprehension,
    "collect": _collect,
    "set_comprehension": _set_comprehension,
    "map_comprehension": _map_comprehension,
    "fold": _fold,
}
"""For each head the rule that gives the sort."""
