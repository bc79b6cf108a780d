"""The coverage of operators and versions by the text, and the text of one meaning with the definitions it uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from ..language.syntax import Contract, Expr, FunctionDeclaration, Operator, Statement
from .schema import Signature, signatures

KINDS = ("defined", "composed", "primitive", "rule", "deprecated", "earlier", "missing")
"""By equations; by applying other operators; by one function without a body, or a contract; by a rule of the machine;
not at all, in a version that no valid model uses; not at all, in one in force before opset 7 only; not at all."""
FIRST_OPSET = 7
"""The specification covers what is in force from this opset on."""


def kind_of(operator: Operator, functions: Mapping[str, FunctionDeclaration]) -> str:
    """The way in which the text gives the operator its meaning, one of `KINDS`."""
    results = [statement.expr for statement in operator.statements if statement.kind == "result"]
    if any(statement.kind == "rule" for statement in operator.statements):
        return "rule"
    if any(inner.head == "apply" for expr in results for inner in inside(expr)):
        return "composed"
    if any(expr.head == "call" and _is_primitive(str(expr.args[0]), functions) for expr in results):
        return "primitive"
    return "defined"


def _is_primitive(name: str, functions: Mapping[str, FunctionDeclaration]) -> bool:
    return name in functions and functions[name].kind == "fun"


def coverage(
    operators: Mapping[str, tuple[Operator, ...]],
    functions: Mapping[str, FunctionDeclaration],
    contracts: Iterable[Contract] = (),
) -> dict[str, dict[int, str]]:
    """For each operator that has a schema or is declared, and each of its versions, one of `KINDS`."""
    kinds: dict[str, dict[int, str]] = {}
    declared = {name: own for name, own in operators.items() if name not in signatures()}
    for name, own in declared.items():
        kinds[name] = {it.first: kind_of(it, functions) for it in own}
    for name, versions in signatures().items():
        kinds[name] = {s.version: absent(s, versions) for s in versions}
        for operator in operators.get(name, ()):
            covered = [s.version for s in versions if operator.first <= s.version <= operator.last]
            kinds[name] |= dict.fromkeys(covered, kind_of(operator, functions))
    for contract in contracts:
        kinds[contract.name][contract.version] = "primitive"
    return kinds


def absent(version: Signature, versions: Sequence[Signature]) -> str:
    """The standing of a version of an operator that no text gives a meaning. versions: all of the operator."""
    if version.deprecated:
        return "deprecated"
    if "::" in version.name:
        return "missing"
    in_force_first = max((s.version for s in versions if s.version <= FIRST_OPSET), default=0)
    return "missing" if version.version >= in_force_first else "earlier"


def coverage_lines(
    kinds: Mapping[str, Mapping[int, str]], verdicts: Mapping[str, Mapping[int, str]] | None = None
) -> list[str]:
    """The coverage as lines: counts, then each operator that the text speaks of, then those that it does not.

    verdicts: on the definedness of each definition by its first version; they stand behind the versions, without a
    number where they are all the same.
    """
    every = Counter(kind for versions in kinds.values() for kind in versions.values())
    lines = ["operators by version: " + ", ".join(f"{every[kind]} {kind}" for kind in KINDS)]
    silent = []
    for name, versions in kinds.items():
        if set(versions.values()) <= {"missing", "earlier"}:
            silent.append(name)
            continue
        words = (verdicts or {}).get(name, {})
        judged = f"| {_grouped(words) if len({*words.values()}) > 1 else next(iter(words.values()))}" if words else ""
        lines.append(f"  {name:<22} {_grouped(versions):<52} {judged}".rstrip())
    return [*lines, f"missing at every version ({len(silent)}): " + ", ".join(silent)] if silent else lines


def _grouped(words: Mapping[int, str]) -> str:
    """The versions by word: `missing 1; defined 6, 13`."""
    grouped: dict[str, list[str]] = {}
    for version, word in words.items():
        grouped.setdefault(word, []).append(str(version))
    return "; ".join(f"{word} {', '.join(versions)}" for word, versions in grouped.items())


def in_force(operators: tuple[Operator, ...], name: str, opset: int) -> Operator | int:
    """The meaning that is in force at an opset version, else the version of the operator that lacks one; 0 when the
    operator does not exist there yet."""
    version = max((s.version for s in signatures()[name] if s.version <= opset), default=0)
    return next((o for o in operators if o.first <= version <= o.last), version)


def used_definitions(operator: Operator, functions: Mapping[str, FunctionDeclaration]) -> list[FunctionDeclaration]:
    """The definitions that the operator's text uses, directly or through others, in the order of their first use."""
    exprs = (expr for it in operator.statements for expr in expressions_of(it))
    return definitions_in(exprs, functions, local_functions(operator))


def definitions_in(
    exprs: Iterable[Expr], functions: Mapping[str, FunctionDeclaration], without: Collection[str] = ()
) -> list[FunctionDeclaration]:
    """The definitions that expressions use, directly or through others, in the order of their first use; none of those
    that are left out by name."""
    used: dict[str, FunctionDeclaration] = {}
    waiting = list(exprs)
    while waiting:
        expr = waiting.pop(0)
        for inner in inside(expr):
            name = str(inner.args[0]) if inner.head == "call" else ""
            known = name in functions and name not in used and name not in without
            function = functions[name] if known else None
            if function is not None and function.body is not None:
                used[name] = function
                waiting.append(function.body)
    return list(used.values())


def local_functions(declared: object) -> set[str]:
    """The functions that an operator declares for itself; they come before those of the same name elsewhere."""
    statements = declared.statements if isinstance(declared, Operator) else ()
    return {statement.names[0] for statement in statements if statement.kind == "function"}


def expressions_of(statement: Statement) -> Iterator[Expr]:
    """The expressions of a statement, those of the statements inside it included."""
    yield from (item.bound for item in statement.ranges)
    yield statement.expr
    for inner in statement.body:
        yield from expressions_of(inner)


def inside(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts."""
    yield expr
    for child in expr.children():
        yield from inside(child)
