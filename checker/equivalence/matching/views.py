"""A graph as the search sees it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol

from sonnx.semantics.formulas.terms import Term
from sonnx.semantics.operators.application import AttributeData
from sonnx.semantics.operators.shapes.contents import Content, Facts, Symbols
from sonnx.spec.elaborate.core import CoreOperator

Tensor = Hashable
"""A tensor, however the graph calls it."""
Node = Hashable
"""A node, however the graph calls it."""


class View(Protocol):
    """The questions of the search to a graph.

    A model with bodies answers for one of its graphs at a time; what a body reads from outside has a producer there or
    not, as the model likes: nothing is ever moved out of a body.
    """

    def producer(self, tensor: Tensor) -> tuple[Node, int] | None:
        """The node that writes a tensor, and as which of its outputs; None for an input or a stored value."""

    def operator(self, node: Node) -> CoreOperator | None:
        """The definition that is in force at a node; None for a node without one, and for one that holds bodies."""

    def inputs(self, node: Node) -> Sequence[Tensor | None]:
        """The tensors that a node reads, by position, None for one that is left out."""

    def outputs(self, node: Node) -> Sequence[Tensor | None]:
        """The tensors that a node writes, by position."""

    def attributes(self, node: Node) -> Mapping[str, AttributeData | None]:
        """The attributes that a node states; None for one whose value is not known."""

    def content(self, tensor: Tensor) -> Content:
        """What is known of a tensor before the graph runs; of a stored value its data."""

    def stored(self, tensor: Tensor) -> bool:
        """True if a tensor has the same value in every run, which the graph holds."""

    def runs(self, node: Node) -> bool:
        """True if it is known that no run gets stuck at a node; False where that is not known."""

    def since(self, node: Node) -> int:
        """The version of its operator that is in force at a node."""

    def version(self, operator: CoreOperator) -> int | None:
        """The version with which a node of this definition can be made here; None where another one is in force."""

    @property
    def facts(self) -> Facts:
        """What holds of the open sizes."""

    @property
    def symbols(self) -> Symbols:
        """The symbols of the facts and of the contents."""

    def certain(self, goal: Term) -> bool:
        """True if a condition on open sizes follows from the facts."""
