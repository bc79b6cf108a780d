"""The statements of a definition, in written order: each sees what stands before it. Every output is defined once.

Checking a statement gives its core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from ..language.syntax import BOOL, DEMANDS, INT, Expr, Operator, Port, Sort, Span, Statement
from .clauses import check_clauses
from .core import TRUE, Binding, Bound, Core, CoreStatement
from .infer import as_numeral_of, bind_ranges, check, infer
from .presence import alternatives, presence
from .recurrence import check_order
from .schema import TENSORS, Signature
from .scope import Ledger, Scope, held, hint
from .sorts import ANY, BUILT_IN, CLASH, ELEMENT, TYPE, VALUE, adapt, array_of, conversion, join, list_of

INTEGER_TYPES = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16, 32, 64))
OUTPUTS = frozenset({"equation", "each", "entries", "result"})
"""The statements that define outputs."""


@dataclass
class Progress:
    """The part of a definition that has been read. types: the statements that give types. typed: those that define
    outputs by a value which has a type."""

    operator: Operator
    signature: Signature | None
    scope: Scope
    local: list[Binding] = field(default_factory=list)
    defined: dict[str, Statement] = field(default_factory=dict)
    types: dict[str, Statement] = field(default_factory=dict)
    typed: list[Statement] = field(default_factory=list)


def check_statements(
    operator: Operator, scope: Scope, signature: Signature | None, transitions: frozenset[str], ledger: Ledger
) -> tuple[tuple[CoreStatement, ...], Mapping[str, Sort | None]]:
    """The cores of the statements, in a scope of ports and attributes, and the sorts of all names, local ones included.

    `signature`: of the newest version that the definition covers. `transitions`: the names of the machine's rules.
    """
    progress = Progress(operator, signature, scope)
    made = []
    for statement in operator.statements:
        if statement.kind == "rule":
            made.append(_rule(statement, transitions, progress, ledger))
        else:
            made.append(CHECKS[statement.kind](statement, progress, ledger))
    ledger.check_used(progress.local)
    _check_ids(progress, ledger)
    _check_complete(progress, ledger)
    return tuple(made), {name: ledger.sort_of(binding) for name, binding in progress.scope.bindings.items()}


def is_rule(operator: Operator) -> bool:
    """True where the operator's meaning is a rule of the machine."""
    return any(statement.kind == "rule" for statement in operator.statements)


RESERVED_IDS = frozenset({"inputs", "step"})
"""The ids of what every definition requires: that the shapes of its inputs, or its bodies, go together."""


def _check_ids(progress: Progress, ledger: Ledger) -> None:
    """An id names one requirement, and nothing else in the definition."""
    seen: dict[str, Span] = {}
    for statement in progress.operator.statements:
        if statement.kind in DEMANDS:
            named = progress.scope.bindings.get(statement.id)
            first = seen.setdefault(statement.id, named.span if named is not None else statement.span)
            if first is not statement.span or statement.id in RESERVED_IDS:
                other = None if first is statement.span else first
                ledger.report("operator/id", statement.span, other, name=statement.id)


def _bind(bindings: list[Binding], progress: Progress, ledger: Ledger) -> None:
    for binding in bindings:
        ledger.check_fresh(binding.name, binding.span, progress.scope)
        progress.scope = progress.scope.bind(binding)
    progress.local += bindings


# ---- local names ------------------------------------------------------------------------------


def _let(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """`let x = e`, or `let x, y = e` where e is a list or an operator with several outputs."""
    names, expr = statement.names, statement.expr
    body = infer(expr, progress.scope, ledger)
    sort = body.sort
    if len(names) > 1 and expr.head == "apply":
        versions = ledger.signatures(str(expr.args[0]))
        outputs = next((len(s.outputs) for s in versions if s.version == expr.args[1]), len(names))
        if len(names) > outputs:
            ledger.report("arity/names", expr.span, expected=len(names), found=outputs)
    elif len(names) > 1:
        if sort is not None and sort.name != "list":
            ledger.report("sort/expected", expr.span, expected="a list", found=sort, hint="")
            sort = None
        if expr.head == "vector" and len(expr.args) != len(names):
            ledger.report("arity/names", expr.span, expected=len(names), found=len(expr.args))
        sort = sort.element if sort is not None else None
    meaning = expr if len(names) == 1 and sort == BOOL else None
    made = [Binding(name, sort, "let", statement.span, meaning=meaning) for name in names]
    _bind(made, progress, ledger)
    return CoreStatement("let", body, statement.span, binds=tuple(made))


def _function(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """`let f(i: Int) = e`: the body sees the parameters and what stands before."""
    inner, made = progress.scope, list[Binding]()
    parameters = held(statement.parameters)
    for position, parameter in enumerate(parameters):
        if not ledger.check_sort(parameter.sort, parameter.span, any_allowed=False):
            parameters = (*parameters[:position], replace(parameter, sort=ANY), *parameters[position + 1 :])
        ledger.check_fresh(parameter.name, parameter.span, inner)
        made.append(Binding(parameter.name, parameters[position].sort, "parameter", parameter.span))
        inner = inner.bind(made[-1])
    body = infer(statement.expr, inner, ledger)
    ledger.check_used(made)
    name = statement.names[0]
    other = ledger.functions.get(name)
    if other is not None and all(_built_in(p.sort) for p in other.parameters):
        ledger.report("name/shadow", statement.span, other.span, name=name)
    own = Binding(name, body.sort, "function", statement.span, parameters=parameters)
    _bind([own], progress, ledger)
    return CoreStatement("function", body, statement.span, binds=(own,), parameters=tuple(made))


def _built_in(sort: Sort) -> bool:
    """True where the sort has a meaning in operators; functions over the sorts of graphs are no concern of theirs."""
    return sort.name in BUILT_IN if sort.element is None else _built_in(sort.element)


def _view(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    inner, bound = bind_ranges(statement.ranges, progress.scope, ledger)
    body = infer(statement.expr, inner, ledger)
    sort = _held(statement.expr, body.sort, ledger)
    own = Binding(statement.names[0], array_of(sort), "view", statement.span)
    _bind([own], progress, ledger)
    return CoreStatement("view", as_numeral_of(sort, body), statement.span, binds=(own,), bound=bound)


def _held(expr: Expr, sort: Sort | None, ledger: Ledger) -> Sort | None:
    """The sort of what a local tensor holds: a numeral is an element only beside one, so it counts as a number."""
    if sort is not None and sort not in (BOOL, INT, ELEMENT) and sort.name not in ("Rational", "Any"):
        ledger.report("sort/held", expr.span, found=sort)
        return None
    return adapt(expr, sort, ELEMENT)


def _along(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """Views by steps. A body reads the views of the block at earlier steps, those before it at the same one too.

    What a view holds follows from its body, in which the views themselves occur: it is read twice.
    """
    (steps,) = statement.ranges
    if steps.dots or len(steps.names) > 1:
        ledger.report("along/steps", steps.span)
        return CoreStatement("along", TRUE, statement.span)
    names = [view.names[0] for view in statement.body]
    outside, (bound,) = bind_ranges(statement.ranges, progress.scope, ledger)
    for view in statement.body:
        if not view.ranges or view.ranges[0] != steps:
            ledger.report("along/range", view.span, steps.span, name=view.names[0], step=steps.names[0])
    made = [Binding(name, array_of(None), "view", v.span) for name, v in zip(names, statement.body, strict=True)]
    for position, binding in enumerate(made):
        ledger.check_fresh(binding.name, binding.span, outside.bind(*made[:position]))
    for quiet in (True, True, False):
        reports = ledger.quiet() if quiet else ledger
        scope, views = outside.bind(*made), list[CoreStatement]()
        for position, view in enumerate(statement.body):
            inner, ranges = bind_ranges(view.ranges[1:], scope, reports)
            body = infer(view.expr, inner, reports)
            sort = _held(view.expr, body.sort, reports)
            made[position] = replace(made[position], sort=array_of(sort)) if quiet else made[position]
            body = as_numeral_of(sort, body)
            views.append(CoreStatement("view", body, view.span, binds=(made[position],), bound=ranges))
    for position, view in enumerate(statement.body):
        for kind, span, name in check_order(view, position, names, bound.variable.name):
            ledger.report(kind, span, name=name, step=bound.variable.name)
    progress.scope = progress.scope.bind(*made)
    progress.local += made
    return CoreStatement("along", TRUE, statement.span, binds=tuple(made), bound=(bound,), inner=tuple(views))


# ---- what is demanded and given ---------------------------------------------------------------


def _require(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    made = _restrict(statement, progress, ledger)
    given = presence(statement.expr, progress.scope)
    progress.scope = progress.scope.given(given, alternatives(statement.expr))
    return made


def _restrict(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """A condition that nothing behind it may rely on."""
    kind = statement.kind
    check_clauses(kind, "", statement.clauses, statement.span, ledger)
    return CoreStatement(
        kind, check(statement.expr, BOOL, progress.scope, ledger), statement.span, statement.id, statement.doc
    )


def _type(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """`type T2 = e`: an element type of outputs, which the inputs leave open."""
    name = statement.names[0]
    body = check(statement.expr, TYPE, progress.scope, ledger)
    known = {port.type: port.span for port in progress.operator.outputs}
    if name not in known:
        ledger.report("type/output", statement.span, name=name, hint=hint(name, known))
    elif name in progress.types:
        ledger.report("type/twice", statement.span, progress.types[name].span, name=name)
    progress.types.setdefault(name, statement)
    own = progress.scope.bindings.get(name)
    return CoreStatement("type", body, statement.span, binds=() if own is None else (own,))


def _output(statement: Statement, progress: Progress, ledger: Ledger) -> CoreStatement:
    """An equation `Y[...] = e`, one `Ys[p][...] = e` for each output of a list, or `Y = e` where e is all of it."""
    name = statement.names[0]
    port = next((p for p in progress.operator.outputs if p.name == name), None)
    if port is None:
        ledger.report("operator/no-output", statement.span, name=name, operator=progress.operator.name)
    elif name in progress.defined:
        ledger.report("operator/output-twice", statement.span, progress.defined[name].span, name=name)
    elif statement.kind != "result" and (port.mark == "*") != (statement.kind == "each"):
        kind = "operator/list-output" if port.mark == "*" else "operator/one-output"
        ledger.report(kind, statement.span, port.span, name=name)
    elif statement.kind == "entries":
        mistake = _no_entries(statement, port, progress.signature)
        if mistake:
            ledger.report(mistake, statement.span, port.span, name=name)
    progress.defined.setdefault(name, statement)
    if statement.kind == "result":
        return CoreStatement("result", _whole(statement, port, progress, ledger), statement.span, name=name)
    scope, places = progress.scope, list[Binding]()
    for position in statement.names[1:]:
        ledger.check_fresh(position, statement.span, scope)
        places.append(Binding(position, INT, "binder", statement.span))
        scope = scope.bind(places[-1])
    bound: tuple[Bound, ...] = ()
    for ranges in (statement.ranges[:1], statement.ranges[1:]) if statement.kind == "entries" else (statement.ranges,):
        scope, made = bind_ranges(ranges, scope, ledger)  # the sizes of an entry depend on its position
        bound += made
    body = infer(statement.expr, scope, ledger)
    sort = adapt(statement.expr, body.sort, ELEMENT)
    _check_held(statement, port, sort, progress, ledger)
    body = as_numeral_of(sort, body)
    return CoreStatement(statement.kind, body, statement.span, name=name, binds=tuple(places), bound=bound)


def _no_entries(statement: Statement, port: Port, signature: Signature | None) -> str:
    """The mistake of `Y[p < n][...] = e` where Y has no entries of that kind by its schema, or "".

    Of an entry that is a map the statement gives the pairs, which have one index.
    """
    formals = signature.outputs if signature is not None else ()
    sorts = [formal.sort for formal in formals if formal.name == port.name]
    if any(sort.name != "list" for sort in sorts):
        return "operator/no-sequence"
    pairs = statement.expr.head == "pair"
    if any((sort.element == TENSORS) != pairs for sort in sorts):
        return "operator/no-maps" if pairs else "operator/maps"
    within = statement.ranges[1:]
    return "operator/pairs" if pairs and (len(within) != 1 or within[0].dots or len(within[0].names) > 1) else ""


def _whole(statement: Statement, port: Port | None, progress: Progress, ledger: Ledger) -> Core:
    """`Y = e`: what the output is by its schema, a tensor, a list or a Value."""
    formals = progress.signature.outputs if progress.signature is not None else ()
    sort = next((formal.sort for formal in formals if port is not None and formal.name == port.name), None)
    expected = array_of(None) if sort in (None, array_of(ELEMENT)) else sort
    if port is not None and port.mark == "*":
        expected = list_of(expected)
    body = check(statement.expr, expected, progress.scope, ledger)
    given = body.sort
    if given is None or given == VALUE or given == array_of(ELEMENT):
        progress.typed.append(statement)
    if given is not None and given.name == "Array":
        _check_held(statement, port, given.element, progress, ledger)
    return body


def _check_held(statement: Statement, port: Port | None, held: Sort | None, progress: Progress, ledger: Ledger) -> None:
    """The content of an output: elements, or Int or Bool where its type allows that alone."""
    exact = None if port is None else _exact(port, progress.signature)
    if held != exact and join(ELEMENT, held) == CLASH:
        advice = conversion(ELEMENT, held)
        ledger.report("sort/expected", statement.expr.span, expected=ELEMENT, found=held, hint=advice)


def _exact(port: Port, signature: Signature | None) -> Sort | None:
    """Int or Bool for an output whose only element type is one of integers or bool."""
    allowed = {port.type}
    for formal in signature.outputs if signature is not None else ():
        if formal.name == port.name and len(formal.allowed) == 1:
            allowed = set(formal.allowed)
    (only,) = allowed
    return INT if only in INTEGER_TYPES else BOOL if only == "bool" else None


def _rule(statement: Statement, transitions: frozenset[str], progress: Progress, ledger: Ledger) -> CoreStatement:
    """`by rule R`: the machine executes the operator by its rule R; nothing else defines it."""
    if statement.doc not in transitions:
        ledger.report("operator/rule", statement.span, name=statement.doc, hint=hint(statement.doc, transitions))
    for other in progress.operator.statements:
        if other.kind in OUTPUTS or (other.kind == "rule" and other is not statement):
            ledger.report("operator/rule-alone", other.span, statement.span)
            break
    return CoreStatement("rule", TRUE, statement.span, doc=statement.doc)


def _check_complete(progress: Progress, ledger: Ledger) -> None:
    """Each output is defined, unless a rule of the machine does it or the text demands its absence."""
    operator = progress.operator
    if is_rule(operator):
        return
    absent = frozenset[str]()
    for statement in operator.statements:
        if statement.kind == "require":
            absent |= _absent(statement.expr)
    for port in operator.outputs:
        if port.name not in progress.defined and port.name not in absent:
            advice = f", or require not given {port.name}" if port.mark == "?" else ""
            ledger.report("operator/undefined-output", port.span, name=port.name, hint=advice)
    _check_types(progress, ledger)


def _absent(expr: Expr) -> frozenset[str]:
    """The names that are not given where the condition holds."""
    match expr:
        case Expr(head="not", args=(Expr(head="given", args=(str() as name,)),)):
            return frozenset({name})
        case Expr(head="and"):
            return frozenset().union(*(_absent(part) for part in expr.children()))
        case _:
            return frozenset()


def _check_types(progress: Progress, ledger: Ledger) -> None:
    """A type variable of an output is fixed by an input that is always there, or else given by the text, not both. An
    output that is a value as a whole has the type of that value.
    """
    if progress.signature is None:
        return
    fixed = {f.type for f in progress.signature.inputs if f.mark == "" or (f.mark == "*" and f.least > 0)}
    variables = {f.type for f in progress.signature.outputs if f.allowed != {f.type}}
    for port in progress.operator.outputs:
        if port.name not in progress.defined or progress.defined[port.name] in progress.typed:
            continue
        if port.type in variables - fixed and port.type not in progress.types:
            ledger.report("type/open", port.span, name=port.type)
            variables -= {port.type}
    for name, statement in progress.types.items():
        if name in fixed or (name not in variables and any(p.type == name for p in progress.operator.outputs)):
            ledger.report("type/fixed", statement.span, name=name)


CHECKS = {
    "let": _let,
    "function": _function,
    "view": _view,
    "along": _along,
    "require": _require,
    "restrict": _restrict,
    "type": _type,
    **dict.fromkeys(OUTPUTS, _output),
}
"""The check of each kind of statement; `rule` stands apart."""


def free_names(statement: Statement) -> Iterator[str]:
    """The names that a statement mentions, as variables or after `given`."""
    yield from _names(statement.expr)
    for item in statement.ranges:
        yield from _names(item.bound)
    for inner in statement.body:
        yield from free_names(inner)


def _names(expr: Expr) -> Iterator[str]:
    if expr.head in ("var", "given"):
        yield str(expr.args[0])
    for child in expr.children():
        yield from _names(child)
