"""Operators: the scope of a definition, its statements, and its agreement with the ONNX schema of every version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .clauses import check_clauses
from .infer import bind_ranges, check, infer
from .ranks import check_ranks
from .schema import FormalAttribute, FormalPort, Signature, signatures
from .scope import Binding, Ledger, Scope, hint
from .sorts import CLASH, ELEMENT, TYPE, VECTOR, adapt, array_of, join
from .syntax import BOOL, INT, Expr, Operator, Port, Statement

INTEGER_TYPES = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
MARKS = {"": "required", "?": "optional", "*": "variadic"}


def check_operators(operators: tuple[Operator, ...], ledger: Ledger) -> None:
    """Each definition by itself, and that no version of an operator has two meanings."""
    for operator in operators:
        check_operator(operator, ledger)
    for position, operator in enumerate(operators):
        for other in operators[:position]:
            low, high = max(operator.first, other.first), min(operator.last, other.last)
            if operator.name == other.name and low <= high:
                ledger.report("operator/overlap", operator.span, other.span, name=operator.name, version=low)


def check_operator(operator: Operator, ledger: Ledger) -> None:
    """The header and the schema, then the statements in written order."""
    check_clauses("operator", operator.name, operator.clauses, operator.span, ledger)
    if operator.first > operator.last:
        ledger.report("operator/range", operator.span, first=operator.first, last=operator.last)
        return
    covered = _covered(operator, ledger)
    for signature in covered:
        before = len(ledger.errors)
        _check_ports(operator, operator.inputs, signature.inputs, "input", signature, ledger)
        _check_ports(operator, operator.outputs, signature.outputs, "output", signature, ledger)
        if len(ledger.errors) > before:
            break
    attributes = covered[-1].attributes if covered else {}
    scope = _opening(operator, attributes, ledger)
    names = frozenset(scope.bindings)
    _check_statements(operator, scope, ledger)
    check_ranks(operator, [a.name for a in attributes.values() if a.sort.name == "list"], ledger)
    if covered:
        mentioned = {name for statement in operator.statements for name in free_names(statement)}
        _check_attributes(operator, covered, mentioned - (names - frozenset(attributes)), ledger)


def _covered(operator: Operator, ledger: Ledger) -> tuple[Signature, ...]:
    """The schemas in the range of versions; both ends of the range must be versions."""
    known = signatures()
    if operator.name not in known:
        ledger.report("schema/operator", operator.span, name=operator.name, hint=hint(operator.name, known))
        return ()
    versions = tuple(s.version for s in known[operator.name])
    for version in dict.fromkeys((operator.first, operator.last)):
        if version not in versions:
            ledger.report(
                "schema/version", operator.span,
                version=version, name=operator.name, versions=", ".join(map(str, versions)),
            )  # fmt: skip
    return tuple(s for s in known[operator.name] if operator.first <= s.version <= operator.last)


def _check_ports(
    operator: Operator,
    ports: tuple[Port, ...],
    formals: tuple[FormalPort, ...],
    direction: str,
    signature: Signature,
    ledger: Ledger,
) -> None:
    expected = {formal.name: position for position, formal in enumerate(formals)}
    about: dict[str, object] = {"operator": signature.name, "version": signature.version, "direction": direction}
    for position, port in enumerate(ports):
        at = expected.get(port.name)
        if at is None:
            ledger.report("schema/no-port", port.span, None, name=port.name, hint=hint(port.name, expected), **about)
            continue
        formal = formals[at]
        if at != position:
            ledger.report("schema/port-order", port.span, None, name=port.name, found=position, expected=at, **about)
        if formal.mark != port.mark:
            found, wanted = MARKS[port.mark], MARKS[formal.mark]
            ledger.report("schema/mark", port.span, None, name=port.name, found=found, expected=wanted, **about)
        if formal.type != port.type:
            ledger.report(
                "schema/type", port.span, None, name=port.name, found=port.type, expected=formal.type, **about
            )
    for name in expected:
        if name not in {port.name for port in ports}:
            ledger.report("schema/missing-port", operator.span, None, name=name, **about)


def _check_attributes(
    operator: Operator, covered: tuple[Signature, ...], mentioned: frozenset[str] | set[str], ledger: Ledger
) -> None:
    """Every attribute of every version is used or declared unused; versions agree on what is used.

    Versions repeat each other's mistakes, so the first version with mistakes is reported alone, as it is for ports.
    """
    unused = {item.value: item.span for item in operator.clauses if item.key == "unused"}
    newest = covered[-1]
    before = len(ledger.errors)
    for signature in covered:
        if len(ledger.errors) > before:
            break
        about: dict[str, object] = {"operator": signature.name, "version": signature.version}
        for name, attribute in signature.attributes.items():
            if name not in mentioned and name not in unused:
                ledger.report("schema/ignored-attribute", operator.span, None, name=name, **about)
            elif name in mentioned and name in newest.attributes and newest.attributes[name] != attribute:
                ledger.report(
                    "schema/attribute-sort", operator.span,
                    name=name, operator=signature.name, first=signature.version, version=newest.version,
                )  # fmt: skip
        for name in newest.attributes:
            if name in mentioned and name not in signature.attributes:
                ledger.report("schema/no-attribute", operator.span, None, name=name, **about)
        for name, span in unused.items():
            if name not in signature.attributes:
                ledger.report("schema/unused-attribute", span, None, name=name, **about)
    for name, span in unused.items():
        if name in mentioned:
            ledger.report("schema/used-attribute", span, name=name)


def _opening(operator: Operator, attributes: Mapping[str, FormalAttribute], ledger: Ledger) -> Scope:
    """The names that a definition starts with: ports, element types, attributes, the dimensions of ports."""
    scope = Scope(operator=operator.name)
    for attribute in attributes.values():
        scope = scope.bind(Binding(attribute.name, attribute.sort, "attribute", operator.span, attribute.optional))
    for port in (*operator.inputs, *operator.outputs):
        origin = "port" if port in operator.inputs else "result"
        if port.type not in scope.bindings or scope.bindings[port.type].origin != "type":
            ledger.check_fresh(port.type, port.span, scope)
            scope = scope.bind(Binding(port.type, TYPE, "type", port.span))
        ledger.check_fresh(port.name, port.span, scope)
        if origin == "port":
            sort = array_of(ELEMENT) if port.mark != "*" else array_of(array_of(ELEMENT))
            scope = scope.bind(Binding(port.name, sort, origin, port.span, port.mark == "?"))
    for port in operator.inputs:
        for dimension in port.shape or ():
            if isinstance(dimension, int):
                continue
            name, dots = dimension
            sort = VECTOR if dots else INT
            old = scope.bindings.get(name)
            if old is None or old.origin != "shape":
                ledger.check_fresh(name, port.span, scope)
                scope = scope.bind(Binding(name, sort, "shape", port.span))
            elif old.sort != sort:
                ledger.report("sort/equality", port.span, old.span, relation="=", left=old.sort, right=sort)
    return scope


def _check_statements(operator: Operator, scope: Scope, ledger: Ledger) -> None:
    """Statements in written order: each sees what stands before it. Every output is defined once."""
    outputs = {port.name: port for port in operator.outputs}
    defined: dict[str, Statement] = {}
    local: list[Binding] = []
    for statement in operator.statements:
        match statement.kind:
            case "let":
                made = _let(statement, scope, ledger)
                local += made
                scope = scope.bind(*made)
            case "require":
                check_clauses("require", "", statement.clauses, statement.span, ledger)
                check(statement.expr, BOOL, scope, ledger)
            case "view":
                inner, _ = bind_ranges(statement.ranges, scope, ledger)
                sort = infer(statement.expr, inner, ledger)
                ledger.check_fresh(statement.names[0], statement.span, scope)
                sort = adapt(statement.expr, sort, ELEMENT)
                local.append(Binding(statement.names[0], array_of(sort), "view", statement.span))
                scope = scope.bind(local[-1])
            case _:
                name = statement.names[0]
                inner, _ = bind_ranges(statement.ranges, scope, ledger)
                if name not in outputs:
                    ledger.report("operator/no-output", statement.span, name=name, operator=operator.name)
                elif name in defined:
                    ledger.report("operator/output-twice", statement.span, defined[name].span, name=name)
                defined.setdefault(name, statement)
                _check_element(statement.expr, outputs.get(name), inner, ledger)
    ledger.check_used(local)
    for port in operator.outputs:
        if port.name not in defined:
            ledger.report("operator/undefined-output", port.span, name=port.name)


def _let(statement: Statement, scope: Scope, ledger: Ledger) -> list[Binding]:
    """`let x = e`, or `let x, y = e` where e is a list."""
    sort = infer(statement.expr, scope, ledger)
    if len(statement.names) > 1:
        if sort is not None and sort.name != "list":
            ledger.report("sort/expected", statement.expr.span, expected="a list", found=sort)
            sort = None
        items = statement.expr.args
        if statement.expr.head == "vector" and len(items) != len(statement.names):
            ledger.report("arity/names", statement.expr.span, expected=len(statement.names), found=len(items))
        sort = sort.element if sort is not None else None
    made = []
    for name in statement.names:
        ledger.check_fresh(name, statement.span, scope)
        made.append(Binding(name, sort, "let", statement.span))
    return made


def _check_element(expr: Expr, port: Port | None, scope: Scope, ledger: Ledger) -> None:
    """An element of an output: of its type; an integer or boolean where that is the output's type."""
    found = adapt(expr, infer(expr, scope, ledger), ELEMENT)
    exact = {"bool": BOOL} | dict.fromkeys(INTEGER_TYPES, INT)
    if port is not None and port.type in exact and found == exact[port.type]:
        return
    if join(ELEMENT, found) == CLASH:
        ledger.report("sort/expected", expr.span, expected=ELEMENT, found=found)


def free_names(statement: Statement) -> Iterator[str]:
    """The names that a statement mentions, as variables or after `given`."""
    yield from _names(statement.expr)
    for item in statement.ranges:
        yield from _names(item.bound)


def _names(expr: Expr) -> Iterator[str]:
    if expr.head in ("var", "given"):
        yield str(expr.args[0])
    for child in expr.children():
        yield from _names(child)
