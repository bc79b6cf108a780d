"""Random models judged by everybody: the default verdict, onnx.checker, the machine on drawn inputs, onnxruntime.

`judged(seed)` is a record that is kept as JSON; `wrong(record)` says what must not be, or nothing.
"""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections.abc import Mapping

import numpy as np
import onnx
from random_bodies import model
from sonnx.checker import certify
from sonnx.checker.certification.report import Report, RuleVerdict
from sonnx.semantics import load_proto, run
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import Limits
from sonnx.semantics.machine.inputs import declared_inputs
from sonnx.semantics.model.graph import Model, ValueType
from sonnx.semantics.model.values import Optional, Sequence, Value

Record = dict[str, object]
RUNS = 4
"""Sets of inputs for each model."""
STEPS = 2_000
"""A Loop may run for ever; a run that is still going after so many steps is none that got stuck."""


def judged(seed: int) -> Record:
    """The record of a seed."""
    proto, mistakes = model(seed)
    record: Record = {"seed": seed, "mistakes": list(mistakes)}
    try:
        report = certify(proto)
    except (ModelError, Unsupported) as problem:
        return record | {"verdict": "refused", "why": str(problem)}
    except Exception as problem:
        return record | {"verdict": "crash", "why": f"{type(problem).__name__}: {problem}"}
    record |= {"verdict": str(report.verdict), "checker": _checker(proto)}
    if str(report.verdict) != "CONFORMS":
        bad = {f"{it.rule_set} {it.id}" for it in report.rules if it.counted and it.verdict in ("violated", "unknown")}
        return record | {"rules": sorted(bad)}
    places = obligations(report)
    record["obligations"] = sorted(places)
    loaded = load_proto(proto)
    record["runs"] = [_run(loaded, proto, seed, number, places) for number in range(RUNS)]
    if record["checker"] and not any(it["ended"] for it in record["runs"]):
        record["onnxruntime"] = _onnxruntime(proto)
    return record


def wrong(record: Mapping[str, object]) -> str:
    """What must not be: a model that conforms gets stuck where nothing was listed, or everybody else refuses it."""
    if record["verdict"] == "crash":
        return f"certify crashes: {record['why']}"
    if record["verdict"] != "CONFORMS":
        return ""
    for it in record["runs"]:
        if it["stuck"] and not it["listed"]:
            return f"CONFORMS, and a run gets stuck where no obligation is listed: {it['stuck']}"
    if record["checker"] and not any(it["ended"] for it in record["runs"]) and record.get("onnxruntime"):
        return f"CONFORMS, and all refuse it: {record['checker']}"
    return ""


def obligations(report: Report) -> set[str]:
    """The nodes at which a run may get stuck by its data: those of the obligations, and those that they name."""
    found = set()
    for rule in report.rules:
        for it in (*rule.left_to(RuleVerdict.OBLIGATION), *rule.left_to(RuleVerdict.CONDITIONAL)):
            needed = it.witness.get("needed_by", [])
            found |= {it.where, *(map(str, needed) if isinstance(needed, list) else ())}
            found |= {"AsDeclared"} if rule.id in ("shapes", "types", "data-shapes") else set()
    return found


def _checker(proto: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(proto, full_check=True)
    except Exception as problem:
        return " ".join(str(problem).split())[:200] or type(problem).__name__
    return ""


def _run(loaded: Model, proto: onnx.ModelProto, seed: int, number: int, places: set[str]) -> Mapping[str, object]:
    choose = random.Random(f"{seed} {number}")
    sizes: dict[str, int] = {}
    given = {
        name: _drawn(stated, choose, sizes) for name, (_, stated, needed) in declared_inputs(loaded).items() if needed
    }
    if sizes and not _sizes_hold(proto, sizes):
        return {"ended": False, "stuck": "", "listed": True, "sizes": sizes}
    try:
        ended = run(loaded, given, limits=Limits(STEPS), history=False)
    except (ModelError, Unsupported) as problem:
        return {"ended": False, "stuck": str(problem), "listed": False, "sizes": sizes}
    except Exception as problem:
        return {"ended": False, "stuck": f"the machine crashes: {type(problem).__name__}: {problem}", "listed": False}
    if ended.stuck is None or len(ended.choices) >= STEPS:
        return {"ended": ended.stuck is None, "stuck": "", "listed": True, "sizes": sizes}
    at = re.sub(r"@\d+", "", ended.stuck.at) or ended.stuck.rule
    return {
        "ended": False,
        "stuck": f"{at}: {ended.stuck.rule}: {ended.stuck.message}",
        "listed": at in places,
        "sizes": sizes,
    }


def _sizes_hold(proto: onnx.ModelProto, sizes: Mapping[str, int]) -> bool:
    """Whether the model conforms for these very sizes: where free sizes decide, the verdict names a condition."""
    return str(certify(proto, sizes={name: (size, size) for name, size in sizes.items()}).verdict) == "CONFORMS"


def _drawn(stated: ValueType | None, choose: random.Random, sizes: dict[str, int]) -> Value:
    """A value of a declared type; sizes of a name are drawn once."""
    if stated is None:
        return np.zeros((), np.float32)
    inner = stated.inner or ValueType("tensor", "float", ())
    if stated.kind == "sequence":
        return Sequence(inner, tuple(_drawn(inner, choose, sizes) for _ in range(choose.choice((0, 1, 2, 3)))))
    if stated.kind == "optional":
        return Optional(inner, _drawn(inner, choose, sizes) if choose.random() < 0.7 else None)
    shape = [
        size if isinstance(size, int) else sizes.setdefault(size or f"?{choose.random()}", choose.randint(1, 4))
        for size in stated.shape or ()
    ]
    generator = np.random.default_rng(choose.randrange(2**32))
    match stated.element:
        case "bool":
            return np.asarray(generator.random(shape) < 0.5)
        case "int64" | "int32":
            return np.asarray(generator.integers(-1, 4, shape)).astype(stated.element)
        case _:
            return np.asarray(generator.standard_normal(shape)).astype(np.float32)


OPENING = """
import sys
import onnxruntime
try:
    onnxruntime.InferenceSession(sys.stdin.buffer.read(), providers=["CPUExecutionProvider"])
except Exception as problem:
    print(" ".join(str(problem).split())[:200])
"""


def _onnxruntime(proto: onnx.ModelProto) -> str:
    """Why onnxruntime refuses the model, asked in a process of its own; "" where it opens it, crashes or is missing."""
    done = subprocess.run(
        [sys.executable, "-c", OPENING], input=proto.SerializeToString(), capture_output=True, check=False
    )
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
