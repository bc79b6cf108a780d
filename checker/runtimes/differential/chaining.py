"""Values that a whole model may give: the bounds of each step fed to the next, bodies of If, Loop and Scan included.

What a runtime fuses, and what it does inside a body, cannot be seen node by node; so its outputs are judged by what any
conforming execution may give. A condition that is not known exactly ends it: nothing is known of what follows. The
inputs may be sets too, a box: then what is told holds for all inputs in it, of the shapes that the one has which runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Final

import numpy as np
from sonnx.semantics.errors import InternalError, Unsupported
from sonnx.semantics.machine.phases import Again, Apply, Enter, Leave, Phase, Read, Select
from sonnx.semantics.machine.state import State
from sonnx.semantics.model.elements import finfo, is_float
from sonnx.semantics.model.graph import Model, Node, NodeId, TensorId
from sonnx.semantics.model.values import Array, Value, identical
from sonnx.semantics.operators.application import Application, Stuck
from sonnx.semantics.operators.compiled import bound
from sonnx.semantics.operators.compiled.bound import Allowed, Bound
from sonnx.semantics.operators.compiled.elements.bounds.spellings import Spelled
from sonnx.semantics.runtimes.engines.own import limited_run
from sonnx.semantics.runtimes.engines.protocol import Failure, Values


class Certainty(Enum):
    """A value that is one, and a value of which nothing is known."""

    EXACTLY = "exactly"
    NOTHING = "nothing"


Content = Certainty | Allowed | Array | tuple[Bound, ...]
Source = tuple[TensorId | None, Value | None, "Content"]
"""The values that a step of control reads."""
_BATCHED: Final = 8  # the version of Scan with a batch axis, which is not followed
FIELDS: Final = ("least", "most", "maybe_nan", "nan", "low", "high")


@dataclass(frozen=True, slots=True)
class Chained:
    """The values that the machine gives to the tensors of the main graph, by name, and what else each may be. ended:
    the first node behind which nothing is known, "" where there is none."""

    values: Values
    known: dict[str, Content]
    ended: str = ""

    def allowed(self, name: str) -> Bound:
        """The bound of a tensor; None where nothing is known."""
        content = self.known.get(name, Certainty.NOTHING)
        if content is Certainty.EXACTLY:
            value = self.values[name]
            if not isinstance(value, np.ndarray):
                return None
            return value if value.dtype == object else bound.exactly(value)
        return None if isinstance(content, Certainty) else content


def chained(
    model: Model, feeds: Values, *, real: bool = False, box: Mapping[str, Allowed] = MappingProxyType({})
) -> Chained | Failure:
    """A run of the machine with what each of its values may be; why there is none.

    real: with the number too that the operators give over the reals, on inputs that are finite. box: inputs by name
    that may be any of these; `feeds` has one of them.
    """
    chain = _Chain(model, real)
    given = {t: box.get(model.tensors[t].name) for t in model.graphs[0].inputs}
    chain.known.update({t: it for t, it in given.items() if it is not None})
    done = limited_run(model, feeds, chain)
    if isinstance(done, Failure):
        return done
    names = {model.tensors[t].name: t for t in chain.values if model.tensors[t].graph == 0}
    return Chained(
        {name: chain.values[t] for name, t in names.items()},
        {name: chain.known.get(t, Certainty.NOTHING) for name, t in names.items()},
        chain.stopped,
    )


@dataclass
class _Chain:
    """An observer that keeps what each tensor may be; what it has not seen made is given, and exact.

    runs: of each body that runs, what its outputs were at the end of each run, innermost last. lost: a condition was
    not exact. stopped: the first node of which nothing is known.
    """

    model: Model
    real: bool = False
    known: dict[TensorId, Content] = field(default_factory=dict)
    values: dict[TensorId, Value] = field(default_factory=dict)
    runs: list[list[tuple[Content, ...]]] = field(default_factory=list)
    lost: bool = False
    stopped: str = ""
    _selected: Select | None = None
    _read: Read | None = None

    def begun(self, state: State) -> None:
        """Nothing is made yet."""

    def ended(self, state: State) -> None:
        """All is kept."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Follows a step."""
        match phase:
            case Select():
                self._selected = phase
            case Read():
                self._read = phase
            case Apply(application=None):
                self._control(phase)
            case Apply(application=Application() as application):
                contents = self._applied(application)
                if self.real:
                    contents = [_unrounded(it, value) for it, value in zip(contents, phase.values, strict=True)]
                self._keep(phase, contents)
            case _:
                return

    def _keep(self, phase: Apply, contents: Iterable[Content]) -> None:
        for t, value, it in zip(phase.tensors, phase.values, contents, strict=True):
            self.known[t] = Certainty.NOTHING if self.lost else it
            self.values[t] = value
            if self.known[t] is Certainty.NOTHING and not self.stopped and self._selected is not None:
                self.stopped = self._selected.path

    def _of(self, t: TensorId | None) -> Content:
        return Certainty.EXACTLY if t is None else self.known.get(t, Certainty.EXACTLY)

    def _applied(self, application: Application) -> list[Content]:
        tensors = () if self._read is None else self._read.tensors
        inputs = [self._of(t) for t in tensors]
        count = sum(application.outputs)
        if any(it is Certainty.NOTHING or isinstance(it, tuple | np.ndarray) for it in inputs):
            return [Certainty.NOTHING] * count
        given = [it if isinstance(it, Allowed) else None for it in inputs]
        try:
            done = bound.apply(application, given)
        except (Unsupported, InternalError, MemoryError, ValueError, TypeError):
            return [Certainty.NOTHING] * count
        if isinstance(done, Stuck):
            return [Certainty.NOTHING] * count
        asked = zip(done.values, application.outputs, strict=False)
        return [_content(it) for it, named in asked if named]

    # ---- Bodies -------------------------------------------------------------------------------

    def _control(self, phase: Apply) -> None:
        """Values that go into a body, from run to run, and out of it; they are those that were read, or stacks."""
        selected, read = self._selected, self._read
        if selected is None or read is None:
            raise InternalError("a step computes without having read")
        node = self.model.nodes[selected.node]
        sources = [(t, value, self._of(t)) for t, value in zip(read.tensors, read.values, strict=True)]
        if any(it is not Certainty.EXACTLY for _, _, it in self._deciding(node, selected, sources)):
            self.lost, self.stopped = True, self.stopped or selected.path
        if isinstance(selected.change, Enter):
            self.runs.append([])
        elif isinstance(selected.change, (Again, Leave)) and self.runs:
            self.runs[-1].append(tuple(it for _, _, it in sources))
        contents = [self._moved(value, sources) for value in phase.values]
        if isinstance(selected.change, Leave):
            done = self.runs.pop() if self.runs else []
            if node.op_type in ("Loop", "Scan"):
                contents = self._stacked(selected.node, phase, contents, done)
        self._keep(phase, contents)

    def _deciding(self, node: Node, selected: Select, sources: list[Source]) -> list[Source]:
        """The values that have to be exact: conditions and numbers of runs, and what a Scan takes its slices from."""
        begins = isinstance(selected.change, Enter)
        match node.op_type:
            case "If":
                return sources[:1] if begins else []
            case "Loop":
                return sources[:2] if begins else sources[:1]
            case "Scan" if (node.version or 0) > _BATCHED:
                return sources[-_slices(node) :] if begins else []
            case _:
                self.lost = True
                return []

    def _moved(self, value: Value, sources: list[Source]) -> Content:
        """The bound of a value that is one of those that were read; one that was not is the machine's own."""
        for _, other, it in sources:
            if other is value:
                return it
        same = [it for _, other, it in sources if other is not None and identical(value, other)]
        open_ = [it for it in same if it is not Certainty.EXACTLY]
        if any(it is not open_[0] for it in open_):
            return Certainty.NOTHING  # which of them it is cannot be told by the value of this run
        return open_[0] if open_ else Certainty.EXACTLY

    def _stacked(
        self, n: NodeId, phase: Apply, contents: list[Content], runs: list[tuple[Content, ...]]
    ) -> list[Content]:
        """The outputs of a loop: the last are stacks of what each run gave."""
        node = self.model.nodes[n]
        loop = node.op_type == "Loop"
        carried = len(node.inputs) - (2 if loop else _slices(node))
        made = []
        for t, value, it in zip(phase.tensors, phase.values, contents, strict=True):
            position = node.outputs.index(t) if t in node.outputs else 0
            if position < carried or not runs:
                made.append(it)
            else:
                parts = [run[position + loop] for run in runs]
                k = position - carried
                reverse = not loop and bool(_ints(node, "scan_output_directions", k))
                axis = 0 if loop else _ints(node, "scan_output_axes", k)
                made.append(_stack(parts[::-1] if reverse else parts, value, axis))
        return made


def _slices(node: Node) -> int:
    """The number of inputs that a Scan takes slices of."""
    count = node.attributes["num_scan_inputs"].value if "num_scan_inputs" in node.attributes else 0
    return count if isinstance(count, int) else 0


def _ints(node: Node, name: str, position: int) -> int:
    """An entry of a list of integers, 0 where it is not stated."""
    entries = node.attributes[name].value if name in node.attributes else ()
    entry = entries[position] if isinstance(entries, tuple) and position < len(entries) else 0
    return entry if isinstance(entry, int) else 0


def _content(bounds: Bound) -> Content:
    if isinstance(bounds, Allowed):
        return Certainty.EXACTLY if bool(bounds.exact.all()) else bounds
    if isinstance(bounds, tuple):
        return bounds
    if isinstance(bounds, np.ndarray) and any(isinstance(text, Spelled) for text in bounds.reshape(-1).tolist()):
        return bounds
    return Certainty.EXACTLY  # strings that are known


def _unrounded(content: Content, value: Value) -> Content:
    """The content with every number that rounds into it: what the operator gives over the reals on numbers of the sets
    that it read is within half a unit in the last place of what it may give, or beyond the greatest number."""
    known = content is Certainty.EXACTLY and isinstance(value, np.ndarray)
    if known and isinstance(value, np.ndarray) and not value.dtype.hasobject and is_float(value.dtype):
        content = bound.exactly(value)
    if not isinstance(content, Allowed) or not is_float(content.type):
        return content
    limits = finfo(content.type)
    step, tiny, most = float(limits.eps), float(limits.smallest_subnormal), float(limits.max)
    with np.errstate(all="ignore"):
        ends = {}
        for name, sign in (("least", -1.0), ("low", -1.0), ("most", 1.0), ("high", 1.0)):
            end = np.asarray(getattr(content, name), np.float64)
            moved = np.nextafter(end + sign * (np.abs(end) * step + tiny), sign * np.inf)
            beyond = np.isinf(end) & (np.sign(end) != sign)
            ends[name] = np.where(beyond, -sign * most, np.where(np.isinf(end), end, moved))
    return Allowed(content.type, ends["least"], ends["most"], content.maybe_nan, content.nan, ends["low"], ends["high"])


def _stack(parts: list[Content], value: Value, axis: int) -> Content:
    """The bound of a stack. value: the machine's. axis: along which it is stacked."""
    if all(it is Certainty.EXACTLY for it in parts):
        return Certainty.EXACTLY
    if not isinstance(value, np.ndarray) or any(
        not isinstance(it, Allowed) and it is not Certainty.EXACTLY for it in parts
    ):
        return Certainty.NOTHING
    rows = [it if isinstance(it, Allowed) else bound.exactly(np.take(value, at, axis)) for at, it in enumerate(parts)]
    stacked = {name: np.stack([getattr(row, name) for row in rows], axis) for name in FIELDS}
    return Allowed(rows[0].type, **stacked)
