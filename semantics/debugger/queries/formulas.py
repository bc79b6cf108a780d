"""Terms as texts: with the names of the inputs, and with the numbers in place of them; long ones in named parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model.elements import is_float
from ...operators.symbolic.footprint import Scalar
from ..display.texts import element_text
from .explaining import Leaf, Numeral, Operation, Tree

_DEPTH: Final = 4  # operations inside of each other in one text
_LONG: Final = 3  # a sum of so many terms, or an operation on more operands, is a part of its own


# ---- Texts ------------------------------------------------------------------------------------


def operation_text(name: str, operands: list[str]) -> str:
    """An operation with its operands."""
    if name in "+-*/" and len(operands) == 2:
        return f"{operands[0]} {name} {operands[1]}"
    return f"{name}({', '.join(operands)})"


def tree_text(
    tree: Tree, inputs: Mapping[int, str], parts: Mapping[int, str], *, whole: bool, numbers: bool = False
) -> str:
    """A term with the names of the inputs, or with the numbers in place of all names.

    parts: names of what is explained elsewhere, by id. What lies deeper than one text goes is given as its value.
    whole: the term is a part with one row, so that it is not given by its name.
    """
    return _text(tree, inputs, parts, _DEPTH, whole=whole, numbers=numbers)


def _text(
    tree: Tree, inputs: Mapping[int, str], parts: Mapping[int, str], depth: int, *, whole: bool, numbers: bool
) -> str:
    if isinstance(tree, Numeral) or (numbers and isinstance(tree, Leaf)):
        return element_text(tree.value)
    if isinstance(tree, Leaf):
        name = inputs.get(tree.position, tree.name) if tree.position is not None else tree.name
        return f"{name}{list(tree.index)}"
    if not whole and _is_part(tree, depth):
        name = parts.get(id(tree), "")
        return name if name and not numbers else element_text(tree.value)
    found = []
    for argument in tree.arguments:
        text = _text(argument, inputs, parts, depth - 1, whole=False, numbers=numbers)
        infix = isinstance(argument, Operation) and argument.name in "+-*/" and len(argument.arguments) == 2
        cut = isinstance(argument, Operation) and _is_part(argument, depth - 1)
        found.append(f"({text})" if tree.name in "+-*/" and infix and not cut else text)
    return operation_text(tree.name, found)


# ---- Parts ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A term of a part. number: its position in the sum, None where the part is one term. so_far: the sum to it."""

    tree: Tree
    number: int | None
    so_far: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A term taken apart. name: "" for the whole. rows: those that are shown, the ones that matter most first where
    some are left out. left: the numbers of the others."""

    name: str
    tree: Tree
    rows: tuple[Row, ...]
    left: tuple[Row, ...]


def parts(tree: Tree, limit: int) -> tuple[Part, ...]:
    """A term in parts of at most `limit` rows in all: itself, then the sums and deep terms in it, nearest first."""
    found: list[Part] = []
    names: dict[int, str] = {}
    work: deque[Tree] = deque((tree,))
    seen = {id(tree)}
    room = limit
    while work and room > 0:
        item = work.popleft()
        rows = rows_of(item)
        shown, left = _chosen(rows, max(room, 1))
        name = "" if item is tree else f"s{len(names)}"
        names[id(item)] = name
        found.append(Part(name, item, shown, left))
        room -= len(shown)
        for row in shown:
            for part in _cut(row.tree, _DEPTH, whole=row.tree is item):
                if id(part) not in seen:
                    seen.add(id(part))
                    work.append(part)
    return tuple(found)


def rows_of(tree: Tree) -> tuple[Row, ...]:
    """The terms of a sum in the order in which they are added, each with the sum so far, or the operands of a long
    operation; the tree alone where it is neither."""
    if isinstance(tree, Operation) and len(tree.arguments) > _LONG:
        return tuple(Row(it, number) for number, it in enumerate(tree.arguments))
    terms = sums(tree)
    if len(terms) == 1:
        return (Row(tree, None, tree.value),)
    return tuple(Row(term, number, so_far) for number, (term, so_far) in enumerate(terms))


def sums(tree: Tree) -> tuple[tuple[Tree, Scalar], ...]:
    """The terms of a sum in the order in which they are added, each with the sum so far; the tree alone where it is
    none."""
    found: list[tuple[Tree, Scalar]] = []
    while isinstance(tree, Operation) and tree.name == "+" and len(tree.arguments) == 2:
        found.append((tree.arguments[1], tree.value))
        tree = tree.arguments[0]
    return ((tree, tree.value), *reversed(found))


def _is_part(tree: Operation, depth: int) -> bool:
    """Whether a term inside of another one is taken out of its text."""
    return depth <= 0 or len(tree.arguments) > _LONG or (tree.name == "+" and len(sums(tree)) >= _LONG)


def _cut(tree: Tree, depth: int, *, whole: bool = False) -> Iterator[Operation]:
    """The parts that are taken out of the text of a term."""
    if not isinstance(tree, Operation):
        return
    if not whole and _is_part(tree, depth):
        yield tree
        return
    for argument in tree.arguments:
        yield from _cut(argument, depth - 1)


def _chosen(rows: tuple[Row, ...], room: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """All rows, or those that matter most: where the sum ceases to be finite, what is not finite, then the largest."""
    if len(rows) <= room:
        return rows, ()
    wide = [_magnitude(row.tree.value) for row in rows]
    breaks = next((i for i, row in enumerate(rows) if row.so_far is not None and not _finite(row.so_far)), -1)
    order = sorted(range(len(rows)), key=lambda i: (i != breaks, np.isfinite(wide[i]), -wide[i], i))
    return tuple(rows[i] for i in order[:room]), tuple(rows[i] for i in sorted(order[room:]))


def _finite(value: Scalar) -> bool:
    return bool(np.isfinite(_magnitude(value)))


def _magnitude(value: Scalar) -> float:
    """The magnitude; infinite where it is no number."""
    if value.dtype == object or not (is_float(value.dtype) or value.dtype.kind in "iubc"):
        return 0.0
    wide = abs(complex(value.astype(np.complex128)))
    return float("inf") if np.isnan(wide) else float(wide)


def left_out(part: Part) -> str:
    """Which rows are left out, and how large the largest of them is; "" where none is."""
    if not part.left:
        return ""
    spans: list[list[int]] = []
    for row in part.left:
        number = row.number or 0
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in spans]
    some = ", ".join(texts[:8]) + (" ..." if len(texts) > 8 else "")
    largest = max(_magnitude(row.tree.value) for row in part.left)
    count = "one term" if len(part.left) == 1 else f"{len(part.left)} terms"
    of = f" of {part.name}" if part.name else ""
    return f"{count}{of} left out ({some}), none larger than {largest:.4g} in magnitude"
