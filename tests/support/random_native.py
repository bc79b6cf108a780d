"""Random graphs of what native code takes: floats, bytes and int32 mixed, tensors that are read several times or never,
results that are read again."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

Arrays = dict[str, Any]
Shape = tuple[int, ...]
FLOAT, INT32, UINT8, INT8 = (np.dtype(it) for it in ("f4", "i4", "u1", "i1"))
BYTES: Final = (UINT8, INT8)
NOTHING, ZEROS, ROUNDING = range(3)
"""What may differ: nothing, the signs of zeros, all bits."""
EXACT: Final = 1 << 24
"""Whole numbers up to here are floats."""
_MOST: Final = 3000
"""Elements of a tensor at most."""
_SPECIAL: Final = (np.nan, np.inf, -np.inf, -0.0, 0.5, 2.5, -1.5, 3e38, 1e-45, 300.5, -300.0)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A tensor. bound: of its absolute values where all are whole numbers, else 0. free: what another order of sums,
    or another approximation of a function, may change."""

    name: str
    of: np.dtype[Any]
    shape: Shape
    bound: int = 0
    free: int = NOTHING


@dataclass
class Case:
    """A graph while it grows. indices: of the inputs that are indices, the least size of an axis that they name."""

    choose: random.Random
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    inputs: Arrays = field(default_factory=dict)
    stored: Arrays = field(default_factory=dict)
    values: list[Drawn] = field(default_factory=list)
    indices: dict[str, int] = field(default_factory=dict)
    outputs: list[Drawn] = field(default_factory=list)

    @property
    def rng(self) -> np.random.Generator:
        """Numbers at random."""
        return np.random.default_rng(self.choose.getrandbits(32))

    def known(self, value: Any) -> str:
        """The name of a known value."""
        name = f"k{len(self.stored)}"
        self.stored[name] = np.asarray(value)
        return name

    def node(self, op_type: str, inputs: Sequence[str], *made: Drawn, outputs: int = 1, **stated: Any) -> None:
        """Adds a node with these results."""
        names = [*(it.name for it in made), *("" for _ in range(outputs - len(made)))]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **stated))
        self.values.extend(made)

    def new(self, of: np.dtype[Any], shape: Shape, bound: int = 0, free: int = NOTHING) -> Drawn:
        """A result of the next node."""
        return Drawn(f"t{len(self.nodes)}", of, shape, bound if bound <= EXACT else 0, free)

    def like(self, x: Drawn) -> list[Drawn]:
        """The other tensors with the form of one."""
        return [it for it in self.values if it.name != x.name and (it.of, it.shape) == (x.of, x.shape)]

    def data(self, of: np.dtype[Any], shape: Shape, whole: bool = False) -> Any:
        """Bytes of every value; floats that are whole numbers, or with special ones among them."""
        if of in BYTES:
            info = np.iinfo(of)
            x = self.rng.integers(info.min, int(info.max) + 1, shape)
            return np.where(self.rng.random(shape) < 0.3, self.rng.choice([info.min, info.max], shape), x).astype(of)
        if whole or of == INT32:
            return self.rng.integers(-6, 7, shape).astype(of)
        x = np.where(self.rng.random(shape) < 0.2, self.rng.choice(_SPECIAL, shape), 40 * self.rng.normal(size=shape))
        return x.astype(of)

    def model(self, outputs: Sequence[Drawn]) -> onnx.ModelProto:
        """The model with these outputs."""
        of = helper.np_dtype_to_tensor_dtype
        given = [helper.make_tensor_value_info(k, of(v.dtype), v.shape) for k, v in self.inputs.items()]
        ends = [helper.make_tensor_value_info(it.name, of(it.of), None) for it in outputs]
        stored = [numpy_helper.from_array(v, k) for k, v in self.stored.items()]
        graph = helper.make_graph(self.nodes, "g", given, ends, stored)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def drawn(seed: int, least: int = 10, most: int = 20) -> Case:
    """A graph of so many nodes, with values for its inputs, some of its results being outputs."""
    choose = random.Random(seed)
    case = Case(choose)
    for _ in range(choose.randint(1, 3)):
        of, whole = choose.choice((FLOAT, FLOAT, *BYTES)), choose.random() < 0.5
        name, shape = f"x{len(case.inputs)}", _shape(choose)
        case.inputs[name] = case.data(of, shape, whole)
        case.values.append(Drawn(name, of, shape, 6 if of == FLOAT and whole else 0))
    count = choose.randint(least, most)
    while len(case.nodes) < count:
        tensors = [it for it in case.values if it.shape]
        x = choose.choice(tensors[-2:] if choose.random() < 0.7 else tensors)
        kinds = _MOVES if choose.random() < 0.35 else _OF[x.of]
        choose.choice(kinds)(case, x)
    made = [it for it in case.values if it.name not in case.inputs]
    case.outputs = choose.sample(made, min(len(made), choose.choice((1, 1, 2, 3, 4))))
    return case


def _shape(choose: random.Random) -> Shape:
    sizes = (1, 2, 3, 4, 5, 8, 9, 17)
    form = choose.choice(("image", "image", "image", "line", "matrix", "vector", "rows"))
    if form in ("image", "line"):
        places = [choose.choice((3, 4, 5, 8, 9, 17)) for _ in range(2 if form == "image" else 1)]
        return (choose.choice((1, 1, 2)), choose.choice((1, 2, 3, 4, 6)), *places)
    return tuple(choose.choice(sizes) for _ in range({"matrix": 2, "vector": 1, "rows": 3}[form]))


# ---- Elementwise operators --------------------------------------------------------------------


def _plain(operator: str, free: int = NOTHING) -> Callable[[Case, Drawn], None]:
    def add(case: Case, x: Drawn) -> None:
        bound = x.bound if operator == "Relu" else 0
        case.node(operator, [x.name], case.new(FLOAT, x.shape, bound, max(x.free, free)))

    return add


def _beside(case: Case, x: Drawn) -> None:
    """An operator on two tensors, or one and a known value, in either order."""
    operator = case.choose.choice(("Add", "Sub", "Mul", "Div", "Sum"))
    others = case.like(x)
    smaller = [it for it in case.values if it.of == FLOAT and it.shape and it.shape == x.shape[-len(it.shape) :]]
    smaller = [it for it in smaller if it.name != x.name]
    other: Drawn | None = None
    if others and case.choose.random() < 0.5:
        other = case.choose.choice(others)
    elif smaller and case.choose.random() < 0.3:
        other = case.choose.choice(smaller)
    if other is None:
        forms: list[Shape] = [(), (1,), x.shape[-1:]]
        if len(x.shape) > 1:
            forms.append((x.shape[1], *(1,) * (len(x.shape) - 2)))
        whole = x.bound > 0 and case.choose.random() < 0.7
        value = case.data(FLOAT, case.choose.choice(forms), whole)
        name, bound, free = case.known(value), 6 if whole else 0, NOTHING
    else:
        name, bound, free = other.name, other.bound, other.free
    known, free = 0, max(x.free, free)
    if operator == "Div" and free:  # by a zero
        free = ROUNDING
    if x.bound and bound and operator != "Div":
        known = x.bound * bound if operator == "Mul" else x.bound + bound
    names = [x.name, name] if case.choose.random() < 0.5 else [name, x.name]
    case.node(operator, names, case.new(FLOAT, x.shape, known, free))


def _again(case: Case, x: Drawn) -> None:
    """What an operator makes of a tensor, and that tensor."""
    free, bound = x.free, 0
    if case.choose.random() < 0.5:
        bound = x.bound
        case.node("Relu", [x.name], case.new(FLOAT, x.shape, bound, free))
    else:
        case.node("Mul", [x.name, case.known(case.data(FLOAT, ()))], case.new(FLOAT, x.shape, 0, free))
    names = [case.values[-1].name, x.name]
    case.choose.shuffle(names)
    case.node(case.choose.choice(("Add", "Sub")), names, case.new(FLOAT, x.shape, 2 * bound, free))


def _normalized(case: Case, x: Drawn) -> None:
    if len(x.shape) > 1:
        sizes = x.shape[1:2]
        known = [case.known(case.data(FLOAT, sizes)) for _ in range(3)]
        known.append(case.known(np.abs(case.data(FLOAT, sizes, True))))
        case.node("BatchNormalization", [x.name, *known], case.new(FLOAT, x.shape, 0, x.free))


def _layer(case: Case, x: Drawn) -> None:
    known = [case.known(case.data(FLOAT, x.shape[-1:])) for _ in range(case.choose.randint(1, 2))]
    case.node("LayerNormalization", [x.name, *known], case.new(FLOAT, x.shape, 0, ROUNDING))


def _responses(case: Case, x: Drawn) -> None:
    if len(x.shape) > 2:
        case.node("LRN", [x.name], case.new(FLOAT, x.shape, 0, ROUNDING), size=3, alpha=0.5)


# ---- Between floats, bytes and int32 ----------------------------------------------------------


def _scales(case: Case, shape: Shape, zero: np.dtype[Any] | None) -> tuple[list[str], Arrays, bool]:
    """A scale, and a zero point of this type where there is one; for all, or for each entry of an axis. Whether the
    scales are whole numbers."""
    axis = case.choose.randrange(len(shape))
    sizes: Shape = case.choose.choice(((), (), (1,), (shape[axis],)))
    whole = case.choose.random() < 0.5
    values = case.rng.integers(1, 4, sizes) if whole else case.rng.uniform(0.05, 2, sizes)
    names = [case.known(values.astype(FLOAT))]
    if zero is not None:
        names.append(case.known(np.zeros(sizes, zero) if zero == INT32 else case.data(zero, sizes)))
    return names, {"axis": axis - case.choose.choice((0, len(shape)))}, whole


def _quantize(case: Case, x: Drawn) -> None:
    of = case.choose.choice(BYTES)
    names, stated, _ = _scales(case, x.shape, None if of == UINT8 and case.choose.random() < 0.3 else of)
    made = case.new(of, x.shape, 0, x.free)
    case.node("QuantizeLinear", [x.name, *names], made, **stated)
    if len(names) > 1 and case.choose.random() < 0.5:  # as most models have it
        goal = case.new(FLOAT, x.shape, 0, x.free)
        case.node("DequantizeLinear", [made.name, *names], goal, **stated)


def _dequantize(case: Case, x: Drawn) -> None:
    names, stated, whole = _scales(case, x.shape, case.choose.choice((None, x.of)))
    bound = 3 * 511 if whole and x.of in BYTES else 0
    case.node("DequantizeLinear", [x.name, *names], case.new(FLOAT, x.shape, bound, x.free), **stated)


def _cast(case: Case, x: Drawn) -> None:
    bound = 255 if x.of in BYTES else 0
    case.node("Cast", [x.name], case.new(FLOAT, x.shape, bound, x.free), to=onnx.TensorProto.FLOAT)


def _dynamic(case: Case, x: Drawn) -> None:
    made = case.new(UINT8, x.shape, 0, x.free)
    scale = Drawn(f"{made.name}s", FLOAT, (), 0, x.free)
    zero = Drawn(f"{made.name}z", UINT8, (), 0, x.free)
    case.node("DynamicQuantizeLinear", [x.name], made, scale, zero)
    case.values[-3:] = [scale, zero, made] if case.choose.random() < 0.2 else [made]
    if case.choose.random() < 0.5 and len(x.shape) > 1:
        _byte_product(case, made, zero.name)


# ---- Products ---------------------------------------------------------------------------------


def _product(case: Case, x: Drawn) -> None:
    if len(x.shape) < 2:
        return
    terms, columns = x.shape[-1], case.choose.choice((1, 3, 8, 17))
    pairs = [it for it in case.values if it.of == FLOAT and it.shape[:-1] == (*x.shape[:-2], terms)]
    other = case.choose.choice(pairs) if pairs and case.choose.random() < 0.5 else None
    if other is not None and other.name != x.name:
        columns, bound, free, name = other.shape[-1], other.bound, other.free, other.name
    else:
        bound, free, name = 6, NOTHING, case.known(case.data(FLOAT, (terms, columns), True))
    inputs, operator, sum_ = [x.name, name], "MatMul", x.bound * bound * terms
    if len(x.shape) == 2 and other is None and case.choose.random() < 0.4:
        inputs, operator = [*inputs, case.known(case.data(FLOAT, (columns,), True))], "Gemm"
        sum_ += 6 * bool(sum_)
    free = max(free, x.free, ZEROS if 0 < sum_ <= EXACT else ROUNDING)
    case.node(operator, inputs, case.new(FLOAT, (*x.shape[:-1], columns), sum_, free))


def _window(case: Case, x: Drawn) -> tuple[Arrays, Shape]:
    """A window on data, and how often it fits."""
    sizes = x.shape[2:]
    kernel = [case.choose.randint(1, min(3, n)) for n in sizes]
    strides = [case.choose.choice((1, 1, 2)) for _ in sizes]
    pads = [case.choose.randint(0, k - 1) for k in (*kernel, *kernel)]
    after = pads[len(sizes) :]
    rows = zip(sizes, kernel, strides, pads, after, strict=False)
    places = tuple((n + a + b - k) // s + 1 for n, k, s, a, b in rows)
    return {"kernel_shape": kernel, "strides": strides, "pads": pads}, places


def _convolved(case: Case, x: Drawn) -> None:
    if len(x.shape) not in (3, 4):
        return
    stated, places = _window(case, x)
    groups = x.shape[1] if case.choose.random() < 0.3 else 1
    rows, each = groups * case.choose.choice((1, 2, 9)), x.shape[1] // groups
    w = case.known(case.data(FLOAT, (rows, each, *stated["kernel_shape"]), True))
    terms = math.prod(case.stored[w].shape[1:])
    bias = [case.known(case.data(FLOAT, (rows,), True))] if case.choose.random() < 0.5 else []
    sum_ = (6 * x.bound * terms + 6) * bool(x.bound)
    made = case.new(FLOAT, (x.shape[0], rows, *places), sum_, max(x.free, ZEROS if 0 < sum_ <= EXACT else ROUNDING))
    case.node("Conv", [x.name, w, *bias], made, group=groups, **stated)


def _pooled(case: Case, x: Drawn) -> None:
    if len(x.shape) in (3, 4):
        stated, places = _window(case, x)
        operator = case.choose.choice(("MaxPool", "AveragePool"))
        is_most, fits = operator == "MaxPool", 0 < 9 * x.bound <= EXACT
        free = max(x.free, NOTHING if is_most or fits else ROUNDING)
        made = case.new(FLOAT, (*x.shape[:2], *places), x.bound * is_most, free)
        case.node(operator, [x.name], made, **stated)


def _mean(case: Case, x: Drawn) -> None:
    if len(x.shape) > 2:
        shape = (*x.shape[:2], *(1 for _ in x.shape[2:]))
        case.node("GlobalAveragePool", [x.name], case.new(FLOAT, shape, 0, ROUNDING))


def _byte_product(case: Case, x: Drawn, zero: str = "") -> None:
    """A convolution or product of bytes."""
    is_image, of, gives = len(x.shape) in (3, 4), case.choose.choice(BYTES), case.choose.choice(BYTES)
    if len(x.shape) < 2:
        return
    stated: Arrays = {}
    if is_image and case.choose.random() < 0.7:
        stated, places = _window(case, x)
        rows = case.choose.choice((1, 2, 9))
        w, shape, operator = (rows, x.shape[1], *stated["kernel_shape"]), (x.shape[0], rows, *places), "Conv"
    else:
        w, operator = (x.shape[-1], case.choose.choice((1, 3, 8, 17))), "MatMul"
        shape, rows = (*x.shape[:-1], w[1]), w[1]
    weights = case.known(case.data(of, w))
    each = case.choose.choice((True, False))
    sizes: Shape = (rows,) if each else ()
    zeros = case.data(of, sizes) if case.choose.random() < 0.5 else np.zeros(sizes, of)
    data = zero or case.known(case.data(x.of, ()))
    if zero or case.choose.random() < 0.5:
        names = [x.name, weights, data, case.known(zeros)][: case.choose.choice((3, 4))]
        case.node(f"{operator}Integer", names, case.new(INT32, shape, 0, x.free), **stated)
        return
    scales = [case.rng.uniform(0.5, 1, it).astype(FLOAT) for it in ((), sizes)]
    last = np.float32(60 * math.sqrt(math.prod(w) / rows) * case.choose.choice((0.1, 1)))
    names = [
        x.name, case.known(scales[0]), data, weights, case.known(scales[1]), case.known(zeros), case.known(last),
        case.known(case.data(gives, ())),
    ]  # fmt: skip
    case.node(f"QLinear{operator}", names, case.new(gives, shape, 0, x.free), **stated)


# ---- What moves elements ----------------------------------------------------------------------


def _moved(case: Case, x: Drawn, shape: Shape) -> Drawn:
    return case.new(x.of, shape, x.bound, x.free)


def _shown(case: Case, x: Drawn) -> None:
    """The same elements in another shape, or in the same."""
    operator = case.choose.choice(("Reshape", "Flatten", "Identity", "Unsqueeze", "Dropout"))
    if operator == "Dropout" and x.of == FLOAT:
        case.node(operator, [x.name], _moved(case, x, x.shape))
    elif operator in ("Identity", "Dropout"):
        case.node("Identity", [x.name], _moved(case, x, x.shape))
    elif operator == "Flatten":
        axis = case.choose.randint(0, len(x.shape))
        shape = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
        case.node(operator, [x.name], _moved(case, x, shape), axis=axis)
    elif operator == "Unsqueeze" and len(x.shape) < 4:
        axis = case.choose.randint(0, len(x.shape))
        shape = (*x.shape[:axis], 1, *x.shape[axis:])
        case.node(operator, [x.name, case.known(np.array([axis]))], _moved(case, x, shape))
    else:
        k = case.choose.randrange(len(x.shape))
        shape = (math.prod(x.shape[: k + 1]), *x.shape[k + 1 :]) if case.choose.random() < 0.5 else x.shape[::-1]
        case.node("Reshape", [x.name, case.known(np.array(shape))], _moved(case, x, shape))


def _turned(case: Case, x: Drawn) -> None:
    axes = list(range(len(x.shape)))
    case.choose.shuffle(axes)
    if len(axes) > 1 and case.choose.random() < 0.5:
        axes = [*sorted(axes)[:-2], len(axes) - 1, len(axes) - 2]
    case.node("Transpose", [x.name], _moved(case, x, tuple(x.shape[k] for k in axes)), perm=axes)


def _joined(case: Case, x: Drawn) -> None:
    axis = case.choose.choice((0, 1, case.choose.randrange(len(x.shape)))) % len(x.shape)
    others = case.like(x) if case.choose.random() < 0.8 else [x]
    parts = [x, *case.choose.sample(others, min(len(others), case.choose.randint(1, 2)))]
    case.choose.shuffle(parts)
    shape = tuple(n * len(parts) if k == axis else n for k, n in enumerate(x.shape))
    if math.prod(shape) <= _MOST:
        bound = max(it.bound for it in parts) * all(it.bound for it in parts)
        made = case.new(x.of, shape, bound, max(it.free for it in parts))
        case.node("Concat", [it.name for it in parts], made, axis=axis)


def _cut(case: Case, x: Drawn) -> None:
    axis = case.choose.randrange(len(x.shape))
    if x.shape[axis] < 2:
        return
    sizes = lambda n: tuple(n if k == axis else it for k, it in enumerate(x.shape))  # noqa: E731
    at = case.choose.randint(1, x.shape[axis] - 1)
    if case.choose.random() < 0.5:
        first = _moved(case, x, sizes(at))
        second = Drawn(f"{first.name}b", x.of, sizes(x.shape[axis] - at), x.bound, x.free)
        lengths = case.known(np.array([at, x.shape[axis] - at]))
        case.node("Split", [x.name, lengths], first, second, axis=axis)
    else:
        step = case.choose.choice((1, 1, 2, -1))
        begin, end = (-1, -_MOST - 1) if step < 0 else (x.shape[axis] - at, _MOST)
        count = len(range(x.shape[axis])[slice(begin, end if step > 0 else None, step)])
        ends = [case.known(np.array([it])) for it in (begin, end, axis, step)]
        case.node("Slice", [x.name, *ends], _moved(case, x, sizes(count)))


def _gathered(case: Case, x: Drawn) -> None:
    operator = case.choose.choice(("Gather", "Gather", "GatherElements", "GatherND"))
    axis = 0 if operator == "GatherND" else case.choose.randrange(len(x.shape))
    n = x.shape[axis]
    form: Shape = case.choose.choice(((), (3,), (2, 2)))
    if operator == "GatherElements":
        form = tuple(
            case.choose.randint(1, 4) if k == axis else case.choose.randint(1, it) for k, it in enumerate(x.shape)
        )
    elif operator == "GatherND":
        form = (*form, 1)
    shape = {
        "Gather": (*x.shape[:axis], *form, *x.shape[axis + 1 :]),
        "GatherElements": form,
        "GatherND": (*form[:-1], *x.shape[1:]),
    }[operator]
    of = np.dtype(np.int64) if operator == "GatherND" else np.dtype(case.choose.choice(("i4", "i8")))
    value = case.rng.integers(-n, n, form).astype(of)
    alike = [k for k, size in case.indices.items() if size <= n and case.inputs[k].shape == form]
    alike = [k for k in alike if operator != "GatherND" or case.inputs[k].dtype == np.int64]
    if alike and case.choose.random() < 0.5:
        name = case.choose.choice(alike)
    elif case.choose.random() < 0.2:
        name = case.known(value)
    else:
        name = f"i{len(case.indices)}"
        case.inputs[name], case.indices[name] = value, n
    if math.prod(shape) <= _MOST:
        made = _moved(case, x, shape)
        stated = {} if operator == "GatherND" else {"axis": axis}
        case.node(operator, [x.name, name], made, **stated)


_FLOATS: Final = (
    _plain("Relu"), _plain("Relu"), _beside, _beside, _beside, _again, _again, _normalized, _plain("Erf"),
    _plain("Sigmoid", ROUNDING), _plain("Exp", ROUNDING), _plain("Softmax", ROUNDING), _layer, _responses, _quantize,
    _quantize, _quantize, _dynamic, _product, _product, _convolved, _convolved, _pooled, _mean,
)  # fmt: skip
_NUMBERS: Final = (_dequantize, _dequantize, _cast)
_OF: Final = {
    FLOAT: _FLOATS, INT32: _NUMBERS,
    **dict.fromkeys(BYTES, (*_NUMBERS, _byte_product, _byte_product)),
}  # fmt: skip
_MOVES: Final = (_shown, _shown, _turned, _joined, _cut, _gathered)
