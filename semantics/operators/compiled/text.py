"""Equations of Einsum (ONNX Operators.md, Einsum): the labels of each operand as numbers."""

from __future__ import annotations

from collections import Counter


def einsum_parse(equation: str, ranks: tuple[int, ...]) -> tuple[tuple[tuple[int, ...], ...], int, int]:
    """The label numbers of the axes of each operand, how many labels the output has, how many there are.

    Output labels are numbered in the order of the output, the others follow in alphabetical order. Raises ValueError
    when the equation does not fit.
    """
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"{equation!r} has {len(terms)} terms for {len(ranks)} operands.")
    dotted = max(
        (rank - len(t.replace("...", "")) for t, rank in zip(terms, ranks, strict=True) if "..." in t), default=0
    )
    axes = [_axes(term, rank, dotted, equation) for term, rank in zip(terms, ranks, strict=True)]
    dots = [f".{k}" for k in range(dotted)]
    if arrow:
        if right.count("...") > 1:
            raise ValueError(f"{equation!r} has dots twice in the output.")
        head, found, tail = right.partition("...")
        output = [*head, *(dots if found else []), *tail]
    else:
        counts = Counter(label for term in axes for label in set(term))
        occurrences = Counter(label for term in axes for label in term)
        output = [*dots, *sorted(x for x in counts if occurrences[x] == 1 and not x.startswith("."))]
    every = {label for term in axes for label in term}
    if len(set(output)) != len(output) or not set(output) <= every | set(dots):
        raise ValueError(f"{equation!r} has an output that repeats a label or has one of its own.")
    order = [*output, *sorted(every - set(output))]
    number = {label: position for position, label in enumerate(order)}
    return tuple(tuple(number[label] for label in term) for term in axes), len(output), len(order)


def _axes(term: str, rank: int, dotted: int, equation: str) -> list[str]:
    head, found, tail = term.partition("...")
    if "." in head + tail or not all(c.isalpha() for c in head + tail):
        raise ValueError(f"{equation!r} has a term {term!r}.")
    if not found:
        labels = [*head]
    else:
        count = rank - len(head) - len(tail)
        labels = [*head, *(f".{k}" for k in range(dotted - count, dotted)), *tail]
    if len(labels) != rank:
        raise ValueError(f"The term {term!r} of {equation!r} is for {len(labels)} axes, the operand has {rank}.")
    return labels
