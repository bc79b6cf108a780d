"""A comparison as JSON: names, counts and elements. No number of a tensor is a JSON number, since JSON has no NaN."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from sonnx.semantics.machine.judging import Judged

from .comparison import CaseComparison, NodeJudged, Side
from .parts import PartJudged, PartsComparison
from .rendering import origins

SCHEMA = "sonnx-comparison/1"
PARTS = "sonnx-parts/1"
Data = dict[str, "Data"] | list["Data"] | str | int | bool | None


def to_json(model: str, engines: Sequence[tuple[str, str]], cases: Sequence[CaseComparison]) -> str:
    """The comparison. The same comparison gives the same text."""
    content: Data = {
        "schema": SCHEMA,
        "model": model,
        "engines": [{"name": name, "version": version} for name, version in engines],
        "cases": [_case(case) for case in cases],
    }
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def parts_to_json(model: str, providers: Sequence[str], cases: Sequence[PartsComparison]) -> str:
    """The comparison of parts. The same comparison gives the same text."""
    content: Data = {
        "schema": PARTS,
        "model": model,
        "providers": list(providers),
        "cases": [
            {
                "label": case.label,
                "verdict": case.verdict.value,
                "reason": case.reason,
                "stopped": case.stopped,
                "parts": [_part(it) for it in case.parts],
            }
            for case in cases
        ],
    }
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _part(it: PartJudged) -> Data:
    return {
        "provider": it.part.provider,
        "runs": it.part.runs,
        "nodes": list(it.part.nodes),
        "own": [{"tensor": name, **judged_data(judged)} for name, judged in it.own],
        "failure": it.failure,
        "inherited": None if it.inherited is None else judged_data(it.inherited),
        "together": None if it.together is None else judged_data(it.together),
    }


def judged_data(judged: Judged) -> dict[str, Data]:
    """The counts of a value and its elements worth naming."""
    data = {"standing": judged.standing.value, **asdict(judged)}
    for part in filter(None, (data, data["first"], data["worst"])):
        part["ratio"] = None if part["ratio"] is None else repr(part["ratio"])
    return data


def _case(case: CaseComparison) -> Data:
    return {
        "label": case.label,
        "verdict": case.verdict.value,
        "reason": case.reason,
        "sides": [_side(side) for side in case.sides],
        "outputs": [{"tensor": name, **judged_data(it)} for name, it in case.outputs],
        "propagated": [{"node": node, "tensor": name, **judged_data(it)} for node, name, it in case.propagated],
    }


def _side(side: Side) -> Data:
    return {
        "engine": side.engine,
        "failure": None if side.failure is None else {"kind": side.failure.kind, "message": side.failure.message},
        "hidden": None if side.hidden is None else {"kind": side.hidden.kind, "message": side.hidden.message},
        "by_definition": side.by_definition,
        "decided": side.decided,
        "nodes": [_node(node) for node in side.nodes],
        "perturbed": [{"tensor": name, **judged_data(it)} for name, it in side.perturbed],
    }


def _node(node: NodeJudged) -> Data:
    return {
        "path": node.path,
        "operator": node.operator,
        "undecided": node.undecided,
        "outputs": [
            {"tensor": name, **judged_data(it), "origins": _origins(node, name, it)} for name, it in node.outputs
        ],
    }


def _origins(node: NodeJudged, tensor: str, judged: Judged) -> Data:
    position = node.positions.get(tensor)
    if judged.first is None or node.application is None or position is None or judged.first.place:
        return []
    return [
        {
            "input": node.inputs[it.input] if it.input < len(node.inputs) else str(it.input),
            "control": it.control,
            "count": it.count,
            "low": list(it.low),
            "high": list(it.high),
        }
        for it in origins(node.application, position, judged.first.index)
    ]
