"""The part of a graph around a finding: the nodes and tensors that it names, what they read and write, and who else."""

from __future__ import annotations

from collections.abc import Iterator

from sonnx.semantics.facts.structure import Element, SetTable, Structure
from sonnx.semantics.formulas.evaluate import constraints as direct
from sonnx.spec.language.syntax import Sort

from .report import Box, Neighbourhood

WIDTH = 6
"""How many neighbours of one box are drawn; the rest is one box `... n more`."""

NODE, TENSOR = Sort("Node"), Sort("Tensor")

Key = tuple[str, Element]


def around(instance: direct.Instance, structure: Structure) -> Neighbourhood | None:
    """The neighbourhood of the nodes and tensors that an instance binds; None when it binds none."""
    focus = [(sort.name, element) for _, sort, element in instance.bindings if sort in (NODE, TENSOR)]
    if not focus:
        return None
    picture = _Picture(structure)
    for kind, element in focus:
        picture.add(kind, element, focus=True)
    for key in list(picture.order):
        picture.expand(key)
    tensors = [key for key in picture.order if key[0] == "Tensor"]
    for key in tensors:
        picture.expand(key)
    return Neighbourhood(tuple(picture.boxes), tuple(dict.fromkeys(picture.arrows)))


class _Picture:
    """The boxes and arrows gathered so far."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure
        self.order: dict[Key, int] = {}
        self.boxes: list[Box] = []
        self.arrows: list[tuple[int, int]] = []
        self._expanded: set[Key] = set()

    def add(self, kind: str, element: Element, *, focus: bool = False) -> int:
        key = (kind, element)
        if key not in self.order:
            self.order[key] = len(self.boxes)
            self.boxes.append(self._box(kind, element, focus))
        return self.order[key]

    def _box(self, kind: str, element: Element, focus: bool) -> Box:
        path = self._structure.place(Sort(kind), element)
        last = path.rsplit('/"', 1)[-1] if kind == "Tensor" else path.rsplit("/", 1)[-1]
        return Box(kind.lower(), last.rstrip('"') if kind == "Tensor" else _node_label(path), path, focus)

    def expand(self, key: Key) -> None:
        """Draw the direct neighbours of a box."""
        if key in self._expanded:
            return
        self._expanded.add(key)
        kind, element = key
        here = self.order[key]
        before, after = ("ins", "outs") if kind == "Node" else ("producers", "consumers")
        other = "Tensor" if kind == "Node" else "Node"
        for there in self._some(before, other, element):
            self.arrows.append((there, here))
        for there in self._some(after, other, element):
            self.arrows.append((here, there))

    def _some(self, fact: str, kind: str, element: Element) -> Iterator[int]:
        table = self._structure.table(fact)
        members = table.rows.get(element, ()) if isinstance(table, SetTable) else ()
        for member in members[:WIDTH]:
            yield self.add(kind, member)
        if len(members) > WIDTH:
            self.boxes.append(Box("more", f"... {len(members) - WIDTH} more", ""))
            yield len(self.boxes) - 1


def _node_label(path: str) -> str:
    """`3:Conv` of `/3:Conv("name")`: the text behind the last graph separator outside quotes."""
    return "".join(path.split('"')[0::2]).replace("()", "").rsplit("/", 1)[-1]
