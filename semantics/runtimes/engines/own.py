"""Our own engines: the machine, which is the specification's meaning, and the NumPy fast path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ...errors import ModelError, Unsupported
from ...machine.execution import Limits, run
from ...machine.phases import Apply, Observer, Phase
from ...machine.report import why
from ...machine.state import State
from ...model.graph import Model
from ...model.values import Value
from ...operators.application import Stuck
from .protocol import EngineSession, Failure, Kind, Source, Values
from .sources import model_of

if TYPE_CHECKING:
    from ..fastpath import Session
    from ..fastpath.provider import ExecutionProvider

SECONDS = 300.0
"""The seconds that a run of the machine may take."""
MEMORY = 1 << 32
"""The bytes that the memory of the machine may have."""


@dataclass
class Watch:
    """An observer that keeps the values which the nodes of the main graph give, by name."""

    model: Model
    values: dict[str, Value] = field(default_factory=dict)

    def begun(self, state: State) -> None:
        """Nothing to keep."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Keeps what is computed for tensors of the main graph."""
        if isinstance(phase, Apply):
            for t, value in zip(phase.tensors, phase.values, strict=True):
                if self.model.tensors[t].graph == 0:
                    self.values[self.model.tensors[t].name] = value

    def ended(self, state: State) -> None:
        """Nothing to keep."""


@dataclass(frozen=True, slots=True)
class MachineSession:
    """A model on the machine."""

    model: Model

    def run(self, feeds: Values) -> Values | Failure:
        """The outputs by name."""
        return self._run(feeds, None)

    def run_tapped(self, feeds: Values) -> Values | Failure:
        """The outputs of each node of the main graph, by tensor."""
        return self._run(feeds, Watch(self.model))

    def close(self) -> None:
        """Holds nothing."""

    def _run(self, feeds: Values, watch: Watch | None) -> Values | Failure:
        done = limited_run(self.model, feeds, watch)
        return done if isinstance(done, Failure) or watch is None else watch.values


def _failed(error: Exception) -> Failure:
    """The outcome that an exception means for whoever asked an engine."""
    from ..fastpath.kernel import Interrupted, KernelError

    if isinstance(error.__cause__, Interrupted):
        return Failure(Kind.CRASH, str(error))
    kinds = ((KernelError, Kind.OUTSIDE), (Unsupported, Kind.UNSUPPORTED), (ModelError, Kind.INVALID))
    kind = next((kind for raised, kind in kinds if isinstance(error, raised)), None)
    return Failure(Kind.ERROR, f"{type(error).__name__}: {error}") if kind is None else Failure(kind, str(error))


def limited_run(model: Model, feeds: Values, observer: Observer | None = None) -> Values | Failure:
    """The outputs of the machine, or why there are none, as engines say it."""
    observers = () if observer is None else (observer,)
    try:
        done = run(model, feeds, max_memory=MEMORY, limits=Limits(seconds=SECONDS), history=False, observers=observers)
    except (Unsupported, ModelError) as error:
        return _failed(error)
    if done.stuck is not None and "--max-" in done.stuck.suggestion:  # a limit says which option raises it
        return Failure(Kind.LIMIT, done.stuck.message)
    if done.stuck is not None:
        return Failure(Kind.OUTSIDE, why(done.stuck))
    return done.outputs


@dataclass(frozen=True, slots=True)
class Machine:
    """The small-step machine with the ieee meaning of operators."""

    name: str = "machine"

    @property
    def version(self) -> str:
        """That of this package."""
        return version("sonnx")

    def open(self, source: Source) -> EngineSession | Failure:
        """Loads a model."""
        try:
            return MachineSession(model_of(source))
        except (Unsupported, ModelError) as error:
            return _failed(error)


@dataclass(frozen=True, slots=True)
class NumpySession:
    """A model prepared by the fast path. names: of the outputs, in order."""

    prepared: Session
    names: tuple[str, ...]

    def run(self, feeds: Values) -> Values | Failure:
        """The outputs by name."""
        try:
            values = self.prepared.run(self.names, feeds)
        except Exception as error:  # whatever a kernel raises is an outcome to report
            return _failed(error)
        return {name: value for name, value in zip(self.names, values, strict=True) if value is not None}

    def counts(self) -> Mapping[str, tuple[int, int]]:
        """How many nodes each provider runs, and the session where there are such, in how many parts."""
        from ..fastpath.explanation import SESSION, counted

        counts = counted(self.prepared.partitioning, self.prepared.get_providers())
        return {by: numbers for by, numbers in counts.items() if numbers[1] or by != SESSION}

    def close(self) -> None:
        """Holds nothing that the collector does not give back."""


@dataclass(frozen=True, slots=True)
class Numpy:
    """The fast path. kernels: of operators of one's own, by name (`fastpath.own_kernels`). providers: those that are
    asked before NumPy's."""

    name: str = "numpy"
    kernels: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    providers: tuple[str | ExecutionProvider, ...] = ()

    @property
    def version(self) -> str:
        """That of this package."""
        return version("sonnx")

    def open(self, source: Source) -> EngineSession | Failure:
        """Prepares a model."""
        from ..fastpath import NumpyExecutionProvider, Session, kernels_with

        try:
            model = model_of(source)
            given = any(isinstance(it, NumpyExecutionProvider) for it in self.providers)
            last = [] if given else [NumpyExecutionProvider(kernels_with(self.kernels))]
            prepared = Session(model, [*self.providers, *last])
        except Exception as error:  # whatever a kernel raises is an outcome to report
            return _failed(error)
        return NumpySession(prepared, tuple(model.tensors[t].name for t in model.graphs[0].outputs))


MACHINE = Machine()
NUMPY = Numpy()
NUMBA = Numpy("numba", providers=("NumbaExecutionProvider",))
