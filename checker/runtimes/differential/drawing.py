"""A comparison on the graph of its model: the standing of every node that was judged, the worst that it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.judging import Judged, Standing
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.machine.spelling import single
from sonnx.semantics.model.graph import Model, NodeId, TensorId
from sonnx.semantics.model.path import operator_text, parse_path
from sonnx.semantics.model.values import Value
from sonnx.semantics.picture.notes import Content, Mark, Picture, foremost, in_order

from .comparison import CaseComparison, NodeJudged, Side

MARKS: Final = (
    Mark("outside", "\u2717", "outside the bound", "bad"),
    Mark("undecided", "?", "undecided", "open"),
    Mark("free", "*", "within the freedom that is allowed", "faint"),
    Mark("within", "\u2248", "within the bound", "faint"),
    Mark("exact", "=", "exact", "done"),
    Mark("unjudged", "", "not judged on its own", "plain"),
)
_FAULTS: Final = ("outside", "undecided")


def annotated(name: str, model: Model, engines: Sequence[tuple[str, str]], cases: Sequence[CaseComparison]) -> Picture:
    """Each node of the main graph, its calls expanded, as the engines gave it. engines: names and versions."""
    marks: dict[NodeId, set[str]] = {}
    said: dict[NodeId, list[str]] = {}
    general: list[str] = []
    for case in cases:
        for side in case.sides:
            general += _unjudged(case, side)
            places = _places(model, side.nodes)
            if side.nodes and places is None:
                general.append(f"{side.engine}: the nodes that it shows are not those of the model, one by one")
            for node, n in zip(side.nodes, places or (), strict=False):
                standing, sentences = _said(node)
                marks.setdefault(n, set()).add(standing.name.lower())
                said.setdefault(n, []).extend(f"{case.label}, {side.engine}: {it}" for it in sentences)
        general.append(f"{case.label}: {case.verdict.value}: {case.reason}")
    marked = {n: in_order(marks.get(n, {"unjudged"}), MARKS)[:1] for n in range(len(model.nodes))}
    focus = foremost((n for n in marks if marked[n][0] in _FAULTS), marked, MARKS)
    spelled = " and ".join(f"{engine} {version}".strip() for engine, version in engines)
    verdicts = ", ".join(dict.fromkeys(case.verdict.value for case in cases))
    facts = (
        f"{spelled}: {verdicts}.",
        "Each node is judged on what its engine fed to it, and has the worst that it was.",
    )
    values = _types(model, cases)
    return Picture(name, facts, MARKS, marked, {n: tuple(it) for n, it in said.items()}, values, focus, tuple(general))


def _types(model: Model, cases: Sequence[CaseComparison]) -> Mapping[TensorId, Content]:
    """The types of the values that an engine showed first."""
    shown: dict[str, Value] = {}
    for case in cases:
        for side in case.sides:
            shown = {**(side.values or {}), **shown}
    main = ((t, tensor.name) for t, tensor in enumerate(model.tensors) if tensor.graph == 0)
    return {t: Content(single(type_text(type_of(shown[name])))) for t, name in main if name in shown}


def _unjudged(case: CaseComparison, side: Side) -> list[str]:
    """Why an engine shows no node that could be judged."""
    start = f"{case.label}, {side.engine}"
    if side.failure is not None:
        return [f"{start}: {side.failure}"]
    if side.hidden is not None:
        return [f"{start} shows no intermediate values: {side.hidden}"]
    return [f"{start}: the definition"] if side.by_definition else []


def _places(model: Model, nodes: Sequence[NodeJudged]) -> Sequence[NodeId] | None:
    """The nodes of the model that were judged: engines are shown the model with its calls expanded, whose main graph
    has the same nodes in the same places. None where it has not."""
    main = model.graphs[0].nodes
    found = []
    for judged in nodes:
        at = parse_path(judged.path).steps[0].index
        node = model.nodes[main[at]] if at < len(main) else None
        if node is None or f"{operator_text(node.domain, node.op_type)}-{node.version}" != judged.operator:
            return None
        found.append(main[at])
    return found if len(nodes) <= len(main) else None


def _said(node: NodeJudged) -> tuple[Standing, list[str]]:
    """The worst standing of what a node gives, and sentences."""
    if node.undecided:
        return Standing.UNDECIDED, [node.undecided]
    order = list(Standing)
    worst = max((it.standing for _, it in node.outputs), key=order.index, default=Standing.UNDECIDED)
    return worst, [f"{name}: {_counts(it)}" for name, it in node.outputs if it.standing is not Standing.EXACT]


def _counts(judged: Judged) -> str:
    if judged.note:
        return judged.note
    counts: Mapping[str, int] = {
        "outside": judged.outside, "undecided": judged.undecided, "free": judged.free, "within": judged.within,
        "exact": judged.exact,
    }  # fmt: skip
    far = [f"up to {judged.ulps} ULP"] if judged.ulps is not None else []
    far += [f"{judged.ratio:.3g} times the bound"] if judged.ratio is not None else []
    shown = [f"{count} of {judged.elements} elements {name}" for name, count in counts.items() if count]
    return ", ".join([*shown, *far])
