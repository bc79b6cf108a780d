"""One network in three forms, fp32, QDQ and QOperator: they agree as far as the scales of the models allow.

The bound is local. On the values that a quantized form itself has before a layer, the float layer gives a result v, and
the quantized one lies within what its scales allow of v, limited to the range of the output's type:
    s_y / 2               rounding to the output's steps
    s_w / 2 * sum |x|     the weights, which lie within half a step of the float ones (a test says so)
    s_b / 2               likewise the bias
    rounding              of float arithmetic, (n + 8) u (sum |w| |x| + |b| + |v|) for n products, u = 2^-24
No such bound says anything from end to end: the layers multiply an error by up to 7 * 72 * 28 * 61 * 7 * 6. There the
figures are recorded, and the last layer's share is bounded: softmax moves by at most half of what its input moves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.lib.stride_tricks import sliding_window_view
from onnx import helper, numpy_helper
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.state import value_of
from sonnx.semantics.model.loader import load_proto

FOLDER = Path(__file__).parents[3] / ".." / "shared" / "models" / "quantized" / "micro_kws"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the shared models are not at ../shared/models")

FORMS = ("fp32", "qdq", "qoperator")
ENTRY, RESULT = "serving_default_input:0", "StatefulPartitionedCall:0"
ORDER = ["Conv", "MaxPool", "Conv", "AveragePool", "Conv", "AveragePool", *["MatMul", "Add"] * 3, "Softmax"]
"""The layers of the network; the quantized forms have no Relu, for -128 stands for 0 behind each of theirs."""
LAYERS = frozenset(ORDER)
OPERANDS = {"Add": (0, 3), "AveragePool": (0,), "Softmax": (0,)}
"""Where the operands of com.microsoft's QLinear operators stand, each with its scale and zero point behind it."""
U = 2.0**-24
Values = Mapping[str, Any]


def inputs() -> dict[str, Any]:
    """Inputs in the range that the models quantize, -5 to 5: noise of three kinds, a walk, a ramp that saturates."""
    draw = np.random.default_rng(20251122)
    shape = (1, 1960)
    found = {
        "uniform": draw.uniform(-5, 5, shape),
        "normal": np.clip(draw.normal(0, 2, shape), -5, 5),
        "quiet": draw.uniform(-0.5, 0.5, shape),
        "walk": np.clip(draw.normal(0, 0.3, shape).cumsum(axis=1), -5, 5),
        "ramp": np.linspace(-5, 5, 1960)[None],
    }
    return {name: x.astype(np.float32) for name, x in found.items()}


INPUTS = inputs()


@cache
def stored(form: str) -> Any:
    """The model as it is stored."""
    return onnx.load(FOLDER / f"micro_kws_m_static_{form}.onnx")


def written_out(model: Any) -> Any:
    """The model with com.microsoft's operators as what they stand for: dequantize, compute, quantize."""
    nodes = []
    for node in model.graph.node:
        if node.domain != "com.microsoft":
            nodes.append(node)
            continue
        core, result = node.op_type.removeprefix("QLinear"), node.output[0]
        operands = [f"{result}/{at}" for at in OPERANDS[core]]
        for name, at in zip(operands, OPERANDS[core], strict=True):
            nodes.append(helper.make_node("DequantizeLinear", node.input[at : at + 3], [name]))
        nodes.append(helper.make_node(core, operands, [f"{result}/real"]))
        nodes[-1].attribute.extend(a for a in node.attribute if a.name in ("kernel_shape", "strides"))
        nodes.append(helper.make_node("QuantizeLinear", [f"{result}/real", *node.input[-2:]], [result]))
    whole = onnx.ModelProto()
    whole.CopyFrom(model)
    del whole.graph.node[:]
    whole.graph.node.extend(nodes)
    return whole


@cache
def values(form: str, name: str) -> Values:
    """Every tensor of the main graph by name, as the machine computes it; the stored ones too."""
    done = run(load_proto(written_out(stored(form))), {ENTRY: INPUTS[name]}, history=False)
    assert done.stuck is None
    last = done.states[-1]
    found = {tensor.name: value_of(last, t) for t, tensor in enumerate(done.model.tensors)}
    return {key: np.asarray(value) for key, value in found.items() if isinstance(value, np.ndarray)}


# ---- Layers -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quantized:
    """Elements and the values they stand for. step, zero, low, high: of the type and the values that it can hold."""

    stored: Any
    step: float
    zero: int

    @property
    def real(self) -> Any:
        return (self.stored.astype(np.float64) - self.zero) * self.step

    @property
    def range(self) -> tuple[float, float]:
        info = np.iinfo(self.stored.dtype)
        return (info.min - self.zero) * self.step, (info.max - self.zero) * self.step


@dataclass(frozen=True)
class Layer:
    """A layer with the values around it. weight, bias: the second and third operand, None where there is none."""

    op_type: str
    x: Any
    y: Quantized
    weight: Quantized | None = None
    bias: Quantized | None = None


def quantized(found: Values, name: str, step: str, zero: str) -> Quantized:
    return Quantized(found[name], float(found[step].item()), int(found[zero].item()))


def layers(form: str, name: str) -> Iterator[Layer]:
    """The layers of a quantized form in their order."""
    found = values(form, name)
    nodes = list(written_out(stored(form)).graph.node)
    made = {node.output[0]: node for node in nodes}

    def behind(tensor: str) -> Quantized:
        (node,) = (n for n in nodes if n.op_type == "QuantizeLinear" and n.input[0] == tensor)
        return quantized(found, node.output[0], *node.input[1:3])

    def before(tensor: str) -> Quantized:
        return quantized(found, *made[tensor].input[:3])

    for node in nodes:
        i, core = node.input, node.op_type.removeprefix("QLinear")
        if node.op_type in ("QLinearConv", "QLinearMatMul"):
            x, w = quantized(found, *i[:3]), quantized(found, *i[3:6])
            bias = Quantized(found[i[8]], x.step * w.step, 0) if len(i) > 8 else None
            yield Layer(core, x.real, quantized(found, node.output[0], *i[6:8]), w, bias)
        elif node.op_type == "MaxPool" and found[i[0]].dtype == np.int8:
            yield Layer(core, found[i[0]].astype(np.float64), Quantized(found[node.output[0]], 1.0, 0))
        elif node.op_type in LAYERS:
            more = [before(tensor) for tensor in i[1:]]
            yield Layer(core, found[i[0]].astype(np.float64), behind(node.output[0]), *more)


def parameters() -> list[tuple[Any, ...]]:
    """The float weights of each layer, and its bias where it has one."""
    held = {t.name: numpy_helper.to_array(t).astype(np.float64) for t in stored("fp32").graph.initializer}
    nodes = (node for node in stored("fp32").graph.node if node.op_type in LAYERS)
    return [tuple(held[name] for name in node.input[1:]) for node in nodes]


def windows(x: Any, size: tuple[int, int], stride: int) -> Any:
    return sliding_window_view(x, size, axis=(2, 3))[:, :, ::stride, ::stride]


def convolved(x: Any, w: Any) -> Any:
    """Stride 1, as many places as x has: the padding is odd at the end."""
    sides = [((k - 1) // 2, k // 2) for k in w.shape[2:]]
    padded = np.pad(x, [(0, 0), (0, 0), *sides])
    return np.einsum("bchwij,ocij->bohw", windows(padded, w.shape[2:], 1), w)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


PRODUCTS: Mapping[str, Callable[[Any, Any], Any]] = {"Conv": convolved, "MatMul": np.matmul}
FUNCTIONS: Mapping[str, Callable[[Any], Any]] = {
    "MaxPool": lambda x: windows(x, (2, 2), 2).max(axis=(-2, -1)),
    "AveragePool": lambda x: windows(x, (2, 2), 2).mean(axis=(-2, -1)),
    "Softmax": softmax,
}


def float_layer(layer: Layer, own: tuple[Any, ...]) -> tuple[Any, Any]:
    """What the float layer gives, in double, and how far a quantized one may be from it before its output is limited.

    own: the float weights and bias.
    """
    if layer.op_type in FUNCTIONS:
        v = FUNCTIONS[layer.op_type](layer.x)
        return v, layer.y.step / 2 * (layer.op_type != "MaxPool") + 16 * U * np.abs(v)
    steps = [part.step for part in (layer.weight, layer.bias) if part is not None]
    if layer.op_type == "Add":
        v = layer.x + own[0]
        return v, layer.y.step / 2 + steps[0] / 2 + 8 * U * (np.abs(layer.x) + np.abs(own[0]) + np.abs(v))
    product, size = PRODUCTS[layer.op_type], np.abs(layer.x)
    b = own[1].reshape(-1, 1, 1) if len(own) > 1 else np.zeros(())
    v = product(layer.x, own[0]) + b
    count = own[0].size // own[0].shape[0 if layer.op_type == "Conv" else 1]
    weights = product(size, np.full_like(own[0], steps[0] / 2))
    mass = product(size, np.abs(own[0])) + weights + np.abs(b) + np.abs(v)
    return v, layer.y.step / 2 + weights + sum(steps[1:]) / 2 + (count + 8) * U * mass


# ---- Claims -------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS[1:])
def test_the_stored_weights_are_the_float_ones_to_half_a_step(form: str) -> None:
    found = list(layers(form, "quiet"))
    assert [layer.op_type for layer in found] == ORDER
    for layer, own in zip(found, parameters(), strict=True):
        held = [part for part in (layer.weight, layer.bias) if part is not None]
        assert len(held) == len(own)
        for part, exact in zip(held, own, strict=True):
            assert np.abs(part.real - exact).max() <= part.step * (0.5 + 256 * U), layer.op_type


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("form", FORMS[1:])
def test_each_quantized_layer_agrees_with_the_float_one_as_far_as_its_scales_allow(form: str, name: str) -> None:
    for position, (layer, own) in enumerate(zip(layers(form, name), parameters(), strict=True)):
        v, allowed = float_layer(layer, own)
        apart = np.abs(layer.y.real - np.clip(v, *layer.y.range))
        assert apart.shape == v.shape
        assert (apart <= allowed).all(), (position, layer.op_type, float((apart / allowed).max()))


@pytest.mark.parametrize("name", INPUTS)
def test_from_end_to_end_softmax_adds_half_a_step_to_half_of_what_its_input_is_off(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    exact = values("fp32", name)
    *_, last = (node for node in stored("fp32").graph.node if node.op_type == "Softmax")
    logits, p = exact[last.input[0]].astype(np.float64), exact[RESULT].astype(np.float64)
    for form in FORMS[1:]:
        *_, layer = layers(form, name)
        off = np.abs(values(form, name)[RESULT] - p).max()
        record_property(f"{form}, steps of the output", float(off / layer.y.step))
        assert off <= layer.y.step / 2 + np.abs(layer.x - logits).max() / 2 + 64 * U


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_on_noise_like_that_of_its_calibration_the_forms_agree_in_a_step_of_the_output(name: str) -> None:
    p, qdq, qoperator = (values(form, name)[RESULT].astype(np.float64) for form in FORMS)
    step = max(layer.y.step for form in FORMS[1:] for layer in list(layers(form, name))[-1:])
    assert {int(x.argmax()) for x in (p, qdq, qoperator)} == {int(p.argmax())}
    for one, other in ((p, qdq), (p, qoperator), (qdq, qoperator)):
        assert np.abs(one - other).max() <= step
