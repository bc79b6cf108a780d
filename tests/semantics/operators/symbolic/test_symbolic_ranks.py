"""Definitions are instantiated at all numbers of axes that their requirements admit, or at enough of them."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from definition_mutations import elaborated
from sonnx.semantics.operators.symbolic.definedness import instances
from sonnx.semantics.operators.symbolic.statements import definition
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Operator


def ranks(operator: CoreOperator) -> list[tuple[int, ...]]:
    """The ranks of all tensors, one after the other, for each instance."""
    return [tuple(rank for of in instance.ranks.values() for rank in of) for instance in instances(operator)]


def operator_of(statements: str) -> CoreOperator:
    """A definition with four names of axes that begins with these statements."""
    text = (
        "operator QLinearConv @ 10 (x: T1[a...], x_scale: float[b...], x_zero_point: T1[c...], w: T2[d...]) -> y: T3\n"
        f'  "Any."\n  source "any"\n{statements}  y[i... < a] = cast(T3, x[i])\n'
    )
    (declaration,) = parse(text, "any").declarations
    assert isinstance(declaration, Operator)
    return elaborated(declaration).cores[0]


def require(condition: str) -> str:
    return f'  require any: {condition} "Any."\n    demanded SONNX\n'


def test_all_combinations_of_few_are_tried() -> None:
    assert ranks(definition("Where", 9)) == list(product(range(5), repeat=3))


@pytest.mark.parametrize(
    ("condition", "admits"),
    [
        ("len(a) > 0 and a = b and product(c) = 1 and len(c) <= 1", lambda a, b, c, _d: a == b > 0 and c <= 1),
        ("a = b or len(c) = 2 and c[0] = 7", lambda a, b, c, _d: a == b or c == 2),
    ],
)
def test_ranks_that_a_requirement_excludes_are_not_tried(condition: str, admits: object) -> None:
    found = ranks(operator_of(require(condition)))
    possible = [r for r in product(range(5), repeat=4) if admits(*r)]  # type: ignore[operator]
    assert set(found) <= set(possible)
    assert triples(found) == triples(possible)


def triples(every: list[tuple[int, ...]]) -> set[object]:
    return {triple for r in every for triple in combinations(enumerate(r), 3)}


@pytest.mark.parametrize("statements", [require("a[len(b)] = 3"), "  let k = a[len(b)]\n" + require("k = 3")])
def test_ranks_at_which_a_requirement_is_undefined_are_tried(statements: str) -> None:
    assert (1, 1, 0, 0) in ranks(operator_of(statements))


def test_data_of_several_axes_meet_scalars() -> None:
    found = ranks(definition("QLinearConv", 10))
    assert max(r[3] for r in found if r[0] == r[3]) == 5
    assert any(r[0] == r[3] == 3 and r[1] == 0 for r in ranks(definition("QLinearMatMul", 10)))
