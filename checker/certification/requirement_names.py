"""The ids of requirements of operators: `Conv-11/kernel_fits` is the `require` or `restrict` of that id in Conv-11."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from sonnx.semantics.operators.shapes.contents import HEADER, STEP
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.syntax import DEMANDS, Operator


def identity(operator: Operator | CoreOperator, position: int) -> str:
    """The id of a requirement, by its position among the statements."""
    own = {HEADER: "inputs", STEP: "step"}.get(position) or operator.statements[position].id
    return f"{operator.name}-{operator.first}/{own}"


def find(operators: Mapping[str, Iterable[Operator]], name: str) -> tuple[Operator, int] | None:
    """The definition and the position of the statement that has this id, or had it in version 0.2."""
    name = earlier_ids().get(name, name)
    for operator in operators.get(name.partition("/")[0].rpartition("-")[0], ()):
        for position, statement in enumerate(operator.statements):
            if statement.kind in DEMANDS and identity(operator, position) == name:
                return operator, position
    return None


@cache
def earlier_ids() -> Mapping[str, str]:
    """For each id of version 0.2, by position or by the name that SONNX has for a restriction, the id of today."""
    text = files(__package__).joinpath("earlier_ids.tsv").read_text(encoding="utf-8")
    now: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            definitions, ids = (part.split(" ") for part in line.split("\t"))
            required = [own for own in ids if "=" not in own]
            earlier = {str(position): own for position, own in enumerate(required, 1) if own != "-"}
            earlier |= dict(own.split("=") for own in ids if "=" in own)
            now |= {f"{of}/{before}": f"{of}/{own}" for of in definitions for before, own in earlier.items()}
    return now
