"""The machine as an `onnx.backend.base.Backend`, so that tools which drive backends can drive it.

    onnx.backend.test.BackendTest(sonnx.semantics.runtimes.backend.Machine, __name__)

Values cross as backends exchange them: tensors as arrays (strings as `str` objects), sequences as lists, an empty
optional as None. Source: onnx.backend.base of onnx 1.23.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper
from onnx.backend.base import Backend, BackendRep

from ..errors import ModelError
from ..machine.execution import run
from ..machine.inputs import declared_inputs
from ..model import values
from ..model.graph import Model, ValueType
from ..model.loader import load_proto
from ..model.values import Value

Exchanged = NDArray[np.generic] | list["Exchanged"] | dict[int | str, "Exchanged"] | None
"""A value as backends exchange it."""


class RunError(Exception):
    """The machine is stuck; the message is that of its Stuck."""


class Prepared(BackendRep):
    """A model, loaded."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def run(self, inputs: Sequence[Exchanged] | Mapping[str, Exchanged], **_options: object) -> tuple[Exchanged, ...]:
        """The outputs in the order of the graph. Raises RunError when the run gets stuck, ModelError, Unsupported."""
        main = self.model.graphs[0]
        declared = declared_inputs(self.model)
        wanted = [name for name, (_, _, needed) in declared.items() if needed or len(inputs) == len(declared)]
        named = inputs if isinstance(inputs, Mapping) else dict(zip(wanted, inputs, strict=True))
        types = {name: stated for name, (_, stated, _) in declared.items()}
        given = {name: received(value, types.get(name)) for name, value in named.items()}
        ended = run(self.model, given, history=False)
        if ended.stuck is not None:
            raise RunError(f"{ended.stuck.rule}: {ended.stuck.message}")
        return tuple(exchanged(ended.outputs[self.model.tensors[t].name]) for t in main.outputs)


class Machine(Backend):
    """The small-step machine with the ieee meaning of operators."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **_options: object) -> Prepared:
        """Loads a model. Raises ModelError."""
        if not cls.supports_device(device):
            raise ModelError(f"the machine runs on the device CPU, not on {device!r}")
        return Prepared(load_proto(model))

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[NDArray[np.generic]],
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[np.generic], tuple[int, ...]]] | None = None,
        **options: object,
    ) -> tuple[Exchanged, ...]:
        """The outputs of one node on tensors. outputs_info: dtypes and shapes of the outputs, where they are known."""
        named = [name for name in node.input if name]
        arrays = [np.asarray(value) for value in inputs]
        typed = [helper.make_tensor_value_info(n, _code(a.dtype), a.shape) for n, a in zip(named, arrays, strict=True)]
        known = dict(zip(node.output, outputs_info or (), strict=False))
        results = [
            helper.make_tensor_value_info(name, _code(np.dtype(known[name][0])), known[name][1])
            if name in known
            else helper.make_empty_tensor_value_info(name)
            for name in node.output
            if name
        ]
        version = options.get("opset_version")
        opset = helper.make_opsetid("", version if isinstance(version, int) else onnx.defs.onnx_opset_version())
        model = helper.make_model(helper.make_graph([node], "node", typed, results), opset_imports=[opset])
        return cls.prepare(model, device).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """CPU only."""
        return device.partition(":")[0] == "CPU"


def _code(dtype: np.dtype[np.generic]) -> int:
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def received(value: Exchanged, declared: ValueType | None) -> Value:
    """A value of ours for one that a backend is given, of the declared type."""
    inner = declared.inner if declared is not None and declared.inner is not None else ValueType("unset")
    if declared is not None and declared.kind == "optional":
        return values.Optional(inner, None if value is None else received(value, inner))
    if value is None:
        raise ModelError("None is a value of an optional only; leave the input out instead")
    if isinstance(value, list):
        return values.Sequence(inner, tuple(received(item, inner) for item in value))
    if isinstance(value, dict):
        keys = [key.encode() if isinstance(key, str) else key for key in value]
        element = declared.element if declared is not None else ""
        items = zip(keys, (received(item, inner) for item in value.values()), strict=True)
        return values.Map(element, inner, tuple(sorted(items, key=lambda item: cast("int", item[0]))))
    array = np.asarray(value)
    if array.dtype.kind in "OU":
        spelled = [item.encode() if isinstance(item, str) else bytes(item) for item in array.ravel().tolist()]
        strings = np.empty(len(spelled), object)
        strings[:] = spelled
        return strings.reshape(array.shape)
    return array


def exchanged(value: Value) -> Exchanged:
    """A value as backends give it back."""
    if isinstance(value, values.Sequence):
        return [exchanged(item) for item in value.items]
    if isinstance(value, values.Optional):
        return None if value.item is None else exchanged(value.item)
    if isinstance(value, values.Map):
        return {key.decode() if isinstance(key, bytes) else key: exchanged(item) for key, item in value.items}
    if value.dtype == object:
        spelled = np.empty(value.size, object)
        spelled[:] = [item.decode() for item in value.ravel().tolist()]
        return spelled.reshape(value.shape)
    return value
