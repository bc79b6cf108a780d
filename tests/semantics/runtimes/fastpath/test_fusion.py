"""Fused chains: the same bits as their nodes one by one, and the same errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from sonnx.semantics.runtimes.fastpath import RunError, Session, fusion

Arrays = dict[str, Any]
C = 6


def _model(body: str, inputs: str, stored: Arrays, outputs: str = "float y") -> onnx.ModelProto:
    """A model in ONNX's text format, with stored tensors beside."""
    text = f'<ir_version: 8, opset_import: ["" : 15]> g ({inputs}) => ({outputs}) {{ {body} }}'
    made = onnx.parser.parse_model(text)
    made.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in stored.items())
    return made


def _open(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every tensor as an output, so that no chain is fused."""
    found = onnx.ModelProto.FromString(model.SerializeToString())
    named = {it.name for it in found.graph.output}
    for node in found.graph.node:
        found.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name not in named)
    return found


def _stored(dtype: Any = np.float32) -> Arrays:
    rng = np.random.default_rng(3)
    shapes = {"w": (C, 4, 3, 3), "one": (C, 4, 1, 1), "each": (C, 1, 3, 3), "v": (C,), "m": (C,), "s": (C,), "b": (C,)}
    found = {name: rng.uniform(0.5, 2, shape).astype(dtype) for name, shape in shapes.items()}
    beside = {"col": rng.standard_normal((C, 1, 1)), "row": rng.standard_normal((1, C, 1, 1)), "k": np.array(3.0)}
    return found | {name: value.astype(dtype) for name, value in beside.items()}


CONV = "c = Conv<pads = [1, 1, 1, 1]>(x, w)"
BATCH = "n = BatchNormalization(c, s, b, m, v)"
CHAINS = {
    "Conv Relu": (f"{CONV} y = Relu(c)", 2),
    "Conv with a bias": ("c = Conv(x, one, b) y = Relu(c)", 2),
    "Conv with strides": ("c = Conv<strides = [2, 1]>(x, w, b) y = Relu(c)", 2),
    "Conv of each channel": (f"{CONV} d = Conv<group = {C}, pads = [1, 1, 1, 1]>(c, each) y = Relu(d)", 2),
    "BatchNormalization": (f"{CONV} {BATCH} y = Relu(n)", 3),
    "operands beside": (f"{CONV} {BATCH} p = Mul(n, col) q = Add(row, p) r = Sub(k, q) y = Div(r, v4)", 6),
    "another tensor": (f"{CONV} {BATCH} e = Conv(x, one) f = Sum(n, e) g = Relu(f) h = Relu(x) y = Sub(z, g)", 5),
    "elements alone": ("n = Mul(z, col) p = Relu(n) q = Add(p, z) y = Div(q, row)", 4),
    "its own data once more": ("a = Neg(z) n = Mul(a, col) p = Relu(n) q = Add(p, a) y = Neg(q)", 3),
    "memory used again": ("a = Neg(z) n = Mul(a, col) p = Relu(n) y = Neg(p)", 2),
    "a chain without a last reader": ("n = BatchNormalization(z, s, b, m, v) y = Relu(n) h = Relu(x)", 2),
}
INPUTS = "float[N, 4, H, W] x, float[N, 6, H, W] z"


def _inputs(dtype: Any = np.float32, size: tuple[int, int] = (7, 5), images: int = 2) -> Arrays:
    rng = np.random.default_rng(5)
    found = {"x": rng.standard_normal((images, 4, *size)), "z": rng.standard_normal((images, C, *size))}
    for value in found.values():
        value.reshape(-1)[:5] = [np.nan, -0.0, 0.0, np.inf, -np.inf][: value.size]
    return {name: value.astype(dtype) for name, value in found.items()}


def _bits(value: Any) -> tuple[Any, ...]:
    return value.dtype, value.shape, value.tobytes()


def _same(model: onnx.ModelProto, inputs: Arrays) -> bool:
    """Whether a model gives the bits that it gives without any chain; run anew, recorded, and in planned memory."""
    with np.errstate(all="ignore"):
        wanted = Session(_open(model)).run([it.name for it in model.graph.output], inputs)
    session = Session(model)
    runs = [session.run(None, inputs) for _ in range(3)]
    return all([_bits(a) for a in run] == [_bits(b) for b in wanted] for run in runs)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_chain_gives_the_same_bits_as_its_nodes(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    body, length = CHAINS[name]
    kind = "float" if dtype == np.float32 else "double"
    stored = _stored(dtype) | {"v4": np.array([[[2.0]]], dtype)}
    model = _model(body, INPUTS.replace("float", kind), stored, f"{kind} y")
    sizes = [len(it.nodes) for it in Session(model).partitioning.assignments]
    assert max(sizes) == length
    for limit in (1, 300, fusion.BLOCK_BYTES):
        monkeypatch.setattr(fusion, "BLOCK_BYTES", limit)
        assert _same(model, _inputs(dtype))
    assert _same(model, _inputs(dtype, (130, 70), 1))


@pytest.mark.parametrize(
    "body",
    [
        f"{CONV} p = Mul(c, late) y = Relu(p)",  # a tensor that broadcasts
        "p = Mul(late, z) y = Relu(p)",  # data that broadcast
        "p = Add(z, five) y = Relu(p)",  # a result of higher rank
        "p = Add(z, last) y = Relu(p)",  # an operand along the last axis
    ],
)
def test_operands_that_broadcast_otherwise_give_what_the_nodes_give(body: str) -> None:
    stored = _stored() | {"five": np.full((1, 1, 1, 1, 1), 2, np.float32), "last": np.arange(5, dtype=np.float32)}
    inputs = f"{INPUTS}, float[A, B, C, D] late"
    late = np.arange(C, dtype=np.float32).reshape(1, C, 1, 1)
    assert _same(_model(body, inputs, stored), _inputs() | {"late": late})


def test_shapes_that_fit_and_shapes_that_do_not_take_turns_in_one_session() -> None:
    model = _model(f"{CONV} p = Mul(c, late) y = Relu(p)", f"{INPUTS}, float[A, B, C, D] late", _stored())
    session, alone = Session(model), Session(_open(model))
    inputs = _inputs()
    shapes = [(2, C, 7, 5), (1, C, 1, 1), (2, C, 7, 5), (1, 1, 1, 1), (2, C, 7, 5)]
    for late in (np.arange(math.prod(shape), dtype=np.float32).reshape(shape) for shape in shapes):
        with np.errstate(all="ignore"):
            (wanted,) = alone.run(["y"], inputs | {"late": late})
        assert _bits(session.run(None, inputs | {"late": late})[0]) == _bits(wanted)


def test_integers_and_empty_data_are_computed_node_by_node() -> None:
    whole = {"col": np.arange(C, dtype=np.int32).reshape(C, 1, 1)}
    model = _model("p = Mul(z, col) y = Add(p, z)", "int32[N, 6, H, W] z", whole, "int32 y")
    assert _same(model, {"z": np.arange(2 * C * 6, dtype=np.int32).reshape(2, C, 2, 3)})
    assert _same(_model(f"{CONV} y = Relu(c)", INPUTS, _stored()), _inputs(images=0))


@pytest.mark.parametrize(
    ("body", "where", "why"),
    [
        ("c = Conv(x, each) y = Relu(c)", "Conv-11", "each kernel reads the channels of its group"),
        (f"{CONV} y = Add(c, late)", "Add-14", "the shapes broadcast"),
        (f"{CONV} n = BatchNormalization(c, s4, s4, s4, s4) y = Relu(n)", "BatchNormalization-15", "for each channel"),
    ],
)
def test_an_error_names_the_node_of_the_chain(body: str, where: str, why: str) -> None:
    model = _model(body, f"{INPUTS}, float[A] late", _stored() | {"s4": np.ones(4, np.float32)})
    with pytest.raises(RunError, match=why) as caught:
        Session(model).run(None, _inputs() | {"late": np.ones(3, np.float32)})
    assert where in caught.value.where and "ExecutionProvider" not in caught.value.where


def test_a_type_that_an_operator_does_not_admit_is_refused_in_a_chain() -> None:
    model = _model("p = Mul(z, col) y = Relu(p)", "int32[N, 6, H, W] z", _stored(), "float y")
    with pytest.raises(RunError, match="one type"):
        Session(model).run(None, {"z": np.ones((1, C, 2, 2), np.int32)})


@pytest.mark.parametrize(
    "body",
    [
        f"{CONV} y = Relu(c) h = Neg(c)",  # another node reads what the chain would keep
        f"{CONV} p = Mul(c, c) y = Neg(p)",  # both operands flow
        f"{CONV} n = BatchNormalization(c, s, b, m, late) y = Neg(n)",  # parameters that are not known
    ],
)
def test_nodes_that_do_not_form_a_chain_run_alone(body: str) -> None:
    found = Session(_model(body, f"{INPUTS}, float[6] late", _stored())).partitioning
    assert all(len(it.nodes) == 1 for it in found.assignments)
