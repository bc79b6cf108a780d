"""Knowledge before any element is read: the lengths of lists, the bounds of indices, types and attributes.

A value is static when it is made of shapes, attributes, presence and `values(...)`. It is dynamic when it depends on an
index of a view or an equation, or on an element of a tensor. The indices of folds, lists and recurrences run in steps
and count as static. What a function makes of its parameters is demanded of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ..language.syntax import (
    Binder,
    Expr,
    FunctionDeclaration,
    Keyword,
    Operator,
    Parameter,
    Range,
    Sort,
    Span,
    Statement,
)
from .scope import Ledger

Causes = frozenset[str]
"""Why a value is dynamic, in words; empty for a static one."""
PARAMETER = "#"
"""The mark before a parameter's name that stands for its causes, which are not known yet."""
ELEMENT = "an element of "
NONE: Causes = frozenset()
TENSORS = frozenset({"order", "uniform", "normal", "outcomes"})
"""The functions whose value is a tensor."""


@dataclass(frozen=True)
class Summary:
    """A function: its parameters, the causes of its value, and the parameters that must be static."""

    parameters: tuple[Parameter, ...]
    causes: Causes
    demanded: frozenset[str]


@dataclass
class StaticScope:
    """names: the causes of the names in scope. tensors: the names of tensors; lists: of lists of tensors.

    demand: what to do where something that must be static has causes.
    """

    ledger: Ledger
    names: Mapping[str, Causes]
    tensors: frozenset[str]
    lists: frozenset[str]
    functions: dict[str, Summary | None]
    demand: Callable[[str, Span, Causes, dict[str, object]], None] = field(repr=False)

    def bind(self, names: Mapping[str, Causes], tensors: Iterable[str] = ()) -> StaticScope:
        """With more names in scope."""
        return replace(self, names={**self.names, **names}, tensors=self.tensors | frozenset(tensors))


def check_static(operator: Operator, sorts: Mapping[str, Sort | None], ledger: Ledger) -> None:
    """Reports what must be static and is not. `sorts`: those of the names of the definition, local ones included."""

    def demand(kind: str, span: Span, causes: Causes, details: dict[str, object]) -> None:
        if causes:
            ledger.report(kind, span, None, cause=min(causes), **details)

    tensors = frozenset(name for name, sort in sorts.items() if sort is not None and sort.name == "Array")
    lists = frozenset(
        name
        for name, sort in sorts.items()
        if sort is not None and sort.name == "list" and sort.element is not None and sort.element.name == "Array"
    )
    known = StaticScope(ledger, {}, tensors, lists, {}, demand)
    for statement in operator.statements:
        known = _statement(statement, known)


def _statement(statement: Statement, known: StaticScope) -> StaticScope:
    """Checks a statement; what is known behind it."""
    match statement.kind:
        case "function":
            known.functions[statement.names[0]] = _summary(statement.parameters, statement.expr, known)
        case "let":
            causes = _causes(statement.expr, known)
            return known.bind({name: NONE if name in known.tensors else causes for name in statement.names})
        case "along":
            _bounds(statement.ranges, known)
            for view in statement.body:
                _tensor(view, view.ranges[1:], known)
        case "view" | "equation" | "each":
            _tensor(statement, statement.ranges, known)
        case "entries":
            _bounds(statement.ranges[:1], known)
            _tensor(statement, statement.ranges[1:], known)
        case "type":
            known.demand("static/type", statement.expr.span, _causes(statement.expr, known), {})
        case _:
            _causes(statement.expr, known)
    return known


def _tensor(statement: Statement, ranges: tuple[Range, ...], known: StaticScope) -> None:
    _bounds(ranges, known)
    indices = {name: frozenset({f"the index {name}"}) for item in ranges for name in item.names}
    _causes(statement.expr, known.bind(indices))


def _bounds(ranges: Iterable[Range], known: StaticScope) -> None:
    for item in ranges:
        causes = _causes(item.bound, known)
        known.demand("static/bound", item.bound.span, causes, {"name": ", ".join(item.names)})


def _causes(expr: Expr, known: StaticScope) -> Causes:
    """Why the value is dynamic; demands on the way what must be static inside."""
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return known.names.get(name, NONE)
        case Expr(head="index", args=(Expr() as base, *_)) if _is_tensor(base, known):
            return _all(expr, known) | {ELEMENT + _name(base)}
        case Expr(head="call", args=(str() as name, *_)):
            return _call(expr, name, known)
        case Expr(head="fold", args=(fold, *ranges, _, _, Expr())):
            ranges_of = [item for item in ranges if isinstance(item, Range)]
            _bounds(ranges_of, known)
            causes = _all(expr, known.bind({name: NONE for item in ranges_of for name in item.names}))
            # the tensor that `filter` makes is no value that depends on elements; what is read from it is
            return frozenset(c for c in causes if not c.startswith(ELEMENT)) if fold == "filter" else causes
        case Expr(head="comprehension", args=(_, str() as name, Expr() as bound, guard)):
            known.demand("static/bound", bound.span, _causes(bound, known), {"name": name})
            return _list(expr, guard, known.bind({name: NONE}))
        case Expr(head="collect", args=(_, Binder(name=name, domain=domain), guard)):
            tensor = domain.head == "var" and domain.args[0] in known.lists
            return _list(expr, guard, known.bind({name: _causes(domain, known)}, (name,) if tensor else ()))
        case Expr(head="apply", args=args):
            for keyword in args:
                if isinstance(keyword, Keyword):
                    causes = _causes(keyword.value, known)
                    known.demand("static/attribute", keyword.value.span, causes, {"name": keyword.name})
            return _all(expr, known)
        case _:
            return _all(expr, known)


def _all(expr: Expr, known: StaticScope) -> Causes:
    return NONE.union(*(_causes(child, known) for child in expr.children()))


def _list(expr: Expr, guard: object, known: StaticScope) -> Causes:
    if isinstance(guard, Expr):
        known.demand("static/guard", guard.span, _causes(guard, known), {})
    return _all(expr, known)


def _is_tensor(expr: Expr, known: StaticScope) -> bool:
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return name in known.tensors
        case Expr(head="index", args=(Expr(head="var", args=(str() as name,)), *_)):
            return name in known.lists
        case Expr(head="call", args=(str() as name, *_)):
            return name in TENSORS
        case Expr(head="fold", args=(name, *_)):
            return name == "filter"
        case _:
            return expr.head == "apply"


def _name(expr: Expr) -> str:
    match expr:
        case Expr(head="var", args=(str() as name,)):
            return name
        case Expr(head="index", args=(Expr() as base, *_)):
            return _name(base)
        case _:
            return "a tensor"


# ---- functions --------------------------------------------------------------------------------


def _call(expr: Expr, name: str, known: StaticScope) -> Causes:
    arguments = list(expr.children())
    causes = [_causes(argument, known) for argument in arguments]
    if name == "len":
        return NONE  # whatever its entries are: the length of every list is static, since `demand` sees to it
    summary = _function(name, known)
    if summary is None or len(arguments) != len(summary.parameters):
        return NONE.union(*causes)
    reasons = frozenset(cause for cause in summary.causes if not cause.startswith(PARAMETER))
    for parameter, argument, own in zip(summary.parameters, arguments, causes, strict=True):
        if parameter.name in summary.demanded:
            known.demand("static/argument", argument.span, own, {"name": parameter.name, "function": name})
        if PARAMETER + parameter.name in summary.causes:
            reasons |= own
    return reasons


def _function(name: str, known: StaticScope) -> Summary | None:
    """The summary of a function with a body, None for a primitive."""
    if name not in known.functions:
        known.functions[name] = None
        function = known.ledger.functions.get(name)
        if isinstance(function, FunctionDeclaration) and function.kind == "define" and function.body is not None:
            bare = replace(known, names={}, tensors=frozenset(), lists=frozenset())
            known.functions[name] = _summary(function.parameters, function.body, bare)
    return known.functions[name]


def _summary(parameters: tuple[Parameter, ...], body: Expr, known: StaticScope) -> Summary:
    demanded: set[str] = set()

    def demand(kind: str, span: Span, causes: Causes, details: dict[str, object]) -> None:
        demanded.update(cause.removeprefix(PARAMETER) for cause in causes if cause.startswith(PARAMETER))
        known.demand(kind, span, frozenset(c for c in causes if not c.startswith(PARAMETER)), details)

    symbolic = {p.name: frozenset({PARAMETER + p.name}) for p in parameters}
    tensors = [p.name for p in parameters if p.sort.name == "Array"]
    causes = _causes(body, replace(known.bind(symbolic, tensors), demand=demand))
    return Summary(parameters, causes, frozenset(demanded))
