"""Native code on quantized tensors gives the bits of NumPy's kernels and of the definition: sums are exact."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from sonnx.semantics.runtimes.fastpath import RunError, Session
from tables import table

pytest.importorskip("numba", reason="native code needs the extra [jit]")
import numba
from native_runs import NAME, bits, guarded_run
from sonnx.semantics.runtimes.fastpath.jit import vectors
from sonnx.semantics.runtimes.fastpath.jit.processor import LANES

Arrays = dict[str, Any]
BYTES = (np.uint8, np.int8)


def _drawn(choose: random.Random, shape: tuple[int, ...], of: Any) -> Any:
    """Bytes of every value, the extreme ones often; floats with special ones among them."""
    rng = np.random.default_rng(choose.getrandbits(32))
    if of is np.float32:
        x = (rng.standard_normal(shape) * 40).astype(np.float32)
        odd = [np.nan, np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, -0.0, 3e38, 1e-45, 127.5, 255.5, -128.5]
        return np.where(rng.random(shape) < 0.3, rng.choice(np.array(odd, np.float32), shape), x)
    info = np.iinfo(of)
    x = rng.integers(info.min, int(info.max) + 1, shape)
    return np.where(rng.random(shape) < 0.4, rng.choice([info.min, info.max], shape), x).astype(of)


def _scale(choose: random.Random, count: int | None, size: float) -> Any:
    rng = np.random.default_rng(choose.getrandbits(32))
    return np.asarray(rng.uniform(0.2, 1, () if count is None else count) * size, np.float32)


def _model(op_type: str, inputs: Arrays, known: Arrays, given: list[str], version: int, **stated: Any) -> Any:
    names = [it or "" for it in given]
    node = helper.make_node(op_type, names, ["y"], **stated)
    ends = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape) for k, v in inputs.items()
    ]
    stored = [numpy_helper.from_array(np.asarray(v), k) for k, v in known.items()]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph([node], "g", ends, outputs, stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=10)
    model.graph.output[0].type.tensor_type.elem_type = _element(op_type, known, inputs, stated)
    return model


def _element(op_type: str, known: Arrays, inputs: Arrays, stated: Arrays) -> int:
    if op_type in ("ConvInteger", "MatMulInteger"):
        return onnx.TensorProto.INT32
    if op_type in ("DequantizeLinear", "Cast"):
        return onnx.TensorProto.FLOAT
    zero = known.get("q", known.get("z"))
    return onnx.TensorProto.UINT8 if zero is None else helper.np_dtype_to_tensor_dtype(np.asarray(zero).dtype)


def _window(choose: random.Random) -> tuple[Any, Arrays]:
    axes = choose.choice((1, 2, 2))
    kernel = [choose.randint(1, 3) for _ in range(axes)]
    far = [choose.choice((1, 1, 2, 3)) for _ in kernel]
    extent = [(k - 1) * d + 1 for k, d in zip(kernel, far, strict=True)]
    groups, each, rows = choose.choice(((1, 3, 2), (1, 8, 9), (2, 5, 3), (6, 1, 1), (3, 1, 2), (1, 1, 20)))
    x, w = (choose.choice(BYTES) for _ in range(2))
    places = [choose.choice((e, e + 1, 7, 9, 17, 33, 40)) for e in extent]
    count = choose.choice((None, 1, groups * rows))
    stated = {
        "kernel_shape": kernel, "dilations": far, "strides": [choose.choice((1, 1, 2, 3)) for _ in kernel],
        "pads": [choose.randint(0, 3) for _ in range(2 * axes)], "group": groups,
    }  # fmt: skip
    inputs = {"x": _drawn(choose, (choose.randint(1, 2), groups * each, *places), x)}
    known = {"w": _drawn(choose, (groups * rows, each, *kernel), w), "z": _drawn(choose, (), x)}
    plain = choose.random() < 0.5
    sizes = () if count is None else (count,)
    known["v"] = np.zeros(sizes, w) if plain else _drawn(choose, sizes, w)
    if choose.random() < 0.3:
        given = choose.choice((["x", "w"], ["x", "w", "", "v"], ["x", "w", "z"], ["x", "w", "z", "v"]))
        if "z" in given and choose.random() < 0.5:
            inputs["z"] = known.pop("z")
        known = {k: v for k, v in known.items() if k in given}
        return _model("ConvInteger", inputs, known, given, 10, **stated), inputs
    y, terms = choose.choice(BYTES), each * math.prod(kernel)
    known |= {"s": _scale(choose, None, 1), "t": _scale(choose, count, 1), "q": _drawn(choose, (), y)}
    known["r"] = np.float32(60 * math.sqrt(terms))
    given = ["x", "s", "z", "w", "t", "v", "r", "q"]
    if choose.random() < 0.6:
        given.append("b")
        rng = np.random.default_rng(1)
        known["b"] = rng.integers(-(2**31), 2**31, groups * rows).astype(np.int32) >> choose.choice((0, 14))
    return _model("QLinearConv", inputs, known, given, 10, **stated), inputs


def _product(choose: random.Random) -> tuple[Any, Arrays]:
    a, b, y = (choose.choice(BYTES) for _ in range(3))
    terms, columns = choose.choice((1, 3, 4, 31, 64, 130)), choose.choice((1, 5, 16, 33, 70))
    rows = choose.choice(((1,), (1, 1), (7,), (2, 9), (16,), (3,)))
    count = choose.choice((None, 1, columns))
    inputs = {"x": _drawn(choose, (*rows, terms), a)}
    known = {"w": _drawn(choose, (terms, columns), b), "z": _drawn(choose, choose.choice(((), (1,))), a)}
    known["v"] = _drawn(choose, () if count is None else (count,), b)
    if choose.random() < 0.4:
        given = choose.choice((["x", "w"], ["x", "w", "z"], ["x", "w", "", "v"], ["x", "w", "z", "v"]))
        if "z" in given and choose.random() < 0.5:
            inputs["z"] = known.pop("z")
        return _model("MatMulInteger", inputs, {k: v for k, v in known.items() if k in given}, given, 10), inputs
    known |= {"s": _scale(choose, None, 1), "t": _scale(choose, count, 1), "q": _drawn(choose, (), y)}
    known["s"] = known["s"].reshape(known["z"].shape)
    known["r"] = np.float32(60 * math.sqrt(terms))
    given, version = ["x", "s", "z", "w", "t", "v", "r", "q"], choose.choice((10, 21))
    return _model("QLinearMatMul", inputs, known, given, version), inputs


def _conversion(choose: random.Random) -> tuple[Any, Arrays]:
    shape = choose.choice(((6,), (5, 17), (2, 6, 9), (2, 6, 3, 35), (1, 1, 1)))
    operator = choose.choice(("QuantizeLinear", "DequantizeLinear", "Cast"))
    axis = choose.randrange(-len(shape), len(shape))
    y, forward = choose.choice(BYTES), operator == "QuantizeLinear"
    inputs = {"x": _drawn(choose, shape, np.float32 if forward else choose.choice((*BYTES, np.int32)))}
    if operator == "Cast":
        return _model("Cast", inputs, {}, ["x"], 13, to=onnx.TensorProto.FLOAT), inputs
    stated: Arrays = {"axis": axis}
    version = choose.choice((13, 19, 21, 23))
    sizes: tuple[int, ...] = choose.choice(((), (1,), (shape[axis],)))
    if version >= 21 and choose.random() < 0.5:
        block = choose.choice((1, 2, 3, 7))
        stated["block_size"] = block
        sizes = tuple(-(-n // block) if k == axis % len(shape) else n for k, n in enumerate(shape))
    known = {"s": _scale(choose, None, 1) if sizes == () else np.resize(_scale(choose, 7, 1), sizes)}
    given = ["x", "s"]
    if choose.random() < 0.7:
        of = y if forward else inputs["x"].dtype.type
        given.append("z")
        known["z"] = np.zeros(sizes, of) if of is np.int32 else _drawn(choose, sizes, of)
    return _model(operator, inputs, known, given, version, **stated), inputs


KINDS = (_window, _window, _product, _conversion)


@table("seed", range(800), few=30)
def test_bytes_give_the_bits_of_numpy_and_of_the_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    model, inputs = choose.choice(KINDS)(choose)
    said = f"{model.graph.node[0]} {[(k, v.shape, v.dtype) for k, v in inputs.items()]}"
    (expected,) = Session(model).run(None, inputs)
    (found,) = guarded_run(model, monkeypatch, **inputs)
    assert bits(found) == bits(expected), said
    if seed % 8 == 0:
        (defined,) = Session(model, ["machine"]).run(None, inputs)
        assert bits(found) == bits(defined), said


LARGE = (
    ("QLinearConv", (1, 19, 61, 67), (70, 19, 3, 3), {"pads": [1, 2, 1, 0]}),
    ("QLinearConv", (2, 48, 40, 41), (48, 1, 3, 3), {"group": 48, "strides": [2, 2]}),
    ("QLinearMatMul", (93, 310), (310, 530), {}),
)


@table("operator, data, weights, stated", LARGE)
def test_what_is_done_in_parts_has_the_same_bits(
    operator: str, data: Any, weights: Any, stated: Arrays, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(0)
    inputs = {"x": _drawn(choose, data, np.uint8)}
    known = {"s": np.float32(1), "z": np.uint8(131), "w": _drawn(choose, weights, np.int8), "t": np.float32(1)}
    known |= {"v": np.int8(0), "r": np.float32(60 * math.sqrt(math.prod(weights[1:]))), "q": np.uint8(120)}
    model = _model(operator, inputs, known, ["x", "s", "z", "w", "t", "v", "r", "q"], 10, **stated)
    (expected,) = Session(model).run(None, inputs)
    (found,) = guarded_run(model, monkeypatch, **inputs)
    assert bits(found) == bits(expected)


RANGES = (
    [0.0, -0.0, 0.0], [1.0], [-1.0, -3.0], [0.1, 255.0, -3.0], [np.nan, 1.0], [np.inf, 1.0], [-np.inf, np.inf],
    [1e-45, 0.0], [3e38, -3e38], np.arange(-700, 9000) * 0.37,
)  # fmt: skip


@table("row", RANGES)
def test_the_scale_that_data_have_is_that_of_numpy(row: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.asarray(row, np.float32)
    head = '<ir_version: 8, opset_import: ["" : 13]> g (float[N] x) =>'
    for ends in ("uint8[N] y, float s, uint8 z", "uint8[N] y"):
        model = onnx.parser.parse_model(f"{head} ({ends}) {{ y, s, z = DynamicQuantizeLinear(x) }}")
        expected = Session(model).run(None, {"x": x})
        found = guarded_run(model, monkeypatch, x=x)
        assert [bits(it) for it in found] == [bits(it) for it in expected], ends


LAYER = """<ir_version: 8, opset_import: ["" : 13]> g (float[N, 37] x) => (float[N, 21] y) {
    q, s, z = DynamicQuantizeLinear(x)
    p = MatMulInteger(q, w, z)
    r = Cast<to = 1>(p)
    t = Mul(s, f)
    u = Mul(r, t)
    v = Add(u, b)
    y = Relu(v)
}"""


def test_what_is_scaled_when_it_runs_is_one_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    model = onnx.parser.parse_model(LAYER)
    known = {"w": _drawn(random.Random(1), (37, 21), np.int8), "f": np.float32(0.003), "b": np.arange(21, dtype="f4")}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in known.items())
    for count in (1, 4, 19):
        x = np.random.default_rng(count).standard_normal((count, 37)).astype(np.float32)
        (expected,) = Session(model).run(None, {"x": x})
        (found,) = guarded_run(model, monkeypatch, x=x)
        assert bits(found) == bits(expected)


PAIRS = (
    "q = QuantizeLinear(r, s, z) y = DequantizeLinear(q, s, z)",
    "q = QuantizeLinear(r, s, z) y = Cast<to = 1>(q)",
    "q = QuantizeLinear(r, s, n) y = DequantizeLinear(q, s, n)",
    "q = QuantizeLinear<axis = 0>(r, v, m) y = DequantizeLinear<axis = 0>(q, v, m)",
    "q, e, f = DynamicQuantizeLinear(r) y = Cast<to = 1>(q)",
)


@table("nodes", PAIRS)
def test_between_floats_bytes_have_their_limits(nodes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = {"s": np.float32(0.1), "z": np.uint8(3), "n": np.int8(-5), "m": np.zeros(7, np.int8)}
    known["v"] = np.full(7, 0.1, np.float32)
    row = np.array([-1000, 1000, 1, np.nan, np.inf, -np.inf, 12.8], np.float32)
    head = '<ir_version: 10, opset_import: ["" : 21]> g (float[7] x) => (float[7] y)'
    for first in ("Identity", "Relu"):
        model = onnx.parser.parse_model(f"{head} {{ r = {first}(x) {nodes} }}")
        model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), k) for k, v in known.items())
        (expected,) = Session(model, ["machine"]).run(None, {"x": row})
        (found,) = guarded_run(model, monkeypatch, x=row)
        assert bits(found) == bits(expected), first


def test_what_bytes_are_not_defined_on_is_said() -> None:
    known = {"s": np.float32(0), "z": np.uint8(3)}
    inputs = {"x": np.ones((2, 3), np.float32)}
    session = Session(_model("QuantizeLinear", inputs, known, ["x", "s", "z"], 13), [NAME])
    with pytest.raises(RunError, match="no scale is 0"):
        session.run(None, inputs)
    inputs = {"x": np.ones((1, 3, 4), np.uint8), "z": np.ones(2, np.uint8)}
    known = {"w": np.ones((2, 3, 1), np.int8)}
    model = _model("ConvInteger", inputs, known, ["x", "w", "z"], 10)
    with pytest.raises(RunError, match="x_zero_point is a scalar"):
        Session(model, [NAME]).run(None, inputs)


def test_products_of_bytes_are_the_same_without_an_instruction_for_them() -> None:
    def products(at_once: bool) -> Any:
        def build(builder: Any, values: Any) -> None:
            places = [builder.inttoptr(it, vectors.ir.VectorType(vectors.I32, LANES).as_pointer()) for it in values]
            total, plain, signed = (builder.load(it, align=4) for it in places)
            builder.store(vectors.byte_products(builder, total, plain, signed, at_once), places[0], align=4)

        one = vectors.intrinsic(vectors._function(numba.types.void, 3, build))
        return numba.njit(lambda total, plain, signed: one(total, plain, signed))

    a, b = (_drawn(random.Random(k), (LANES, 4), of) for k, of in enumerate(BYTES))
    a[0], b[0], b[1] = 255, 127, -128
    a[1] = 255
    start = np.full(LANES, 2**31 - 1, np.int32)
    wanted = start + (a.astype(np.int32) * b.astype(np.int32)).sum(axis=1, dtype=np.int32)
    for at_once in {False, vectors.BYTE_PRODUCTS}:
        total = start.copy()
        products(at_once)(total.ctypes.data, a.ctypes.data, b.ctypes.data)
        np.testing.assert_array_equal(total, wanted)
