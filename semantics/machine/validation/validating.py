"""Validating a trace: its steps are followed, in a memory of its own, from the first line to the last.

Each line must say what follows from the lines before it and from the bytes that it writes:

    premises   the rule of part 3 that it names applies to its node, and what it reads has the values that were written
    bytes      what it writes is what the rule gives, bit for bit, recomputed from operands read in M
    order      the node is the one that the schedule of the head chooses
    regions    bounded, aligned and disjoint of part 4; no initializer is freed, nothing freed is read (covered)
    nothing else changes: M has no bytes but those that the lines say, and every later operand is read from it
    hashes     each line has the hash of all lines before it, each value that of its bytes
    the end    no rule applies, or the run is stuck at a rule which is refused here too

Elements that the text of an operator leaves open (arbitrary, oneof, random ones) must be those that this implementation
settles from the seed of the trace: another choice is refused, though the text may allow it. Elements that part 3 leaves
open (Scan-8) may have any value of their type; they are counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import numpy as np

from ...errors import ModelError
from ...model.elements import Buffer
from ...model.graph import Model, TensorId
from ...model.path import quote
from ...model.stored import array_of
from ...operators.application import Meaning, Program, initializers
from ...resources.process import OutOfBudget
from . import lines as form
from .ending import AS_DECLARED, END, Inputs, as_declared, ended
from .layout import Memory, Region, is_value, to_bytes, to_value, type_of
from .lines import Head, Json, Line, Lines, Placed, canonical, difference, shown, type_from_json, type_to_json
from .order import SCHEDULE, Order
from .rules import COVERED, FIRE, Frame, Refused, Result, State, Turn, node_path, reads, region, tensor_path, turn
from .wellformed import broken

SUFFIX: Final = ".values"
_LONGEST: Final = 300  # characters of a part of a refutation
BEGINNING: Final = "the beginning"
CHAIN: Final = "the chain of hashes"
BYTES: Final = "the bytes that are written"
_RULES: Final[Mapping[tuple[str, str], str]] = {
    ("Step/loop", "Step/loop-none"): "loop_starts(n, M)",
    ("Step/loop-none", "Step/loop"): "not loop_starts(n, M)",
    ("Step/loop-next", "Step/loop-leave"): "loop_goes_on(n, G, M, K)",
    ("Step/loop-leave", "Step/loop-next"): "not loop_goes_on(n, G, M, K)",
    ("Step/scan", "Step/scan-none"): "scan_runs(n, M) > 0",
    ("Step/scan-none", "Step/scan"): "scan_runs(n, M) = 0",
    ("Step/scan-next", "Step/scan-leave"): "run(K) + 1 < scan_runs(n, M)",
    ("Step/scan-leave", "Step/scan-next"): "run(K) + 1 = scan_runs(n, M)",
    ("Step/sequence-map", "Step/sequence-map-none"): "map_runs(n, M) > 0",
    ("Step/sequence-map-none", "Step/sequence-map"): "map_runs(n, M) = 0",
    ("Step/sequence-map-next", "Step/sequence-map-leave"): "run(K) + 1 < map_runs(n, M)",
    ("Step/sequence-map-leave", "Step/sequence-map-next"): "run(K) + 1 = map_runs(n, M)",
}
"""The premise of a rule that does not hold where another rule of the same node applies: (named, applies)."""
_SAID: Final[Mapping[str, str]] = {
    "step": "the steps are counted from 1",
    "reads": "each tensor is read where it was written",
    "run": "run(K)",
    "runs": "how often the body runs",
    "kept": "the values that the runs before gave",
    "outputs": "the outputs are what M has",
    "end": "the number of steps",
}
"""For each key of a line the premise that it stands for."""

Progress = Callable[[int, int], None]
"""Called with the number of steps that were checked and that of all, by the word of the trace."""


@dataclass(frozen=True, slots=True)
class Valid:
    """A trace all of whose steps hold. memory: N; written: the bytes of inputs and results; ended: why it was over.

    complete: the run came to its end. open: the elements that may have any value and were taken as recorded.
    """

    steps: int
    memory: int
    written: int
    chain: str
    ended: str
    complete: bool
    open: int


@dataclass(frozen=True, slots=True)
class Refutation:
    """The first step that does not hold: 0 is the head, the last number the end; its rule and node, the premise, what
    the trace says, and what holds."""

    step: int
    rule: str
    node: str
    premise: str
    says: str
    holds: str


def validate(
    path: Path, model: Model, meaning: Meaning, progress: Progress | None = None, budget: int | None = None
) -> Valid | Refutation:
    """The verdict on a trace of a run of this model. budget: the bytes that M, and any value, may have.

    Raises ModelError, of one line, for a model that is not well-formed, for what is no trace of this version, one that
    was cut off or is of another model, and for bytes that are not there.
    """
    wrong = broken(model)
    if wrong:
        raise ModelError(f"the model has no run: {wrong}")
    values = path.with_name(path.name + SUFFIX)
    with Lines(path) as lines:
        if not values.is_file():
            raise ModelError(f"{quote(str(values))}, the bytes of the trace, is not there: keep the two files together")
        with values.open("rb") as file:
            try:
                return _Following(lines, file, model, meaning, progress, budget).verdict()
            except MemoryError as error:
                raise ModelError(f"there is not enough memory to check the trace ({error})") from None


class _Following:
    """A trace that is followed: the state after the lines so far."""

    def __init__(
        self,
        lines: Lines,
        file: IO[bytes],
        model: Model,
        meaning: Meaning,
        progress: Progress | None,
        budget: int | None,
    ) -> None:
        self._lines, self._file, self._model, self._progress = lines, file, model, progress
        self._meaning = meaning
        self._position = self._open = 0
        self._now = (BEGINNING, "")
        self._rest: Iterator[Line] = iter(lines)
        self._first = next(self._rest)
        self._head: Head = form.head(self._first, lines.path)
        if lines.end is None:
            raise ModelError(f"{quote(str(lines.path))} was cut off: it has no end; run the model once more")
        self._end = form.end(lines.end)
        if self._head.model != form.model_digest(model):
            raise ModelError("the trace is of another model: give the file that was run, with the same bytes")
        if budget is not None and self._end.memory > budget:
            raise ModelError(f"M has {self._end.memory} bytes, more than the {budget} that are allowed here")
        memory = Memory(self._end.memory)
        stored: list[dict[TensorId, Region]] = [{} for _ in model.graphs]
        frame = Frame(0, None, 0, None, "/", {})
        self._state = State(model, meaning, self._head.draws, budget, memory, [frame], stored)

    def verdict(self) -> Valid | Refutation:
        """The verdict, after the last line."""
        steps, chain = 0, ""
        try:
            self._hashed(self._first)
            inputs = self._begin()
            self._order = Order(self._head.schedule, Program(self._model, self._meaning, self._head.draws))
            for line in self._rest:
                steps += 1
                self._now = (str(line.content.get("rule", END)), str(line.content.get("node", "")))
                self._hashed(line)
                chain = line.chain
                if "end" in line.content:
                    return self._over(line, steps - 1, chain, inputs)
                self._step(line, steps)
                if self._progress is not None:
                    self._progress(steps, self._end.steps)
        except Refused as refused:
            rule = self._now[0] if refused.rule in ("", FIRE) else refused.rule
            node, premise, says, holds = self._now[1], refused.premise, refused.says, refused.holds
            return Refutation(steps, *(_short(it) for it in (rule, node, premise, says, holds)))
        raise ModelError(f"{quote(str(self._lines.path))} changed while it was read")

    def _hashed(self, line: Line) -> None:
        if line.stated != line.chain:
            raise Refused("", CHAIN, f"with what comes before it the hash is {line.chain}", line.stated)

    # ---- The beginning ------------------------------------------------------------------------

    def _begin(self) -> Inputs:
        """Inputs and initializers get their regions and bytes.

        Given inputs that contradict their declarations are refused at once; a stored value of an input is judged at the
        end, where the constraint stands.
        """
        state, model, head = self._state, self._model, self._head
        main, table = model.graphs[0], state.frames[0].table
        named = {model.tensors[t].path: t for t in sorted(set(main.inputs))}
        given = [named[path] for path in named if path in {entry.tensor for entry in head.inputs}]
        stored = {t: constant for graph in model.graphs for t, constant in initializers(graph)}
        for t in set(main.inputs) - stored.keys() - set(given):
            raise Refused("", "the inputs have values", f"{model.tensors[t].path} is an input and gets none")
        _alike("inputs", [entry.tensor for entry in head.inputs], [model.tensors[t].path for t in given])
        expected = [
            (number, t)
            for number, graph in enumerate(model.graphs)
            for t in sorted({t for t, _ in initializers(graph)})
            if number or t not in given
        ]
        _alike("stored", [entry.tensor for entry in head.stored], [model.tensors[t].path for _, t in expected])
        for (number, t), entry in zip(expected, head.stored, strict=True):
            array = array_of(stored[t], model, model.tensors[t].name, state.budget)
            if isinstance(array, OutOfBudget):
                raise ModelError(f"{array.purpose} needs {array.needed} bytes, the limit is {array.budget}")
            data = to_bytes(array)
            where = self._placed(entry, type_to_json(type_of(array)), len(data))
            state.memory.writable(where.at, where.length)[:] = data
            self._digested(entry, where)
            state.stored[number][t] = where
        table.update(state.stored[0])
        for t, entry in zip(given, head.inputs, strict=True):
            where = self._placed(entry, entry.type, entry.length)
            self._recorded(entry, where)
            if not is_value(state.memory.read(where), where.type):
                raise Refused("", BYTES, f"these are no bytes of a value of {shown(entry.type)}", entry.tensor)
            table[t] = where
        wrong = as_declared(state, given, {})
        if wrong:
            raise Refused("", AS_DECLARED, wrong)
        sizes: dict[str, int] = {}
        return Inputs(as_declared(state, main.inputs, sizes), sizes)

    # ---- A step -------------------------------------------------------------------------------

    def _step(self, line: Line, number: int) -> None:
        state, content = self._state, line.content
        rule, node, writes, freed = form.step(line)
        made = turn(state, node)
        if made.rule != rule:
            premise = _RULES.get((rule, made.rule), "the rule of the step")
            raise Refused(rule, premise, f"{made.rule} applies", rule)
        expected: dict[str, Json] = {
            "step": number,
            "rule": rule,
            "node": node,
            "reads": self._reads(made),
            "freed": content["freed"],
            "writes": content["writes"],
        }
        if made.leaves or made.again is not None:
            expected |= self._of_run(made)
        _same(content, expected)
        self._in_order(made, number)
        self._advance(made)
        paths = [tensor_path(state, result.tensor) for result in made.results]
        if [entry.tensor for entry in writes] != paths:
            raise Refused(
                rule, "the rule writes these tensors", shown(list(paths)), shown([it.tensor for it in writes])
            )
        table = state.frames[-1].table
        for entry, result in zip(writes, made.results, strict=True):
            table[result.tensor] = self._written(entry, result)
        for address in freed:
            self._freed(rule, address)

    def _in_order(self, made: Turn, number: int) -> None:
        """The node is the one that comes next by the schedule; after the last one of a body that which holds it."""
        state, frame = self._state, self._state.frames[-1]
        if self._order.kind == "recorded":
            return
        chosen = self._order.next(frame.graph, lambda t: region(state, t) is not None, number - 1)
        chosen = frame.holder if chosen is None else chosen
        if chosen != made.node:
            holds = "no node comes next" if chosen is None else f"{self._model.nodes[chosen].path} comes next"
            raise Refused(made.rule, SCHEDULE, holds, self._model.nodes[made.node].path)
        self._order.done(made, frame.graph)

    def _reads(self, made: Turn) -> Json:
        state = self._state
        ending = made.leaves or made.again is not None
        outputs = state.model.graphs[state.frames[-1].graph].outputs if ending else ()
        found: list[Json] = []
        for t in dict.fromkeys((*outputs, *reads(state, made.node))):
            where = region(state, t)
            if where is not None:
                if not where.live:
                    raise Refused(made.rule, COVERED, f"{where.tensor} is read, and its region was freed")
                found.append({"tensor": tensor_path(state, t), **where.reference})
        return found

    def _of_run(self, made: Turn) -> dict[str, Json]:
        frame = self._state.frames[-1]
        kept: list[Json] = []
        for row in frame.kept if made.leaves else ():
            kept.append([None if where is None else where.reference for where in row])
        return {"run": frame.prefix, "runs": frame.runs, "kept": kept}

    def _advance(self, made: Turn) -> None:
        """The frames after the step; the tensors that it writes have no value yet."""
        state, frame = self._state, self._state.frames[-1]
        if made.enters is not None:
            run = None if made.rule == "Step/if" else 0
            prefix = self._prefix(made.node, made.enters, run, frame)
            state.frames.append(Frame(made.enters, made.node, 0, made.runs, prefix, dict(state.stored[made.enters])))
        elif made.again is not None:
            outputs = state.model.graphs[frame.graph].outputs
            frame.kept.append([region(state, t) if i in made.again else None for i, t in enumerate(outputs)])
            frame.number += 1
            frame.prefix = self._prefix(made.node, frame.graph, frame.number, state.frames[-2])
            frame.table = dict(state.stored[frame.graph])
        elif made.leaves:
            state.frames.pop()

    def _prefix(self, n: int, body: int, run: int | None, frame: Frame) -> str:
        """How the paths in a run of a body begin."""
        rest = self._model.graphs[body].path[len(self._model.nodes[n].path) :]
        return f"{node_path(self._state, n, frame)}{rest}{'' if run is None else f'@{run}'}/"

    def _written(self, entry: Placed, result: Result) -> Region:
        data = to_bytes(result.value)
        where = self._placed(entry, type_to_json(type_of(result.value)), len(data))
        self._recorded(entry, where)
        if not _equal(self._state.memory.read(where), data):
            self._objection(where, result, data)
        return where

    def _objection(self, where: Region, result: Result, data: Buffer) -> None:
        """Refused, unless all bytes that differ are of elements that may have any value."""
        recorded, anything = self._state.memory.read(where), result.anything
        if anything is not None and is_value(recorded, where.type):
            one, other = np.asarray(to_value(recorded, where.type)), np.asarray(result.value)
            if type_of(result.value) == where.type and _equal(to_bytes(one[~anything]), to_bytes(other[~anything])):
                self._open += int(anything.sum())
                return
        at = next(i for i, (a, b) in enumerate(zip(recorded, memoryview(data), strict=True)) if a != b)
        premise = "W in gives(n, M)" if self._now[0] == FIRE else "W of the rule"
        raise Refused(
            "",
            premise,
            f"byte {at} is {memoryview(data)[at]}",
            f"byte {at} of the {where.length} of {where.tensor} is {recorded[at]}",
        )

    # ---- Regions ------------------------------------------------------------------------------

    def _placed(self, entry: Placed, type_: Json, length: int) -> Region:
        """The region of a value of this type and length, which begins to be in use; its bytes are not there yet."""
        memory, alignment = self._state.memory, self._head.alignment
        reference: dict[str, Json] = {"type": type_, "length": length, "sha256": entry.sha256, "at": entry.at}
        if entry.offset is None:
            reference["stored"] = True
        else:
            reference["offset"] = self._position
        said: dict[str, Json] = {"type": entry.type, "length": entry.length, "sha256": entry.sha256, "at": entry.at}
        said |= {"stored": True} if entry.offset is None else {"offset": entry.offset}
        if canonical(said) != canonical(reference):
            place, says, holds = difference(said, reference)
            raise Refused(
                "",
                f"the {place.split('.')[0].split('[')[0]} of what is written to {entry.tensor}",
                shown(holds),
                shown(says),
            )
        kind = type_from_json(type_)
        if kind is None:
            raise Refused("", "T says the type of a tensor", "this is no type", shown(type_))
        said_region = f"{entry.tensor} lies at bytes {entry.at} to {entry.at + length}"
        if entry.at % alignment:
            raise Refused("", "aligned(P)", f"addresses are multiples of {alignment}", said_region)
        if entry.at + length > memory.size:
            raise Refused("", "bounded(P)", f"M has {memory.size} bytes", said_region)
        other = memory.meets(entry.at, length)
        if other is not None:
            raise Refused(
                "", "disjoint(P)", f"{other.tensor} has bytes {other.at} to {other.at + other.length}", said_region
            )
        where = Region(entry.at, length, kind, reference, entry.tensor)
        memory.take(where)
        return where

    def _recorded(self, entry: Placed, where: Region) -> None:
        """The bytes of the file of values that follow come into a region."""
        into = self._state.memory.writable(where.at, where.length)
        if self._file.readinto(into) != where.length:  # type: ignore[attr-defined]
            raise ModelError("the file of values was cut off: keep the two files together")
        self._position += where.length
        self._digested(entry, where)

    def _digested(self, entry: Placed, where: Region) -> None:
        digest = hashlib.sha256(self._state.memory.read(where)).hexdigest()
        if digest != entry.sha256:
            raise Refused("", BYTES, f"the SHA-256 of the bytes of {entry.tensor} is {digest}", entry.sha256)

    def _freed(self, rule: str, address: int) -> None:
        where = self._state.memory.at(address)
        if not self._head.reuse:
            raise Refused(rule, "the allocation is simple", "no region is free again", f"{address} is freed")
        if where is None:
            raise Refused(rule, "what is freed was in use", f"no region begins at {address}", f"{address} is freed")
        if "stored" in where.reference:
            raise Refused(rule, COVERED, f"{where.tensor} is an initializer, which stays", f"{address} is freed")
        self._state.memory.free(where)

    # ---- The end ------------------------------------------------------------------------------

    def _over(self, line: Line, steps: int, chain: str, inputs: Inputs) -> Valid:
        state = self._state
        if next(self._rest, None) is not None:
            raise ModelError("the trace goes on behind its end: make it again")
        outputs: list[Json] = []
        for t in state.model.graphs[0].outputs if len(state.frames) == 1 else ():
            where = region(state, t)
            if where is not None:
                if not where.live:
                    raise Refused(END, COVERED, f"{where.tensor} is an output, and its region was freed")
                outputs.append({"tensor": tensor_path(state, t), **where.reference})
        expected = {**line.content, "end": steps, "outputs": outputs}
        _same(line.content, expected)
        if self._file.read(1):
            raise Refused(END, BYTES, f"the lines speak of {self._position} bytes", "the file of values has more")
        why, complete = ended(state, self._end.stuck, self._head.schedule, inputs)
        return Valid(steps, state.memory.size, self._position, chain, why, complete, self._open)


def _alike(key: str, says: list[str], holds: list[str]) -> None:
    if says != holds:
        place, one, other = difference(list(says), list(holds), key)
        raise Refused("", f"the tensors that have values at the beginning ({place})", shown(other), shown(one))


def _same(content: dict[str, Json], expected: dict[str, Json]) -> None:
    """Refused where a line says something else than what follows."""
    if canonical(content) != canonical(expected):
        place, says, holds = difference(content, expected)
        premise = _SAID.get(place.split(".")[0].split("[")[0], "the form of the line")
        raise Refused("", f"{premise} ({place})" if place else premise, shown(holds), shown(says))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _equal(one: Buffer, other: Buffer) -> bool:
    return bool(np.array_equal(np.frombuffer(one, np.uint8), np.frombuffer(other, np.uint8)))
