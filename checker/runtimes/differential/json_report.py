"""A comparison as JSON: names, counts and elements. No number of a tensor is a JSON number, since JSON has no NaN."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .comparison import CaseComparison, Side
from .judging import Difference, Judged
from .local import NodeJudged
from .rendering import origins

SCHEMA = "sonnx-comparison/1"
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


def judged_data(judged: Judged) -> Data:
    """The counts of a value and its elements worth naming."""
    return {
        "standing": judged.standing.value,
        "elements": judged.elements,
        "exact": judged.exact,
        "within": judged.within,
        "free": judged.free,
        "undecided": judged.undecided,
        "outside": judged.outside,
        "ulps": judged.ulps,
        "ratio": _number(judged.ratio),
        "first": _difference(judged.first),
        "worst": _difference(judged.worst),
        "note": judged.note,
    }


def _case(case: CaseComparison) -> Data:
    return {
        "label": case.label,
        "verdict": case.verdict.value,
        "reason": case.reason,
        "sides": [_side(side) for side in case.sides],
        "outputs": [{"tensor": name, **_fields(it)} for name, it in case.outputs],
        "propagated": [{"node": node, "tensor": name, **_fields(it)} for node, name, it in case.propagated],
    }


def _fields(judged: Judged) -> dict[str, Data]:
    data = judged_data(judged)
    return data if isinstance(data, dict) else {}


def _side(side: Side) -> Data:
    return {
        "engine": side.engine,
        "failure": None if side.failure is None else {"kind": side.failure.kind, "message": side.failure.message},
        "hidden": None if side.hidden is None else {"kind": side.hidden.kind, "message": side.hidden.message},
        "by_definition": side.by_definition,
        "decided": side.decided,
        "nodes": [_node(node) for node in side.nodes],
        "perturbed": [{"tensor": name, **_fields(it)} for name, it in side.perturbed],
    }


def _node(node: NodeJudged) -> Data:
    return {
        "path": node.path,
        "operator": node.operator,
        "undecided": node.undecided,
        "outputs": [{"tensor": name, **_fields(it), "origins": _origins(node, name, it)} for name, it in node.outputs],
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


def _difference(difference: Difference | None) -> Data:
    if difference is None:
        return None
    return {
        "index": list(difference.index),
        "place": difference.place,
        "expected": {"decimal": difference.expected.decimal, "hex": difference.expected.hex},
        "found": {"decimal": difference.found.decimal, "hex": difference.found.hex},
        "ulps": difference.ulps,
        "ratio": _number(difference.ratio),
    }


def _number(ratio: float | None) -> Data:
    return None if ratio is None else repr(ratio)
