"""Runs the cases of the ledger: on the machine, on onnx.reference, and on onnxruntime in a process of its own.

onnxruntime is taken from this interpreter, or from the one that SONNX_ONNXRUNTIME names, which may have another
version of it; numpy is all that one needs besides. A case on which the process dies has the outcome "crash".
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from onnx import __version__ as onnx_version
from onnx import parser
from onnx.reference import ReferenceEvaluator
from sonnx.checker.runtimes.deviations.ledger import CRASH, Case, Outcome, ledger, model
from sonnx.checker.runtimes.deviations.standing import Free, Recorded, classify, difference
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.values import Map
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled.ieee import apply

WORKER = """
import pickle, sys
import onnxruntime
onnxruntime.set_default_logger_severity(4)
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = options.inter_op_num_threads = 1
with open(sys.argv[1], "rb") as file:
    cases = pickle.load(file)
with open(sys.argv[2], "ab") as out:
    pickle.dump(onnxruntime.__version__, out)
    out.flush()
    for content, inputs in cases:
        try:
            session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            done = dict(zip([it.name for it in session.get_outputs()], session.run(None, inputs)))
        except Exception as error:
            done = type(error).__name__
        pickle.dump(done, out)
        out.flush()
"""


def machine(case: Case) -> tuple[Outcome, Mapping[str, Any]]:
    """What the machine gives, and by name which elements the specification leaves open."""
    return _machine(case.name)


@cache
def _machine(name: str) -> tuple[Outcome, Mapping[str, Any]]:
    (case,) = (it for it in ledger() if it.name == name)
    free: tuple[Any, ...] = ()

    def watched(application: Application) -> Outputs | Stuck:
        nonlocal free
        done = apply(application)
        if isinstance(done, Outputs) and (case.rewrite or application.op_type == case.operator):
            free = done.free
        return done

    ended = run(model(case), case.inputs, meaning=watched)
    if ended.stuck is not None:
        return Outcome(None, ended.stuck.premise), {}
    return Outcome(ended.outputs), dict(zip(ended.outputs, free, strict=False))


def judge(case: Case, runtime: str, version: str, outcome: Outcome, free: Free) -> str:
    """What is wrong with the record of a runtime, "" when nothing is."""
    apart = difference(outcome, case.outcome, free)
    stands = classify(case, runtime, version, outcome, bool(apart))
    return "" if stands in (Recorded.CONFORMS, Recorded.RECORDED) else f"{stands}: {runtime} {version}: {apart}"


def free_elements(case: Case) -> Free:
    """The elements that the specification leaves open, by output."""
    return known_masks(machine(case)[1]) if case.defined else {}


def known_masks(free: Mapping[str, Any]) -> Free:
    """The masks that are known."""
    return {name: mask for name, mask in free.items() if mask is not None}


def reference(case: Case) -> Outcome:
    """What onnx.reference gives."""
    proto = parser.parse_model(case.text)
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ReferenceEvaluator(proto).run(None, _as_texts(case.inputs))
    except Exception as error:
        return Outcome(None, type(error).__name__)
    return Outcome(dict(zip([it.name for it in proto.graph.output], map(_as_bytes, found), strict=True)))


def _as_texts(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Strings as runtimes take them: they are bytes in the ledger."""
    return {
        name: {key.decode() if isinstance(key, bytes) else key: item[()] for key, item in x.items}
        if isinstance(x, Map)
        else _mapped(x, bytes.decode)
        if x.dtype == object
        else x
        for name, x in inputs.items()
    }


def _as_bytes(value: Any) -> Any:
    found = np.asarray(value)
    return _mapped(found.astype(object), str.encode) if found.dtype.kind in "OUT" else found


def _mapped(x: Any, function: Any) -> Any:
    made = np.empty(x.shape, object)
    made.reshape(-1)[:] = [function(text) for text in x.reshape(-1).tolist()]
    return made


def interpreter() -> str | None:
    """The interpreter that has onnxruntime, None when there is none."""
    named = os.environ.get("SONNX_ONNXRUNTIME")
    return named or (sys.executable if find_spec("onnxruntime") else None)


def accepted(case: Case) -> bool:
    """Whether the Python interface of onnxruntime takes the inputs: element types that NumPy has itself."""
    tensors = [value for value in case.inputs.values() if isinstance(value, np.ndarray)]
    return all(value.dtype.isbuiltin == 1 or value.dtype == object for value in tensors)


@cache
def onnxruntime() -> tuple[str, Mapping[str, Outcome]]:
    """The version of onnxruntime, and what it gives for each case that it accepts."""
    cases = [case for case in ledger() if accepted(case)]
    found: dict[str, Outcome] = {}
    version = ""
    while len(found) < len(cases):
        rest = cases[len(found) :]
        version, done = _batch(rest)
        for case, one in zip(rest, done, strict=False):
            failed = isinstance(one, str)
            found[case.name] = (
                Outcome(None, one) if failed else Outcome({name: _as_bytes(value) for name, value in one.items()})
            )
        if len(done) < len(rest):
            found[rest[len(done)].name] = Outcome(None, CRASH)
    return version, found


def _batch(cases: Sequence[Case]) -> tuple[str, list[Any]]:
    python = interpreter()
    if python is None:
        raise RuntimeError("onnxruntime is not installed")
    with tempfile.TemporaryDirectory() as folder:
        sent, back = Path(folder, "cases"), Path(folder, "outcomes")
        sent.write_bytes(
            pickle.dumps([(parser.parse_model(c.text).SerializeToString(), _as_texts(c.inputs)) for c in cases])
        )
        ended = subprocess.run([python, "-c", WORKER, sent, back], capture_output=True, text=True, check=False)
        if not back.exists():
            raise RuntimeError(f"onnxruntime does not start: {ended.stderr[-500:]}")
        found = []
        with back.open("rb") as file:
            while True:
                try:
                    found.append(pickle.load(file))
                except EOFError:
                    return found[0], found[1:]


def version_of_reference() -> str:
    """The installed version of onnx.reference."""
    return onnx_version
