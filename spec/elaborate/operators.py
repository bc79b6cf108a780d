"""Operators: the scope of a definition, its statements, and its agreement with the ONNX schema of every version."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..language.syntax import (
    INT,
    AttributeDeclaration,
    Contract,
    Operator,
    Port,
    Span,
    TypeVariable,
    spelled_group,
)
from .clauses import check_clauses
from .composition import applied_names, check_compositions
from .core import Binding, CoreOperator
from .declared import declared
from .ranks import check_ranks
from .schema import FormalPort, Signature, signatures
from .scope import Ledger, Scope, hint
from .sorts import ELEMENT, ELEMENT_TYPES, TYPE, VECTOR, array_of, list_of
from .statements import check_statements, free_names, is_rule
from .static import check_static

LATEST = 2**31 - 1
"""The greatest since_version: ONNX keeps it in a signed integer of 32 bits."""
MARKS = {"": "required", "?": "optional", "*": "variadic"}


def check_operators(
    operators: tuple[Operator, ...],
    transitions: Iterable[str],
    ledger: Ledger,
    given: Mapping[str, tuple[Operator, ...]],
) -> tuple[CoreOperator, ...]:
    """The cores of definitions; no version of an operator has two meanings.

    `transitions`: the names of the rules of the machine. given: operators of a text to which these are added.
    """
    transitions = frozenset(transitions)
    applied = {name for operator in operators for name in applied_names(operator.statements)}
    known = (it for name in given if name in applied for it in given[name])
    for operator in (*known, *operators):
        if "::" in operator.name and operator.name not in signatures():
            ledger.declared[operator.name] = (*ledger.signatures(operator.name), declared(operator, ledger))
    cores = [check_operator(operator, transitions, ledger) for operator in operators]
    check_compositions(operators, ledger, given)
    for position, operator in enumerate(operators):
        for other in (*given.get(operator.name, ()), *operators[:position]):
            low, high = max(operator.first, other.first), min(operator.last, other.last)
            if operator.name == other.name and low <= high:
                ledger.report("operator/overlap", operator.span, other.span, name=operator.name, version=low)
    return tuple(core for core in cores if core is not None)


def check_contracts(contracts: Sequence[Contract], operators: Iterable[Operator], ledger: Ledger) -> None:
    """A contract is of a version that ONNX has, which no other text gives a meaning."""
    seen: dict[tuple[str, int], Span] = {}
    for operator in operators:
        versions = [s.version for s in signatures().get(operator.name, ())] if contracts else []
        seen |= {(operator.name, v): operator.span for v in versions if operator.first <= v <= operator.last}
    for it in contracts:
        check_clauses("contract", it.name, it.clauses, it.span, ledger)
        if it.version not in [s.version for s in signatures().get(it.name, ())]:
            ledger.report("contract/unknown", it.span, name=it.name, version=it.version)
        elif (it.name, it.version) in seen:
            ledger.report("operator/overlap", it.span, seen[it.name, it.version], name=it.name, version=it.version)
        seen[it.name, it.version] = it.span


def check_operator(operator: Operator, transitions: frozenset[str], ledger: Ledger) -> CoreOperator | None:
    """The core of a definition: the header and the schema are checked, then the statements in written order. None where
    its versions are no range, or its name is that of an operator of ONNX with the other name of the default domain.
    """
    check_clauses("operator", operator.name, operator.clauses, operator.span, ledger)
    if operator.name.startswith("ai.onnx::") and operator.name.removeprefix("ai.onnx::") in signatures():
        ledger.report("operator/domain", operator.span, name=operator.name.removeprefix("ai.onnx::"))
        return None
    for version in (it for it in (operator.first, operator.last) if not 1 <= it <= LATEST):
        ledger.report("operator/version", operator.span, version=version, most=LATEST)
        return None
    if operator.first > operator.last:
        ledger.report("operator/range", operator.span, first=operator.first, last=operator.last)
        return None
    covered = _covered(operator, ledger)
    for signature in covered:
        before = len(ledger.errors)
        _check_ports(operator, operator.inputs, signature.inputs, "input", signature, ledger)
        _check_ports(operator, operator.outputs, signature.outputs, "output", signature, ledger)
        if len(ledger.errors) > before:
            break
    if not is_rule(operator):
        _check_sorts(operator, covered, ledger)
    attributes = covered[-1].attributes if covered else {}
    scope = _opening(operator, covered[-1] if covered else None, ledger)
    names = frozenset(scope.bindings)
    statements, sorts = check_statements(operator, scope, covered[-1] if covered else None, transitions, ledger)
    check_ranks(operator, sorts, ledger)
    check_static(operator, sorts, ledger)
    if covered and not is_rule(operator):
        meant = (statement for statement in operator.statements if statement.kind != "restrict")
        mentioned = {name for statement in meant for name in free_names(statement)}
        _check_attributes(operator, covered, mentioned - (names - frozenset(attributes)), ledger)
    return CoreOperator(
        operator.name,
        operator.first,
        operator.last,
        operator.inputs,
        operator.outputs,
        operator.doc,
        operator.span,
        scope.bindings,
        statements,
        operator.types,
        operator.attributes,
    )


def _covered(operator: Operator, ledger: Ledger) -> tuple[Signature, ...]:
    """The schemas in the range of versions; both ends of the range must be versions."""
    known = ledger.signatures(operator.name)
    if not known:
        ledger.report("schema/operator", operator.span, name=operator.name, hint=hint(operator.name, signatures()))
        return ()
    written: tuple[TypeVariable | AttributeDeclaration, ...] = (*operator.types, *operator.attributes)
    for it in () if operator.name in ledger.declared else written:
        ledger.report("declared/schema", it.span, name=it.name, operator=operator.name)
    versions = tuple(s.version for s in known)
    for version in dict.fromkeys((operator.first, operator.last)):
        if version not in versions:
            ledger.report(
                "schema/version", operator.span,
                version=version, name=operator.name, versions=", ".join(map(str, versions)),
            )  # fmt: skip
    return tuple(s for s in known if operator.first <= s.version <= operator.last)


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
        found, wanted = spelled_group(port.type, port.others), spelled_group(formal.type, formal.others)
        if found != wanted:
            ledger.report("schema/type", port.span, None, name=port.name, found=found, expected=wanted, **about)
    for name in expected:
        if name not in {port.name for port in ports}:
            ledger.report("schema/missing-port", operator.span, None, name=name, **about)


def _check_sorts(operator: Operator, covered: tuple[Signature, ...], ledger: Ledger) -> None:
    """A port holds the same in all versions, a tensor, a sequence or an optional; only tensors have axes."""
    for port in (*operator.inputs, *operator.outputs):
        sorts = {
            signature.version: formal.sort
            for signature in covered
            for formal in (*signature.inputs, *signature.outputs)
            if formal.name == port.name
        }
        about: dict[str, object] = {"name": port.name, "operator": operator.name}
        if len(set(sorts.values())) > 1:
            (first, one), (version, other) = next(iter(sorts.items())), list(sorts.items())[-1]
            ledger.report(
                "schema/sort", port.span, None, **about, first=first, version=version, left=one, right=other
            )  # fmt: skip
        elif port.shape is not None and sorts and set(sorts.values()) != {array_of(ELEMENT)}:
            ledger.report("schema/shape", port.span, None, **about, sort=sorts.popitem()[1])


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


def _opening(operator: Operator, signature: Signature | None, ledger: Ledger) -> Scope:
    """The names that a definition starts with: ports, element types, attributes, the dimensions of ports."""
    scope, results = Scope(operator=operator.name), list[Binding]()
    formals = {formal.name: formal for formal in signature.inputs} if signature is not None else {}
    for attribute in signature.attributes.values() if signature is not None else ():
        scope = scope.bind(Binding(attribute.name, attribute.sort, "attribute", operator.span, attribute.optional))
    for port in (*operator.inputs, *operator.outputs):
        origin = "port" if port in operator.inputs else "result"
        if port.type not in scope.bindings or scope.bindings[port.type].origin != "type":
            if port.type not in ELEMENT_TYPES:
                ledger.check_fresh(port.type, port.span, scope)
            scope = scope.bind(Binding(port.type, TYPE, "type", port.span))
        if origin == "result" and port.name in scope.bindings and scope.bindings[port.name].origin == "port":
            # BatchNormalization-9 has an input and an output mean: the name means the input, `given mean` the output
            scope = scope.bind(Binding(f"given {port.name}", None, origin, port.span, port.mark == "?"))
            continue
        ledger.check_fresh(port.name, port.span, scope)
        if origin == "result":
            sort = list_of(None) if port.mark == "*" else None
            results = [*results, Binding(port.name, sort, origin, port.span, port.mark == "?")]
        else:
            one = formals[port.name].sort if port.name in formals else array_of(ELEMENT)
            sort = one if port.mark != "*" else list_of(one)
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
                ledger.report("sort/equality", port.span, old.span, relation="=", left=old.sort, right=sort, hint="")
    return scope.bind(*results)
