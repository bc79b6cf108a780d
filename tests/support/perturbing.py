"""Which elements of inputs and stored values an element of an output depends on, found by changing them one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from sonnx.semantics import load_proto
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.graph import Model

Places = dict[str, set[tuple[int, ...]]]


def graphs_of(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """All graphs of a model, bodies and the bodies in its functions included."""
    work: list[Any] = [model.graph, *model.functions]
    while work:
        found = work.pop()
        if isinstance(found, onnx.GraphProto):
            yield found
        for node in found.node:
            for attribute in node.attribute:
                work += [attribute.g] if attribute.HasField("g") else []
                work += list(attribute.graphs)


def stored_in(model: onnx.ModelProto) -> list[onnx.TensorProto]:
    """The stored tensors of all graphs; their names are unique in the models that this is used for."""
    found = [it for graph in graphs_of(model) for it in graph.initializer]
    if len({it.name for it in found}) < len(found):
        raise ValueError("two stored tensors have one name")
    return found


def exposed(model: onnx.ModelProto, *outputs: str) -> onnx.ModelProto:
    """The model with its stored values as inputs too, and with more outputs."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    graph = made.graph
    known = {it.name for it in graph.input}
    graph.input.extend(
        helper.make_tensor_value_info(it.name, it.data_type, it.dims)
        for it in graph.initializer
        if it.name not in known
    )
    graph.output.extend(helper.make_tensor_value_info(name, 1, None) for name in outputs)
    return made


def stored_values(model: onnx.ModelProto) -> dict[str, Any]:
    """The stored values of the main graph by name."""
    return {it.name: numpy_helper.to_array(it) for it in model.graph.initializer}


def disagreements(
    loaded: Model,
    base: Mapping[str, Any],
    output: str,
    index: tuple[int, ...],
    claimed: Mapping[str, object],
    changes: Sequence[float] = (np.nan,),
    most: int | None = None,
) -> list[str]:
    """Why the claimed elements of the inputs are not exactly those which change an element of an output; none if they
    are: changing all others at once changes nothing, changing any one of them does, by one of the `changes`. most: so
    many of each input are tried alone.

    NaN shows all that goes into a result; a number hides what is multiplied by 0: weights at a padding, for example.
    """
    before = element_of(loaded, base, output, index)
    wrong = []
    for change in changes:
        others = {
            name: _other(value, set(np.ndindex(value.shape)) - _set(claimed, name), change)
            for name, value in base.items()
        }
        if element_of(loaded, others, output, index) != before:
            wrong.append("an element that is not claimed changes the result")
    for name, value in base.items():
        for at in _spread(sorted(_set(claimed, name)), most):
            made = ({**base, name: _other(value, {at}, change)} for change in changes)
            if all(element_of(loaded, it, output, index) == before for it in made):
                wrong.append(f"{name}{list(at)} changes nothing")
    return wrong


def _spread(found: list[tuple[int, ...]], most: int | None) -> list[tuple[int, ...]]:
    return found if most is None else found[:: -(-len(found) // most) or 1]


def _set(claimed: Mapping[str, object], name: str) -> set[tuple[int, ...]]:
    found = claimed.get(name, ())
    return set(found) if isinstance(found, (set, frozenset, tuple, list)) else set()


def _other(value: Any, at: set[tuple[int, ...]], change: float) -> Any:
    """The value with other elements in some places: the change added to floats, 5 to whole numbers."""
    made = np.array(value)
    for index in at:
        if made.dtype.kind == "f":
            made[index] += change
        elif made.dtype == np.bool_:
            made[index] = not made[index]
        else:
            made[index] += 5 if made[index] < np.iinfo(made.dtype).max - 5 else -5
    return made


def perturbed_stored(
    proto: onnx.ModelProto,
    bases: Sequence[Mapping[str, Any]],
    output: str,
    index: tuple[int, ...],
    changes: Sequence[float],
    skipped: frozenset[str] = frozenset(),
) -> Places:
    """The same for stored values; the model is loaded with each change."""
    changing = onnx.ModelProto.FromString(proto.SerializeToString())
    plain = load_proto(proto)
    before = [element_of(plain, base, output, index) for base in bases]
    seen: Places = {}
    for tensor in stored_in(changing):
        if tensor.name in skipped:
            continue
        kept = onnx.TensorProto.FromString(tensor.SerializeToString())
        value = numpy_helper.to_array(kept)
        for at in np.ndindex(value.shape):
            for made in _changed(value, at, changes):
                tensor.CopyFrom(numpy_helper.from_array(made, kept.name))
                loaded = load_proto(changing)
                if any(element_of(loaded, base, output, index) != was for base, was in zip(bases, before, strict=True)):
                    seen.setdefault(kept.name, set()).add(at)
                    break
        tensor.CopyFrom(kept)
    return seen


def _changed(value: Any, at: tuple[int, ...], changes: Sequence[float]) -> Iterator[Any]:
    for change in changes:
        if np.isnan(change) and value.dtype.kind != "f":
            continue
        made = np.array(value)
        if value.dtype == np.bool_:
            made[at] = not made[at]
        elif value.dtype.kind == "f":
            made[at] += change
        else:
            limits = np.iinfo(value.dtype)
            made[at] = min(max(int(made[at]) + int(change), limits.min), limits.max)
        yield made


def element_of(loaded: Model, inputs: Mapping[str, Any], output: str, index: tuple[int, ...]) -> bytes | str:
    """The bits of the element; why there is none otherwise."""
    ended = run(loaded, dict(inputs), history=False)
    if ended.stuck is not None:
        return ended.stuck.message
    value = ended.outputs[output]
    if not isinstance(value, np.ndarray):
        raise ValueError("the output is no tensor")
    return value[index].tobytes() if all(i < n for i, n in zip(index, value.shape, strict=True)) else "gone"
