"""Parts that grow: that they are right, maximal, and those of the rule, by brute force on small graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from random import Random

import pytest
from machine_models import graph, node, proto, value
from sampling import seeds
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.operators.application import Program
from sonnx.semantics.runtimes.fastpath.growing import grown

Parts = list[list[int]]


def drawn(choose: Random) -> tuple[Program, list[tuple[int, int]]]:
    """A graph of up to 9 nodes that read what earlier ones write, and its edges."""
    count = choose.randint(2, 9)
    reads = [sorted(choose.sample(range(at), choose.randint(0, min(at, 2)))) for at in range(count)]
    nodes = [node("Sum", ["x", *(f"t{it}" for it in row)], [f"t{at}"], name=f"n{at}") for at, row in enumerate(reads)]
    made = proto(graph(nodes, [value("x", shape=None)], [value(f"t{count - 1}", shape=None)]))
    return Program(load_proto(made)), [(it, at) for at, row in enumerate(reads) for it in row]


def acyclic(parts: Sequence[Sequence[int]], edges: Sequence[tuple[int, int]]) -> bool:
    """Without a cycle: parts of which all that they read has run can be taken away until none is left."""
    home = {n: at for at, part in enumerate(parts) for n in part}
    links = {(home[a], home[b]) for a, b in edges if home[a] != home[b]}
    left = set(range(len(parts)))
    while free := {it for it in left if not any(b == it and a in left for a, b in links)}:
        left -= free
    return not left


def by_the_rule(count: int, edges: Sequence[tuple[int, int]], claimed: Parts, supported: Sequence[int]) -> Parts:
    """The sentence of the text, word by word."""
    parts = [[n] for n in sorted(supported)]
    others = [*claimed, *([n] for n in range(count) if n not in supported and all(n not in it for it in claimed))]
    while True:
        pairs = [
            (p, q)
            for p in parts
            for q in parts
            if p is not q
            and any((a in p and b in q) or (a in q and b in p) for a, b in edges)
            and acyclic([*others, p + q, *(it for it in parts if it is not p and it is not q)], edges)
        ]
        if not pairs:
            return parts
        p, q = pairs[0]
        parts = sorted([it for it in parts if it is not p and it is not q] + [sorted(p + q)])


@pytest.mark.parametrize("numbers", seeds(10_000, 150))
def test_what_grows_is_what_the_text_says_and_maximal(numbers: range) -> None:
    for seed in numbers:
        _check(seed)


def _check(seed: int) -> None:
    choose = Random(seed)
    program, edges = drawn(choose)
    count = len(program.model.nodes)
    claimed: Parts = []
    for part in (sorted(choose.sample(range(count), choose.randint(2, count))) for _ in range(2)):
        rest = [[n] for n in range(count) if n not in part and all(n not in it for it in claimed)]
        if all(n not in it for it in claimed for n in part) and acyclic([*claimed, part, *rest], edges):
            claimed.append(part)
    taken: Mapping[int, Sequence[int]] = {n: part for part in claimed for n in part}
    supported = [n for n in range(count) if n not in taken and choose.random() < 0.7]
    parts = [list(it) for it in grown(program, 0, taken, supported)]
    assert parts == by_the_rule(count, edges, claimed, supported)
    others = [*claimed, *([n] for n in range(count) if n not in taken and n not in supported)]
    assert acyclic([*parts, *others], edges)
    for p, q in combinations(parts, 2):
        if any((a in p and b in q) or (a in q and b in p) for a, b in edges):
            assert not acyclic([*others, p + q, *(it for it in parts if it not in (p, q))], edges)
