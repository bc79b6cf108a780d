"""Both models in one drawing, side by side and row by row: nodes that give one value, islands, rules, requirements.

The two are put into one graph, each as what a call expands to, so that a reader opens and closes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sonnx.semantics.model.graph import Attribute, Graph, Model, Node, NodeId, Tensor
from sonnx.semantics.picture.notes import Mark, Picture, foremost, in_order

from .comparison import Comparison
from .report import assumed, criterion, makers_of, node_map, readers_of, sentence, told

MARKS: Final = (
    Mark("island", "\u2260", "where the two part", "bad"),
    Mark("requires", "!", "may get stuck, on this side alone", "warn"),
    Mark("decides", "?", "rounding may flip what it decides", "warn"),
    Mark("rule", "\u21d2", "a rule fired here", "next"),
    Mark("same", "=", "gives a value that the other model has too", "done"),
    Mark("own", "", "gives a value that the other model has not", "plain"),
)


def side_by_side(comparison: Comparison) -> tuple[Model, Picture]:
    """The graph that holds both, and what is shown of it."""
    models = comparison.models
    shifts = (0, len(models[0].nodes))
    joined = _joined(models)
    marks: dict[NodeId, set[str]] = {n: {"own"} for n in range(len(joined.nodes))}
    said: dict[NodeId, list[str]] = {}

    def note(n: NodeId, mark: str, sentence: str) -> None:
        marks[n].discard("own")
        marks[n].add(mark)
        if sentence:
            said.setdefault(n, []).append(sentence)

    sides = (comparison.sides.a, comparison.sides.b)
    for n, m in node_map(comparison.sides):
        note(n, "same", f"the same value as {models[1].nodes[m].path} of B")
        note(shifts[1] + m, "same", f"the same value as {models[0].nodes[n].path} of A")
    for k, side in enumerate(sides):
        shift = shifts[k]
        for n, application in side.applications.items():
            fired = comparison.sides.firings.get(application)
            if fired is not None:
                said_of = (*fired.facts, *(f"assumed: {it}" for it in fired.assumed))
                facts = f" ({'; '.join(said_of)})" if said_of else ""
                note(shift + n, "rule", f"{fired.rule}, {fired.strength.name.lower()}{facts}")
            if application in comparison.sides.unmatched[k]:
                note(shift + n, "requires", "it may get stuck, and the other model has nothing that does alike")
            if application in comparison.decisions:
                note(shift + n, "decides", "rounding may flip what it decides")
        if comparison.proved is None:
            leaves = [(it.pair, it.what) for it in comparison.differences.islands]
            leaves += [(it.pair, it.what) for it in comparison.differences.constants]
            for pair, what in leaves:
                for n in makers_of(side, pair[k]) or readers_of(side, pair[k]):
                    note(shift + n, "island", what)
    marked = {n: in_order(names, MARKS) for n, names in marks.items()}
    loud = {n for n, names in marked.items() if names[0] in ("island", "requires", "decides")}
    evidence = criterion(comparison)[1]
    names = [model.files[0].name if model.files else side for model, side in zip(models, "AB", strict=True)]
    sentences = (
        f"{comparison.verdict.name}: {sentence(comparison)}.",
        f"A is {names[0]}, B is {names[1]}.",
        evidence[:1].upper() + evidence[1:],
    )
    witness = () if comparison.witness is None else told(comparison.witness, comparison.demanded)
    seen = "; ".join(it.removeprefix("witness ").strip() for it in witness)
    general = (
        *comparison.ports.changes,
        *comparison.notes,
        *(f"assumed of values: {it}" for it in assumed(comparison)),
        *([f"witness: {seen}"] if seen else ()),
    )
    focus = foremost(loud, marked, MARKS)
    title = f"{names[0]} and {names[1]}"
    return joined, Picture(
        title, sentences, MARKS, marked, {n: tuple(it) for n, it in said.items()}, {}, focus, tuple(general)
    )


def _joined(models: tuple[Model, Model]) -> Model:
    """One model with the graphs of both, each below the path of a call."""
    nodes: list[Node] = []
    tensors: list[Tensor] = []
    bodies: list[Graph] = []
    main: list[Graph] = []
    for name, model in zip("AB", models, strict=True):
        call = f"/{len(main)}:{name}"
        shift, values, graphs = len(nodes), len(tensors), len(bodies)

        def graph_id(g: int, graphs: int = graphs) -> int:
            return 0 if g == 0 else graphs + g

        def moved(path: str, call: str = call) -> str:
            return f"{call}!{path[1:]}"

        def tensor_ids(row: tuple[int | None, ...], values: int = values) -> tuple[int | None, ...]:
            return tuple(None if t is None else values + t for t in row)

        tensors += [replace(it, path=moved(it.path), graph=graph_id(it.graph)) for it in model.tensors]
        for it in model.nodes:
            nodes.append(
                replace(
                    it,
                    path=moved(it.path),
                    graph=graph_id(it.graph),
                    inputs=tensor_ids(it.inputs),
                    outputs=tensor_ids(it.outputs),
                    captures=tuple(values + t for t in it.captures),
                    bodies=tuple((attribute, graph_id(g)) for attribute, g in it.bodies),
                    calls=(call, *map(moved, it.calls)),
                    attributes=_plain(it.attributes),
                )
            )
        for g, graph in enumerate(model.graphs):
            made = replace(
                graph,
                path=graph.path if g == 0 else moved(graph.path),
                nodes=tuple(shift + n for n in graph.nodes),
                inputs=tuple(values + t for t in graph.inputs),
                outputs=tuple(values + t for t in graph.outputs),
                initializers=tuple((values + t, it) for t, it in graph.initializers),
                sparse_initializers=tuple((values + t, it) for t, it in graph.sparse_initializers),
                value_infos=tuple((values + t, it) for t, it in graph.value_infos),
                holder=None if graph.holder is None else shift + graph.holder,
            )
            (bodies if g else main).append(made)
    one, other = main
    both = replace(
        one,
        nodes=one.nodes + other.nodes,
        inputs=one.inputs + other.inputs,
        outputs=one.outputs + other.outputs,
        initializers=one.initializers + other.initializers,
        sparse_initializers=one.sparse_initializers + other.sparse_initializers,
        value_infos=one.value_infos + other.value_infos,
        input_types=one.input_types + other.input_types,
        output_types=one.output_types + other.output_types,
    )
    return replace(models[0], graphs=(both, *bodies), nodes=tuple(nodes), tensors=tuple(tensors), files=())


def _plain(given: Mapping[str, Attribute]) -> Mapping[str, Attribute]:
    """The attributes without graphs, which the drawing finds among the bodies."""
    return {name: it for name, it in given.items() if it.kind not in ("GRAPH", "GRAPHS")}
