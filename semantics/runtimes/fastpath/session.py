"""A model ready to run, with the interface of ONNX Runtime's InferenceSession.

    session = Session("net.onnx")
    (y,) = session.run(None, {"x": x})

Tensors are arrays; a sequence, an optional or a map is a value of `sonnx.semantics.model.values`; a string is a bytes
object. A session may be used by several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, overload

import numpy as np

from ...errors import ModelError
from ...machine.execution import WELL_FORMED, check_complete, check_well_formed
from ...machine.inputs import bound_inputs, contradicted, declared_inputs
from ...machine.memory import type_of
from ...model.graph import Model, ValueType
from ...model.loader.source import check_texts
from ...model.path import quote
from ...model.type_protos import spelled
from ...model.values import Array, Map, Optional, Value
from ...model.values import Sequence as Items
from ...operators.application import Program
from .arena import Pool, planned
from .compiled import Compiled, begun, rebuilt, root
from .execution import Slots, run_planned, run_recorded
from .partition import Partitioning
from .preparation import compiled_main
from .provider import ExecutionProvider, RunOptions
from .providers import chosen_providers
from .workers import for_rows, with_one_thread_of_blas

if TYPE_CHECKING:
    from onnx import ModelProto

_PLANS: Final = 8  # plans that are kept, for inputs of so many different shapes
_VARIANTS: Final = 8  # compilations that are kept, for so many different sets of initializers that are given values

Key = tuple[tuple[tuple[int, ...], "np.dtype[np.generic]"] | None, ...]
"""The shapes and dtypes of the inputs; None for one that is no tensor."""


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output. type: as schemas write it, `tensor(float)`. shape: sizes, names, None for an open one; None
    when it is not declared."""

    name: str
    type: str
    shape: list[int | str | None] | None


@dataclass(frozen=True, slots=True)
class Variant:
    """The main graph, compiled for values of these inputs. pools: for the shapes that were met, oldest first."""

    compiled: Compiled
    inputs: tuple[str, ...]
    partitioning: Partitioning
    pools: dict[Key, Pool]


class Session:
    """A model that is prepared once and run any number of times.

    model: a path, a loaded Model or a ModelProto. providers: names or objects in the order of preference; what they
    leave runs on the NumpyExecutionProvider. Raises ModelError for a model that cannot be read or is not well formed,
    Unsupported when no provider has a kernel for a node.
    """

    def __init__(
        self, model: str | Path | Model | ModelProto, providers: Sequence[str | ExecutionProvider] = ()
    ) -> None:
        self._model = _loaded(model)
        self._providers = chosen_providers(providers)
        self._program = Program(self._model)
        self._declared = declared_inputs(self._model)
        self._required = tuple(name for name, (_, _, needed) in self._declared.items() if needed)
        self._outputs = {self._model.tensors[t].name: i for i, t in enumerate(self._model.graphs[0].outputs)}
        self._lock = Lock()
        self._variants: dict[frozenset[str], Variant] = {}
        self._variant(frozenset())

    # ---- What it is ---------------------------------------------------------------------------

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that need a value."""
        return [_argument(name, self._declared[name][1]) for name in self._required]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a stored value, which a caller may replace."""
        return [_argument(name, stated) for name, (_, stated, needed) in self._declared.items() if not needed]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs, in the order of the graph."""
        main = self._model.graphs[0]
        types = main.output_types or (None,) * len(main.outputs)
        tensors = self._model.tensors
        return [
            _argument(tensors[t].name, stated or tensors[t].declared)
            for t, stated in zip(main.outputs, types, strict=True)
        ]

    def get_providers(self) -> list[str]:
        """The names of the providers in the order of preference."""
        return [it.name for it in self._providers]

    @property
    def model(self) -> Model:
        """The model that it runs."""
        return self._model

    @property
    def partitioning(self) -> Partitioning:
        """Which provider runs which nodes by which kernel, and why."""
        return self._variant(frozenset()).partitioning

    # ---- Running ------------------------------------------------------------------------------

    def run(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Value],
        run_options: RunOptions = RunOptions(),  # noqa: B008 - it is immutable
    ) -> list[Value | None]:
        """The outputs of these names, or all, for values of the inputs; None for an optional output without a value.

        The arrays belong to the caller. Raises ModelError for an input or output that the model does not declare so,
        and RunError when the run cannot go on.
        """
        check_texts(self._model)
        wanted = range(len(self._outputs)) if output_names is None else [self._position(it) for it in output_names]
        variant = self._variant(
            frozenset(it for it in input_feed if it in self._declared and not self._declared[it][2])
        )
        given = [_entering(input_feed.get(name)) for name in variant.inputs]
        key = tuple((it.shape, it.dtype) if isinstance(it, np.ndarray) else None for it in given)
        pool = None if None in key else variant.pools.get(key)
        if pool is None or len(input_feed) > len(given):
            bound = bound_inputs(self._model, {name: _entering(value) for name, value in input_feed.items()})
            wrong = contradicted(self._model, {t: type_of(value) for t, value in bound.items()}, {})
            if wrong is not None:
                raise ModelError(wrong)
        slots = begun(variant.compiled, given)
        for provider in self._providers:
            provider.on_run_start(run_options)
        try:
            with for_rows(), with_one_thread_of_blas():
                self._run(variant, key, pool, slots)
        finally:
            for provider in self._providers:
                provider.on_run_end(run_options)
        return _leaving([slots[variant.compiled.outputs[i]] for i in wanted])

    def _run(self, variant: Variant, key: Key, pool: Pool | None, slots: Slots) -> None:
        """Runs the steps; the first run for inputs of these shapes makes the plan."""
        if pool is not None:
            arena = pool.taken()
            arena.begin()
            run_planned(variant.compiled, slots, arena)
            arena.end()
            pool.free.append(arena)
            return
        record = run_recorded(variant.compiled, slots)
        if None not in key:
            made = Pool(planned(record))
            with self._lock:
                while len(variant.pools) >= _PLANS:
                    del variant.pools[next(iter(variant.pools))]
                variant.pools.setdefault(key, made)

    def _position(self, name: str) -> int:
        if name not in self._outputs:
            raise ModelError(f"the model has no output {quote(name)}: it has {', '.join(map(quote, self._outputs))}")
        return self._outputs[name]

    def _variant(self, overridden: frozenset[str]) -> Variant:
        known = self._variants.get(overridden)
        if known is not None:
            return known
        ids = frozenset(self._declared[name][0] for name in overridden)
        compiled, partitioning = compiled_main(self._program, self._providers, ids)
        names = {t: name for name, (t, _, _) in self._declared.items()}
        inputs = (*self._required, *(names[t] for t in sorted(ids)))
        made = Variant(compiled, inputs, partitioning, {})
        with self._lock:
            while len(self._variants) > _VARIANTS:
                del self._variants[next(it for it in self._variants if it)]
            return self._variants.setdefault(overridden, made)


# ---- Values -----------------------------------------------------------------------------------


def _loaded(model: str | Path | Model | ModelProto) -> Model:
    """The model, checked. Raises ModelError."""
    if isinstance(model, (str, Path)):
        from ...model.loader import load

        model = load(model)
    elif not isinstance(model, Model):
        from ...model.loader import load_proto

        model = load_proto(model)
    return checked_model(model)


def checked_model(model: Model) -> Model:
    """The model. Raises ModelError where it is not complete or not well formed."""
    check_complete(model)
    wrong = check_well_formed(model, (*WELL_FORMED, "Completeness"))
    if wrong is not None:
        raise ModelError(f"the model is not well formed: {wrong.rule}, {wrong.premise} {wrong.message}")
    return model


def _argument(name: str, stated: ValueType | None) -> NodeArg:
    text = "" if stated is None else spelled(stated) or ""
    shape = None if stated is None or stated.shape is None else list(stated.shape)
    return NodeArg(name, text, shape)


@overload
def _entering(value: Value) -> Value: ...
@overload
def _entering(value: None) -> None: ...
def _entering(value: Value | None) -> Value | None:
    """A caller's value as kernels read it: arrays in C order that nobody writes, texts as bytes objects."""
    if value is None or isinstance(value, (Items, Optional, Map)):
        return value
    array = np.asarray(value, order="C")
    if array.dtype.kind in "US" or (array.dtype == object and any(isinstance(it, str) for it in array.flat)):
        texts = [it.encode() if isinstance(it, str) else it for it in array.reshape(-1).tolist()]
        array = np.array([*texts, None], object)[:-1].reshape(array.shape)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    shown = array.view(np.ndarray)
    shown.flags.writeable = False
    return shown


def _leaving(values: Sequence[Value | None]) -> list[Value | None]:
    """The outputs in memory of their own: no constant, no input, no other output."""
    seen: set[int] = set()

    def own(array: Array) -> Array:
        memory = id(root(array))
        if array.flags.writeable and memory not in seen:
            seen.add(memory)
            return array
        return array.copy()

    return [None if value is None else rebuilt(value, own) for value in values]
