"""Writing a trace: an observer that chains the steps of a run and keeps the bytes which they write."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import IO

from ...errors import InternalError
from ...model.graph import TensorId
from ...model.schemas import draws, operator_name
from ...operators.application import Stuck
from ...resources.persistent import items
from ..allocation.plan import ALIGNMENT
from ..memory import UNLIMITED, Region, Store, Uninitialised, read
from ..phases import Advance, Again, Leave, Phase, Select, Write
from ..state import Kept, State, region_of, run_prefix, tensor_path
from .format import VERSION, Json, Reference, canonical, chained, model_digest


class Tracer:
    """The observer that writes the trace of one run: lines to `text`, the bytes of values to `values`.

    chain: the hash of the last line. Both files are written as the run goes on and belong to the caller.
    judged: asked at the end for how many equations hold; None where the run was not judged, or is not consistent.
    """

    def __init__(
        self,
        text: IO[str] | None = None,
        values: IO[bytes] | None = None,
        judged: Callable[[], int | None] = lambda: None,
    ) -> None:
        self.chain = ""
        self._judged = judged
        self._text, self._values = text, values
        self._position = 0
        self._known: dict[str, Reference] = {}
        self._stored: dict[TensorId, Reference] = {}
        self._select: Select | None = None
        self._write: Write | None = None
        self._stuck: Stuck | None = None

    # ---- Events -------------------------------------------------------------------------------

    def begun(self, state: State) -> None:
        """The head: model, inputs, initializers, schedule."""
        model = state.program.model
        inputs: list[Json] = []
        stored: list[Json] = []
        for table in state.stored:
            for t, where in items(table):
                self._stored[t] = _referred(state.store, where, None, None)
                stored.append({"tensor": model.tensors[t].path, **self._stored[t].to_json()})
        for t, where in items(state.frame.table):
            if t in state.stored[0]:
                continue
            reference = self._keep(state.store, tensor_path(state, t), where)
            inputs.append({"tensor": tensor_path(state, t), **reference.to_json()})
        head: dict[str, Json] = {
            "sonnx": "trace",
            "version": VERSION,
            "model": model_digest(model),
            "inputs": inputs,
            "stored": stored,
            "schedule": str(state.schedule),
            "allocation": "arena" if state.store.space.reuse else "simple",
            "alignment": ALIGNMENT,
        }
        if any(draws(operator_name(n.domain, n.op_type), n.version) for n in state.program.model.nodes):
            head["draws"] = state.program.draws
        self._line(head)

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """One line when a step is complete."""
        if isinstance(phase, Select):
            self._select = phase
        elif isinstance(phase, Write):
            self._write = phase
        elif isinstance(phase, Stuck):
            self._stuck = phase
        elif isinstance(phase, Advance):
            if self._select is None or self._write is None:
                raise InternalError("a step has advanced that selected and wrote nothing")
            self._step(state, phase, self._select, self._write)

    def ended(self, state: State) -> None:
        """The end: the number of steps, the outputs."""
        model = state.program.model
        outputs: list[Json] = []
        for t in model.graphs[0].outputs:
            where = region_of(state, t) if state.frame.holder is None else None
            if where is not None:
                reference = self._reference(state, t, where)
                outputs.append({"tensor": tensor_path(state, t), **reference.to_json()})
        budget = state.store.space.budget
        refused = self._stuck
        stuck: Json = (
            None
            if refused is None
            else {
                "rule": refused.rule,
                "premise": refused.premise,
                "message": refused.message,
                "node": refused.at,
                "budget": None if budget == UNLIMITED else budget,
            }
        )
        equations = self._judged()
        judged: dict[str, Json] = {} if equations is None else {"consistent": equations}
        memory = state.store.space.peak
        self._line({"end": state.steps, "memory": memory, "outputs": outputs, "stuck": stuck, **judged})

    # ---- Lines --------------------------------------------------------------------------------

    def _step(self, before: State, advance: Advance, select: Select, write: Write) -> None:
        model, frame, state = before.program.model, before.frame, advance.state
        ending = isinstance(select.change, (Again, Leave))
        tensors: list[TensorId] = list(before.program.reads[select.node])
        if ending:
            tensors = [*model.graphs[frame.graph].outputs, *tensors]
        reads: list[Json] = []
        for t in dict.fromkeys(tensors):
            where = region_of(before, t)
            if where is not None:
                reads.append({"tensor": tensor_path(before, t), **self._reference(before, t, where).to_json()})
        kept = self._kept(before) if isinstance(select.change, Leave) else []
        writes: list[Json] = []
        for t, where in zip(write.tensors, write.places, strict=True):
            path = tensor_path(state, t)
            writes.append({"tensor": path, **self._keep(write.store, path, where).to_json()})
        line: dict[str, Json] = {
            "step": state.steps,
            "rule": select.rule,
            "node": select.path,
            "reads": reads,
            "writes": writes,
            "freed": [where.offset for _, where in advance.released if where.length],
        }
        if ending:
            line |= {"run": frame.prefix, "runs": frame.runs, "kept": kept}
        self._line(line)

    def _kept(self, state: State) -> list[Json]:
        """The results of the runs before, in order; null for what is not collected."""
        frame, entries = state.frame, list[Json]()
        kept: Kept | None = frame.kept
        outputs = state.program.model.graphs[frame.graph].outputs
        number = frame.run
        while kept is not None and frame.below is not None and frame.holder is not None:
            number -= 1
            lower = replace(state, frame=frame.below)
            prefix = run_prefix(lower, frame.holder, frame.graph, number)
            then = replace(state, frame=replace(frame, prefix=prefix))
            row: list[Json] = [
                None if it is None else self._reference(then, t, it).to_json()
                for t, it in zip(outputs, kept.places, strict=True)
            ]
            entries.append(row)
            kept = kept.before
        return entries[::-1]

    def _line(self, line: dict[str, Json]) -> None:
        self.chain = chained(self.chain, line)
        if self._text is not None:
            self._text.write(canonical({**line, "chain": self.chain}) + "\n")

    # ---- Values -------------------------------------------------------------------------------

    def _reference(self, state: State, t: TensorId, where: Region) -> Reference:
        """The reference to a value that was written, or to an initializer."""
        return self._known.get(tensor_path(state, t)) or self._stored[t]

    def _keep(self, store: Store, path: str, where: Region) -> Reference:
        """The reference to a value that is written now."""
        reference = _referred(store, where, self._position, None if self._values is None else self._values.write)
        self._position += where.length
        self._known[path] = reference
        return reference


def _referred(
    store: Store, where: Region, offset: int | None, sink: Callable[[bytes | memoryview], object] | None
) -> Reference:
    data = read(store.memory, where.offset, where.length)
    if isinstance(data, Uninitialised):
        raise InternalError("a value of a trace was never written")
    if sink is not None:
        sink(data)
    return Reference(where.type, hashlib.sha256(data).hexdigest(), where.length, where.offset, offset)
