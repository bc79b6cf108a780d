"""The sorts of names: variables, `given`, calls of functions, applications of operators."""

from __future__ import annotations

from collections.abc import Mapping

from ...language.syntax import BOOL, INT, TEXT, Expr, Keyword, Parameter, Sort, Span
from ..composition import applied_signature
from ..operands import alike, meet
from ..schema import FormalPort
from ..scope import Ledger, Scope, held, hint
from ..sorts import ANY, ELEMENT, ELEMENT_TYPES, RATIONAL, TYPE, array_of, instance, list_of, part, set_of
from .expressions import Rule, check, exprs, infer

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


RULES: Mapping[str, Rule] = {
    "var": _var, "given": _given, "call": _call, "apply": _apply, "every": _every, "step": _step,
}  # fmt: skip
