"""The core of an expression, sorts and all: one fold over `Expr` with one table, reporting mistakes to a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import cast

from ..language.errors import InternalError
from ..language.syntax import BOOL, INT, TEXT, Arm, Binder, Expr, Keyword, Parameter, Range, Sort, Span
from .composition import applied_signature
from .core import NOTHING, TRUE, Binding, Bound, Core
from .operands import alike, branches, meet, relate
from .presence import absence, presence
from .schema import FormalPort
from .scope import Ledger, Scope, held, hint
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

Rule = Callable[[Expr, Scope, Ledger], Core]


def infer(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """The core of `expr` in `scope`; without a sort when a mistake, which is reported, leaves it unknown."""
    return RULES[expr.head](expr, scope, ledger)


def check(expr: Expr, expected: Sort | None, scope: Scope, ledger: Ledger) -> Core:
    """Infers, and reports a sort that `expected` does not accept. Fixes the sort of a name whose sort is still open."""
    if expr.head == "var" and expected is not None and expected != ANY:
        binding = scope.bindings.get(str(expr.args[0]))
        if binding is not None and ledger.sort_of(binding) is None and binding.origin == "configuration":
            ledger.solved[binding] = expected
    core = infer(expr, scope, ledger)
    found = adapt(expr, core.sort, expected)
    if not accepts(expected, found):
        ledger.report("sort/expected", expr.span, expected=expected, found=found, hint=conversion(expected, found))
    return as_numeral_of(found, core)


def as_numeral_of(sort: Sort | None, core: Core) -> Core:
    """The core as it is; a numeral which has this sort beside others as one of it."""
    return core if sort == core.sort else _as_element(core)


def _as_element(core: Core) -> Core:
    """A numeral as the element that it is beside one."""
    condition, numerals = (core.parts[:1], core.parts[1:]) if core.head == "ite" else ((), core.parts)
    return replace(core, sort=ELEMENT, parts=(*condition, *map(_as_element, numerals)))


def _beside(sort: Sort | None, exprs: Iterable[Expr], cores: Iterable[Core]) -> tuple[Core, ...]:
    """The cores of operands whose common sort this is."""
    pairs = zip(exprs, cores, strict=True)
    return tuple(as_numeral_of(adapt(expr, it.sort, sort), it) for expr, it in pairs)


def bind_all(binders: Iterable[Binder], scope: Scope, ledger: Ledger) -> tuple[Scope, tuple[Bound, ...]]:
    """The scope inside binders; a later domain may use earlier variables."""
    made = []
    for binder in binders:
        domain = infer(binder.domain, scope, ledger)
        sort = domain.sort
        if sort is not None and sort.name not in ("set", "list"):
            ledger.report("sort/domain", binder.domain.span, found=sort)
            sort = None
        ledger.check_fresh(binder.name, binder.span, scope)
        variable = Binding(binder.name, sort.element if sort else None, "binder", binder.span)
        made.append(Bound((variable,), domain))
        scope = scope.bind(variable)
    return scope, tuple(made)


def bind_ranges(ranges: Iterable[Range], scope: Scope, ledger: Ledger) -> tuple[Scope, tuple[Bound, ...]]:
    """The scope inside ranges, with the index variables. Bounds are read in the scope outside."""
    made: list[Bound] = []
    outside = scope
    for item in ranges:
        domain = infer(item.bound, outside, ledger)
        bound = domain.sort
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
        variables = []
        for name in item.names:
            ledger.check_fresh(name, item.span, scope)
            variables.append(Binding(name, VECTOR if item.dots else INT, "binder", item.span))
            scope = scope.bind(variables[-1])
        made.append(Bound(tuple(variables), domain))
    return scope, tuple(made)


def _infer_all(exprs: Iterable[Expr], scope: Scope, ledger: Ledger) -> tuple[Core, ...]:
    return tuple(infer(expr, scope, ledger) for expr in exprs)


def _mistaken(expr: Expr, sort: Sort | None = None) -> Core:
    return Core("mistaken", sort, (), expr.span)


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
"""The words of an operator where a constraint would name a fact of graphs."""


def _var(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    name = str(expr.args[0])
    binding = scope.bindings.get(name)
    if binding is None:
        if name in ELEMENT_TYPES:
            return Core("type", TYPE, (), expr.span, name)
        if name in ledger.functions:
            ledger.report("name/no-parentheses", expr.span, name=name)
        elif name == "M" and scope.operator is None:
            ledger.report("name/memory", expr.span)
        else:
            ledger.unbound(name, expr.span, scope)
        return _mistaken(expr)
    ledger.used.add(binding)
    if binding.origin == "function":
        ledger.report("name/no-parentheses", expr.span, name=name)
    elif binding.origin == "result":
        ledger.report("operator/read-output", expr.span, binding.span, name=name)
        return _mistaken(expr)
    elif binding.sort is not None and binding.sort.name in OPAQUE:
        ledger.report("given/opaque", expr.span, name=name, sort=binding.sort)
        return _mistaken(expr)
    elif binding.optional and name not in scope.present:
        ledger.report("given/unguarded", expr.span, name=name)
    return Core("variable", ledger.sort_of(binding), (), expr.span, name, variable=binding)


def _given(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    name = str(expr.args[0])
    binding = None
    if scope.operator is None:
        ledger.report("given/graph", expr.span)
    else:
        binding = scope.bindings.get(f"given {name}") or scope.bindings.get(name)
        if binding is None:
            ledger.unbound(name, expr.span, scope)
        else:
            ledger.used.add(binding)
            if not binding.optional:
                ledger.report("given/required", expr.span, name=name)
    return Core("given", BOOL, (), expr.span, name, variable=binding)


def _call(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    name, arguments = str(expr.args[0]), exprs(expr)
    outputs = _outputs(arguments, scope) if name == "len" else None
    if outputs is not None:
        return Core("size", INT, (outputs,), expr.span)
    binding, function = scope.bindings.get(name), ledger.functions.get(name)
    if binding is not None and binding.origin == "function":
        ledger.used.add(binding)
        sort, parts = _applied(expr, name, binding.parameters, binding.sort, binding.span, scope, ledger)
        return Core("local", sort, parts, expr.span, name, variable=binding)
    if function is not None:
        if scope.operator is not None and function.kind in ("fact", "inductive", "record", "field"):
            ledger.report("operator/fact", expr.span, function.span, name=name, hint=INSTEAD.get(name, ""))
            _infer_all(arguments, scope, ledger)
            return _mistaken(expr)
        parameters = function.parameters if function.kind == "fun" else held(function.parameters)
        sort, parts = _applied(expr, name, parameters, function.result, function.span, scope, ledger)
        return Core("size" if name == "len" else function.kind, sort, parts, expr.span, name)
    if binding is not None:
        ledger.used.add(binding)
        ledger.report("name/variable-called", expr.span, name=name)
    else:
        known = {*ledger.functions, *(b.name for b in scope.bindings.values() if b.origin == "function")}
        ledger.report("name/function", expr.span, name=name, hint=hint(name, known))
    _infer_all(arguments, scope, ledger)
    return _mistaken(expr)


def _outputs(arguments: tuple[Expr, ...], scope: Scope) -> Core | None:
    """The one argument where it is a list of outputs; how many there are may be asked."""
    match arguments:
        case (Expr(head="var", args=(str() as name,)) as only,):
            binding = scope.bindings.get(name)
            if binding is not None and binding.origin == "result" and binding.sort is not None:
                return Core("variable", binding.sort, (), only.span, name, variable=binding)
    return None


def _applied(
    expr: Expr,
    name: str,
    parameters: tuple[Parameter, ...],
    result: Sort | None,
    span: Span,
    scope: Scope,
    ledger: Ledger,
) -> tuple[Sort | None, tuple[Core, ...]]:
    """The sort of a function's value, and its arguments. Any in the result is what it is in the parameters."""
    arguments = exprs(expr)
    if len(arguments) != len(parameters):
        ledger.report("arity/arguments", expr.span, span, name=name, expected=len(parameters), found=len(arguments))
        given = _infer_all(arguments, scope, ledger)
        return (result if result is not None and part(result, result) != ANY else None), given
    listed = any(p.sort != ANY and part(p.sort, p.sort) == ANY for p in parameters)
    common: Sort | None = ANY
    previous: Expr | None = None
    made: list[Core] = []
    for argument, parameter in zip(arguments, parameters, strict=True):
        made.append(check(argument, parameter.sort, scope, ledger))
        sort = made[-1].sort
        if part(parameter.sort, parameter.sort) != ANY:
            continue
        if name in CASTS and sort is not None and sort not in CASTS[name]:
            expected = " or ".join(map(str, CASTS[name]))
            ledger.report("sort/expected", argument.span, expected=expected, found=sort, hint="")
        own = part(parameter.sort, sort)
        if previous is None:
            common = own
        elif listed or name not in NUMERIC:
            common = alike(previous, common, argument, own, name, ledger)
        else:
            common = meet(previous, common, argument, own, name, ledger)
        previous = argument
    return (result if result is None else instance(result, common)), tuple(made)


def _apply(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """An operator applied: a tensor. Its inputs and attributes are those of the schema at the pinned version."""
    name, version = str(expr.args[0]), int(str(expr.args[1]))
    signature = applied_signature(expr, name, version, ledger)
    attributes = {} if signature is None else signature.attributes
    formals = () if signature is None else signature.inputs
    given = [argument for argument in expr.args[2:] if not isinstance(argument, Keyword)]
    parts = []
    for position, argument in enumerate(given):
        formal = formals[min(position, len(formals) - 1)] if formals else None
        parts.append(_input(argument, formal, scope, ledger) if isinstance(argument, Expr) else NOTHING)
    labels: list[tuple[str, ...]] = [() for _ in parts]
    for keyword in expr.args:
        if isinstance(keyword, Keyword):
            attribute = attributes.get(keyword.name)
            sort, optional = (None, False) if attribute is None else (attribute.sort, attribute.optional)
            parts.append(_passed(keyword.value, sort, optional, scope, ledger))
            labels.append((keyword.name,))
    return Core("apply", array_of(ELEMENT), tuple(parts), expr.span, name, version, labels=tuple(labels))


def _input(argument: Expr, formal: FormalPort | None, scope: Scope, ledger: Ledger) -> Core:
    """An input of an applied operator; a variadic one takes single values and lists of them."""
    expected = array_of(ELEMENT) if formal is None else formal.sort
    if formal is not None and formal.mark == "*":
        given = infer(argument, scope, ledger.quiet()).sort
        expected = list_of(expected) if given is not None and given.name == "list" else expected
    return _passed(argument, expected, formal is not None and formal.mark == "?", scope, ledger)


def _passed(argument: Expr, sort: Sort | None, optional: bool, scope: Scope, ledger: Ledger) -> Core:
    """What an applied operator is given. Where it may do without, a name alone may be absent, and is left out then."""
    name = str(argument.args[0]) if argument.head == "var" else ""
    binding = scope.bindings.get(name)
    if binding is None or not optional or not binding.optional or name in scope.present:
        return check(argument, sort, scope, ledger)
    held = check(argument, sort, scope.given((name,)), ledger)
    asked = Core("given", BOOL, (), argument.span, name, variable=binding)
    return Core("ite", held.sort, (asked, held, NOTHING), argument.span)


def _every(expr: Expr, _scope: Scope, ledger: Ledger) -> Core:
    """All elements of a sort, in `forall x: S`."""
    sort = Sort(str(expr.args[0]))
    known = ledger.check_sort(sort, expr.span, any_allowed=False)
    return Core("every", set_of(sort) if known else None, (), expr.span, sort.name)


def _step(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """`(G, M, K) ~> (G', M', K')`: the components agree in their sorts; the node stands behind the rule."""
    rule, at, *rest = expr.args
    states = [state for state in rest if isinstance(state, Expr)]
    node = [infer(at, scope, ledger)] if isinstance(at, Expr) else []
    half = len(states) // 2
    source = _infer_all(states[:half], scope, ledger)
    target = [check(right, left.sort, scope, ledger) for left, right in zip(source, states[half:], strict=False)]
    return Core("step", BOOL, (*source, *target, *node), expr.span, str(rule))


SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "quotient": "/", "div": "div", "mod": "mod", "neg": "-"}


# ---- Logic --------------------------------------------------------------------------------------


def _logic(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """and, or, implies, iff, not: a later operand is read only where the earlier ones leave the matter open."""
    parts = []
    for operand in exprs(expr):
        parts.append(check(operand, BOOL, scope, ledger))
        if expr.head in ("and", "implies"):
            scope = scope.given(presence(operand, scope))
        elif expr.head == "or":
            scope = scope.given(absence(operand, scope))
    return Core(expr.head, BOOL, tuple(parts), expr.span)


def _quantifier(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    binders, body = [a for a in expr.args if isinstance(a, Binder)], exprs(expr)[-1]
    inner, bound = bind_all(binders, scope, ledger)
    inside = check(body, BOOL, inner, ledger)
    ledger.check_used(bound if expr.head == "forall" or body.head != "true" else bound[:-1])
    return Core(expr.head, BOOL, (inside,), expr.span, bound=bound)


def _compare(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    operands = exprs(expr)
    parts = _infer_all(operands, scope, ledger)
    links = []
    for position, relation in enumerate(map(str, expr.args[1::2])):
        (left, one), (right, other) = ((operands[k], parts[k]) for k in (position, position + 1))
        relate(left, one.sort, relation, right, other.sort, scope, ledger)
        links.append(Core("compare", BOOL, (one, other), expr.span, relation))
    return links[0] if len(links) == 1 else Core("and", BOOL, tuple(links), expr.span, "chain")


def _ite(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    condition, then, other = exprs(expr)
    test = check(condition, BOOL, scope, ledger)
    a = infer(then, scope.given(presence(condition, scope)), ledger)
    b = infer(other, scope.given(absence(condition, scope)), ledger)
    sort = branches(then, a.sort, other, b.sort, ledger)
    return Core("ite", sort, (test, *_beside(sort, (then, other), (a, b))), expr.span)


def _case(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    arms = [a for a in expr.args if isinstance(a, Arm)]
    parts = [check(exprs(expr)[0], TEXT, scope, ledger)]
    seen: set[str] = set()
    common: Sort | None = None
    for position, arm in enumerate(arms):
        if not arm.labels and position < len(arms) - 1:
            ledger.report("case/else", arm.span)
        for label in arm.labels:
            if label in seen:
                ledger.report("case/label", arm.span, label=label)
            seen.add(label)
        parts.append(infer(arm.body, scope, ledger))
        sort = parts[-1].sort
        common = sort if position == 0 else branches(arms[0].body, common, arm.body, sort, ledger)
    bodies = _beside(common, (arm.body for arm in arms), parts[1:])
    return Core("case", common, (parts[0], *bodies), expr.span, labels=tuple(arm.labels for arm in arms))


# ---- Arithmetic ---------------------------------------------------------------------------------


def _arithmetic(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    left, right = exprs(expr)
    a, b = infer(left, scope, ledger), infer(right, scope, ledger)
    result = meet(left, a.sort, right, b.sort, SYMBOLS[expr.head], ledger)
    if expr.head in ("div", "mod") and result in (ELEMENT, RATIONAL):
        ledger.report("sort/expected", expr.span, expected=INT, found=result, hint="")
    sort = RATIONAL if expr.head == "quotient" and result == INT else result
    return Core("arithmetic", sort, _beside(sort, (left, right), (a, b)), expr.span, expr.head)


def _neg(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    (operand,) = exprs(expr)
    inner = infer(operand, scope, ledger)
    if not (is_number(inner.sort) or is_vector(inner.sort)):
        ledger.report("sort/number", operand.span, operator="-", found=inner.sort)
        return _mistaken(expr)
    if operand.head in ("int", "float") and not Fraction(str(inner.value)):
        ledger.report("sort/zero", expr.span, written=f"-{inner.value}")
    if inner.head == "literal" and isinstance(inner.value, int):
        return Core("literal", INT, (), expr.span, value=-inner.value)
    return Core("neg", inner.sort, (inner,), expr.span)


def _concat(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """`++`: lists one after the other, or a map overridden by a map; a declared sort may be one of maps."""
    left, right = exprs(expr)
    parts = _infer_all((left, right), scope, ledger)
    a, b = (part.sort for part in parts)
    sort: Sort | None = a
    if a is not None and b is not None:
        declared = a.element is None and a.name in ledger.sorts
        if a.name == "list" and b.name == "list" and agree(a, b):
            sort = join(a, b)
        elif not ((declared and (is_map(b) or a == b)) or (is_map(a) and is_map(b) and agree(a, b))):
            ledger.report("sort/operands", right.span, operator="++", left=a, right=b, hint="")
            sort = None
    return Core("concat", sort, parts, expr.span)


def _literal(expr: Expr, _scope: Scope, _ledger: Ledger) -> Core:
    head = expr.head
    if head in ("true", "false"):
        return Core("literal", BOOL, (), expr.span, value=head == "true")
    (value,) = expr.args
    if not isinstance(value, (int, str)):
        raise InternalError(f"a literal holds {value!r}")
    return Core("literal", {"int": INT, "text": TEXT, "float": RATIONAL}[head], (), expr.span, value=value)


# ---- Lists, sets, maps, tensors and folds -------------------------------------------------------

FOLDS_WITH_START = frozenset({"sum", "prod", "max", "min", "last"})
TRUTHS = frozenset({"any", "all", "count", "filter"})
"""The folds over conditions."""
RESULTS = {"any": BOOL, "all": BOOL, "count": INT, "argmax": INT, "argmin": INT, "filter": array_of(INT)}


def _index(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    base, *indices = exprs(expr)
    parts = [infer(base, scope, ledger)]
    sort = parts[0].sort
    for index in indices:
        parts.append(infer(index, scope, ledger))
        position = parts[-1].sort
        if position not in (None, INT, ANY) and not (is_vector(position) and (sort is None or sort.name == "Array")):
            vector = " or a list of integers" if sort is not None and sort.name == "Array" else ""
            ledger.report("sort/index", index.span, found=position, vector=vector)
    if sort is not None and sort.name not in ("list", "Array"):
        ledger.report("sort/not-indexable", base.span, found=sort)
        return _mistaken(expr)
    if sort is not None and sort.name == "list" and len(indices) != 1:
        ledger.report("arity/index", expr.span, found=len(indices))
    return Core("index", None if sort is None else sort.element, tuple(parts), expr.span)


def _vector(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    common: Sort | None = ANY
    parts = _infer_all(exprs(expr), scope, ledger)
    for item in parts:
        joined = join(common, item.sort)
        if joined == CLASH:
            ledger.report("sort/elements", item.span, left=common, right=item.sort)
        else:
            common = joined
    return Core("vector", list_of(common), parts, expr.span)


def _comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    body, name, bound, guard = expr.args
    item = Range((str(name),), False, cast("Expr", bound), expr.span)
    inner, made = bind_ranges((item,), scope, ledger)
    return _listed(expr, cast("Expr", body), guard, inner, made, ledger)


def _collect(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    body, binder, guard = expr.args
    inner, made = bind_all((cast("Binder", binder),), scope, ledger)
    domain = made[0].domain
    if domain.sort is not None and made[0].variable.sort is not None and domain.sort.name != "list":
        ledger.report("sort/list", domain.span, found=domain.sort)
    return _listed(expr, cast("Expr", body), guard, inner, made, ledger)


def _listed(expr: Expr, body: Expr, guard: object, scope: Scope, bound: tuple[Bound, ...], ledger: Ledger) -> Core:
    """The list of the values of the body where the guard holds."""
    scope, test = _guarded(guard, scope, ledger)
    image = infer(body, scope, ledger)
    if not is_literal(body):
        ledger.check_used(bound)
    return Core("list", list_of(image.sort), (image, test), expr.span, bound=bound)


def _guarded(guard: object, scope: Scope, ledger: Ledger) -> tuple[Scope, Core]:
    """The scope where the guard holds, and the guard; `true` where the text has none."""
    if not isinstance(guard, Expr):
        return scope, TRUE
    test = check(guard, BOOL, scope, ledger)
    return scope.given(presence(guard, scope)), test


def _set_comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    inner, bound = bind_all([a for a in expr.args if isinstance(a, Binder)], scope, ledger)
    _, test = _guarded(expr.args[-1], inner, ledger)
    image = infer(cast("Expr", expr.args[0]), inner, ledger)
    ledger.check_used(bound)
    return Core("set", set_of(image.sort), (image, test), expr.span, bound=bound)


def _map_comprehension(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    inner, bound = bind_all([a for a in expr.args if isinstance(a, Binder)], scope, ledger)
    key, value = parts = _infer_all(exprs(expr), inner, ledger)
    ledger.check_used(bound)
    return Core("map", map_of(key.sort, value.sort), parts, expr.span, bound=bound)


def _pair(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    """A key and the value at it, both elements."""
    parts = tuple(check(part, ELEMENT, scope, ledger) for part in exprs(expr))
    return Core("pair", ELEMENT, parts, expr.span)


def _fold(expr: Expr, scope: Scope, ledger: Ledger) -> Core:
    name = str(expr.args[0])
    guard, start, term = expr.args[-3:]
    body = cast("Expr", term)
    inner, bound = bind_ranges([a for a in expr.args if isinstance(a, Range)], scope, ledger)
    inner, test = _guarded(guard, inner, ledger)
    parts = [infer(body, inner, ledger), test]
    result = parts[0].sort
    if name in TRUTHS and not accepts(BOOL, result):
        advice = conversion(BOOL, result) or "; a condition behind a fold stands in parentheses"
        ledger.report("sort/expected", body.span, expected=BOOL, found=result, hint=advice)
    if not is_literal(body) and body.head != "true":
        ledger.check_used(bound)
    if name not in TRUTHS and name != "last" and not (is_number(result) or is_vector(result)):
        ledger.report("sort/number", body.span, operator=name, found=result)
        result = None
    if isinstance(start, Expr):
        parts.append(infer(start, scope, ledger))
        first = parts[-1].sort
        if name == "last":
            result = branches(body, result, start, first, ledger)
        elif name in FOLDS_WITH_START:
            result = meet(start, first, body, result, name, ledger)
        else:
            ledger.report("fold/start", start.span, name=name)
    return Core("fold", RESULTS.get(name, result), tuple(parts), expr.span, name, bound=bound)


# ---- The table ----------------------------------------------------------------------------------

RULES: Mapping[str, Rule] = {
    "var": _var,
    "given": _given,
    "call": _call,
    "apply": _apply,
    "every": _every,
    "step": _step,
    **dict.fromkeys(("int", "float", "text", "true", "false"), _literal),
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
    "pair": _pair,
    "fold": _fold,
}
"""For each head the rule that makes the core."""
