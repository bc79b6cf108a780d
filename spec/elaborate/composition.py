"""Composition: an operator that is applied, against ONNX's schema of the pinned version and against the other texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..language.syntax import Expr, Keyword, Operator, Statement
from .schema import Signature, signatures
from .scope import Ledger, hint


def applied_signature(expr: Expr, name: str, version: int, ledger: Ledger) -> Signature | None:
    """The schema of an applied operator, None without one; reports what the application has and the schema lacks."""
    known = ledger.signatures(name)
    if not known:
        ledger.report("schema/operator", expr.span, name=name, hint=hint(name, [*signatures(), *ledger.declared]))
        return None
    signature = next((s for s in known if s.version == version), None)
    if signature is None:
        versions = ", ".join(str(s.version) for s in known)
        ledger.report("schema/version", expr.span, version=version, name=name, versions=versions)
        return None
    _check_inputs(expr, signature, ledger)
    _check_keywords(expr, signature, ledger)
    return signature


def _check_inputs(expr: Expr, signature: Signature, ledger: Ledger) -> None:
    inputs = [arg for arg in expr.args[2:] if not isinstance(arg, Keyword)]
    formals = signature.inputs
    about: dict[str, object] = {"operator": signature.name, "version": signature.version}
    least = max((i + 1 for i, formal in enumerate(formals) if formal.mark == ""), default=0)
    most = None if formals and formals[-1].mark == "*" else len(formals)
    if len(inputs) < least or (most is not None and len(inputs) > most):
        expected = str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
        ledger.report("apply/inputs", expr.span, None, expected=expected, found=len(inputs), **about)
    for formal, given in zip(formals, inputs, strict=False):
        if given is None and formal.mark != "?":
            ledger.report("apply/left-out", expr.span, None, name=formal.name, **about)


def _check_keywords(expr: Expr, signature: Signature, ledger: Ledger) -> None:
    keywords = [arg for arg in expr.args if isinstance(arg, Keyword)]
    about: dict[str, object] = {"operator": signature.name, "version": signature.version}
    seen: dict[str, Keyword] = {}
    for keyword in keywords:
        if keyword.name not in signature.attributes:
            nearest = hint(keyword.name, signature.attributes)
            ledger.report("apply/attribute", keyword.span, None, name=keyword.name, hint=nearest, **about)
        elif keyword.name in seen:
            ledger.report("apply/repeated", keyword.span, seen[keyword.name].span, name=keyword.name)
        seen.setdefault(keyword.name, keyword)
    for attribute in signature.attributes.values():
        if attribute.required and attribute.name not in seen:
            ledger.report("apply/missing", expr.span, None, name=attribute.name, **about)


# ---- all operators together -------------------------------------------------------------------


Given = Mapping[str, tuple[Operator, ...]]


def check_compositions(operators: tuple[Operator, ...], ledger: Ledger, given: Given) -> None:
    """Each operator that is applied has a meaning, and none that depends on itself; `given` ones apply given ones."""
    edges = {n: list(_applied(operator, operators, ledger, given)) for n, operator in enumerate(operators)}
    for position in edges:
        for expr, target in edges[position]:
            if position in _reached(target, edges):
                name, version = operators[position].name, operators[position].first
                ledger.report("apply/recursion", expr.span, name=name, version=version)


def applied_names(statements: Iterable[Statement]) -> Iterator[str]:
    """The operators that statements apply."""
    return (str(expr.args[0]) for statement in statements for expr in _applications(statement))


def _applied(
    operator: Operator, operators: tuple[Operator, ...], ledger: Ledger, given: Given
) -> Iterator[tuple[Expr, int]]:
    """The applications in a definition, each with the position of the definition that it means."""
    for expr in (e for statement in operator.statements for e in _applications(statement)):
        name, version = str(expr.args[0]), int(str(expr.args[1]))
        meanings = (i for i, o in enumerate(operators) if o.name == name and o.first <= version <= o.last)
        target = next(meanings, None)
        if target is not None:
            yield expr, target
        elif any(s.version == version for s in ledger.signatures(name)) and not any(
            it.first <= version <= it.last for it in given.get(name, ())
        ):
            ledger.report("apply/undefined", expr.span, name=name, version=version)


def _applications(statement: Statement) -> Iterator[Expr]:
    waiting = [statement.expr, *(item.bound for item in statement.ranges)]
    while waiting:
        expr = waiting.pop()
        waiting += expr.children()
        if expr.head == "apply":
            yield expr
    for inner in statement.body:
        yield from _applications(inner)


def _reached(start: int, edges: dict[int, list[tuple[Expr, int]]]) -> set[int]:
    reached, waiting = {start}, [start]
    while waiting:
        for _, target in edges[waiting.pop()]:
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached
