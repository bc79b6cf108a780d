"""Where a constraint fails, as the rechecker's own judges say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .facts import Facts


@dataclass(frozen=True, slots=True)
class Instance:
    """One place: what the variables of the constraint's outermost quantifiers stand for, in order, each by its sort
    (Node, Tensor, Graph, Function, Import, Text) and element.

    fails: False when the model leaves open whether the constraint fails there.
    """

    elements: tuple[tuple[str, int | str], ...] = ()
    fails: bool = True


Judge = Callable[[Facts], Iterable[Instance]]
"""Yields the places where a constraint fails or is open; none means that it holds. Raises Unsupported."""


def node_place(n: int, *, fails: bool = True) -> Instance:
    """A node n."""
    return Instance((("Node", n),), fails)


def tensor_place(t: int) -> Instance:
    """A tensor t."""
    return Instance((("Tensor", t),))


def port_place(n: int, t: int) -> Instance:
    """A node n and a tensor t of it."""
    return Instance((("Node", n), ("Tensor", t)))


def text_place(n: int, text: str) -> Instance:
    """A node n and a text about it."""
    return Instance((("Node", n), ("Text", text)))
