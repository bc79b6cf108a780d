"""The equation of Einsum: which label each axis of each operand has (ONNX Operators.md, Einsum)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .values import Refused

DOTS = "..."


def labels(equation: str, ranks: Sequence[int]) -> tuple[list[list[int]], int, int]:
    """The labels of the axes of each operand as numbers, how many there are, and how many of them the output has.

    The labels of the output come first, in its order, the others in alphabetical order.
    """
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    written = left.split(",")
    if len(written) != len(ranks):
        raise Refused
    spread = max((r - len(t.replace(DOTS, "")) for t, r in zip(written, ranks, strict=True) if DOTS in t), default=0)
    if spread < 0:
        raise Refused
    dots = [f".{k:03d}" for k in range(spread)]
    terms = []
    for term, rank in zip(written, ranks, strict=True):
        before, found, behind = term.partition(DOTS)
        count = rank - len(before) - len(behind)
        if count < 0 or (not found and count):
            raise Refused
        terms.append([*before, *(dots[spread - count :] if found else ()), *behind])
    uses = Counter(label for term in terms for label in term)
    if arrow:
        before, found, behind = right.partition(DOTS)
        output = [*before, *(dots if found else ()), *behind]
    else:
        output = [*dots, *sorted(label for label, n in uses.items() if n == 1 and label not in dots)]
    if len(set(output)) != len(output) or not set(output) <= {*uses, *dots}:
        raise Refused
    others = sorted(label for label in uses if label not in output)
    numbers = {label: k for k, label in enumerate([*output, *others])}
    return [[numbers[label] for label in term] for term in terms], len(numbers), len(output)
