"""Applications of operators on exact data: small integers and dyadic numbers, on which no order of summation matters.

Some come from the node tests of the onnx wheel (their shapes and attributes; the floats are replaced), others are drawn
at random for families of operators. Both are made for every version of every definition of the specification that
their inputs and attributes fit, so a new definition is covered as soon as it is there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np
from images import bmp, image
from node_tests import node_cases
from onnx import TensorProto, helper, numpy_helper
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.operators.application import Application
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.library import specification

Attributes = dict[str, Any]
Case = tuple[tuple[Any, ...], Attributes, int]
"""Inputs, attributes, number of outputs."""
LARGEST = 2000
"""Applications with more input elements are left out."""


def versions(op_type: str) -> tuple[int, ...]:
    """The versions of an operator that the specification defines by equations."""
    found = []
    for definition in specification().operators[op_type]:
        if any(statement.kind == "rule" for statement in definition.statements):
            continue
        covered = (s.version for s in signatures().get(op_type, ()) if definition.first <= s.version <= definition.last)
        found += list(covered) or [definition.first]
    return tuple(found)


def defined() -> list[tuple[str, int]]:
    """Every operator and version that the specification defines by equations."""
    return [(name, version) for name in sorted(specification().operators) for version in versions(name)]


def applications(op_type: str, version: int, count: int = 12) -> Iterator[Application]:
    """Applications for one version: those of the wheel, some of them with 0 or 1 everywhere, then random ones."""
    cases = wheel_cases().get(op_type, ())
    for case in [
        *cases,
        *(filled(case, value) for case in cases[:2] for value in (0, 1)),
        *random_cases(op_type, count),
    ]:
        made = fitted(op_type, version, case)
        if made is not None:
            yield made


def filled(case: Case, value: int) -> Case:
    """The case with one number for all floats: many functions have an exact value at 0 or 1."""
    inputs, attributes, outputs = case
    return (
        tuple(np.full_like(x, value) if x is not None and x.dtype.kind == "f" else x for x in inputs),
        attributes,
        outputs,
    )


def fitted(op_type: str, version: int, case: Case) -> Application | None:
    """The case as an application of a version, None when it does not fit its schema."""
    schema = schemas.schema_of(op_type, version)
    inputs, attributes, outputs = case
    if schema is None or not set(attributes) <= set(schema.attributes):
        return None
    if any(isinstance(value, str) != (schema.attributes[name].kind == "STRING") for name, value in attributes.items()):
        return None
    most = schema.max_inputs
    required = [formal.option == "single" for formal in schema.inputs]
    if any(need and value is None for need, value in zip(required, inputs, strict=False)):
        return None
    formals = [
        schema.inputs[min(position, len(schema.inputs) - 1)] for position in range(len(inputs) if schema.inputs else 0)
    ]
    for formal, value in zip(formals, inputs, strict=False):
        if value is not None and f"tensor({element_of(value.dtype)})" not in formal.types:
            return None
    if sum(value.size for value in inputs if value is not None) > LARGEST:
        return None
    if len(inputs) < schema.min_inputs or (most is not None and len(inputs) > most):
        return None
    if schema.max_outputs is not None and outputs > schema.max_outputs:
        return None
    return Application(op_type, version, inputs, attributes, (True,) * outputs)


# ---- cases of the wheel -----------------------------------------------------------------------


@cache
def wheel_cases() -> Mapping[str, tuple[Case, ...]]:
    """The node tests of the onnx wheel with one node, by operator."""
    found: dict[str, list[Case]] = {}
    for test in node_cases():
        (node,) = test.model.graph.node if len(test.model.graph.node) == 1 else (None,)
        if node is None or node.domain or node.op_type not in specification().operators:
            continue
        case = _case(test, node)
        if case is not None:
            found.setdefault(node.op_type, []).append(case)
    return {name: tuple(cases) for name, cases in found.items()}


def _case(test: Any, node: Any) -> Case | None:
    rng = random.Random(test.name)
    given: dict[str, Any] = {i.name: numpy_helper.to_array(i) for i in test.model.graph.initializer}
    for value, info in zip(test.data_sets[0][0], test.model.graph.input, strict=False):
        array = numpy_helper.to_array(value) if isinstance(value, TensorProto) else value
        if not isinstance(array, (np.ndarray, np.generic)):
            return None
        given[info.name] = np.asarray(array)
    schema = schemas.schema(
        "", node.op_type, None if not test.model.opset_import else test.model.opset_import[0].version
    )
    names = [formal.name for formal in schema.inputs] if schema is not None else []
    inputs = []
    for position, name in enumerate(node.input):
        formal = names[min(position, len(names) - 1)] if names else ""
        inputs.append(exact_data(given[name], formal, rng) if name else None)
    attributes: Attributes = {}
    for attribute in node.attribute:
        value = attribute_data(attribute)
        if value is None:
            return None
        attributes[attribute.name] = value
    return tuple(inputs), attributes, len(node.output)


def attribute_data(attribute: Any) -> Any:
    """An attribute of a model as an application has it, None for a graph or a type."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, list):
        return tuple(item.decode() if isinstance(item, bytes) else item for item in value)
    return value if isinstance(value, (int, float)) else None


KEPT = frozenset({"scales", "roi", "ratio", "sizes"})
"""Inputs whose floats are numbers of their own."""


def exact_data(array: Any, formal: str, rng: random.Random) -> Any:
    """Floats replaced by small integers, scales by powers of two; anything else as it is."""
    if array.dtype.kind in "OUS":
        flat = [x.encode() if isinstance(x, str) else x for x in array.reshape(-1)]
        return np.array([*flat, None], dtype=object)[:-1].reshape(array.shape)
    if array.dtype.kind not in "fV" or array.dtype.name.startswith(("int", "uint")) or formal in KEPT:
        return array
    choices = [0.5, 1.0, 2.0, 4.0] if "scale" in formal or "var" in formal else [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0]
    values = [rng.choice(choices) for _ in range(array.size)]
    return np.array(values, np.float64).reshape(array.shape).astype(array.dtype)


# ---- random cases -----------------------------------------------------------------------------


def random_cases(op_type: str, count: int) -> Iterator[Case]:
    """Random shapes and attribute settings for an operator of a family that is known here."""
    make = FAMILIES.get(op_type)
    if make is None:
        return
    rng = random.Random(f"random {op_type}")
    for _ in range(count):
        yield from make(rng)


def tensor(rng: random.Random, shape: tuple[int, ...], dtype: Any = np.float32, low: int = -3, high: int = 3) -> Any:
    """A tensor of small integers."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.array([rng.randint(low, high) for _ in range(size)], np.int64).reshape(shape).astype(dtype)


def _type(rng: random.Random) -> Any:
    return rng.choice([np.float32, np.float64, np.float16, np.int32, np.int64])


def _shape(rng: random.Random, most: int = 4) -> tuple[int, ...]:
    return tuple(rng.choice([0, 1, 2, 3, 5, 7]) if rng.random() < 0.9 else 1 for _ in range(rng.randint(0, most)))


def _unary(rng: random.Random) -> Iterator[Case]:
    yield (tensor(rng, _shape(rng), _type(rng)),), {}, 1


def _bytes(rng: random.Random) -> Iterator[Case]:
    """Data whose range is 0 .. 255, so that the scale of bytes is 1."""
    x = tensor(rng, (rng.randint(2, 9),), np.float32, 0, 255)
    x[0], x[1] = 0, 255
    yield (x,), {}, 3


def _binary(rng: random.Random, low: int = -3) -> Iterator[Case]:
    full = _shape(rng)
    other = tuple(size if rng.random() < 0.6 else 1 for size in full)[rng.randint(0, len(full)) :]
    dtype = _type(rng)
    pair = (tensor(rng, full, dtype, low), tensor(rng, other, dtype, low))
    yield pair if rng.random() < 0.5 else pair[::-1], {}, 1


def _division(rng: random.Random) -> Iterator[Case]:
    full, dtype = _shape(rng), _type(rng)
    powers = np.array([rng.choice([1, 2, 4, -2, -1]) for _ in range(int(np.prod(full, dtype=np.int64)))])
    yield (tensor(rng, full, dtype, -8, 8), powers.reshape(full).astype(dtype)), {}, 1


def _window(rng: random.Random, axes: int) -> tuple[Attributes, list[int], list[int]]:
    kernel = [rng.randint(1, 3) for _ in range(axes)]
    sizes = [rng.randint(5, 8) for _ in range(axes)]
    attributes: Attributes = {"kernel_shape": tuple(kernel)}
    if rng.random() < 0.7:
        attributes["strides"] = tuple(rng.randint(1, 3) for _ in range(axes))
    if rng.random() < 0.5:
        attributes["dilations"] = tuple(rng.randint(1, 2) for _ in range(axes))
    if rng.random() < 0.5:
        attributes["pads"] = tuple(rng.randint(0, size - 1) for size in (*kernel, *kernel))
    elif rng.random() < 0.5:
        attributes["auto_pad"] = rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return attributes, kernel, sizes


def _conv(rng: random.Random) -> Iterator[Case]:
    attributes, kernel, sizes = _window(rng, rng.randint(1, 3))
    group = rng.choice([1, 1, 2, 3])
    channels, kernels = group * rng.randint(1, 3), group * rng.randint(1, 4)
    if rng.random() < 0.8:
        attributes["group"] = group
    else:
        group = 1
    x = tensor(rng, (rng.randint(1, 2), channels, *sizes))
    w = tensor(rng, (kernels, channels // group, *kernel))
    yield (x, w, tensor(rng, (kernels,))) if rng.random() < 0.5 else (x, w), attributes, 1


def _pool(rng: random.Random) -> Iterator[Case]:
    attributes, _, sizes = _window(rng, rng.randint(1, 3))
    if rng.random() < 0.4:
        attributes["ceil_mode"] = 1
    if rng.random() < 0.4:
        attributes["count_include_pad"] = 1
    x = tensor(rng, (rng.randint(1, 2), rng.randint(1, 3), *sizes))
    yield (x,), attributes, 1
    attributes.pop("count_include_pad", None)
    yield (x,), attributes, 2
    attributes.pop("dilations", None)
    yield (x,), attributes, 1


def _matmul(rng: random.Random) -> Iterator[Case]:
    m, k, n = (rng.choice([1, 2, 3, 5, 7]) for _ in range(3))
    head = _shape(rng, 2)
    dtype = _type(rng)
    a = (k,) if rng.random() < 0.2 else (*head, m, k)
    b = (k,) if rng.random() < 0.2 else (*head[rng.randint(0, len(head)) :], k, n)
    yield (tensor(rng, a, dtype), tensor(rng, b, dtype)), {}, 1


def _gemm(rng: random.Random) -> Iterator[Case]:
    m, k, n = (rng.choice([1, 2, 3, 5, 7]) for _ in range(3))
    attributes: Attributes = {"transA": rng.randint(0, 1), "transB": rng.randint(0, 1)}
    if rng.random() < 0.5:
        attributes |= {"alpha": rng.choice([0.5, 1.0, 2.0]), "beta": rng.choice([0.0, 0.25, 1.0])}
    a = tensor(rng, (k, m) if attributes["transA"] else (m, k))
    b = tensor(rng, (n, k) if attributes["transB"] else (k, n))
    c = tensor(rng, rng.choice([(), (n,), (1, n), (m, 1), (m, n)]))
    yield (a, b, c), attributes, 1


def _reduction(rng: random.Random) -> Iterator[Case]:
    shape = tuple(rng.choice([1, 2, 4, 8]) for _ in range(rng.randint(1, 4)))
    axes = tuple(sorted(rng.sample(range(len(shape)), rng.randint(1, len(shape)))))
    keep = {"keepdims": rng.randint(0, 1)}
    x = tensor(rng, shape)
    yield (x,), {"axes": axes, **keep}, 1
    yield (x, np.array(axes, np.int64)), keep, 1


def _transpose(rng: random.Random) -> Iterator[Case]:
    shape = _shape(rng)
    yield (tensor(rng, shape, _type(rng)),), {"perm": tuple(rng.sample(range(len(shape)), len(shape)))}, 1


def _concat(rng: random.Random) -> Iterator[Case]:
    shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 4))]
    axis = rng.randrange(len(shape))
    parts = [
        tuple(rng.randint(0, 3) if k == axis else n for k, n in enumerate(shape)) for _ in range(rng.randint(1, 5))
    ]
    yield tuple(tensor(rng, part) for part in parts), {"axis": axis - rng.choice([0, len(shape)])}, 1
    yield tuple(tensor(rng, part) for part in parts), {"axis": axis}, 1


def _slice(rng: random.Random) -> Iterator[Case]:
    shape = tuple(rng.randint(1, 7) for _ in range(rng.randint(1, 4)))
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    starts, ends = ([rng.randint(-9, 9) for _ in axes] for _ in range(2))
    steps = [rng.choice([1, 1, 2, 3, -1, -2]) for _ in axes]
    x = tensor(rng, shape)
    yield (x, *(np.array(v, np.int64) for v in (starts, ends, axes, steps))), {}, 1
    yield (x,), {"starts": tuple(starts), "ends": tuple(ends), "axes": tuple(axes)}, 1


def _pad(rng: random.Random) -> Iterator[Case]:
    shape = tuple(rng.randint(2, 5) for _ in range(rng.randint(1, 3)))
    pads = [rng.randint(-1, 1) for _ in range(2 * len(shape))]
    mode = rng.choice(["constant", "edge", "reflect", "wrap"])
    yield (tensor(rng, shape), np.array(pads, np.int64), np.array(7, np.float32)), {"mode": mode}, 1
    yield (tensor(rng, shape),), {"pads": tuple(pads), "mode": mode, "value": 5.0}, 1


def _gather(rng: random.Random) -> Iterator[Case]:
    shape = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4)))
    axis = rng.randrange(len(shape))
    indices = tensor(rng, _shape(rng, 2), np.int64, -shape[axis], shape[axis] - 1)
    yield (tensor(rng, shape, _type(rng)), indices), {"axis": axis}, 1


def _top(rng: random.Random) -> Iterator[Case]:
    shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 3)))
    axis = rng.randrange(len(shape))
    attributes = {"axis": axis, "largest": rng.randint(0, 1)}
    yield (tensor(rng, shape), np.array([rng.randint(0, shape[axis])], np.int64)), attributes, 2
    yield (tensor(rng, shape), np.array([rng.randint(0, shape[axis])], np.int64)), {"axis": axis}, 2


def _affine(rng: random.Random) -> Iterator[Case]:
    """Images whose sizes are powers of two, so that the places are numbers of the type."""
    axes, batch, corners = rng.randint(2, 3), rng.randint(1, 2), rng.randint(0, 1)
    sizes = [rng.choice([2, 3, 5]) if corners else rng.choice([1, 2, 4, 8]) for _ in range(axes)]
    theta = tensor(rng, (batch, axes, axes + 1))
    yield (theta, np.array([batch, 1, *sizes], np.int64)), {"align_corners": corners}, 1


def _boxes(rng: random.Random) -> Iterator[Case]:
    """Boxes that have a half or a quarter of each other, or all, in common."""
    kinds = [[0, 0, 2, 2], [0, 0, 2, 1], [1, 1, 0, 0]]
    count = rng.randint(1, 5)
    boxes = np.array([[rng.choice(kinds) for _ in range(count)]], np.float32)
    scores = tensor(rng, (1, rng.randint(1, 2), count), low=0)
    most, bound = np.array([rng.randint(0, 5)], np.int64), np.array([rng.choice([0, 0.25, 0.5])], np.float32)
    yield (boxes, scores, most, bound), {}, 1


COMPARISONS = ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual")


def _image(rng: random.Random) -> Iterator[Case]:
    pixels = image(rng.randint(1, 4), rng.randint(1, 4))
    yield (bmp(pixels),), {"pixel_format": rng.choice(["RGB", "BGR"])}, 1


def _kept(rng: random.Random) -> Iterator[Case]:
    """Dropout of an inference, as the versions before 7 have it."""
    yield (tensor(rng, _shape(rng)),), {"is_test": 1}, rng.randint(1, 2)


FAMILIES: Mapping[str, Callable[[random.Random], Iterator[Case]]] = {
    "ImageDecoder": _image,
    **dict.fromkeys(
        ("Relu", "Identity", "Shape", "NonZero", "Abs", "Neg", "Sign", "Size", "Floor", "Ceil", "Round"), _unary
    ),
    **dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min", "Sum", "Mod", "PRelu", *COMPARISONS), _binary),
    "Div": _division,
    "Dropout": _kept,
    "DynamicQuantizeLinear": _bytes,
    "Conv": _conv,
    **dict.fromkeys(("MaxPool", "AveragePool"), _pool),
    "MatMul": _matmul,
    "Gemm": _gemm,
    **dict.fromkeys(
        ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare"), _reduction
    ),
    "Transpose": _transpose,
    "Concat": _concat,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "TopK": _top,
    "AffineGrid": _affine,
    "NonMaxSuppression": _boxes,
}
"""For operators of known families what draws cases; a case that does not fit a version is left out there."""
