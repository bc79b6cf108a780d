"""Work as calls that are made ready once, and are repeated while the arrays lie where they do.

What a run of the same shapes does again and again is decided the first time: how it is cut, which part of which array
each NumPy function reads and writes. What is left for later runs is to call these functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .kernel import Allocate, Inputs, Outputs
from .workers import alone, shared, shared_products

Call = Callable[[], object]
"""A function with all that it is called with."""


class Phase:
    """Parts of work, done in any order and several at a time: `calls` gives those of a part, by one of the workers.

    workers: how many there are at most, if that is less than the threads; with `products` they multiply matrices.
    """

    __slots__ = ("_calls", "_known", "_parts", "_products", "_workers")

    def __init__(
        self,
        parts: int,
        calls: Callable[[int, int], Sequence[Call]],
        workers: int | None = None,
        products: bool = False,
    ) -> None:
        self._parts, self._calls, self._workers, self._products = parts, calls, workers, products
        self._known: dict[tuple[int, int], Sequence[Call]] = {}

    def run(self) -> None:
        """Does the work."""
        if self._workers == 1 or self._parts == 1:
            alone(self._parts, self._work)
        elif self._products:
            shared_products(self._parts, self._work, self._workers)
        else:
            shared(self._parts, self._work, self._workers)

    def _work(self, part: int, worker: int) -> None:
        key = part, worker
        calls = self._known.get(key)
        if calls is None:
            calls = self._known[key] = self._calls(part, worker)
        for call in calls:
            call()


class Ready(NamedTuple):
    """Outputs, and what computes them. again: that may be repeated for other data in the same arrays."""

    outputs: Outputs
    phases: Sequence[Phase]
    again: bool = True


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A `Compute` that is made ready before it runs."""

    ready: Callable[[Inputs, Allocate], Ready]

    def __call__(self, inputs: Inputs, allocate: Allocate) -> Outputs:
        """The outputs."""
        made = self.ready(inputs, allocate)
        run(made)
        return made.outputs


def run(ready: Ready) -> None:
    """Computes the outputs."""
    for phase in ready.phases:
        phase.run()
