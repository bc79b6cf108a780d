"""Instances of operator definitions: the numbers of axes are fixed, sizes and attributes are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from sonnx.spec.schema import signatures
from sonnx.spec.syntax import Operator, Port

RANKS = range(5)
"""The numbers of axes that a name with dots stands for where a port has no other axis; one less beside others."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A definition with the number of axes of each input; a variadic input and a sequence have one number for each of
    their tensors, a list of outputs a 0 for each output.
    """

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
    lists: dict[str, tuple[tuple[int, ...], ...]] = {}
    for port in operator.inputs:
        for name in _dotted(port):
            alone = len(port.shape or ()) == 1
            limits[name] = min(limits.get(name, len(RANKS)), len(RANKS) - (0 if alone else 1))
        if port.mark == "*":
            lists[port.name] = VARIADIC
        elif is_list(operator, port):
            lists[port.name] = SEQUENCES
        elif port.shape is None:
            limits[port.name] = 3
    lists |= {port.name: OUTPUTS for port in operator.outputs if port.mark == "*"}
    for lengths in _lengths(list(limits.values()), most):
        known = dict(zip(limits, lengths, strict=True))
        for chosen in product(*lists.values()):
            yield Instance(operator, _ranks(operator, known, dict(zip(lists, chosen, strict=True))))


def is_list(operator: Operator, port: Port) -> bool:
    """Whether an input is a list: of tensors where it is variadic, a sequence or an optional."""
    newest = next(s for s in reversed(signatures()[operator.name]) if operator.first <= s.version <= operator.last)
    return port.mark == "*" or any(f.name == port.name and f.sort.name == "list" for f in newest.inputs)


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


SEQUENCES = ((), (1,), (0, 2))
"""The ranks of the tensors in sequences and optionals; an optional with two entries is none, and does no harm."""
OUTPUTS = ((0,), (0, 0), (0, 0, 0))
"""How many outputs a list of them has."""


def _ranks(
    operator: Operator, known: Mapping[str, int], lists: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    ranks: dict[str, tuple[int, ...]] = {port.name: lists[port.name] for port in operator.outputs if port.mark == "*"}
    for port in operator.inputs:
        if port.name in lists:
            ranks[port.name] = lists[port.name]
        elif port.shape is None:
            ranks[port.name] = (known.get(port.name, 0),)
        else:
            sizes = [1 if isinstance(item, int) or not item[1] else known[item[0]] for item in port.shape]
            ranks[port.name] = (sum(sizes),)
    return ranks
