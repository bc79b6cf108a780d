"""The ieee interpretation against programs written here: element by element, in the written order."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Sequence, identical
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import code as ieee_plan
from sonnx.semantics.operators.compiled import ieee
from tables import table

FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INF, NAN = float("inf"), float("nan")
BITS = {2: np.uint16, 4: np.uint32, 8: np.uint64}


def run(op_type: str, version: int, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
    """The first output, or all of several."""
    found = ieee.apply(Application(op_type, version, inputs, attributes, (True,) * outputs))
    assert isinstance(found, Outputs), found
    return found.values[0] if outputs == 1 else found.values


def stuck(op_type: str, version: int, *inputs: Any, **attributes: Any) -> Stuck:
    found = ieee.apply(Application(op_type, version, inputs, attributes, (True,)))
    assert isinstance(found, Stuck)
    return found


def same_bits(found: Any, expected: Any) -> bool:
    """Equal to the last bit; NaNs count as equal whatever their payload."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return False
    nan = found != found
    code = BITS[found.dtype.itemsize]
    return bool(((found.view(code) == expected.view(code)) | (nan & (expected != expected))).all())


def noise(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def total(terms: Iterator[Any], empty: Any) -> Any:
    """The sum in order, beginning with the first term."""
    result = None
    for term in terms:
        result = term if result is None else result + term
    return empty if result is None else result


# ---- sums of products -------------------------------------------------------------------------


@table("dtype", FLOATS)
@table("shapes", [((3, 5), (5, 7)), ((2, 1, 3, 5), (3, 5, 2)), ((300,), (300, 2)), ((0, 3), (3, 2))])
def test_a_matrix_product_adds_in_the_written_order(dtype: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    a, b = noise(shapes[0], dtype), noise(shapes[1], dtype, 1)
    wide_a = a[None, :] if a.ndim == 1 else a
    head = np.broadcast_shapes(wide_a.shape[:-2], b.shape[:-2])
    x, y = np.broadcast_to(wide_a, (*head, *wide_a.shape[-2:])), np.broadcast_to(b, (*head, *b.shape[-2:]))
    expected = np.zeros((*head, x.shape[-2], y.shape[-1]), dtype)
    for h in np.ndindex(head):
        for i, j in itertools.product(range(x.shape[-2]), range(y.shape[-1])):
            expected[*h, i, j] = total((x[*h, i, k] * y[*h, k, j] for k in range(y.shape[-2])), dtype(0))
    found = run("MatMul", 13, a, b)
    assert same_bits(found, expected.reshape(found.shape))


def convolved(x: Any, w: Any, b: Any, s: Any, t: Any, pads: Any, group: int) -> Any:
    dtype = x.dtype.type
    p = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])])
    sizes = [(p.shape[2 + k] - (w.shape[2 + k] - 1) * t[k] - 1) // s[k] + 1 for k in range(2)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), dtype)
    per = w.shape[0] // group
    for n, m, i, j in np.ndindex(out.shape):
        terms = (
            w[m, z, u, v] * p[n, (m // per) * w.shape[1] + z, i * s[0] + u * t[0], j * s[1] + v * t[1]]
            for z, u, v in np.ndindex(w.shape[1:])
        )
        out[n, m, i, j] = total(terms, dtype(0)) + (b[m] if b is not None else dtype(0))
    return out


@table("dtype", FLOATS)
@table("group", [1, 2, 4])
def test_a_convolution_adds_row_major_over_channels_and_kernel_then_the_bias(dtype: Any, group: int) -> None:
    x, w, b = noise((2, 4, 7, 6), dtype), noise((8, 4 // group, 3, 2), dtype, 1), noise((8,), dtype, 2)
    found = run("Conv", 22, x, w, b, strides=(2, 1), dilations=(1, 2), pads=(1, 0, 1, 2), group=group)
    assert same_bits(found, convolved(x, w, b, (2, 1), (1, 2), (1, 0, 1, 2), group))


@pytest.mark.parametrize("shape", [(1, 64, 7, 7), (1, 3, 40, 40), (2, 16, 12, 12)])
def test_blocks_and_threads_do_not_show_in_the_bits(shape: tuple[int, ...]) -> None:
    x, w = noise(shape, np.float32), noise((96, shape[1], 1, 1), np.float32, 1)
    expected = np.zeros((shape[0], 96, *shape[2:]), np.float32)
    for z in range(shape[1]):
        term = w[None, :, z] * x[:, z][:, None]
        expected = term if z == 0 else expected + term
    assert same_bits(run("Conv", 11, x, w), expected)


def test_a_sum_of_negative_zeros_is_negative_zero() -> None:
    x = np.full((3, 2), -0.0, np.float32)
    assert np.signbit(run("MatMul", 13, x, np.ones((2, 2), np.float32))).all()
    assert np.signbit(run("ReduceSum", 11, x, axes=(1,))).all()


@pytest.mark.parametrize("shape", [(5000,), (3, 700), (4, 0)])
def test_a_sum_of_many_terms_is_sequential_not_pairwise(shape: tuple[int, ...]) -> None:
    x = noise(shape, np.float32)
    expected = [total(iter(row), np.float32(0)) for row in x.reshape(math.prod(shape[:-1]), shape[-1])]
    found = run("ReduceSum", 11, x, axes=(len(shape) - 1,), keepdims=0)
    assert same_bits(found, np.array(expected, np.float32).reshape(found.shape))


def test_a_sum_over_no_terms_is_zero() -> None:
    assert run("MatMul", 13, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)).tolist() == [[0.0] * 3] * 2


# ---- pools ------------------------------------------------------------------------------------


def windows(
    x: Any, kernel: tuple[int, int], s: tuple[int, int], pads: tuple[int, ...]
) -> Iterator[tuple[Any, list[Any]]]:
    sizes = [(x.shape[2 + k] + pads[k] + pads[k + 2] - kernel[k]) // s[k] + 1 for k in range(2)]
    for n, c, i, j in np.ndindex(*x.shape[:2], *sizes):
        places = [
            (i * s[0] + u - pads[0], j * s[1] + v - pads[1])
            for u, v in np.ndindex(kernel)
            if 0 <= i * s[0] + u - pads[0] < x.shape[2] and 0 <= j * s[1] + v - pads[1] < x.shape[3]
        ]
        yield (n, c, i, j), places


def test_the_mean_of_a_window_divides_the_sum_of_its_data() -> None:
    x = noise((1, 2, 7, 8), np.float32)
    found = run("AveragePool", 11, x, kernel_shape=(3, 2), strides=(2, 2), pads=(1, 1, 1, 0))
    for index, places in windows(x, (3, 2), (2, 2), (1, 1, 1, 0)):
        expected = total((x[index[0], index[1], a, b] for a, b in places), None) / np.float32(len(places))
        assert found[index] == expected


def test_a_maximum_pool_gives_the_first_of_equals_and_a_nan_wins() -> None:
    x = noise((1, 1, 6, 6), np.float32).round()
    x[0, 0, 2, 3] = np.nan
    found, places_found = run("MaxPool", 12, x, outputs=2, kernel_shape=(3, 3), pads=(1, 1, 1, 1))
    for index, places in windows(x, (3, 3), (1, 1), (1, 1, 1, 1)):
        best = places[0]
        for place in places[1:]:
            value, top = x[0, 0, *place], x[0, 0, *best]
            if not math.isnan(top) and (math.isnan(value) or value > top):
                best = place
        assert places_found[index] == best[0] * 6 + best[1]
        assert np.array_equal(found[index], x[0, 0, *best], equal_nan=True)


# ---- special values ---------------------------------------------------------------------------


def test_relu_keeps_nan_and_negative_zero() -> None:
    x = np.array([np.nan, -0.0, 0.0, -1.0, 2.0, -np.inf, np.inf], np.float32)
    found = run("Relu", 14, x)
    assert math.isnan(found[0])
    assert np.signbit(found[1])
    assert found[2:].tolist() == [0.0, 0.0, 2.0, 0.0, np.inf]


def test_attributes_that_differ_in_the_sign_of_zero_are_two() -> None:
    x = np.array([-1.0], np.float32)
    slopes = [run("LeakyRelu", 16, x, alpha=alpha) for alpha in (0.0, -0.0, 0.0)]
    assert [bool(np.signbit(it[0])) for it in slopes] == [True, False, True]
    stored = [run("Constant", 13, value_floats=(number,)) for number in (0.0, -0.0, np.nan, -np.nan)]
    assert [bool(np.signbit(it[0])) for it in stored] == [False, True, False, True]


def test_integers_wrap_and_their_quotient_truncates() -> None:
    big = np.array([2**31 - 1, -(2**31)], np.int32)
    assert run("Add", 14, big, np.array([1, -1], np.int32)).tolist() == [-(2**31), 2**31 - 1]
    assert run("Div", 14, np.array([-7, 7, -8], np.int32), np.array([2, -2, 3], np.int32)).tolist() == [-3, -3, -2]


@pytest.mark.filterwarnings("error")
def test_no_warning_of_numpy_escapes() -> None:
    zero, one = np.zeros(3, np.float32), np.ones(3, np.float32)
    assert np.isinf(run("Div", 14, one, zero)).all()
    assert np.isnan(run("Div", 14, zero, zero)).all()
    assert np.isinf(run("Mul", 14, np.full(3, 3e38, np.float32), np.full(3, 10, np.float32))).all()


def test_a_float_outside_the_integer_type_leaves_the_element_open() -> None:
    x = np.array([1.5, np.nan, 3e9, -1e30], np.float32)
    found = ieee.apply(Application("Cast", 13, (x,), {"to": 6}, (True,)))
    assert isinstance(found, Outputs)
    (mask,) = found.free
    assert mask is not None
    assert mask.tolist() == [False, True, True, True]


def test_a_tensor_without_elements_gives_one() -> None:
    assert run("Relu", 14, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run("Transpose", 13, np.zeros((0, 3), np.float32), perm=(1, 0)).shape == (3, 0)


# ---- why there is no value --------------------------------------------------------------------


def test_a_violated_requirement_is_named_with_its_values() -> None:
    x, w = noise((1, 4, 5, 5), np.float32), noise((2, 3, 3, 3), np.float32)
    found = stuck("Conv", 11, x, w)
    assert (found.rule, found.premise) == ("Conv-11", "Each kernel reads the channels of its group.")
    assert "c = 4, cg = 3, group = 1" in found.message
    assert found.span.file == "5-operators/convolution.sonnx"


def test_a_wrong_rank_names_the_port() -> None:
    found = stuck("Conv", 11, noise((4,), np.float32), noise((2, 3, 3, 3), np.float32))
    assert found.premise == "X: T[n, c, d...]"
    assert "[4]" in found.message


def test_a_dimension_that_disagrees_names_its_value() -> None:
    x, w = noise((1, 3, 5, 5), np.float32), noise((2, 3, 3, 3), np.float32)
    found = stuck("Conv", 11, x, w, noise((5,), np.float32))
    assert found.premise == "B?: T[m]"
    assert "m = 2" in found.message


def test_two_element_types_where_one_is_meant_are_refused() -> None:
    assert stuck("Add", 14, np.ones(2, np.float32), np.ones(2, np.float64)).premise.startswith("B: T")


def test_an_element_type_that_the_version_does_not_admit_is_refused() -> None:
    whole = np.ones(2, np.int32)
    assert "int32" in stuck("Relu", 6, whole).message
    assert run("Relu", 14, whole).tolist() == [1, 1]


def test_an_index_that_data_puts_out_of_bounds_is_refused() -> None:
    x = noise((3, 2), np.float32)
    assert run("Gather", 13, x, np.array([0, -3])).shape == (2, 2)
    assert stuck("Gather", 13, x, np.array([0, 3])).rule == "Gather-13"
    assert stuck("Gather", 13, x, np.array([-4, 0])).rule == "Gather-13"


def test_an_operator_without_definition_is_named() -> None:
    with pytest.raises(Unsupported, match="NoOperator, version 10"):
        ieee.apply(Application("NoOperator", 10, (np.ones(1),), {}, (True,)))


def test_a_sequence_passes_through_identity_unchanged() -> None:
    items = Sequence(ValueType("tensor", "float"), (np.ones(2, np.float32), np.zeros(3, np.float32)))
    found = ieee.apply(Application("Identity", 25, (items,), {}, (True,)))
    assert isinstance(found, Outputs)
    assert identical(found.values[0], items)


def test_a_tensor_above_the_budget_is_refused_before_it_is_made_and_when_the_plan_is_known() -> None:
    x = np.ones((64, 64), np.float32)
    run("Relu", 14, x)
    with pytest.raises(MemoryError):
        ieee.apply(Application("Relu", 14, (x,), {}, (True,), 1000))
    with pytest.raises(MemoryError):
        ieee.apply(Application("Sigmoid", 13, (x,), {}, (True,), 1000))


# ---- plans ------------------------------------------------------------------------------------


def test_a_plan_whose_shape_depends_on_data_is_made_again_when_the_data_change() -> None:
    x = np.arange(12, dtype=np.float32)
    for shape in ([3, 4], [4, 3], [2, 6], [3, 4]):
        assert run("Reshape", 14, x, np.array(shape)).shape == tuple(shape)
    for count in (3, 0, 2):
        y = np.zeros(5, np.float32)
        y[:count] = 1
        assert run("NonZero", 13, y).tolist() == [list(range(count))]


@table("version", [10, 13, 18, 19])
@table(("scale", "said"), [(NAN, "A NaN or an infinity"), (INF, "A NaN or an infinity"), (-1.0, "-1")])
def test_a_scale_of_resize_that_is_no_positive_number_is_refused(version: int, scale: float, said: str) -> None:
    scales = np.asarray([1, scale], np.float32)
    found = stuck("Resize", version, noise((1, 4), np.float32), *(() if version == 10 else (None,)), scales)
    assert said in found.message


@pytest.mark.parametrize("version", [10, 13, 19])
def test_an_output_that_no_machine_can_address_is_a_memory_error(version: int) -> None:
    inputs = (noise((1, 4), np.float32), *(() if version == 10 else (None,)), np.asarray([1, 1e30], np.float32))
    with pytest.raises(MemoryError):
        ieee.apply(Application("Resize", version, inputs, {}, (True,)))


def test_outputs_are_read_only_and_inputs_stay_as_they_are() -> None:
    x = noise((2, 3), np.float32)
    before = x.copy()
    moved = run("Transpose", 13, x, perm=(1, 0)), run("Identity", 13, x), run("Reshape", 14, x, np.array([2, 3]))
    for found in (run("Relu", 14, x), *moved, run("Add", 14, x, x)):
        assert not found.flags.writeable
    assert x.flags.writeable
    assert np.array_equal(x, before)


def test_what_only_moves_elements_is_a_view_of_the_input() -> None:
    x = noise((4, 6), np.float32)
    assert np.shares_memory(run("Transpose", 13, x, perm=(1, 0)), x)
    assert np.shares_memory(run("Reshape", 14, x, np.array([3, 8])), x)
    assert np.shares_memory(run("Slice", 13, x, np.array([1]), np.array([3])), x)


def test_inputs_in_any_memory_order_give_the_same() -> None:
    x, y = noise((6, 4), np.float32), noise((6, 4), np.float32, 1)
    expected = run("Add", 14, x, y)
    assert same_bits(run("Add", 14, np.asfortranarray(x), y[::-1][::-1]), expected)


def test_a_replayed_plan_gives_the_bits_of_the_first_run() -> None:
    x, w = noise((1, 8, 9, 9), np.float32), noise((8, 8, 3, 3), np.float32, 1)
    first = run("Conv", 11, x, w, pads=(1, 1, 1, 1))
    assert same_bits(run("Conv", 11, x, w, pads=(1, 1, 1, 1)), first)
    assert not same_bits(run("Conv", 11, x + 1, w, pads=(1, 1, 1, 1)), first)


def test_one_thread_gives_the_bits_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    x, w = noise((1, 32, 30, 30), np.float32), noise((32, 32, 3, 3), np.float32, 1)
    first = run("Conv", 11, x, w)
    monkeypatch.setattr(ieee_plan, "threads", lambda: 1)
    assert same_bits(run("Conv", 11, x, w), first)


def test_a_repeated_small_application_is_not_compiled_again() -> None:
    x = np.ones((2, 2), np.float32)
    run("Add", 14, x, x)
    start = time.process_time()
    for _ in range(200):
        run("Add", 14, x, x)
    assert time.process_time() - start < 0.2


def test_a_view_that_no_machine_can_address_is_refused_as_any_tensor_is() -> None:
    pads, data = np.array([2**63 - 2, 3]), np.ones(1, np.int8)
    with pytest.raises(MemoryError, match="a tensor of 9223372036854775810 bytes"):
        ieee.apply(Application("Pad", 25, (data, pads), {"mode": "wrap"}, (True,)))


def test_a_view_counts_against_the_budget_as_the_tensor_that_it_is() -> None:
    one, shape = np.ones(1), np.array([1 << 20])
    with pytest.raises(MemoryError, match="a tensor of 8388608 bytes"):
        ieee.apply(Application("Expand", 13, (one, shape), {}, (True,), 1 << 20))
