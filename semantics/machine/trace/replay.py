"""Replaying: a trace is read, its chain is checked, and single steps are executed again, each alone.

A step is executed on a state that is made of the values which it read, so nothing before it has to run.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...errors import InternalError, ModelError
from ...model.graph import Constant, GraphId, Model, NodeId, TensorId
from ...model.path import GraphPlace, NodePlace, TensorPlace, quote, resolve
from ...model.stored import array_of
from ...model.values import Value
from ...operators.application import Meaning, Program, Stuck, initializers
from ...resources.persistent import PersistentMap, put
from ...resources.process import OutOfBudget
from ..memory import Memory, Region, Store, Uninitialised, empty_store, parts_of, read_value, store_value
from ..memory import write as written
from ..phases import Apply, Phase, Select
from ..schedule import Ordered, Schedule
from ..state import Frame, Kept, State, Table
from ..transitions import phases
from .format import SUFFIX, VERSION, Json, Reference, chained, model_digest, reference_from_json

_LONGEST: Final = 1 << 28  # characters of a line


@dataclass(frozen=True, slots=True)
class Trace:
    """The lines of a trace: the head, the steps, the end (None when the run was cut off). values: the file of bytes."""

    head: Mapping[str, Json]
    steps: tuple[Mapping[str, Json], ...]
    end: Mapping[str, Json] | None
    values: Path
    broken: str = ""
    """The fault of a chain that is broken, or of a step that reads what was not written; "" when all is well."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on a step: why it does not hold, in a sentence; its rule and node."""

    step: int
    rule: str
    node: str
    reason: str = ""

    @property
    def holds(self) -> bool:
        """The step gives what the trace says."""
        return not self.reason


def read_trace(path: Path) -> Trace:
    """The trace in a file. Raises ModelError when it is none, OSError when it cannot be read."""
    lines: list[dict[str, Json]] = []
    broken, chain, known = "", "", dict[str, str]()
    with path.open(encoding="ascii", errors="strict") as file:
        for number, text in enumerate(_lines(file, path), 1):
            line = _parsed(text, path, number)
            stated = line.pop("chain", None)
            chain_now = chained(chain, line)
            if not broken and stated != chain_now:
                broken = f"line {number} does not have the hash that its chain says"
            chain = stated if isinstance(stated, str) else chain_now
            broken = broken or _unlinked(line, known, number)
            lines.append(line)
    if lines and lines[0].get("sonnx") == "trace" and lines[0].get("version") == VERSION - 1:
        raise ModelError(
            f"{quote(str(path))} is a trace of version {VERSION - 1}: make it again with `sonnx run --trace`"
        )
    if not lines or lines[0].get("sonnx") != "trace" or lines[0].get("version") != VERSION:
        raise ModelError(f"{quote(str(path))} is no trace of `sonnx run`: give the file that --trace wrote")
    end = lines[-1] if len(lines) > 1 and "end" in lines[-1] else None
    steps = tuple(lines[1 : -1 if end is not None else None])
    return Trace(lines[0], steps, end, path.with_name(path.name + SUFFIX), broken)


def replay(trace: Trace, model: Model, steps: Iterable[int], meaning: Meaning) -> Iterable[Verdict]:
    """For each of the steps, counted from 1, whether it holds. Raises ModelError for another model, a step that the
    trace does not have, and lines that cannot be read."""
    if model_digest(model) != trace.head.get("model"):
        raise ModelError("the trace is of another model: give the file that was run, with the same bytes")
    seed = trace.head.get("draws", 0)
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise ModelError("the trace has a seed of random numbers that is none: make it again")
    program = Program(model, meaning, seed)
    with Values(trace.values) as values:
        for number in steps:
            if not 1 <= number <= len(trace.steps):
                raise ModelError(f"the trace has the steps 1 to {len(trace.steps)}, not {number}")
            yield _replayed(trace.steps[number - 1], number, program, values)


# ---- Reading ----------------------------------------------------------------------------------


def _lines(file: Iterable[str], path: Path) -> Iterable[str]:
    try:
        yield from file
    except UnicodeDecodeError:
        raise ModelError(f"{quote(str(path))} is no trace of `sonnx run`: give the file that --trace wrote") from None


def _parsed(text: str, path: Path, number: int) -> dict[str, Json]:
    try:
        line = json.loads(text) if len(text) < _LONGEST else None
    except (ValueError, RecursionError):
        line = None
    if not isinstance(line, dict):
        raise ModelError(f"{quote(str(path))}: line {number} is no line of a trace: make the trace again")
    return line


def _unlinked(line: Mapping[str, Json], known: dict[str, str], number: int) -> str:
    """Checks what a step reads and no step before has written; the values that are known are brought up to date."""
    for tensor, sha256 in _named(line.get("reads")):
        if known.get(tensor, sha256) != sha256:
            return f"line {number} reads another value of {tensor} than was written"
    for tensor, sha256 in (*_named(line.get("writes")), *_named(line.get("inputs"))):
        known[tensor] = sha256
    return ""


def _named(entries: Json) -> Iterable[tuple[str, str]]:
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("tensor"), str) and isinstance(entry.get("sha256"), str):
            yield str(entry["tensor"]), str(entry["sha256"])


class Values:
    """The bytes of the values of a trace."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    def __enter__(self) -> Values:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def value(self, reference: Reference) -> Value:
        """The value referred to. Raises ModelError when the bytes are not there or are others."""
        self._file.seek(reference.offset or 0)
        data = self._file.read(reference.length)
        if len(data) != reference.length or hashlib.sha256(data).hexdigest() != reference.sha256:
            raise ModelError(
                "the file of values lacks bytes that the trace refers to, or has others: keep the two together"
            )
        try:
            value = read_value(written(Memory(len(data)), 0, data), 0, len(data), reference.type)
        except (InternalError, ValueError):
            raise ModelError("a value of the trace has not the bytes that its type needs: make it again") from None
        if isinstance(value, Uninitialised):
            raise InternalError("bytes that were written are not there")
        return value


# ---- One step ---------------------------------------------------------------------------------


def _replayed(line: Mapping[str, Json], number: int, program: Program, values: Values) -> Verdict:
    rule, path = str(line.get("rule")), str(line.get("node"))
    state, n = _state(line, path, program, values)
    verdict = Verdict(number, rule, path)
    last: Phase | Stuck | None = None
    applied: Apply | None = None
    for last in phases(state, n):
        if isinstance(last, Select) and last.rule != rule:
            return replace(verdict, reason=f"the rule {last.rule} applies")
        if isinstance(last, Apply):
            applied = last
    if isinstance(last, Stuck):
        return replace(verdict, reason=f"the machine is stuck: {last.message}")
    if applied is None:
        raise InternalError("a step applied nothing")
    return replace(verdict, reason=_difference(line, applied, program.model))


def _difference(line: Mapping[str, Json], applied: Apply, model: Model) -> str:
    """The difference of what a step gives from what the trace says; "" when it does not."""
    stated = {_tensor(model, tensor): sha256 for tensor, sha256 in _named(line.get("writes"))}
    if stated.keys() != set(applied.tensors):
        return "it writes other tensors"
    for t, value in zip(applied.tensors, applied.values, strict=True):
        if digest_of(value) != stated[t]:
            return f"it gives another value to {model.tensors[t].path}"
    return ""


def digest_of(value: Value) -> str:
    """The SHA-256 of the bytes of a value, as a trace has it."""
    hashed = hashlib.sha256()
    for part in parts_of(value):
        hashed.update(part)
    return hashed.hexdigest()


def _placed(store: Store, value: Value) -> tuple[Store, Region]:
    stored = store_value(store, value, "a value")
    if isinstance(stored, OutOfBudget):
        raise InternalError("there is a budget where none was set")
    return stored


def _state(line: Mapping[str, Json], path: str, program: Program, values: Values) -> tuple[State, NodeId]:
    """The state that a step read, as far as it read it."""
    model = program.model
    try:
        node = resolve(model, path)
        run = line.get("run")
        top = resolve(model, run.rstrip("/") or "/") if isinstance(run, str) else None
    except ValueError:
        node = top = None
    if not isinstance(node, NodePlace) or ("run" in line and not isinstance(top, GraphPlace)):
        raise ModelError("the trace names a node that the model does not have: it is of another model")
    inner = top if isinstance(top, GraphPlace) else GraphPlace(model.nodes[node.node].graph, node.iterations)
    store = empty_store()
    tables: dict[GraphId, Table] = {}
    stored = {t: it for graph in model.graphs for t, it in initializers(graph)}
    reads = line.get("reads")
    for entry in reads if isinstance(reads, list) else []:
        if not isinstance(entry, dict):
            raise ModelError("the trace has a read that is none: make it again")
        reference = reference_from_json(entry)
        t = _tensor(model, str(entry.get("tensor")))
        value = _initializer(model, t, stored, reference) if reference.offset is None else values.value(reference)
        store, where = _placed(store, value)
        graph = model.tensors[t].graph
        tables[graph] = put(tables.get(graph, PersistentMap()), t, where)
    kept, runs = line.get("kept"), line.get("runs")
    chain: Kept | None = None
    for row in kept if isinstance(kept, list) else []:
        places: list[Region | None] = []
        for entry in row if isinstance(row, list) else []:
            if entry is None:
                places.append(None)
                continue
            reference = reference_from_json(entry)
            if reference.offset is None:
                raise ModelError("the trace keeps a stored value: make it again")
            store, where = _placed(store, values.value(reference))
            places.append(where)
        chain = Kept(tuple(places), chain)
    frame = _frames(model, inner, tables)
    if chain is not None or isinstance(runs, int):
        frame = replace(frame, kept=chain, runs=runs if isinstance(runs, int) else None)
    empty: tuple[Table, ...] = tuple(PersistentMap() for _ in model.graphs)
    return State(program, store, frame, Schedule(), empty), node.node


def _frames(model: Model, inner: GraphPlace, tables: Mapping[GraphId, Table]) -> Frame:
    """The frames around a graph, from the numbers of its runs."""
    nest: list[GraphId] = []
    graph: GraphId | None = inner.graph
    while graph is not None:
        nest.append(graph)
        holder = model.graphs[graph].holder
        graph = None if holder is None else model.nodes[holder].graph
    frame: Frame | None = None
    runs = dict(zip(reversed(nest[:-1]), inner.iterations, strict=True))
    for g in reversed(nest):
        path = model.graphs[g].path
        prefix = path if path.endswith("/") else path + "/"
        table = tables.get(g, PersistentMap())
        holder, run = model.graphs[g].holder, runs.get(g) or 0
        frame = Frame(g, table, Ordered(), holder=holder, run=run, prefix=prefix, below=frame)
    if frame is None:
        raise InternalError("a graph has no frame")
    return frame


def _tensor(model: Model, path: str) -> TensorId:
    try:
        tensor = resolve(model, path)
    except ValueError:
        tensor = None
    if not isinstance(tensor, TensorPlace):
        raise ModelError(
            f"the trace names the tensor {quote(path)}, which the model does not have: it is of another model"
        )
    return tensor.tensor


def _initializer(model: Model, t: TensorId, stored: Mapping[TensorId, Constant], reference: Reference) -> Value:
    if t not in stored:
        raise ModelError("the trace says that a tensor is stored which is not: it is of another model")
    value = array_of(stored[t], model, model.tensors[t].name)
    if isinstance(value, OutOfBudget):
        raise InternalError("there is a budget where none was set")
    if digest_of(value) != reference.sha256:
        raise ModelError(f"the model stores another value for {model.tensors[t].path} than the trace says")
    return value
