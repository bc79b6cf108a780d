"""The specification asked about one case, once for all engines: a run of the machine that keeps each application of the
main graph with its results, and what is allowed of them once that was asked.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.phases import Apply, Phase
from sonnx.semantics.machine.state import State
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.values import Value, identical
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.runtimes.engines.own import limited_run
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind, Source, Values
from sonnx.semantics.runtimes.engines.sources import model_of

from .chaining import Chained, chained
from .judging import Applied, Undefined, applied

Place = tuple[str, int | None, tuple[str, ...]]
"""An application of the main graph: operator, version, the names of the tensors that it gives."""


@dataclass
class Specified:
    """The specification on a case. failure: why it gives no result. outputs: of the main graph, by name."""

    model: Model | None
    feeds: Values
    outputs: Values
    failure: Failure | None = None
    places: dict[Place, Applied] = field(default_factory=dict)

    @cached_property
    def chained(self) -> Chained | Failure:
        """The run with what each of its values may be."""
        if self.model is None:
            return self.failure or Failure(Kind.INVALID, "there is no model")
        return chained(self.model, self.feeds)

    def applied(self, application: Application, names: tuple[str, ...]) -> Applied | Undefined:
        """The specification on an application: the machine's own result where its inputs were the same."""
        known = self.places.get((application.op_type, application.version, names))
        return known if known is not None and _same(known.application, application) else applied(application)


def specified(source: Source, feeds: Values) -> Specified:
    """Runs the machine. Raises ModelError for a model that cannot be read."""
    try:
        model = model_of(source)
    except Unsupported as error:
        return Specified(None, feeds, {}, Failure(Kind.UNSUPPORTED, str(error)))
    except ModelError as error:
        return Specified(None, feeds, {}, Failure(Kind.INVALID, str(error)))
    keeper = _Keeper(model)
    done = limited_run(model, feeds, keeper)
    if isinstance(done, Failure):
        return Specified(model, feeds, {}, done)
    return Specified(model, feeds, done, None, keeper.places)


def _same(known: Application, application: Application) -> bool:
    if len(known.inputs) != len(application.inputs) or known.outputs != application.outputs:
        return False
    pairs = zip(known.inputs, application.inputs, strict=True)
    return all(a is b or _identical(a, b) for a, b in pairs)


def _identical(a: Value | None, b: Value | None) -> bool:
    return a is not None and b is not None and identical(a, b)


@dataclass
class _Keeper:
    """An observer that keeps the applications of the main graph."""

    model: Model
    places: dict[Place, Applied] = field(default_factory=dict)

    def begun(self, state: State) -> None:
        """Nothing to keep."""

    def ended(self, state: State) -> None:
        """All is kept."""

    def passed(self, state: State, phase: Phase | Stuck) -> None:
        """Keeps what a node of the main graph was applied to, and gave."""
        if not isinstance(phase, Apply) or phase.application is None:
            return
        tensors = [self.model.tensors[t] for t in phase.tensors]
        if not tensors or any(it.graph != 0 for it in tensors):
            return
        application, values, free = phase.application, iter(phase.values), iter(phase.free)
        done = Outputs(
            tuple(next(values) if asked else None for asked in application.outputs),
            tuple(next(free, None) if asked else None for asked in application.outputs),
        )
        place = (application.op_type, application.version, tuple(it.name for it in tensors))
        self.places[place] = Applied(application, done)
