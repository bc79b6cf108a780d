"""The search for an input on which two models differ: the machine runs both whole models, and only that counts."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.machine.execution import Limits, run
from sonnx.semantics.machine.inputs import declared_inputs, random_inputs
from sonnx.semantics.machine.report import why
from sonnx.semantics.model.differences import first_of, unequal
from sonnx.semantics.model.elements import is_float
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.values import Array, Value, identical, shown
from sonnx.semantics.operators.application import Stuck
from sonnx.semantics.operators.compiled.bound import Allowed, Bound

from ...runtimes.differential.chaining import Chained, chained
from ...runtimes.differential.special_values import with_special_values
from .interface import Interface
from .normalizing import Strength

MEMORY: Final = 1 << 33
"""The bytes that the memory of a run may have."""
_SIZES: Final = (1, 2, 3, 0, 7)


@dataclass(frozen=True, slots=True)
class Witness:
    """An input on which the two models differ when the machine runs them. label: how it was made. inputs: of A by name.

    output: the name in A of the output that differs, "" where one of the runs gets stuck; element: the first place,
    with both values. elements: how many differ, of how many. stuck: why a run has no outputs. beyond: the difference is
    more than rounding explains: they are other real numbers.
    """

    label: str
    inputs: Mapping[str, Value] = field(repr=False)
    output: str = ""
    element: tuple[int, ...] | None = None
    values: tuple[str, str] = ("", "")
    elements: tuple[int, int] = (0, 0)
    stuck: tuple[str, str] = ("", "")
    beyond: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """The outcome. stuck: how many of these got stuck in both. tried: inputs on which both were run to the end or to
    the same end. reason: why nothing could be run."""

    witness: Witness | None
    tried: int
    reason: str = ""
    stuck: int = 0


def search(
    models: tuple[Model, Model],
    ports: Interface,
    given: Mapping[str, Value],
    sizes: Mapping[str, int],
    strength: Strength,
    seconds: float,
) -> Search:
    """Looks for an input on which the two differ. given: inputs of A that are fixed. strength: with REALS, a difference
    counts that no rounding explains; the first one in bits is kept otherwise."""
    deadline = time.monotonic() + seconds
    tried, stuck, kept, reason = 0, 0, None, ""
    for label, inputs in cases(models[0], given, sizes):
        if tried and time.monotonic() > deadline:
            break
        renamed = {other.name: inputs[one.name] for one, other in ports.inputs if one.name in inputs}
        try:
            ends = [_ended(model, feeds, deadline) for model, feeds in zip(models, (inputs, renamed), strict=True)]
        except (ModelError, Unsupported) as error:
            reason = reason or str(error)
            if time.monotonic() > deadline or label.startswith("seed 40"):
                break
            continue
        if any(isinstance(end, str) for end in ends):
            reason = reason or next(end for end in ends if isinstance(end, str))
            break
        tried += 1
        stuck += all(isinstance(end, Stuck) for end in ends)
        found = _difference(ports, label, inputs, ends[0], ends[1])
        if found is None:
            continue
        if strength is Strength.EXACT or found.stuck != ("", ""):
            return Search(found, tried)
        if beyond_rounding(models, ports, inputs, renamed):
            return Search(
                Witness(label, inputs, found.output, found.element, found.values, found.elements, beyond=True), tried
            )
        kept = kept or found
    return Search(kept, tried, reason if not tried else "", stuck)


def cases(
    model: Model, given: Mapping[str, Value], sizes: Mapping[str, int]
) -> Iterator[tuple[str, Mapping[str, Value]]]:
    """Inputs to try: those given, drawn ones, with special values, of few sizes."""
    open_ = sorted({n for t in model.graphs[0].inputs for n in _names(model, t)})
    for seed in range(1 << 20):
        chosen = {
            name: sizes.get(name, _SIZES[(seed // 2 + seed % 2 * place) % len(_SIZES)])
            for place, name in enumerate(open_)
        }
        try:
            drawn, _ = random_inputs(
                model, seed, given, {k: v for k, v in chosen.items() if k in _drawn_names(model, given)}
            )
        except ModelError:
            if seed == 0:
                raise
            return
        inputs = {**given, **drawn}
        shown_sizes = "".join(f", {name} = {size}" for name, size in chosen.items())
        yield f"seed {seed}{shown_sizes}", inputs
        if not drawn:
            return
        yield f"seed {seed}, special values{shown_sizes}", {**given, **with_special_values(drawn, seed)}


def _names(model: Model, t: int) -> Iterator[str]:
    declared = model.tensors[t].declared
    while declared is not None:
        yield from (size for size in declared.shape or () if isinstance(size, str) and size)
        declared = declared.inner


def _drawn_names(model: Model, given: Mapping[str, Value]) -> set[str]:
    from sonnx.semantics.machine.inputs import declared_inputs

    needed = [t for name, (t, _, needed) in declared_inputs(model).items() if needed and name not in given]
    return {n for t in needed for n in _names(model, t)}


# ---- Runs ----------------------------------------------------------------------------------------


def _ended(model: Model, inputs: Mapping[str, Value], deadline: float) -> Mapping[str, Value] | Stuck | str:
    """The outputs of a run, why it is stuck, or in words why it did not come to an end."""
    left = max(10.0, 4 * (deadline - time.monotonic()))
    done = run(model, inputs, max_memory=MEMORY, limits=Limits(seconds=left), history=False)
    if done.stuck is None:
        return done.outputs
    if "--max-" in done.stuck.suggestion:
        return f"a run was given up: {done.stuck.message}"
    return done.stuck


def _difference(
    ports: Interface,
    label: str,
    inputs: Mapping[str, Value],
    a: Mapping[str, Value] | Stuck | str,
    b: Mapping[str, Value] | Stuck | str,
) -> Witness | None:
    stuck = why(a) if isinstance(a, Stuck) else "", why(b) if isinstance(b, Stuck) else ""
    if bool(stuck[0]) != bool(stuck[1]):
        return Witness(label, inputs, stuck=stuck)
    if isinstance(a, Stuck | str) or isinstance(b, Stuck | str):
        return None
    for one, other in ports.outputs:
        x, y = a[one.name], b[other.name]
        if identical(x, y) or _alike(x, y):
            continue
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray) or (x.dtype, x.shape) != (y.dtype, y.shape):
            return Witness(label, inputs, one.name, None, (shown(x), shown(y)))
        mask = differing(x, y)
        at = first_of(mask)
        return Witness(label, inputs, one.name, at, (str(x[at]), str(y[at])), (int(mask.sum()), mask.size))
    return None


def differing(x: Array, y: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    """Where two tensors differ in a bit; which NaN an operation gives is open, so that two of them do not differ."""
    mask = unequal(x, y)
    return mask & ~(_nans(x) & _nans(y))


def _nans(x: Array) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    if x.dtype.hasobject or not (is_float(x.dtype) or x.dtype.kind == "c"):
        return np.zeros(x.shape, np.bool_)
    return np.asarray(x != x)


def _alike(x: Value | None, y: Value | None) -> bool:
    same = isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and (x.dtype, x.shape) == (y.dtype, y.shape)
    return same and isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and not differing(x, y).any()


# ---- Bounds --------------------------------------------------------------------------------------


def beyond_rounding(
    models: tuple[Model, Model], ports: Interface, a: Mapping[str, Value], b: Mapping[str, Value]
) -> bool:
    """True where on this finite input some output of the one is another real number than that of the other.

    What an output is over the reals is enclosed by the bound interpretation of each node, widened by a unit in the last
    place. Where it may be no number nothing is said.
    """
    given = (it for it in a.values() if isinstance(it, np.ndarray) and is_float(it.dtype))
    if not all(bool(np.isfinite(it.astype(np.float64)).all()) for it in given):
        return False
    chains = [chained(model, feeds, real=True) for model, feeds in zip(models, (a, b), strict=True)]
    if not isinstance(chains[0], Chained) or not isinstance(chains[1], Chained):
        return False
    for one, other in ports.outputs:
        x, y = chains[0].values.get(one.name), chains[1].values.get(other.name)
        if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
            continue
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return True
        if _apart(chains[0].allowed(one.name), chains[1].allowed(other.name)):
            return True
    return False


def _apart(x: Bound, y: Bound) -> bool:
    if not isinstance(x, Allowed) or not isinstance(y, Allowed):
        return False
    numbers = ~x.maybe_nan & ~y.maybe_nan
    return bool((numbers & ((x.most < y.least) | (y.most < x.least))).any())


@dataclass(frozen=True, slots=True)
class Hull:
    """The numbers that an element of an output may be in either model, and how far two results can be apart at most."""

    least: float
    most: float
    apart: float


def hull(
    models: tuple[Model, Model],
    ports: Interface,
    inputs: Mapping[str, Value],
    box: Mapping[str, Allowed] = MappingProxyType({}),
) -> Mapping[str, Hull] | str:
    """For each output what the one and the other may give on an input, or on any in a box; why that is not known.

    inputs, box: by the names of A; of what is in the box `inputs` has one value.
    """
    chains = []
    for name, model, at in zip("AB", models, (0, 1), strict=True):
        names = {pair[0].name: pair[at].name for pair in ports.inputs}
        feeds = {names.get(own, own): it for own, it in inputs.items() if own in names or name == "A"}
        done = chained(model, feeds, box={names[own]: it for own, it in box.items() if own in names})
        if not isinstance(done, Chained):
            return f"{name} does not run on it: {done.message}"
        chains.append(done)
    found: dict[str, Hull] = {}
    for one, other in ports.outputs:
        x, y = chains[0].allowed(one.name), chains[1].allowed(other.name)
        for name, bounds, chain in zip("AB", (x, y), chains, strict=True):
            if not isinstance(bounds, Allowed):
                return f"nothing is known behind {chain.ended or 'its inputs'} of {name}"
        if not isinstance(x, Allowed) or not isinstance(y, Allowed):
            return "an output is no tensor of numbers"
        if bool((x.maybe_nan | y.maybe_nan).any()):
            return f"{one.name} may be no number"
        with np.errstate(all="ignore"):
            most = np.maximum(x.most.astype(np.float64), y.most.astype(np.float64))
            least = np.minimum(x.least.astype(np.float64), y.least.astype(np.float64))
            width = np.nextafter(most - least, np.inf)
        ends = (float(least.min()), float(most.max())) if least.size else (0.0, 0.0)
        found[one.name] = Hull(*ends, float(width.max(initial=0.0)))
    return found


@dataclass(frozen=True, slots=True)
class Box:
    """Inputs of A of certain shapes. sets: those whose elements lie in intervals. values: one of these, and what is
    given. words: the intervals, and the open sizes that were chosen."""

    sets: Mapping[str, Allowed]
    values: Mapping[str, Value]
    words: str


def box_of(
    model: Model, intervals: Mapping[str, tuple[float, float]], inputs: Mapping[str, Value], sizes: Mapping[str, int]
) -> Box:
    """The box of a model: intervals for all elements of inputs by name, the values of the others. sizes: of open
    dimensions, 1 where nothing is said. Raises ModelError where an input has neither, both, or no intervals."""
    needed = {name for name, (_, _, needed) in declared_inputs(model).items() if needed}
    both = sorted(intervals.keys() & inputs.keys())
    if both:
        raise ModelError(f"the input {both[0]} has a value and a box: leave one of them out")
    left = sorted(needed - intervals.keys() - inputs.keys())
    if left:
        raise ModelError(f"the input {left[0]} has no box: give it one by --box, or a value by --input")
    drawn, opened = random_inputs(model, 0, inputs, sizes)
    sets: dict[str, Allowed] = {}
    values = dict(inputs)
    for name, (least, most) in intervals.items():
        value = drawn.get(name)
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            raise ModelError(f"the model has no input {name} of floating-point numbers, which alone have a box")
        ends = [np.full(value.shape, end, np.float64) for end in (least, most)]
        never = np.zeros(value.shape, np.bool_)
        sets[name] = Allowed(value.dtype, ends[0], ends[1], never, never, ends[0], ends[1])
        values[name] = np.full(value.shape, least / 2 + most / 2, value.dtype)
    words = [f"{name} in [{least:g}, {most:g}]" for name, (least, most) in intervals.items()]
    chosen = [
        f"{name} = {size}" for name, size in (*sizes.items(), *((name, 1) for name in opened if name not in sizes))
    ]
    return Box(sets, values, ", ".join((*words, *chosen)))
