"""Native code: the bits of NumPy's kernels where every operation is rounded in the order that is written, elsewhere
what the specification allows; the nodes that it takes; many threads."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import inspect
import math
import os
import random
import sys
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from sonnx.semantics.runtimes.fastpath import RunError, Session
from sonnx.spec.cli import run
from tables import table

pytest.importorskip("numba", reason="native code needs the extra [jit]")
from native_runs import NAME, bits, guarded_run
from sonnx.semantics.runtimes.fastpath.jit import provider
from sonnx.semantics.runtimes.fastpath.jit.crew import CREW, Crew, Execute
from sonnx.semantics.runtimes.fastpath.jit.operations import DONE, POSTED
from sonnx.semantics.runtimes.fastpath.workers import THREADS

Arrays = dict[str, Any]
C = 6


def _model(body: str, inputs: str = "float[N, 6, H, W] x", outputs: str = "float y") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({outputs}) {{ {body} }}'
    made = onnx.parser.parse_model(text)
    for it in made.graph.output:
        it.type.tensor_type.ClearField("shape")
    read = {name for node in made.graph.node for name in node.input}
    read -= {name for node in made.graph.node for name in node.output} | {it.name for it in made.graph.input}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(v, k) for k, v in _stored().items() if k in read)
    return made


def _stored() -> Arrays:
    rng = np.random.default_rng(3)
    shapes = {
        "w": (8, C, 3, 3), "wide": (20, C, 1, 1), "one": (C, C, 1, 1), "each": (C, 1, 3, 3), "two": (2 * C, 1, 3, 3),
        "halves": (10, 3, 3, 2), "square": (8, C, 2, 2), "v": (C,), "m": (C,), "s": (C,), "b": (C,), "b8": (8,),
        "line": (4, C, 3), "matrix": (9, 24), "ten": (12,),
        "W": (2, 12, 4), "R": (2, 12, 3), "B": (2, 24), "h": (2, 1, 3),
        "turned": (24, 9), "tall": (700, 70), "nine": (9,), "long": (24,),
    }  # fmt: skip
    found = {name: rng.uniform(0.5, 2, shape) * rng.choice([-1, 1], shape) for name, shape in shapes.items()}
    found["v"] = np.abs(found["v"])
    found |= {f"{name}1": found[name][:1] for name in "WRB"}
    found |= {"col": rng.standard_normal((C, 1, 1)), "row": rng.standard_normal((1, C, 1, 1)), "k": np.array(3.0)}
    floats = {name: value.astype(np.float32) for name, value in found.items()}
    sizes = {"tens": [-1, 12], "flat": [0, -1], "apart": [0, 2, 3, -1, 1]}
    return floats | {name: np.array(it, np.int64) for name, it in sizes.items()}


def _x(shape: tuple[int, ...] = (2, C, 7, 5), special: bool = True) -> Any:
    """Data with every special value, or with none."""
    x = np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)
    if special:
        x.reshape(-1)[: 4 * 11 : 4] = [np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-45, -1e-45, 3e38, -3e38, 0.0, -0.0]
    return x


EXACT = (
    "y = Relu(x)",
    "a = Mul(x, col) b = Sub(k, a) c = Div(b, row) y = Add(c, x)",
    "n = BatchNormalization(x, s, b, m, v) a = Relu(n) y = Mul(a, n)",
    "a = Div(row, x) y = Sub(col, a)",
    "a = Relu(x) y = Sum(x, a)",
    "a = Mul(x, k) r = Relu(a) y = Add(r, a)",
    "a = Mul(x, k) r = Relu(x) s2 = Add(r, a) t = Sub(a, k) y = Mul(t, s2)",
    "y = MaxPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]>(x)",
    "y = MaxPool<kernel_shape = [2, 2], dilations = [2, 3], ceil_mode = 1>(x)",
    "y = MaxPool<kernel_shape = [3, 3], strides = [3, 2], auto_pad = 'SAME_UPPER'>(x)",
    "a = Relu(x) y = Concat<axis = 1>(x, a, x)",
    "a = Relu(x) b = Mul(x, k) c = Concat<axis = 1>(a, b) d = Relu(c) y = Concat<axis = 1>(c, d)",
    "y = Concat<axis = -1>(x, x)",
    "y = LRN<size = 3, alpha = 0.7, beta = 1.0, bias = 0.3>(x)",  # products and sums that a compiler might fuse
    "y = Transpose<perm = [0, 2, 1, 3]>(x)",
    "y = Transpose<perm = [3, 0, 2, 1]>(x)",
    "a = Reshape(x, apart) b = Transpose<perm = [0, 2, 1, 3, 4]>(a) y = Flatten<axis = 2>(b)",
    "a = Flatten(x) b = Relu(a) y = Identity(b)",
    "a, t = Dropout(x) y = Relu(a)",
    "y = Erf(x)",
    "f = Flatten(x) g = Reshape(f, tens) a = Add(g, ten) b = Sub(ten, a) c = Div(b, k) d = Mul(c, g) y = Relu(d)",
)


@table("body", EXACT)
def test_where_the_order_is_the_same_the_bits_are_those_of_numpy(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    body = body.replace("'", '"')
    for shape in ((2, C, 7, 5), (1, C, 40, 33), (1, C, 3, 4)):
        x = _x(shape)
        model = _model(body)
        (expected,) = Session(model).run(None, {"x": x})
        (found,) = guarded_run(model, monkeypatch, x=x)
        assert bits(found) == bits(expected), shape


ENDS = (
    ("a = Relu(x) c = Conv(a, w1) y = Concat<axis = 1>(c, a)", (1, 1, 1, 1), (3, 1, 1, 1)),
    ("b = Mul(x, k) a = Relu(x) p = MatMul(w1, a) y = Concat<axis = 0>(p, b, a)", (5, 9), (3, 5)),
    ("a = Relu(x) r = Flatten(a) p = MatMul(r, a) c = Concat<axis = 0>(p, a) y = Concat<axis = 0>(c, p)", (3, 3), ()),
)


@table("body, shape, weights", ENDS)
def test_behind_a_result_no_byte_is_read(
    body: str, shape: tuple[int, ...], weights: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = _model(body, f"float[{', '.join(map(str, shape))}] x")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(weights, np.float32), "w1"))
    x = np.arange(-3, math.prod(shape) - 3, dtype=np.float32).reshape(shape)
    (expected,) = Session(model).run(None, {"x": x})
    (found,) = guarded_run(model, monkeypatch, x=x)
    assert bits(found) == bits(expected)


VECTORS = ("y = Mul(x, v)", "r = Relu(x) a = Sub(v, r) y = Div(a, r)", "a = Add(x, v) b = Mul(a, k) y = Add(b, a)")


@table("body", VECTORS)
def test_a_vector_with_a_known_one_gives_the_bits_of_numpy(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(-2, C - 2, dtype=np.float32)
    model = _model(body, "float[6] x")
    (expected,) = Session(model).run(None, {"x": x})
    (found,) = guarded_run(model, monkeypatch, x=x)
    assert bits(found) == bits(expected)


def test_a_product_and_a_sum_are_rounded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.full((1, C, 4, 17), 1 + 2.0**-12, np.float32)
    exact = np.float32(np.float64(x[0, 0, 0, 0]) ** 2 - (1 + 2.0**-11))
    model = _model("p = Mul(x, z) y = Sub(p, c)", ", ".join(f"float[N, 6, H, W] {it}" for it in "xzc"))
    (found,) = guarded_run(model, monkeypatch, x=x, z=x, c=np.full_like(x, 1 + 2.0**-11))
    assert exact != 0  # what a fused operation would give
    assert not found.any()


def _compare(model: onnx.ModelProto, x: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every value of native code is one that the specification allows."""
    onnx.save(model, folder / "model.onnx")
    np.save(folder / "x.npy", x)
    done = run(["compare", str(folder / "model.onnx"), "--engine", "numba", "--input", f"x={folder / 'x.npy'}"])
    said = capsys.readouterr().out
    assert done == 0, (x.shape, said)


BOUNDED = {
    "padded": "c = Conv<pads = [1, 1, 1, 1]>(x, w, b8) y = Relu(c)",
    "strided": "y = Conv<strides = [2, 3], pads = [0, 2, 1, 1]>(x, w)",
    "dilated": "y = Conv<dilations = [2, 1], pads = [2, 0, 2, 1]>(x, w)",
    "pads beyond the kernel": "c = Conv<pads = [1, 1, 1, 1]>(x, one, b) y = Conv<pads = [2, 2, 2, 2]>(c, square, b8)",
    "pointwise": "a = Relu(x) c = Conv(a, wide) d = Conv<strides = [2, 2]>(a, one) y = Concat<axis = 0>(d, d)",
    "by channels": "c = Conv<group = 6, pads = [1, 1, 1, 1]>(x, each) y = Conv<group = 6, strides = [2, 2]>(c, two)",
    "by groups": "y = Conv<group = 2, pads = [1, 1, 1, 0]>(x, halves)",
    "a chain behind": "c = Conv(x, one) n = BatchNormalization(c, s, b, m, v) f = Sum(n, x) y = Relu(f)",
    "means": "p = AveragePool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 1, 1]>(x)"
    " y = GlobalAveragePool(p)",
    "means with padding": "y = AveragePool<kernel_shape = [2, 3], pads = [1, 1, 0, 1], count_include_pad = 1>(x)",
    "responses": "a = LRN<size = 3>(x) y = LRN<size = 4, alpha = 0.5, beta = 0.6, bias = 2.0>(a)",
    "shares": "p = Flatten(x) q = Softmax(p) r = Softmax(x) y = Mul(r, k)",
    "layers": "n = LayerNormalization<axis = 1>(x, k, k) y = LayerNormalization<axis = 1, epsilon = 0.5>(n, k)",
    "functions": "a = Sigmoid(x) b = Tanh(x) c = Exp(x) d = Add(a, b) y = Add(c, d)",
    "one row": "g = GlobalAveragePool(x) f = Flatten(g) y = Relu(f)",
}


@table("name", BOUNDED, few=6)
def test_elsewhere_the_results_are_within_the_bound(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = _model(BOUNDED[name])
    for shape in ((1, C, 19, 11), (2, C, 6, 5)):
        x = _x(shape, special=False)
        guarded_run(model, monkeypatch, x=x)
        _compare(model, x, tmp_path, capsys)


PRODUCTS = {
    "y = Gemm<transB = 1>(x, matrix, nine)": ((1, 24), (3, 24), (16, 24), (61, 24)),
    "p = Gemm(x, turned) y = Relu(p)": ((1, 24), (13, 24)),
    "y = MatMul(x, turned)": ((2, 7, 24), (1, 1, 24), (6, 24)),
    "n = LayerNormalization(x, long, long) y = MatMul(n, turned)": ((2, 7, 24), (1, 24)),
    "y = MatMul(x, tall)": ((9, 700), (1, 700)),
}


@table("body", PRODUCTS, few=3)
def test_products_with_a_known_matrix_are_within_the_bound(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for shape in PRODUCTS[body]:
        model = _model(body, f"float[{', '.join(map(str, shape))}] x")
        x = _x(shape, special=False)
        guarded_run(model, monkeypatch, x=x)
        _compare(model, x, tmp_path, capsys)


PAIRS = {
    "p = MatMul(x, z) r = Relu(p) y = Add(r, p)": ("3, 7 -> 7, 9", "2, 5, 4 -> 2, 4, 9", "1, 7 -> 7, 9"),
    "p = MatMul(x, z) q = Mul(p, k) y = Sub(k, q)": ("3, 7 -> 7, 9", "6, 5, 4 -> 6, 4, 9", "1, 6, 4 -> 1, 4, 9"),
    "t = Transpose<perm = [0, 2, 1]>(z) p = MatMul(x, t) q = Mul(p, k) y = Relu(q)": ("3, 1, 8 -> 3, 17, 8",),
    "y = MatMul(x, z)": (
        "2, 3, 9, 70 -> 2, 3, 70, 33", "1, 300 -> 300, 20", "4, 1, 33 -> 4, 33, 65", "5, 7 -> 7, 1",
        "2, 1, 9 -> 2, 9, 64",
    ),
    "t = Transpose<perm = [0, 2, 1]>(z) p = MatMul(x, t) y = Softmax(p)": (
        "3, 5, 8 -> 3, 17, 8", "3, 1, 8 -> 3, 17, 8",
    ),
    "t = Transpose<perm = [0, 2, 1]>(z) p = MatMul(x, t) r = Relu(t) y = MatMul(p, r)": ("3, 1, 8 -> 3, 8, 8",),
}  # fmt: skip


@table("body", PAIRS)
def test_products_of_two_computed_tensors_are_within_the_bound(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    for line in PAIRS[body]:
        left, right = line.split(" -> ")
        model = _model(body, f"float[{left}] x, float[{right}] z")
        x, z = (rng.integers(-4, 5, [int(n) for n in it.split(",")]).astype(np.float32) for it in (left, right))
        (expected,) = Session(model).run(None, {"x": x, "z": z})
        (found,) = guarded_run(model, monkeypatch, x=x, z=z)
        # Whole numbers are summed exactly; what Softmax makes of them lies within its bound, two units here.
        np.testing.assert_allclose(found, expected, rtol=0 if "Softmax" not in body else 2.0**-22, err_msg=line)


LSTMS = (
    ("forward", "x, W1, R1, B1", 1),
    ("reverse", "x, W1, R1", 1),
    ("bidirectional", "x, W, R, B, , h, h", 2),
)


@pytest.mark.parametrize(("direction", "inputs", "count"), LSTMS)
def test_layers_with_a_state_are_within_the_bound(
    direction: str, inputs: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    body = f'y, u, v = LSTM<hidden_size = 3, direction = "{direction}">({inputs})'
    outputs = f"float[6, {count}, 1, 3] y, float[{count}, 1, 3] u, float[{count}, 1, 3] v"
    model = _model(body, "float[6, 1, 4] x", outputs)
    x = np.random.default_rng(7).standard_normal((6, 1, 4)).astype(np.float32)
    guarded_run(model, monkeypatch, x=x)
    _compare(model, x, tmp_path, capsys)


@table("named", ["y, u, v", "y", "a, y", "a, b, y", ", , y"])
def test_of_a_layer_with_a_state_any_output_may_be_read(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(8).standard_normal((6, 1, 4)).astype(np.float32)
    for kind, inputs in (("reverse", "x, W1, R1"), ("bidirectional", "x, W, R, B, , h")):
        model = _model(f'{named} = LSTM<hidden_size = 3, direction = "{kind}">({inputs})', "float[6, 1, 4] x")
        (expected,) = Session(model).run(None, {"x": x})
        (found,) = guarded_run(model, monkeypatch, x=x)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_layer_whose_threshold_is_0_is_left() -> None:
    body = "y = LSTM<hidden_size = 3, clip = 0.0, layout = 0>(x, W1, R1)"
    model = _model(body, "float[6, 1, 4] x")
    model.opset_import[0].version = 21
    session = Session(model, ["numba"])
    assert [it.provider for it in session.partitioning.assignments] == ["NumpyExecutionProvider"]
    (y,) = session.run(None, {"x": np.ones((6, 1, 4), np.float32)})
    assert not np.any(y)  # type: ignore[arg-type]


def test_a_node_that_is_not_defined_on_what_is_stored_is_left() -> None:
    bodies = "a = Flatten<axis = 9>(w) y = Relu(x)", "c = Conv(each, w) y = Relu(x)"
    for body in bodies:
        operator = body.split()[2].partition("(")[0].partition("<")[0]
        assert _who(_model(body)) == {operator: "NumpyExecutionProvider", "Relu": NAME}
    with pytest.raises(RunError, match="Flatten"):
        Session(_model(bodies[0]), [NAME]).run(None, {"x": _x()})


def test_a_sum_of_negative_zeros_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.full((1, C, 5, 18), -0.0, np.float32)
    model = _model("y = Conv(x, one)")
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.ones((C, C, 1, 1), np.float32), "one"))
    (found,) = guarded_run(model, monkeypatch, x=x)
    assert np.signbit(found).all()


def test_what_a_window_meets_beside_the_data_is_a_positive_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.full((1, C, 3, 4), -0.0, np.float32)
    for count in (0, 1):
        for form in ("kernel_shape = [2, 2], pads = [1, 0, 1, 1]", "kernel_shape = [1, 3], strides = [1, 3]"):
            model = _model(f"y = AveragePool<{form}, ceil_mode = 1, count_include_pad = {count}>(x)")
            (expected,) = Session(model, ["machine"]).run(None, {"x": x})
            (plain,) = Session(model).run(None, {"x": x})
            (found,) = guarded_run(model, monkeypatch, x=x)
            assert bits(found) == bits(plain) == bits(expected), (form, count)
            assert set(np.signbit(found).flat) == {False, True}


def _window(choose: random.Random) -> tuple[onnx.ModelProto, Any]:
    """A convolution or pooling with a window at random; whole numbers, whose sums are exact in any order."""
    axes, operator = choose.choice((1, 2, 2)), choose.choice(("Conv", "Conv", "MaxPool", "AveragePool"))
    kernel = [choose.randint(1, 3) for _ in range(axes)]
    far = [choose.choice((1, 1, 2, 3)) for _ in kernel]
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, far, strict=True)]
    sizes = [choose.choice((e, e + 1, 7, 9, 17, 33)) for e in extent]
    most = (3,) * axes if operator == "Conv" else [min(3, k - 1) for k in kernel]
    stated = {
        "kernel_shape": kernel,
        "dilations": far,
        "strides": [choose.choice((1, 1, 2, 3, 5)) for _ in kernel],
        "pads": [choose.randint(0, it) for it in (*most, *most)],
    }
    groups, each = choose.choice(((1, 3), (2, 2), (6, 1)))
    inputs, stores = ["x"], []
    if operator == "Conv":
        rows = groups * choose.choice((1, 2, 9))
        w = np.array([choose.randint(-4, 4) for _ in range(rows * each * math.prod(kernel))], np.float32)
        stores = [(w.reshape(rows, each, *kernel), "w"), (np.arange(1, rows + 1, dtype=np.float32), "b")]
        inputs += ["w", "b"]
        stated["group"] = groups
    else:
        stated["ceil_mode"] = choose.randint(0, 1)
    if operator == "AveragePool":
        stated["count_include_pad"] = choose.randint(0, 1)
    model = _model(f"y = {operator}(x)", f"float[N, C{', H, W'[: 3 * axes]}] x")
    model.opset_import[0].version = 22
    model.graph.node[0].CopyFrom(onnx.helper.make_node(operator, inputs, ["y"], **stated))
    model.graph.initializer.extend(onnx.numpy_helper.from_array(*it) for it in stores)
    shape = (choose.randint(1, 2), groups * each, *sizes)
    x = np.array([choose.choice((-0.0, -3, -1, 2, 5)) for _ in range(math.prod(shape))], np.float32)
    return model, x.reshape(shape)


@table("seed", range(240), few=30)
def test_windows_of_any_form_give_the_bits_of_numpy(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = _window(random.Random(seed))
    (expected,) = Session(model).run(None, {"x": x})
    (found,) = guarded_run(model, monkeypatch, x=x)
    np.testing.assert_array_equal(found, expected, str(model.graph.node[0]))
    if model.graph.node[0].op_type != "Conv":
        assert bits(found) == bits(expected)


def _who(model: onnx.ModelProto) -> dict[str, str]:
    session = Session(model, [NAME])
    nodes = session.model.nodes
    return {nodes[n].op_type: it.provider for it in session.partitioning.assignments for n in it.nodes}


def test_nodes_that_it_lacks_are_left() -> None:
    numpy = "NumpyExecutionProvider"
    assert _who(_model("a = Relu(x) b = Sin(a) y = Relu(b)")) == {"Relu": NAME, "Sin": numpy}
    for element in ("double", "float16", "bfloat16"):
        assert set(_who(_model("y = Relu(x)", f"{element}[N, 6] x", f"{element} y")).values()) == {numpy}
    assert _who(_model("y = Conv(x, z)", "float[1, 6, 9, 9] x, float[3, 6, 2, 2] z")) == {"Conv": numpy}
    indices = _model("y, i = MaxPool<kernel_shape = [2, 2]>(x)", outputs="float y, int64 i")
    assert _who(indices) == {"MaxPool": numpy}


def test_no_path_leaves_a_part_and_enters_it_again() -> None:
    body = "a = Relu(x) b = Sin(a) c = Mul(a, k) d = Add(b, c) e = Sin(x) f = Relu(e) g = Mul(d, f) y = Relu(g)"
    session = Session(_model(body), [NAME])
    assert session.partitioning.refusals == ()
    parts = [len(it.nodes) for it in session.partitioning.assignments if it.provider == NAME]
    assert parts == [3, 3]  # a, c, f; then d, g, y
    x = _x()
    (expected,) = Session(_model(body)).run(None, {"x": x})
    assert bits(session.run(None, {"x": x})[0]) == bits(expected)


def test_what_does_not_fit_runs_on_numpy() -> None:
    model = _model("y = Add(x, z)", "float[N, 6, H, W] x, float[H, W] z")
    x, z = _x(), np.arange(35, dtype=np.float32).reshape(7, 5)
    (expected,) = Session(model).run(None, {"x": x, "z": z})
    session = Session(model, [NAME])
    for _ in range(3):
        assert bits(session.run(None, {"x": x, "z": z})[0]) == bits(expected)


def test_what_is_not_defined_is_said() -> None:
    session = Session(_model("a = Relu(x) y = Conv(a, w)"), [NAME])
    with pytest.raises(RunError, match="the kernel, dilated, fits"):
        session.run(None, {"x": _x((1, C, 2, 2), special=False)})


def test_threads_share_a_session() -> None:
    body = "c = Conv<pads = [1, 1, 1, 1]>(x, one) d = MaxPool<kernel_shape = [3, 3]>(c) y = Concat<axis = 1>(d, d)"
    model = _model(body)
    session = Session(model, [NAME])
    inputs = [_x((1, C, 33 + k % 2, 40), special=False) + np.float32(k) for k in range(6)]
    expected = [bits(session.run(None, {"x": x})[0]) for x in inputs]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda k: bits(session.run(None, {"x": inputs[k % 6]})[0]), range(120)))
    assert all(it == expected[k % 6] for k, it in enumerate(found))


WIDE = "c = Conv<pads = [1, 1, 1, 1]>(x, one) d = Conv<pads = [1, 1, 1, 1]>(c, w) y = Relu(d)"
"""Two products of several parts each."""


def _wide() -> tuple[Session, Arrays, tuple[Any, ...]]:
    session = Session(_model(WIDE), [NAME])
    inputs = {"x": _x((1, C, 60, 64), special=False)}
    session.run(None, inputs)
    with pytest.MonkeyPatch.context() as patch:  # threads that wait for no list
        patch.setitem(CREW._users, "list", session)
        (alone,) = session.run(None, inputs)
    return session, inputs, bits(alone)


def test_the_threads_that_wait_for_lists_change_no_bit() -> None:
    session, inputs, expected = _wide()
    for pause in (0.0, 0.0, 0.002, 0.0):  # they sleep after a while, and are called
        time.sleep(pause)
        assert bits(session.run(None, inputs)[0]) == expected


def test_a_thread_that_waits_takes_a_list_and_has_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    session, inputs, expected = _wide()
    done: list[int] = []

    def run(execute: Execute, given: tuple[int, ...], scratch: int, size: int) -> bool:
        lines = np.zeros(32, np.int64)
        first = -lines.ctypes.data // 8 % 8
        desks = lines[first : first + 16]
        desks[:9] = (*given, scratch, size, 0, POSTED)
        ctypes.memset(scratch, 7, size)
        execute(0, 0, 1, 0, 0, 0, desks.ctypes.data, 0)
        assert ctypes.string_at(scratch, size) == b"\7" * size
        done.append(int(desks[8]))
        return True

    monkeypatch.setattr(Crew, "run", lambda _, *given: run(*given))
    assert bits(session.run(None, inputs)[0]) == expected
    assert done == [DONE]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system forks no processes")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own() -> None:
    session, inputs, expected = _wide()
    session.run(None, inputs)
    called = CREW._called
    child = os.fork()
    if not child:
        same = all(bits(session.run(None, inputs)[0]) == expected for _ in range(3))
        os._exit(0 if same and CREW._called is not called else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bits(session.run(None, inputs)[0]) == expected


def test_memory_is_held_while_threads_work_for_a_caller_that_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    session, inputs, _ = _wide()
    memory: list[weakref.ref[Any]] = []
    works: list[Any] = []

    def interrupted(_parts: int, work: Any) -> None:
        works.append(work)
        raise KeyboardInterrupt

    def observed(listed: Any, given: Any, allocate: Any, run: Any = provider._run) -> Any:
        def noted(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
            made = allocate(shape, dtype)
            memory.append(weakref.ref(made))
            return made

        return run(listed, given, noted)

    monkeypatch.setattr(Crew, "run", lambda *_: False)
    monkeypatch.setattr(provider, "shared", interrupted)
    monkeypatch.setattr(provider, "THREADS", 2)
    monkeypatch.setattr(provider, "_run", observed)
    with contextlib.suppress(KeyboardInterrupt):  # pytest.raises would hold the memory
        session.run(None, inputs)
    gc.collect()
    assert len(memory) == 3 and all(it() is not None for it in memory)
    works.clear()
    assert all(it() is None for it in memory)


@pytest.mark.skipif(THREADS < 2, reason="there is one thread")
def test_a_run_that_is_interrupted_leaves_the_threads_ready() -> None:
    """At each line of the crew's before that which says that the list is done."""
    session, inputs, expected = _wide()
    lines, start = inspect.getsourcelines(Crew.run)
    done = start + next(k for k, text in enumerate(lines) if text.strip() == "finally:")
    reached = 0
    for number in range(1, 100):
        left = number

        def at_line(frame: FrameType, event: str, _: object) -> Any:
            nonlocal left
            within = frame.f_code in (Crew.run.__code__, Crew._call.__code__)
            left -= within and event == "line" and not (frame.f_code is Crew.run.__code__ and frame.f_lineno >= done)
            if within and not left:
                left = -1
                raise KeyboardInterrupt
            return at_line if within else None

        before = sys.gettrace()
        sys.settrace(at_line)
        try:
            session.run(None, inputs)
        except KeyboardInterrupt:
            reached = number
        finally:
            sys.settrace(before)
        assert bits(session.run(None, inputs)[0]) == expected
        assert CREW._users == {}
        if reached < number:
            break
    assert reached > 6


def test_one_list_runs_at_a_time() -> None:
    crew = Crew()
    ran: list[bool] = []

    def execute(*given: int) -> None:
        if given[0]:  # the calling thread, while the list runs
            ran.append(crew.run(lambda *_: None, (1, 1, 1, 1, 1), 0, 0))

    assert crew.run(execute, (1, 1, 1, 1, 1), 0, 0)
    assert ran == [False]
