"""Rewrites: each side as the definition of an operator, with the checks that definitions undergo.

A side has the ports of the rule, and as attributes what the left side binds: a name that it gives to an attribute of an
applied operator, and that is nothing else. Element types are those that the schemas of the left side admit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from ..language.parse import Argument
from ..language.syntax import (
    AttributeDeclaration,
    Clause,
    Expr,
    Keyword,
    Operator,
    Rewrite,
    Span,
    Statement,
    TypeVariable,
)
from .clauses import check_clauses
from .composition import applied_names, check_compositions
from .core import CoreRewrite
from .declared import declared
from .operators import check_operator
from .schema import ATTRIBUTE_SORTS, Signature
from .scope import Ledger, hint
from .sorts import ELEMENT_TYPES

SIDES = ("from", "to")
"""The domains of the two definitions of a rule."""
KINDS = {sort: kind.lower() for kind, sort in reversed(ATTRIBUTE_SORTS.items()) if kind != "SPARSE_TENSOR"}
"""For each sort of attributes the word that declares it."""
EVERY = tuple(sorted(ELEMENT_TYPES))
MOST = 4096
"""So many choices of element types are tried."""


def check_rewrites(
    rewrites: Iterable[Rewrite], ledger: Ledger, given: Mapping[str, tuple[Operator, ...]]
) -> tuple[CoreRewrite, ...]:
    """The cores of rules. given: the meanings of operators, which the sides apply."""
    return tuple(core for it in rewrites if (core := _check(it, ledger, given)) is not None)


def sides(rewrite: Rewrite, ledger: Ledger) -> tuple[Operator, Operator]:
    """The definitions that the two sides are."""
    bound = (*rewrite.attributes, *_bound(rewrite, ledger))
    types = (*rewrite.types, *_types(rewrite, ledger))
    made = []
    for domain, statements in zip(SIDES, (rewrite.left, rewrite.right), strict=True):
        own = _body(rewrite, statements)
        asked = tuple(it for it in rewrite.conditions if _asks(it.expr))  # which attributes there are, for both sides
        demands = (*rewrite.conditions, *rewrite.assumed) if domain == "from" else asked
        demanded = (Clause("demanded", "SONNX", (), rewrite.span),)
        wanted = [*own, *demands]
        shared = _needed(rewrite.shared, wanted)
        said = tuple(replace(it, clauses=(*it.clauses, *demanded)) for it in demands)
        lets = tuple(_before_results(own))
        body = (*shared, *lets, *said) if domain == "from" else (*said, *shared, *lets)
        results = tuple(it for it in own if it.kind == "result")
        mentioned = {name for it in (*body, *results) for name in names_in(it.expr)}
        unused = tuple(Clause("unused", it.name, (), it.span) for it in bound if it.name not in mentioned)
        made.append(
            Operator(
                f"{domain}::{rewrite.name}", 1, 1, rewrite.inputs, rewrite.outputs, rewrite.doc,
                (*rewrite.clauses, *unused), (*body, *results), types, bound, rewrite.span,
            )
        )  # fmt: skip
    return made[0], made[1]


def _check(rewrite: Rewrite, ledger: Ledger, given: Mapping[str, tuple[Operator, ...]]) -> CoreRewrite | None:
    before = len(ledger.errors)
    for name in applied_names((*rewrite.shared, *rewrite.left, *rewrite.right)):
        if name in given and not ledger.signatures(name):  # of the text to which the rewrite is added
            ledger.declared[name] = tuple(declared(it, ledger) for it in given[name])
    check_clauses("rewrite", rewrite.name, rewrite.clauses, rewrite.span, ledger)
    results = {port.name for port in rewrite.outputs}
    for statements in (rewrite.left, rewrite.right):
        defined = [name for it in statements for name in it.names]
        for name in results.difference(defined):
            nearest = hint(name, defined)
            ledger.report("operator/undefined-output", statements[-1].span, name=name, hint=nearest)
    for it in rewrite.left:
        if it.expr.head != "apply":
            ledger.report("rewrite/left", it.span, name=it.names[0])
    _check_inputs(rewrite, ledger)
    for variable in rewrite.types:
        if variable.name not in {port.type for port in (*rewrite.inputs, *rewrite.outputs)}:
            ledger.report("rewrite/type", variable.span, name=variable.name)
    made = sides(rewrite, ledger)
    cores = []
    for operator in made:
        if operator.name not in ledger.declared:
            ledger.declared[operator.name] = (declared(operator, ledger),)
        cores.append(check_operator(operator, frozenset(), ledger))
    check_compositions(made, ledger, given)
    _check_types(rewrite, made[0].types, ledger)
    left, right = cores
    if len(ledger.errors) > before or left is None or right is None:
        return None
    return CoreRewrite(
        rewrite.name, rewrite.claim, rewrite.doc, left, right,
        rewrite.stored, rewrite.reason, rewrite.clauses, rewrite.span,
    )  # fmt: skip


def _check_inputs(rewrite: Rewrite, ledger: Ledger) -> None:
    """The left side reads every input, so that a match binds it."""
    read = {name for it in rewrite.left for name in names_in(it.expr)}
    for port in rewrite.inputs:
        if port.name not in read:
            ledger.report("rewrite/unread", port.span, name=port.name)


# ---- Bodies -------------------------------------------------------------------------------------


def _body(rewrite: Rewrite, statements: Sequence[Statement]) -> list[Statement]:
    """The statements of a side as lets; behind them the outputs, each as a whole."""
    results = {port.name: f"{port.name} of {rewrite.name}" for port in rewrite.outputs}
    lets = []
    for it in statements:
        names = tuple(results.get(name, name) for name in it.names)
        lets.append(replace(it, names=names, expr=renamed(it.expr, results)))
    defined = {name: it.span for it in statements for name in it.names}
    ends = (
        Statement("result", (name,), (), Expr("var", (local,), defined[name]), span=defined[name])
        for name, local in results.items()
        if name in defined
    )
    return [*lets, *ends]


def _before_results(statements: Sequence[Statement]) -> Iterator[Statement]:
    """The lets. A name of several results that nobody reads is exempt from being read."""
    read = {name for it in statements for name in names_in(it.expr)}
    for it in statements:
        if it.kind != "result":
            spare = len(it.names) > 1
            yield replace(it, names=tuple(n if n in read or not spare else f"_{n}" for n in it.names))


def _asks(expr: Expr) -> bool:
    """True if a condition asks only which optional inputs and attributes are given."""
    return expr.head == "given" or (expr.head in ("and", "or", "not", "implies") and all(map(_asks, expr.parts())))


def _needed(shared: Sequence[Statement], users: Sequence[Statement]) -> list[Statement]:
    """The shared statements that the others need."""
    wanted = {name for it in users for name in names_in(it.expr)}
    kept: list[Statement] = []
    for it in reversed(shared):
        if it.kind == "type" or wanted.intersection(it.names):
            kept.insert(0, it)
            wanted |= set(names_in(it.expr))
    return kept


def names_in(expr: Expr) -> Iterator[str]:
    """The names that an expression mentions, those of functions included."""
    if expr.head in ("var", "given", "call"):
        yield str(expr.args[0])
    for child in expr.children():
        yield from names_in(child)


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression where names that no binder binds are others."""
    if expr.head in ("var", "given"):
        return replace(expr, args=(names.get(str(expr.args[0]), expr.args[0]), *expr.args[1:]))
    args: list[Argument] = []
    for arg in expr.args:
        match arg:
            case Expr():
                args.append(renamed(arg, names))
            case Keyword():
                args.append(replace(arg, value=renamed(arg.value, names)))
            case _:
                args.append(arg)
    return replace(expr, args=tuple(args))


# ---- What the left side binds -------------------------------------------------------------------


def _bound(rewrite: Rewrite, ledger: Ledger) -> tuple[AttributeDeclaration, ...]:
    """The attributes that the left side binds: optional where all the attributes that they stand for are."""
    known = {port.name for port in (*rewrite.inputs, *rewrite.outputs)} | {it.name for it in rewrite.attributes}
    known |= {port.type for port in (*rewrite.inputs, *rewrite.outputs)}
    known |= {d[0] for port in rewrite.inputs for d in port.shape or () if not isinstance(d, int)}
    known |= {name for it in (*rewrite.shared, *rewrite.left) for name in it.names}
    found: dict[str, AttributeDeclaration] = {}
    for apply in _applications(rewrite.left):
        signature = _signature(apply, ledger)
        for keyword in (arg for arg in apply.args if isinstance(arg, Keyword)):
            attribute = None if signature is None else signature.attributes.get(keyword.name)
            value = keyword.value
            if attribute is None or value.head != "var" or str(value.args[0]) in known:
                continue
            name, mark = str(value.args[0]), "?" if attribute.optional else ""
            first = found.get(name)
            kind = KINDS.get(attribute.sort, str(attribute.sort))
            if first is None or not mark:
                found[name] = AttributeDeclaration(name, mark, kind, None, value.span if first is None else first.span)
    return tuple(found.values())


def _applications(statements: Iterable[Statement]) -> Iterator[Expr]:
    waiting = [it.expr for it in statements]
    while waiting:
        expr = waiting.pop(0)
        waiting += expr.children()
        if expr.head == "apply":
            yield expr


def _signature(apply: Expr, ledger: Ledger) -> Signature | None:
    version = int(str(apply.args[1]))
    return next((it for it in ledger.signatures(str(apply.args[0])) if it.version == version), None)


# ---- Element types ------------------------------------------------------------------------------


Types = dict[str, str | None]
"""The element types of names, None where it is not known."""


class Refusal(Exception):  # noqa: N818 - no error: these element types are none that a schema admits
    """An operator does not take an input of a type."""

    def __init__(self, span: Span, operator: str, kind: str) -> None:
        super().__init__(f"{operator}: {kind}")
        self.span, self.operator, self.kind = span, operator, kind


def _types(rewrite: Rewrite, ledger: Ledger) -> tuple[TypeVariable, ...]:
    """The type variables that the rule does not declare, with the types that the left side admits."""
    declared_ones = {it.name: it.allowed for it in rewrite.types}
    inputs = [port.type for port in rewrite.inputs]
    every = dict.fromkeys(it.type for it in (*rewrite.inputs, *rewrite.outputs) if it.type not in ELEMENT_TYPES)
    choices = {name: declared_ones.get(name) or EVERY for name in every if name in inputs}
    if prod(map(len, choices.values())) > MOST:
        return tuple(TypeVariable(name, EVERY, rewrite.span) for name in every if name not in declared_ones)
    admitted: dict[str, dict[str, None]] = {name: {} for name in every}
    for chosen in product(*choices.values()):
        types = dict(zip(choices, chosen, strict=True))
        try:
            results = follow(rewrite, rewrite.left, types, ledger)
        except Refusal:
            continue
        for name, kind in types.items():
            admitted[name][kind] = None
        for port in rewrite.outputs:
            found = results.get(port.name)
            if port.type in admitted and port.type not in choices:
                admitted[port.type] |= dict.fromkeys(EVERY) if found is None else {found: None}
    for name, kinds in admitted.items():
        if not kinds:
            ledger.report("rewrite/no-type", rewrite.left[-1].span, name=name)
    return tuple(
        TypeVariable(name, tuple(kinds) or ("float",), rewrite.span)
        for name, kinds in admitted.items()
        if name not in declared_ones
    )


def _check_types(rewrite: Rewrite, types: Sequence[TypeVariable], ledger: Ledger) -> None:
    """Each side admits all element types of the rule: the left one those that are declared, the right one all."""
    inputs = {port.type for port in rewrite.inputs}
    choices = {it.name: it.allowed for it in types if it.name in inputs}
    if prod(map(len, choices.values())) > MOST:
        return
    for chosen in product(*choices.values()):
        kinds = dict(zip(choices, chosen, strict=True))
        for statements in (rewrite.left, rewrite.right):
            try:
                follow(rewrite, statements, kinds, ledger)
            except Refusal as refusal:
                if statements is rewrite.left and len(choices) > 1:
                    break
                where = " and ".join(f"{name} = {kind}" for name, kind in kinds.items())
                ledger.report(
                    "rewrite/types", refusal.span, operator=refusal.operator, found=refusal.kind, where=where
                )
                return


def follow(rewrite: Rewrite, statements: Sequence[Statement], types: Mapping[str, str], ledger: Ledger) -> Types:
    """The element types of what a side computes. Raises Refusal where a schema does not admit one."""
    names: Types = {port.name: types.get(port.type, port.type) for port in rewrite.inputs}
    for it in (*_needed(rewrite.shared, statements), *statements):
        if it.kind != "let":
            continue
        kinds = _results(it.expr, names, ledger) if it.expr.head == "apply" else (_kind(it.expr, names, ledger),)
        for name, kind in zip(it.names, (*kinds, *(None for _ in it.names)), strict=False):
            names[name] = kind
    return names


def _kind(expr: Expr, names: Types, ledger: Ledger) -> str | None:
    """The element type of a tensor, None where it is not known."""
    if expr.head == "var":
        return names.get(str(expr.args[0]))
    if expr.head == "apply":
        return next(iter(_results(expr, names, ledger)), None)
    for child in expr.children():
        _kind(child, names, ledger)
    return None


def _results(expr: Expr, names: Types, ledger: Ledger) -> tuple[str | None, ...]:
    signature = _signature(expr, ledger)
    if signature is None:
        return ()
    known: dict[str, str] = {}
    inputs = [arg for arg in expr.args[2:] if not isinstance(arg, Keyword)]
    for position, argument in enumerate(inputs):
        kind = _kind(argument, names, ledger) if isinstance(argument, Expr) else None
        if kind is None or not signature.inputs:
            continue
        formal = signature.inputs[min(position, len(signature.inputs) - 1)]
        allowed = formal.allowed or {formal.type}
        if kind not in allowed or known.setdefault(formal.type, kind) != kind:
            raise Refusal(expr.span, f"{signature.name}-{signature.version}", kind)
    return tuple(known.get(it.type, it.type if it.type in ELEMENT_TYPES else None) for it in signature.outputs)
