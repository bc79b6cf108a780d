"""What requirements of operators are called: `Conv-11/16` is the 16th `require` of the definition from version 11."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sonnx.semantics.operators.shapes.contents import HEADER, STEP
from sonnx.spec.language.syntax import DEMANDS, Operator


def identity(operator: Operator, position: int) -> str:
    """The id of a requirement; of a restriction what SONNX calls it."""
    version = f"{operator.name}-{operator.first}"
    if position == HEADER:
        return f"{version}/inputs"
    if position == STEP:
        return f"{version}/step"
    statement = operator.statements[position]
    if statement.kind == "restrict":
        demanded = next(c.value for c in statement.clauses if c.key == "demanded")
        return f"{version}/{demanded.removeprefix('SONNX/')}"
    same = [k for k, other in enumerate(operator.statements) if other.kind == statement.kind]
    return f"{version}/{same.index(position) + 1}"


def find(operators: Mapping[str, Iterable[Operator]], name: str) -> tuple[Operator, int] | None:
    """The definition and the position of the statement that has this id."""
    for operator in operators.get(name.partition("/")[0].rpartition("-")[0], ()):
        for position, statement in enumerate(operator.statements):
            if statement.kind in DEMANDS and identity(operator, position) == name:
                return operator, position
    return None
