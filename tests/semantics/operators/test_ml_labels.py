"""LabelEncoder and CategoryMapper of ai.onnx.ml, by hand and against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper
from sampling import seeds
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply
from tables import table

Run = Callable[..., Any]
F = np.float32
NAN = float("nan")
LABELS, MAPPER = "ai.onnx.ml::LabelEncoder", "ai.onnx.ml::CategoryMapper"


def texts(*words: str) -> Any:
    return np.array([word.encode() for word in words], object)


def test_version_1_goes_both_ways(run: Run, same: Run) -> None:
    names = {"classes_strings": ("a", "b", "a"), "default_int64": -5, "default_string": "d"}
    same(run(LABELS, 1, texts("a", "b", "z"), **names), np.array([2, 1, -5]))
    same(run(LABELS, 1, np.array([[0, 2, 3, -1]]), **names), texts("a", "a", "d", "d").reshape(1, 4))


def test_a_category_mapper_goes_both_ways(run: Run, same: Run, refused: Run) -> None:
    names = {"cats_strings": ("a", "b", "a"), "cats_int64s": (1, 2, 3)}
    same(run(MAPPER, 1, texts("a", "b", "z"), **names), np.array([3, 2, -1]))
    same(run(MAPPER, 1, np.array([1, 2, 7]), **names), texts("a", "b", "_Unused"))
    assert "of one length" in refused(MAPPER, 1, texts("a"), cats_strings=("a",), cats_int64s=())
    assert "are given" in refused(MAPPER, 1, texts("a"), cats_strings=("a",))


def test_version_2_compares_bits_and_takes_the_first_key(run: Run, same: Run) -> None:
    x = np.array([NAN, 0.0, -0.0, 1.0, 2.0], F)
    made = run(LABELS, 2, x, keys_floats=(1.0, NAN, 0.0, 1.0), values_int64s=(4, 5, 6, 7), default_int64=9)
    same(made, np.array([5, 6, 9, 4, 9]))
    same(run(LABELS, 2, x[:2], keys_floats=(-0.0,), values_floats=(1.0,)), np.array([-0.0, -0.0], F))


def test_version_4_takes_the_last_key_and_knows_no_sign_of_zero(run: Run, same: Run) -> None:
    x = np.array([NAN, 0.0, -0.0, 1.0, 2.0], F)
    made = run(LABELS, 4, x, keys_floats=(1.0, NAN, 0.0, 1.0), values_int64s=(4, 5, 6, 7), default_int64=9)
    same(made, np.array([5, 6, 6, 7, 9]))


@table("kind", [np.int16, np.int32, np.int64, F, np.float64])
def test_version_4_takes_tensors_of_keys_and_of_values(kind: Any, run: Run, same: Run) -> None:
    keys, values = np.array([1, 2], kind), np.array([3, 4], kind)
    least = -0.0 if np.dtype(kind).kind == "f" else -1
    same(run(LABELS, 4, np.array([2, 5], kind), keys_tensor=keys, values_tensor=values), np.array([4, least], kind))
    default = np.array([7], kind)
    made = run(LABELS, 4, np.array([2, 5], kind), keys_tensor=keys, values_tensor=values, default_tensor=default)
    same(made, np.array([4, 7], kind))
    same(run(LABELS, 4, texts("a"), keys_tensor=texts("a"), values_tensor=values[:1]), np.array([3], kind))


@table("version", [2, 4])
def test_lists_that_do_not_go_together_are_refused(version: int, refused: Run) -> None:
    x = np.array([1, 2])
    assert "of the type of the input" in refused(LABELS, version, x, keys_strings=("a",), values_int64s=(1,))
    assert "Each key" in refused(LABELS, version, x, keys_int64s=(1, 2), values_int64s=(1,))
    assert "lists of values" in refused(LABELS, version, x, keys_int64s=(1, 2))
    both = {"keys_int64s": (1,), "keys_strings": ("a",)}
    assert "lists of keys" in refused(LABELS, version, x, **both, values_int64s=(1,))
    if version == 4:
        keys = {"keys_int64s": (1,), "values_int64s": (2,)}
        for default in (np.array([1.0], F), np.array([1, 2])):
            assert "default_tensor" in refused(LABELS, 4, x, **keys, default_tensor=default)
        assert "is a list" in refused(LABELS, 4, x, keys_tensor=x.reshape(1, 2), values_int64s=(2,))


# ---- Against onnxruntime --------------------------------------------------------------------------------------------

WORDS = ("", "a", "b", "ä", "_Unused", "aa")
NUMBERS: dict[str, tuple[Any, ...]] = {
    "strings": WORDS, "int64s": (-1, 0, 1, 2, 3, 2**62), "floats": (0.0, 1.0, -1.5, NAN, float("inf"), 1e-40),
}  # fmt: skip
KINDS: dict[str, Any] = {"strings": object, "int64s": np.int64, "floats": F}


def listed(draw: np.random.Generator, kind: str, count: int, *, distinct: bool) -> list[Any]:
    picked = draw.permutation(6)[:count] if distinct else draw.integers(0, 6, count)
    return [NUMBERS[kind][k] for k in picked]


def drawn(op_type: str, version: int, seed: int) -> tuple[Any, dict[str, Any]]:
    """An input and attributes. Keys are distinct where onnxruntime is known to take another one, and NaN left out."""
    draw = np.random.default_rng([seed, version, len(op_type)])
    count = int(draw.integers(1, 6))
    shape = tuple(draw.integers(0, 4, draw.integers(0, 4)))
    kinds = ("strings", "int64s") if version == 1 else ("strings", "int64s", "floats")
    one, other = (str(it) for it in draw.choice(kinds, 2))
    if version == 1:
        own: dict[str, Any] = {"classes_strings": listed(draw, "strings", count, distinct=False)}
        if op_type == "CategoryMapper":
            own = {"cats_strings": own["classes_strings"], "cats_int64s": listed(draw, "int64s", count, distinct=False)}
    else:
        if (one, other) in (("int64s", "int64s"), ("strings", "strings")) and version == 2:
            other = "floats"
        own = {
            f"keys_{one}": listed(draw, one, count, distinct=version == 4),
            f"values_{other}": listed(draw, other, count, distinct=False),
        }
        if version == 4 and draw.random() < 0.3 and one != "strings":
            keys = np.array(own.pop(f"keys_{one}"), {"int64s": np.int64, "floats": np.float64}[one])
            values = np.array(draw.integers(-5, 5, count), keys.dtype)
            del own[f"values_{other}"]
            own |= {"keys_tensor": keys, "values_tensor": values}
    if draw.random() < 0.5:
        own |= {"default_int64": -7, "default_string": "none"} | ({"default_float": 0.5} if version > 1 else {})
    dtype = own["keys_tensor"].dtype if "keys_tensor" in own else KINDS[one]
    content = [NUMBERS[one][k] for k in draw.integers(0, 6, int(np.prod(shape)))]
    if version == 2 and one == "floats":
        content = [1.0 if np.isnan(x) else x for x in content]
    x = np.empty(len(content), dtype)
    x[:] = content
    return x.reshape(shape), own


def by_onnxruntime(op_type: str, version: int, x: Any, own: dict[str, Any]) -> Any:
    """The tensor that onnxruntime gives, or why it gives none."""
    stated = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in own.items()}
    node = helper.make_node(op_type, ["X"], ["Y"], domain="ai.onnx.ml", **stated)
    kind = TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)
    info = helper.make_tensor_value_info("X", kind, x.shape)
    graph = helper.make_graph([node], "g", [info], [ValueInfoProto(name="Y")])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", version)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    ort = pytest.importorskip("onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {"X": x})[0]
    except Exception as problem:
        return str(problem)


def stored(x: Any) -> Any:
    """Texts as the bytes of which elements are made."""
    if x.dtype != object:
        return x
    out = np.empty(x.size, object)
    out[:] = [text.encode() for text in x.reshape(-1)]
    return out.reshape(x.shape)


@pytest.mark.parametrize("numbers", seeds(300, 25))
@pytest.mark.parametrize(
    ("op_type", "version"), [("LabelEncoder", 1), ("LabelEncoder", 2), ("LabelEncoder", 4), ("CategoryMapper", 1)]
)
def test_onnxruntime_finds_the_same(op_type: str, version: int, numbers: range, same: Run) -> None:
    refused = 0
    for seed in numbers:
        x, own = drawn(op_type, version, seed)
        attributes = {name: tuple(value) if isinstance(value, list) else value for name, value in own.items()}
        done = apply(Application(f"ai.onnx.ml::{op_type}", version, (stored(x),), attributes, (True,)))
        assert isinstance(done, Outputs), (seed, done)
        theirs = by_onnxruntime(op_type, version, x, own)
        if isinstance(theirs, str):
            assert "NOT_IMPLEMENTED" in theirs, (seed, theirs)
            refused += 1
        else:
            same(done.values[0], stored(theirs))
    assert refused * 3 < len(numbers)
