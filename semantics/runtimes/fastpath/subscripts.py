"""Equations of Einsum: which axis of each operand and of the output has which label."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from .reading import require

Sizes = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Equation:
    """terms: the labels of the axes of each operand. Those of the output are 0, 1, ... `kept` in its order, and those
    that are summed follow in alphabetical order. sizes: of each label.
    """

    terms: tuple[tuple[int, ...], ...]
    kept: int
    sizes: Sizes

    @property
    def is_product(self) -> bool:
        """Whether two operands share every label that is summed, and a product of matrices is no detour."""
        if len(self.terms) != 2:
            return False
        left, right = map(set, self.terms)
        summed, kept = set(range(self.kept, len(self.sizes))), set(range(self.kept))
        return bool(summed) and summed <= left & right and kept <= left | right and bool(kept & (left ^ right))


def read(written: str, shapes: tuple[Sizes, ...]) -> Equation:
    """The equation for operands of these shapes. Raises KernelError where it does not fit them."""
    left, arrow, right = "".join(written.split()).partition("->")
    terms = left.split(",")
    require(len(terms) == len(shapes), "the equation has a term for each operand")
    spans = [len(shape) - len(term.replace("...", "")) for term, shape in zip(terms, shapes, strict=True)]
    dotted = max((span for term, span in zip(terms, spans, strict=True) if "..." in term), default=0)
    named = [_labels(term, span, dotted) for term, span in zip(terms, spans, strict=True)]
    every = {label for labels in named for label in labels}
    if arrow:
        require(right.count("...") <= 1, "the output has dots at most once")
        output = _labels(right, dotted, dotted) if "..." in right else _labels(right, 0, 0)
    else:
        counts = Counter(label for labels in named for label in labels)
        once = sorted(label for label, count in counts.items() if count == 1 and not label.startswith("."))
        output = [*(f".{k}" for k in range(dotted)), *once]
    require(len(set(output)) == len(output), "the output repeats no label")
    require(set(output) <= every | {f".{k}" for k in range(dotted)}, "the output has labels of the terms alone")
    order = [*output, *sorted(every - set(output))]
    numbers = {label: position for position, label in enumerate(order)}
    sizes = []
    for label in order:
        pairs = (zip(labels, shape, strict=True) for labels, shape in zip(named, shapes, strict=True))
        found = {n for pair in pairs for x, n in pair if x == label}
        require(len(found - {1}) <= 1, "axes with the same label have the same size, or the size 1")
        sizes.append(next(iter(found - {1}), 1))
    return Equation(tuple(tuple(numbers[x] for x in labels) for labels in named), len(output), tuple(sizes))


def _labels(term: str, span: int, dotted: int) -> list[str]:
    """The labels of a term; dots stand for the last `span` of the dotted axes."""
    head, dots, tail = term.partition("...")
    require("." not in head + tail and all(c.isalpha() for c in head + tail), "the equation has letters and dots alone")
    require(span >= 0 if dots else span == 0, "the term has a label for each axis of its operand")
    return [*head, *(f".{k}" for k in range(dotted - span, dotted) if dots), *tail]
