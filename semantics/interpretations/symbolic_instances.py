"""Instances of operator definitions: the numbers of axes are fixed, sizes and attributes are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from sonnx.spec.syntax import Operator, Port

RANKS = range(5)
"""The numbers of axes that a name with dots stands for where a port has no other axis; one less beside others."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition with the number of axes of each input; a variadic input has one number for each of its tensors."""

    operator: Operator
    ranks: Mapping[str, tuple[int, ...]]

    @property
    def label(self) -> str:
        """The ranks in words: `X: 4, W: 4`."""
        return ", ".join(f"{name}: {' '.join(map(str, ranks))}" for name, ranks in self.ranks.items())


def instances(operator: Operator, most: int = 40) -> Iterator[Instance]:
    """The definition at combinations of ranks: all of them, or where these are more than `most`, all of the first two
    names with dots, each with the other names equally long or one of them alone not empty.
    """
    limits: dict[str, int] = {}
    variadic = any(port.mark == "*" for port in operator.inputs)
    for port in operator.inputs:
        for name in _dotted(port):
            alone = len(port.shape or ()) == 1
            limits[name] = min(limits.get(name, len(RANKS)), len(RANKS) - (0 if alone else 1))
        if port.shape is None and port.mark != "*" and not port.type.startswith(("seq(", "optional(", "map(")):
            limits[port.name] = 3
    for lengths in _lengths(list(limits.values()), most):
        known = dict(zip(limits, lengths, strict=True))
        for listed in VARIADIC if variadic else ((),):
            yield Instance(operator, _ranks(operator, known, listed))


def _dotted(port: Port) -> list[str]:
    return [item[0] for item in port.shape or () if not isinstance(item, int) and item[1]]


def _lengths(limits: list[int], most: int) -> Iterator[tuple[int, ...]]:
    if prod(limits) <= most:
        yield from product(*map(range, limits))
        return
    rest = limits[2:]
    tails = [tuple(min(length, limit - 1) for limit in rest) for length in range(max(rest, default=1))]
    tails += [tuple(int(k == alone) for k in range(len(rest))) for alone in range(len(rest))]
    first = limits[:2]
    while prod(first) * min(len(set(tails)), 3) > 2 * most and max(first) > 2:
        first[first.index(max(first))] -= 1
    for head in product(*map(range, first)):
        for tail in dict.fromkeys(tails):
            yield (*head, *tail)


VARIADIC = ((0,), (1,), (2,), (3,), (1, 1), (2, 2), (1, 2), (2, 1), (0, 2), (2, 2, 2), (3, 3), (1, 2, 1))
"""The ranks of variadic inputs."""


def _ranks(operator: Operator, known: Mapping[str, int], listed: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    ranks: dict[str, tuple[int, ...]] = {}
    for port in operator.inputs:
        if port.mark == "*":
            ranks[port.name] = listed
        elif port.shape is None:
            ranks[port.name] = (known.get(port.name, 0),)
        else:
            sizes = [1 if isinstance(item, int) or not item[1] else known[item[0]] for item in port.shape]
            ranks[port.name] = (sum(sizes),)
    return ranks
