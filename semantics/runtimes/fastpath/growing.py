"""Parts made of nodes that a provider supports each for itself: as large as they can be without a cycle of parts.

The rule is that of part 6 of the specification, 8c-partition.sonnx (`maximal`): each node is a part at first; as long
as two neighbours may be joined, the first part in the order of the graph that has such a neighbour is joined with the
first of these. Whether two may be is asked in an order in which all parts can run, which is kept up while they are
joined (Pearce and Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic Graphs, 2006): what lies outside of
the two in that order cannot be on a path between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush

from ...model.graph import GraphId, NodeId
from ...operators.application import Program


class Cut:
    """All nodes of a graph in parts, each known by its first node, in an order in which they can run.

    It changes while parts are joined. claimed: for a node that is taken all nodes of its part; the cut that they make
    has no cycle.
    """

    __slots__ = ("after", "before", "home", "members", "place", "rank")

    def __init__(self, program: Program, graph: GraphId, claimed: Mapping[NodeId, Sequence[NodeId]]) -> None:
        order = program.order(graph)
        self.place = {n: at for at, n in enumerate(order)}
        self.members: dict[NodeId, list[NodeId]] = {}
        self.home: dict[NodeId, NodeId] = {}
        for n in order:
            if n not in self.home:
                together = sorted(claimed.get(n, (n,)), key=self.place.__getitem__)
                self.members[n] = together
                self.home.update(dict.fromkeys(together, n))
        self.after: dict[NodeId, set[NodeId]] = {p: set() for p in self.members}
        self.before: dict[NodeId, set[NodeId]] = {p: set() for p in self.members}
        for n in order:
            for t in program.writes[n]:
                for reader in program.readers.get(t, ()):
                    a, b = (
                        self.home[n],
                        self.home.get(reader),
                    )  # a reader in a body is there with the node that holds it
                    if b is not None and a != b:
                        self.after[a].add(b)
                        self.before[b].add(a)
        self.rank = self._ranks()

    def _ranks(self) -> dict[NodeId, int]:
        waiting = {p: len(before) for p, before in self.before.items()}
        ready = [self.place[p] for p, count in waiting.items() if not count]
        at = list(self.place)
        rank: dict[NodeId, int] = {}
        heapify(ready)
        while ready:
            p = at[heappop(ready)]
            rank[p] = len(rank)
            for q in self.after[p]:
                waiting[q] -= 1
                if not waiting[q]:
                    heappush(ready, self.place[q])
        return rank

    def joined(self, p: NodeId, q: NodeId) -> bool:
        """True where two neighbours may be one part, which they are then; False where a cycle would lead through it."""
        a, b = (p, q) if self.rank[p] < self.rank[q] else (q, p)
        below = self._reached(a, self.after, lambda it: self.rank[it] < self.rank[b])
        if any(b in self.after[it] for it in below):
            return False
        above = self._reached(b, self.before, lambda it: self.rank[it] > self.rank[a])
        kept, gone = (p, q) if self.place[p] < self.place[q] else (q, p)
        row = [*sorted(above, key=self.rank.__getitem__), kept, *sorted(below, key=self.rank.__getitem__)]
        slots = sorted(self.rank[it] for it in (*above, a, b, *below))
        self._merge(kept, gone)
        del self.rank[gone]
        self.rank.update(zip(row, slots, strict=False))
        return True

    def _reached(
        self, start: NodeId, edges: Mapping[NodeId, set[NodeId]], inside: Callable[[NodeId], bool]
    ) -> set[NodeId]:
        seen: set[NodeId] = set()
        waiting = [it for it in edges[start] if inside(it)]
        while waiting:
            it = waiting.pop()
            if it not in seen:
                seen.add(it)
                waiting += [other for other in edges[it] if inside(other)]
        return seen

    def _merge(self, kept: NodeId, gone: NodeId) -> None:
        self.members[kept] = [*self.members[kept], *self.members.pop(gone)]
        for edges, back in ((self.after, self.before), (self.before, self.after)):
            moved = edges.pop(gone)
            for it in moved:
                back[it].discard(gone)
                if it != kept:
                    back[it].add(kept)
            edges[kept] |= moved
            edges[kept] -= {kept, gone}


def grown(
    program: Program, graph: GraphId, claimed: Mapping[NodeId, Sequence[NodeId]], supported: Iterable[NodeId]
) -> tuple[tuple[NodeId, ...], ...]:
    """The parts that free nodes of a graph make, each in the order of the graph, as are the parts.

    claimed: for a node that is taken all nodes of its part. supported: free nodes.
    """
    inside = frozenset(supported)
    if not inside:
        return ()
    cut = Cut(program, graph, claimed)
    place = cut.place
    queued = set(inside)
    heap = [(place[p], p) for p in inside]
    heapify(heap)
    while heap:
        _, p = heappop(heap)
        if p not in queued:
            continue
        queued.discard(p)
        for q in sorted((cut.after[p] | cut.before[p]) & inside, key=place.__getitem__):
            if cut.joined(p, q):
                kept = min(p, q, key=place.__getitem__)
                queued -= {p, q}
                # Of other pairs none may be joined now that could not be before (theorem NotLater of part 6).
                for it in {kept, *cut.after[kept], *cut.before[kept]} & inside - queued:
                    queued.add(it)
                    heappush(heap, (place[it], it))
                break
    parts = (
        sorted(cut.members[p], key=place.__getitem__)
        for p in sorted(inside & cut.members.keys(), key=place.__getitem__)
    )
    return tuple(map(tuple, parts))
