"""Small graphs, which show findings: inputs, outputs and deterministic nodes, no bodies and no stored values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sonnx.semantics.facts.structure import Structure, Table

Row = tuple[int, ...]
NODES, TENSORS = "abcdefgh", "xyzwvutsrqp"
"""The names of nodes and tensors."""


@dataclass(frozen=True, slots=True)
class SmallGraph:
    """reads, writes: for each node its tensors by position. inputs, outputs: tensors of the graph."""

    tensors: int
    reads: tuple[Row, ...]
    writes: tuple[Row, ...]
    inputs: Row = ()
    outputs: Row = ()

    def __str__(self) -> str:
        def names(row: Row) -> str:
            return ", ".join(TENSORS[t] for t in row) or "nothing"

        nodes = zip(NODES, self.reads, self.writes, strict=False)
        shown = [f"{name}: {names(reads)} -> {names(writes)}" for name, reads, writes in nodes]
        return "; ".join([*shown, f"inputs {names(self.inputs)}", f"outputs {names(self.outputs)}"])


# ---- As a model -------------------------------------------------------------------------------


def operator_of(reads: int, writes: int) -> str:
    """An operator with so many inputs and outputs, "" where there is none."""
    match reads, writes:
        case (0, 1):
            return "Constant <value_floats = [1.0, 2.0]>"
        case (1, 0 | 1):
            return "Relu"
        case (_, 0 | 1) if reads:
            return "Sum"
        case (1, 2):
            return "Split <num_outputs = 2, axis = 0>"
        case _:
            return ""


def text(graph: SmallGraph) -> str:
    """The graph as a model in ONNX's textual syntax, its tensors of two floats."""

    def typed(row: Row) -> str:
        return ", ".join(f"float[2] {TENSORS[t]}" for t in row)

    def names(row: Row) -> str:
        return ", ".join(TENSORS[t] for t in row)

    nodes = zip(graph.reads, graph.writes, strict=True)
    lines = [f"  {names(writes)} = {operator_of(len(reads), len(writes))} ({names(reads)})" for reads, writes in nodes]
    head = f'<ir_version: 10, opset_import: ["": 18]>\ng ({typed(graph.inputs)}) => ({typed(graph.outputs)}) {{'
    return "\n".join([head, *lines, "}"]) + "\n"


def structure(tables: Mapping[str, Table]) -> Structure:
    """A structure with these tables."""
    providers = {name: (lambda table=table: table) for name, table in tables.items()}
    return Structure(providers, lambda sort, element: f"{sort} {element}")
