"""The equation of Einsum as numbers. Source: ONNX Operators.md, Einsum; spec/primitives.sonnx states the contracts.

Each function answers None for an equation that does not fit the ranks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DOTS = "..."


@dataclass(frozen=True, slots=True)
class Equation:
    """terms: by operand the labels of its axes, as numbers. outputs: so many labels are the output's, the first ones."""

    terms: tuple[tuple[int, ...], ...]
    outputs: int
    labels: int


def parse(equation: str, ranks: Sequence[int]) -> Equation | None:
    """The equation for operands with these ranks; an axis that dots stand for is a label of its own."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    written = left.split(",")
    if len(written) != len(ranks):
        return None
    widths = [rank - len(term.replace(DOTS, "")) for term, rank in zip(written, ranks, strict=True)]
    if any(width < 0 or (width > 0 and DOTS not in term) for term, width in zip(written, widths, strict=True)):
        return None
    most = max((width for term, width in zip(written, widths, strict=True) if DOTS in term), default=0)
    expanded = [_expand(term, width, most) for term, width in zip(written, widths, strict=True)]
    if any(not (label.isalpha() or label.startswith(DOTS)) for term in expanded for label in term):
        return None
    used = [label for term in expanded for label in term]
    dots = [f"{DOTS}{k}" for k in range(most)]
    result = _expand(right, most, most) if arrow else dots + sorted(x for x in set(used) if used.count(x) == 1 and x.isalpha())
    if len(set(result)) != len(result) or not set(result) <= set(used):
        return None
    others = sorted(set(used) - set(result))
    number = {label: k for k, label in enumerate([*result, *others])}
    return Equation(tuple(tuple(number[x] for x in term) for term in expanded), len(result), len(number))


def _expand(term: str, width: int, most: int) -> list[str]:
    """The labels of a term, the dots as `width` labels of their own, aligned at the last."""
    before, dots, after = term.partition(DOTS)
    middle = [f"{DOTS}{k}" for k in range(most - width, most)] if dots else []
    return [*before, *middle, *after]


def einsum_labels(equation: str, ranks: Sequence[int]) -> int | None:
    """The number of labels."""
    found = parse(equation, ranks)
    return None if found is None else found.labels


def einsum_outputs(equation: str, ranks: Sequence[int]) -> int | None:
    """The number of labels of the output."""
    found = parse(equation, ranks)
    return None if found is None else found.outputs


def einsum_term(equation: str, ranks: Sequence[int], operand: int) -> tuple[int, ...] | None:
    """The labels of an operand's axes."""
    found = parse(equation, ranks)
    return None if found is None else found.terms[operand]
