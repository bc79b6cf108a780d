"""A bisection as JSON. No number of a tensor is a JSON number, since JSON has no NaN."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sonnx.semantics.machine.inputs import type_text
from sonnx.semantics.machine.memory import type_of
from sonnx.semantics.runtimes.engines.protocol import Optimizing

from ..differential.json_report import Data, judged_data
from .reducing import Smallest
from .searching import Bisection, Guilty
from .trials import Outcome

SCHEMA = "sonnx-bisection/1"


def to_json(model: str, engine: Optimizing, cases: Sequence[Bisection]) -> str:
    """The cases. The same cases give the same text."""
    content: Data = {
        "schema": SCHEMA,
        "model": model,
        "engine": {"name": engine.name, "version": engine.version},
        "decides": cases[0].criterion.value,
        "cases": [_case(engine, case) for case in cases],
    }
    return json.dumps(content, indent=1, sort_keys=True, allow_nan=False) + "\n"


def _case(engine: Optimizing, case: Bisection) -> Data:
    return {
        "label": case.label,
        "verdict": case.verdict.value,
        "reason": case.reason,
        "part": case.part,
        "whole": None if case.whole is None else _case(engine, case.whole),
        "all": _outcome(case.default),
        "none": _outcome(case.plain),
        "all_against_none": [{"tensor": name, **judged_data(it)} for name, it in case.distance],
        "level": case.level,
        "guilty": [_guilty(it) for it in case.guilty],
        "switch_off": None if case.remedy is None else list(case.remedy),
        "advice": engine.advice(case.remedy) if case.remedy else "",
        "narrowed": list(case.narrowed),
        "smallest": _smallest(case.smallest),
        "runs": case.runs,
        "interrupted": case.stopped is not None,
    }


def _outcome(outcome: Outcome | None) -> Data:
    if outcome is None:
        return None
    failure = outcome.failure
    return {
        "answer": outcome.answer.value,
        "failure": None if failure is None else {"kind": failure.kind.value, "message": failure.message},
        "outputs": [{"tensor": name, **judged_data(it)} for name, it in outcome.judged],
    }


def _guilty(guilty: Guilty) -> Data:
    changes: list[Data] = [
        {"optimizers": list(names), "removed": list(it.removed), "added": list(it.added)}
        for names, it in guilty.changes
    ]
    rules: list[Data] = [
        {"name": it.name, "claim": it.claim, "sentence": it.sentence, "reason": it.reason} for it in guilty.rules
    ]
    return {"optimizers": list(guilty.names), "changes": changes, "rules": rules}


def _smallest(small: Smallest | None) -> Data:
    if small is None:
        return None
    inputs: dict[str, Data] = {name: type_text(type_of(value)) for name, value in small.case.feeds.items()}
    return {"nodes": list(small.nodes), "inputs": inputs, "all": _outcome(small.default), "tried": small.tried}
