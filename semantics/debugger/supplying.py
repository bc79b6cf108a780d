"""Values from outside for the outputs of a node: from files and expressions, checked against what the model declares,
or computed by an engine for that node alone. A timeline goes on with them; none is by a definition.

It knows the timeline and no command.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from ..errors import ModelError, Unsupported
from ..machine.files.numpy_files import value_in_file
from ..machine.inputs import Sizes, contradiction, sizes_given
from ..machine.phases import Supply, stuck_at
from ..machine.state import State, node_path, region_of, tensor_path, value_of
from ..machine.transitions import has_meaning
from ..model.graph import NodeId, TensorId, ValueType
from ..model.path import quote
from ..model.values import Value
from ..operators.application import Stuck
from ..resources.process import paused
from ..runtimes.engines.protocol import Engine, Failure
from ..runtimes.engines.registry import started
from ..runtimes.engines.tapping import alone
from .timeline.history import History, Moment, Refused, Supplier

SUFFIXES: Final = (".npy", ".npz", ".pb", ".json")
"""The files that hold values."""

Giver = Callable[[History, Moment, TensorId], Value]
"""The value for a tensor at a moment. Raises Refused."""


def from_file(path: Path, name: str) -> Giver:
    """The value that a file has for a tensor of a name; it is read once for each declared type."""

    def given(history: History, moment: Moment, t: TensorId) -> Value:
        try:
            return value_in_file(path, name, moment.state.program.model.tensors[t].declared)
        except OSError as error:
            raise Refused(f"{quote(str(path))}: {error.strerror or error}") from None
        except ModelError as error:
            named = str(error).startswith(quote(str(path)))
            raise Refused(str(error) if named else f"{quote(str(path))}: {error}") from None

    return given


def supplied(history: History, moment: Moment, givers: Mapping[TensorId, tuple[Giver, str]]) -> Supply:
    """The values for the outputs of the node that comes next. givers: of each, and where from, in words.

    Raises Refused for a value that does not fit what the model declares, and for an output without one.
    """
    node = moment.next
    if node is None:
        raise Refused("no node comes next: the run has ended")
    state = moment.state
    wanted = state.program.writes[node]
    lacking = [quote(state.program.model.tensors[t].name) for t in wanted if t not in givers]
    if lacking:
        raise Refused(
            f"{node_path(state, node)} gives {', '.join(lacking)} too: supply all outputs of the node at once"
        )
    values = {t: checked(state, t, givers[t][0](history, moment, t)) for t in wanted}
    return Supply(values, ", ".join(dict.fromkeys(givers[t][1] for t in wanted)))


def checked(state: State, t: TensorId, value: Value) -> Value:
    """The value, read-only. Raises Refused where it contradicts the declared type or shape of the tensor."""
    model = state.program.model
    stated = model.tensors[t].declared
    path = tensor_path(state, t)
    if stated is not None:
        sizes: Sizes = {} if "!" in path else sizes_given(model, _types_given(state))
        wrong = contradiction("value supplied for", model.tensors[t].name, value, stated, sizes)
        if wrong is not None:
            raise Refused(wrong)
    if isinstance(value, np.ndarray):
        value = np.array(value, order="C")
        value.flags.writeable = False
    return value


def _types_given(state: State) -> dict[TensorId, ValueType]:
    regions = {t: region_of(state, t) for t in state.program.model.graphs[0].inputs}
    return {t: it.type for t, it in regions.items() if it is not None}


def always(givers: Mapping[TensorId, tuple[Giver, str]], of_run: Mapping[TensorId, str]) -> Supplier:
    """Values for some tensors whenever their nodes come. of_run: the paths of those that are meant in one run alone."""

    def supply(history: History, moment: Moment) -> Supply | Stuck | None:
        state, node = moment.state, moment.next
        if node is None or node == state.frame.holder:
            return None
        wanted = state.program.writes[node]
        if not wanted or not all(t in givers and of_run.get(t) in (None, tensor_path(state, t)) for t in wanted):
            return None
        return _or_stuck(state, node, lambda: supplied(history, moment, givers))

    return supply


# ---- Engines --------------------------------------------------------------------------------------


def engine_named(name: str) -> Engine:
    """The engine of a name. Raises Refused."""
    try:
        return started(name)
    except ModelError as error:
        raise Refused(str(error)) from None


def computed(engine: Engine, state: State, node: NodeId) -> Supply:
    """The outputs that an engine computes for one node, given what the node reads here. Raises Refused."""
    model = state.program.model
    feeds: dict[TensorId, Value] = {}
    for t in dict.fromkeys(it for it in model.nodes[node].inputs if it is not None):
        value = value_of(state, t)
        if value is None:
            raise Refused(f"{node_path(state, node)} reads {tensor_path(state, t)}, which has no value")
        feeds[t] = value
    with paused():
        try:
            source, names = alone(model, node, feeds)
            session = engine.open(source)
            if isinstance(session, Failure):
                raise Refused(f"{engine.name} does not take {node_path(state, node)}: {session}")
            try:
                done = session.run({names[t]: value for t, value in feeds.items()})
            finally:
                session.close()
        except (ModelError, Unsupported) as error:
            raise Refused(f"{engine.name} does not compute {node_path(state, node)}: {error}") from None
    if isinstance(done, Failure):
        raise Refused(f"{engine.name} does not compute {node_path(state, node)}: {done}")
    wanted = state.program.writes[node]
    lacking = [quote(model.tensors[t].name) for t in wanted if names[t] not in done]
    if lacking:
        raise Refused(f"{engine.name} gives no value for {', '.join(lacking)}")
    values = {t: checked(state, t, done[names[t]]) for t in wanted}
    return Supply(values, f"by {f'{engine.name} {engine.version}'.rstrip()}")


def through(engine: Engine) -> Supplier:
    """Values that an engine computes for each node without a meaning."""

    def supply(_history: History, moment: Moment) -> Supply | Stuck | None:
        state, node = moment.state, moment.next
        if node is None or node == state.frame.holder or has_meaning(state.program.model.nodes[node]):
            return None
        return _or_stuck(state, node, lambda: computed(engine, state, node))

    return supply


def _or_stuck(state: State, node: NodeId, make: Callable[[], Supply]) -> Supply | Stuck:
    try:
        return make()
    except Refused as refused:
        message = f"{node_path(state, node)}: {refused.message}"
        return stuck_at("Step/fire", "gives", message, "Give other values: `supply` takes them for this step.")
