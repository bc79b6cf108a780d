"""The order of a run in sections, of which some have branches: steps that need nothing from each other.

Branches are run by several threads at once, each step as it is run alone, so that no bit depends on it. One hand-over
to another thread serves many steps, where one for each kernel costs as much as a small kernel takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from .compiled import ABSENT, UNUSED, Compiled
from .workers import THREADS

Branch = tuple[int, ...]
"""The numbers of steps, in their order."""
Section = tuple[Branch, ...]
"""Branches, the longest first; one where the steps are run one after the other."""

WORTH: Final = 100e-6
"""The seconds that branches have to save: to hand work to a thread takes about half of it."""


def sections(compiled: Compiled, seconds: Sequence[float]) -> tuple[Section, ...]:
    """The steps of a graph in sections. seconds: how long each step takes.

    A section ends where all that was computed goes through one step.
    """
    steps, made = compiled.steps, list[Section]()
    writers = _writers(compiled)
    waiting: list[int] = []  # steps that are run one after the other
    for numbers in _between(compiled, writers):
        branches = _branches(compiled, writers, numbers)
        costs = [sum(seconds[number] for number in branch) for branch in branches]
        longest = max(max(costs), sum(costs) / THREADS)
        if sum(costs) - longest < WORTH or not all(steps[number].beside for number in numbers):
            waiting += numbers
            continue
        if waiting:
            made.append((tuple(waiting),))
            waiting = []
        made.append(tuple(branch for _, branch in sorted(zip(costs, branches, strict=True), reverse=True)))
    return (*made, (tuple(waiting),)) if waiting else tuple(made)


def _writers(compiled: Compiled) -> dict[int, int]:
    """The step that writes a slot."""
    written = ((slot, number) for number, step in enumerate(compiled.steps) for slot in step.writes)
    return {slot: number for slot, number in written if slot not in (ABSENT, UNUSED)}


def _between(compiled: Compiled, writers: Mapping[int, int]) -> list[range]:
    """The steps, cut at each step behind which nothing earlier is needed; that step is a piece of its own."""
    needed = list(range(len(compiled.steps)))  # by which step the outputs of a step are last read
    for number, step in enumerate(compiled.steps):
        for slot in step.reads:
            if slot in writers:
                needed[writers[slot]] = number
    pieces: list[range] = []
    start = reached = 0
    for number, last in enumerate(needed):
        if reached <= number:
            pieces += [range(start, number), range(number, number + 1)]
            start = number + 1
        reached = max(reached, last)
    pieces.append(range(start, len(needed)))
    return [piece for piece in pieces if piece]


def _branches(compiled: Compiled, writers: Mapping[int, int], numbers: range) -> list[Branch]:
    """The parts of a piece between which nothing flows."""
    group = {number: [number] for number in numbers}
    for number in numbers:
        for slot in compiled.steps[number].reads:
            mine, other = group[number], group.get(writers.get(slot, -1))
            if other is not None and other is not mine:
                small, great = sorted((mine, other), key=len)
                great += small
                group.update(dict.fromkeys(small, great))
    return [tuple(sorted(it)) for it in {id(it): it for it in group.values()}.values()]
