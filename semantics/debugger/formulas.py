"""Terms as texts: with the names of the inputs, and with the numbers in place of them."""

from __future__ import annotations

from ..interpretations.footprint_elements import Scalar
from .explaining import Leaf, Numeral, Operation, Tree
from .texts import element_text


def operation_text(name: str, operands: list[str]) -> str:
    """An operation with its operands."""
    if name in "+-*/" and len(operands) == 2:
        return f"{operands[0]} {name} {operands[1]}"
    return f"{name}({', '.join(operands)})"


def sums(tree: Tree) -> tuple[tuple[Tree, Scalar], ...]:
    """The terms of a sum in the order in which they are added, each with the sum so far; the tree alone where it is
    none."""
    found: list[tuple[Tree, Scalar]] = []
    while isinstance(tree, Operation) and tree.name == "+" and len(tree.arguments) == 2:
        found.append((tree.arguments[1], tree.value))
        tree = tree.arguments[0]
    return ((tree, tree.value), *reversed(found))


def tree_text(tree: Tree, names: dict[int, str], depth: int = 6) -> str:
    """A term with the names of the inputs; what lies too deep is given as its value."""
    if isinstance(tree, Leaf):
        name = names.get(tree.position, tree.name) if tree.position is not None else tree.name
        return f"{name}{list(tree.index)}"
    if isinstance(tree, Numeral):
        return element_text(tree.value)
    if not depth:
        return element_text(tree.value)
    parts = [tree_text(it, names, depth - 1) for it in tree.arguments]
    if tree.name in "+-*/" and len(parts) == 2:
        parts = [
            f"({part})" if isinstance(it, Operation) and it.name in "+-*/" else part
            for part, it in zip(parts, tree.arguments, strict=True)
        ]
    return operation_text(tree.name, parts)


def numbers_text(tree: Tree, depth: int = 6) -> str:
    """The same term with the numbers in place of the names."""
    if not isinstance(tree, Operation) or not depth:
        return element_text(tree.value)
    parts = [numbers_text(it, depth - 1) for it in tree.arguments]
    if tree.name in "+-*/" and len(parts) == 2:
        parts = [
            f"({part})" if isinstance(it, Operation) and it.name in "+-*/" else part
            for part, it in zip(parts, tree.arguments, strict=True)
        ]
    return operation_text(tree.name, parts)
