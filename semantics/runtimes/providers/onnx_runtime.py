"""onnxruntime as an execution provider: sessions of its own of the parts that it is given.

It takes the nodes of which it makes a session one by one; the parts grow of these, and a part of which it makes none is
declined. Sessions live in a worker by default, which may crash or hang: the run then ends with one line that names the
part, its nodes and the signal, and the next one has a new worker. Tensors do not go through a pipe but lie in memory
that both processes map. With `process=own` sessions live in this process.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from itertools import count
from threading import Lock
from typing import Any, Final, cast

import numpy as np
from sonnx.spec.terminal import few, one_line

from ...errors import ModelError
from ...facts.types import computed, read
from ...machine.memory import type_of
from ...model.elements import BITS, dtype_of, element_of
from ...model.graph import NodeId, TensorId, ValueType
from ...model.schemas import draws, operator_name
from ...model.type_protos import spelled
from ...model.values import Array, Value
from ..engines import onnxruntime_worker as library
from ..engines.onnxruntime_engine import onnxruntime
from ..engines.protocol import Failure, Kind
from ..engines.remote import Plain, RemoteEngine, plain, valued
from ..fastpath import provider
from ..fastpath.kernel import Allocate, Compute, Inputs, Interrupted, KernelError, Outputs
from ..fastpath.workers import THREADS
from .extraction import Extract, extracted, outside_imports
from .memory import Shared, aligned

_SHOWN: Final = 6  # nodes of a part that a message names
_KNOWN: Final = 1 << 12  # bytes of a constant that decides if there is a session
_SECONDS: Final = 300.0
_THREADS: Final = 1024
_SAID: Final = 300  # characters of what onnxruntime says


# ---- Where sessions live ----------------------------------------------------------------------


Feeds = Mapping[str, Value]
Types = Sequence[ValueType | None]


@dataclass(frozen=True, slots=True)
class Opened:
    """A session. kinds: the types of its outputs, as onnxruntime spells them. handle: what knows it."""

    content: bytes
    kinds: tuple[str, ...]
    handle: Any

    def on_numbers(self, feeds: Feeds) -> bool:
        """All that goes in is tensors of numbers, and all that comes out is tensors."""
        given = all(isinstance(it, np.ndarray) and not it.dtype.hasobject for it in feeds.values())
        return given and all(it.startswith("tensor(") for it in self.kinds)


class OwnProcess:
    """Sessions in this process."""

    def __init__(self, level: str, threads: int) -> None:
        if os.environ.get("SONNX_ONNXRUNTIME") or find_spec("onnxruntime") is None:
            raise ModelError("the OnnxruntimeExecutionProvider with process=own needs onnxruntime: install sonnx[ort]")
        self._library: Any = import_module("onnxruntime")
        self._library.set_default_logger_severity(4)
        self._options = {"optimize": level, "threads": str(threads)}

    def check(self) -> None:
        """There is nothing to start."""

    def opened(self, content: bytes) -> Opened | Failure:
        """A session of a model."""
        try:
            session = library.open_session(self._library, content, self._options)
        except library.Refused as error:
            return Failure(Kind(error.kind), _short(str(error)))
        return Opened(content, tuple(it.type for it in session.get_outputs()), session)

    def run(self, session: Opened, feeds: Feeds, types: Types, allocate: Allocate) -> list[Value]:
        """The outputs. Raises KernelError."""
        try:
            if not session.on_numbers(feeds):
                given = [(name, plain(value)) for name, value in feeds.items()]
                pairs = library.run_session(self._library, session.handle, given)
                return _values([data for _, data in pairs], types)
            arrays = {name: cast("Array", value) for name, value in feeds.items()}
            values = {name: self._value(it) for name, it in arrays.items()}
            return [_taken(it, allocate) for it in library.number_values(self._library, session.handle, values)]
        except library.Refused as error:
            raise KernelError(f"onnxruntime says {_short(str(error))}") from None

    def _value(self, array: Array) -> Any:
        element = element_of(array.dtype)
        if element in library.NATIVE:
            return self._library.OrtValue.ortvalue_from_numpy(np.asarray(array, order="C"))
        return library.ort_value(self._library, plain(array))

    def allocator(self) -> Allocate:
        """Aligned memory."""
        return aligned

    def peak(self) -> int:
        """There is no other process."""
        return 0

    def stop(self) -> None:
        """Sessions go with who holds them."""


def _taken(value: Any, allocate: Allocate) -> Value:
    """A tensor of onnxruntime in memory of the provider's."""
    element = library.NAMES.get(value.element_type(), "")
    if not _placed(element):
        return valued(library.plain_ort(value))
    goal = allocate(tuple(value.shape()), dtype_of(element))
    if goal.nbytes:
        ctypes.memmove(goal.ctypes.data, value.data_ptr(), goal.nbytes)
    return goal


def _placed(element: str) -> bool:
    """True where a tensor has the bytes of an array."""
    return BITS.get(element, 0) >= 8


@dataclass(eq=False)
class Handle:
    """A session of a worker, while somebody holds it."""

    number: int


class Worker:
    """Sessions in a process of their own, one request at a time. seconds: how long it may take for each.

    After it died, or was stopped, another one is started, and sessions are opened again.
    """

    def __init__(self, level: str, threads: int, seconds: float) -> None:
        self.memory: Final = Shared()
        engine = onnxruntime("onnxruntime", level, threads).remote
        if engine.missing:
            raise ModelError(f"the OnnxruntimeExecutionProvider needs it: {engine.missing}")
        self.remote: Final[RemoteEngine] = replace(engine, seconds=seconds, descriptors=(self.memory.file,))
        self._lock = Lock()
        self._generation = 0
        self._there: set[int] = set()
        self._left: deque[int] = deque()  # sessions that nobody holds any more
        self._numbers = count(1)
        weakref.finalize(self, self.remote.worker.stop)

    def check(self) -> None:
        """Raises ModelError where the process does not start."""
        failed = self.remote.worker.start()
        if failed is not None:
            raise ModelError(f"the worker of onnxruntime cannot be used: {one_line(failed.message)}")

    def opened(self, content: bytes) -> Opened | Failure:
        """A session of a model."""
        handle = Handle(next(self._numbers))
        weakref.finalize(handle, self._left.append, handle.number).atexit = False
        with self._lock:
            failed = self._open(handle.number, content)
            kinds = failed or self._asked(("kinds", handle.number))
        return kinds if isinstance(kinds, Failure) else Opened(content, tuple(cast("list[str]", kinds)), handle)

    def _asked(self, request: Plain) -> Plain | Failure:
        """The answer of the process that knows the sessions, not of one that was started in its place."""
        answer = self.remote.ask(request)
        if self._generation == self.remote.worker.generation:
            return answer
        return Failure(Kind.CRASH, "the process ended between two requests")

    def _open(self, number: int, content: bytes) -> Failure | None:
        failed = self.remote.worker.start()
        if failed is not None:
            return failed
        if self._generation != self.remote.worker.generation:
            self._there.clear()
            answer = self.remote.ask(("share", self.memory.file))
            if isinstance(answer, Failure):
                return answer
            self._generation = self.remote.worker.generation
        while self._left:
            ended = self._left.popleft()
            if ended in self._there:
                self._there.discard(ended)
                self._asked(("close", ended))
        if number not in self._there:
            answer = self._asked(("open", number, content, list(self.remote.options)))
            if isinstance(answer, Failure):
                return answer
            self._there.add(number)
        return None

    def run(self, session: Opened, feeds: Feeds, types: Types, allocate: Allocate) -> list[Value]:
        """The outputs. Raises KernelError, and Interrupted where the worker dies or is stopped."""
        tensors = session.on_numbers(feeds)
        kept = {name: self._entering(value) if tensors else value for name, value in feeds.items()}
        with self._lock:
            number = cast("Handle", session.handle).number
            failed = self._open(number, session.content)
            if failed is not None:
                raise _error(failed)
            if not tensors:
                answer = self._asked(("run", number, [(name, plain(it)) for name, it in kept.items()]))
                if isinstance(answer, Failure):
                    raise _error(answer)
                return _values([data for _, data in cast("list[tuple[str, Plain]]", answer)], types)
            answer = self._asked(("apply", number, [(name, self._said(it)) for name, it in kept.items()]))
            if isinstance(answer, Failure):
                raise _error(answer)
            return self._taken(cast("list[Plain]", answer), types)

    def _entering(self, value: Value) -> Value:
        """A value in the memory that the worker sees, where it can lie there as it is."""
        if not isinstance(value, np.ndarray) or not _placed(element_of(value.dtype)) or not value.nbytes:
            return value
        if value.flags.c_contiguous and self.memory.place(value) is not None:
            return value
        copied = self.memory.allocate(value.shape, value.dtype)
        np.copyto(copied, value)
        return copied

    def _said(self, value: Value) -> Plain:
        place = self.memory.place(value) if isinstance(value, np.ndarray) and value.nbytes else None
        if place is None or not isinstance(value, np.ndarray):
            return plain(value)
        return ("placed", element_of(value.dtype), list(value.shape), place, value.nbytes)

    def _taken(self, told: Sequence[Plain], types: Types) -> list[Value]:
        made: dict[int, Array] = {}
        for at, it in enumerate(told):
            match it:
                case ("made", str(element), list(shape), int(size)) if _placed(element):
                    dtype = dtype_of(element)
                    array = self.memory.allocate(tuple(cast("list[int]", shape)), dtype)
                    if array.nbytes != size:
                        raise KernelError(f"the worker tells of {size} bytes for {element}{shape}")
                    made[at] = array
                case _:
                    continue
        places: list[Plain] = [self.memory.place(it) or 0 for it in made.values()]
        answer = self._asked(("take", places)) if made else None
        if isinstance(answer, Failure):
            raise _error(answer)
        rest = iter(_values([it for at, it in enumerate(told) if at not in made], types))
        return [made[at] if at in made else next(rest) for at in range(len(told))]

    def allocator(self) -> Allocate:
        """Memory that the worker maps too."""
        return self.memory.allocate

    def peak(self) -> int:
        """The peak memory of the worker that runs, in bytes; 0 where it cannot be told."""
        answer = self.remote.ask(("peak",))
        return answer if isinstance(answer, int) else 0

    def stop(self) -> None:
        """Ends the process."""
        self.remote.worker.stop()


def _values(told: Sequence[Plain], types: Types) -> list[Value]:
    """The values of plain data. Raises KernelError for what is none."""
    known = list(types) if len(types) == len(told) else [None] * len(told)
    try:
        return [valued(data, type_) for data, type_ in zip(told, known, strict=True)]
    except (TypeError, ValueError) as error:
        raise KernelError(f"the worker gives no values: {error}") from None


def _error(failure: Failure) -> KernelError:
    if failure.kind in (Kind.CRASH, Kind.TIMEOUT):
        return Interrupted(f"the worker of onnxruntime ended, {failure.message}")
    return KernelError(f"onnxruntime says {_short(failure.message)}")


def _short(text: str) -> str:
    return one_line(" ".join(text.split()))[:_SAID]


# ---- The provider -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Known:
    """What was found out about a model. types: of tensors; refused: why a node is not taken, "" for one that is."""

    types: dict[TensorId, ValueType] = field(default_factory=dict)
    refused: dict[NodeId, str] = field(default_factory=dict)


class OnnxruntimeExecutionProvider:
    """Takes what onnxruntime makes a session of.

    process: worker, or own for sessions in this process. level: of its optimizers, disabled, basic, extended or all.
    threads: as many as of NumPy's kernels where nothing is said. seconds: how long a worker may take for a request.
    Raises ModelError where onnxruntime is not installed, and for an option that has no such value.
    """

    name: Final = "OnnxruntimeExecutionProvider"

    def __init__(self, process: str = "worker", level: str = "all", threads: str = "", seconds: str = "") -> None:
        number = int(threads) if threads.isdecimal() else 0 if threads else THREADS
        if process not in ("worker", "own"):
            raise ModelError(f"{self.name}: process is worker or own, not {process}")
        if level not in library.LEVELS:
            raise ModelError(f"{self.name}: level is one of {', '.join(library.LEVELS)}, not {level}")
        if not 0 < number <= _THREADS:
            raise ModelError(f"{self.name}: threads is a number from 1 to {_THREADS}, not {threads}")
        try:
            limit = float(seconds or _SECONDS)
        except ValueError:
            limit = 0
        if not 0 < limit < 1e9:
            raise ModelError(f"{self.name}: seconds is a number above 0, not {seconds}")
        self.sessions: Final = OwnProcess(level, number) if process == "own" else Worker(level, number, limit)
        self._tried: dict[bytes, Opened | Failure] = {}

    def get_kernel_registry(self) -> None:
        """It only compiles."""

    def get_capability(
        self, graph: provider.GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """The nodes of which it makes a session, to grow into parts. Raises ModelError where no worker starts."""
        self.sessions.check()
        mine = tuple(n for n in graph.nodes if not self.why_not(graph, n))
        return [provider.ComputeCapability(provider.IndexedSubGraph(mine), "a session of its own", grows=True)]

    def why_not(self, graph: provider.GraphViewer, n: NodeId) -> str:
        """Why it does not take a node."""
        known = self._known(graph)
        if n not in known.refused:
            known.refused[n] = self._refused(graph, n, known)
        return known.refused[n]

    def compile(
        self, fused: Sequence[provider.FusedNodeAndGraph]
    ) -> Sequence[provider.NodeComputeInfo | provider.Declined]:
        """A session for each part."""
        return [self._compiled(it) for it in fused]

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """Memory that a worker sees too, or aligned memory."""
        return self.sessions.allocator()

    def on_run_start(self, options: provider.RunOptions) -> None:
        """Nothing to prepare."""

    def on_run_end(self, options: provider.RunOptions) -> None:
        """Nothing to tidy up."""

    def peak_bytes(self) -> int:
        """The peak memory of its own process, 0 where it has none."""
        return self.sessions.peak()

    # ---- What it takes ------------------------------------------------------------------------

    def _known(self, graph: provider.GraphViewer) -> Known:
        def made() -> Known:
            return Known({t: it for t, it in enumerate(computed(graph.program.model)) if it is not None})

        return graph.program.remembered((OnnxruntimeExecutionProvider, id(self)), made)

    def _refused(self, graph: provider.GraphViewer, n: NodeId, known: Known) -> str:
        model, node = graph.program.model, graph.node(n)
        why = outside_imports(model, node)
        if why:
            return why
        if draws(operator_name(node.domain, node.op_type), node.version):
            return "it draws random numbers, which are the specification's here"
        inputs, stored = _ends(graph, graph.program.reads[n], known, _KNOWN)
        unknown = [t for t, it in inputs.items() if spelled(it) is None]
        if unknown:
            return f"the type of {model.tensors[unknown[0]].path} is not known when the model is loaded"
        outputs = graph.program.writes[n]
        try:
            content = extracted(model, (n,), inputs, outputs, stored, named=False).content
        except ModelError as error:
            return str(error)
        if content not in self._tried:
            done = self.sessions.opened(content)
            self._tried[content] = done if isinstance(done, Failure) else Opened(b"", done.kinds, None)
        tried = self._tried[content]
        if isinstance(tried, Failure):
            return f"onnxruntime makes no session of it, {_short(str(tried))}"
        for t, kind in zip(outputs, tried.kinds, strict=False):
            if t not in known.types and (type_ := read(kind)) is not None:
                known.types[t] = type_
        return ""

    # ---- Running it ---------------------------------------------------------------------------

    def _compiled(self, part: provider.FusedNodeAndGraph) -> provider.NodeComputeInfo | provider.Declined:
        graph, meta = part.filtered_graph, part.meta_def
        if not meta.outputs:  # nobody reads what its nodes give, and onnxruntime runs nothing for nothing
            return provider.NodeComputeInfo(lambda _inputs, _allocate: ())
        known = self._known(graph)
        inputs, stored = _ends(graph, meta.inputs, known)
        try:
            extract = extracted(graph.program.model, graph.nodes, inputs, meta.outputs, stored)
        except ModelError as error:
            return provider.Declined(str(error))
        session = self.sessions.opened(extract.content)
        if isinstance(session, Failure):
            return provider.Declined(f"onnxruntime makes no session of them together, {_short(str(session))}")
        paths = few([graph.node(n).path for n in graph.nodes], _SHOWN)
        types = [known.types.get(t) for t in meta.outputs]
        places = [graph.program.model.tensors[t].path for t in meta.outputs]
        return provider.NodeComputeInfo(self._computing(session, extract, meta, inputs, types, places, paths))

    def _computing(
        self,
        session: Opened,
        extract: Extract,
        meta: provider.MetaDef,
        inputs: Mapping[TensorId, ValueType],
        types: Types,
        places: Sequence[str],
        paths: str,
    ) -> Compute:
        run: Callable[[Opened, Feeds, Types, Allocate], list[Value]] = self.sessions.run
        given = [(at, extract.names[t]) for at, t in enumerate(meta.inputs) if t in inputs]

        def compute(values: Inputs, allocate: Allocate) -> Outputs:
            feeds = {name: value for at, name in given if (value := values[at]) is not None}
            try:
                results = run(session, feeds, types, allocate)
            except Interrupted as error:
                raise Interrupted(f"{error}; it ran {paths}") from None
            for value, type_, place in zip(results, types, places, strict=False):
                found = type_of(value)
                if type_ is not None and spelled(found) != spelled(type_):
                    raise KernelError(f"onnxruntime gives {spelled(found)} for {place}, which is {spelled(type_)}")
            return tuple(results)

        return compute


def _ends(
    graph: provider.GraphViewer, tensors: Sequence[TensorId], known: Known, most: int | None = None
) -> tuple[dict[TensorId, ValueType], dict[TensorId, Array]]:
    """What is given to a model of some nodes, with the types, and what is stored in it: constants of at most so many
    bytes."""
    inputs: dict[TensorId, ValueType] = {}
    stored: dict[TensorId, Array] = {}
    for t in dict.fromkeys(tensors):
        value = graph.constant(t)
        if isinstance(value, np.ndarray) and (most is None or value.nbytes <= most):
            stored[t] = value
        elif value is not None:
            inputs[t] = _open(type_of(value))
        else:
            inputs[t] = known.types.get(t) or ValueType("unset")
    return inputs, stored


def _open(type_: ValueType) -> ValueType:
    return replace(type_, shape=None)
