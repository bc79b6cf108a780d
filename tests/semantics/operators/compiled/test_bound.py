"""Bounds hold for every order of summation and for no wrong result; single operations have one value."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from any_order import BFLOAT, DOUBLE, FLOAT, HALF, KINDS, TYPES, chain, data, exact, results, times
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import bound, ieee
from sonnx.semantics.operators.compiled.bound import Allowed, Bounds, exactly
from sonnx.semantics.operators.compiled.bound import allowed as _allowed
from sonnx.semantics.operators.compiled.elements.bound import operation
from sonnx.semantics.operators.compiled.elements.bounds.functions import SHAPES, accuracy, unit
from sonnx.semantics.operators.compiled.elements.bounds.storage import packed
from sonnx.semantics.operators.compiled.elements.bounds.verdict import Verdict, judge
from sonnx.spec.library import specification
from tables import table

INF, NAN = float("inf"), float("nan")


def application(op_type: str, version: int, *inputs: Any, outputs: int = 1, **attributes: Any) -> Application:
    return Application(op_type, version, inputs, attributes, (True,) * outputs)


def bounds(op_type: str, version: int, *inputs: Any, given: Any = (), **attributes: Any) -> Allowed:
    found = bound.apply(application(op_type, version, *inputs, **attributes), given)
    assert isinstance(found, Bounds), found
    (allowed,) = found.values
    assert isinstance(allowed, Allowed)
    return allowed


def declared(op_type: str, version: int, *inputs: Any, **attributes: Any) -> Any:
    found = ieee.apply(application(op_type, version, *inputs, **attributes))
    assert isinstance(found, Outputs), found
    return found.values[0]


def tensor(values: Any, dtype: Any = np.float32) -> Any:
    return np.asarray(values, np.float64).astype(dtype)


def verdict(allowed: Allowed, value: Any) -> Verdict:
    return judge(allowed, tensor(value, allowed.type).reshape(allowed.least.shape))


def allows(allowed: Allowed, value: Any) -> bool:
    return verdict(allowed, value).holds


# ---- sums -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_dot_product_in_any_order_fused_or_in_a_wider_type_is_allowed(kind: str, dtype: Any) -> None:
    rng, choice = np.random.default_rng(7), random.Random(7)
    for count in (2, 3, 10, 30):
        a, b = data(kind, count, dtype, rng)
        allowed = bounds("MatMul", 13, a.reshape(1, count), b.reshape(count, 1))
        products = [times(exact(x), exact(y)) for x, y in zip(a, b, strict=True)]
        for way, result in results(products, dtype, choice):
            assert allows(allowed, float(result)), (count, way, float(result), allowed)


@table("dtype", TYPES, ids=str)
@table("where", ["first", "last"])
def test_the_bias_of_a_convolution_may_be_the_first_term_or_the_last(dtype: Any, where: str) -> None:
    rng, choice = np.random.default_rng(3), random.Random(3)
    a, b = data("random", 24, dtype, rng)
    bias = tensor([2.0**9 + 0.37], dtype)
    allowed = bounds("Conv", 22, a.reshape(1, 24, 1), b.reshape(1, 24, 1), bias)
    products = [times(exact(x), exact(y)) for x, y in zip(a, b, strict=True)]
    terms = [exact(bias[0]), *products] if where == "first" else [*products, exact(bias[0])]
    assert allows(allowed, float(chain(terms, dtype)))
    for way, result in results(terms, dtype, choice):
        assert allows(allowed, float(result)), way


def test_a_sum_with_a_guard_counts_the_terms_that_it_has() -> None:
    rng = np.random.default_rng(5)
    x, w = tensor(rng.standard_normal((1, 3, 5, 5))), tensor(rng.standard_normal((3, 2, 3, 3)))
    allowed = bounds("ConvTranspose", 11, x, w, strides=(2, 2))
    terms = np.maximum(np.ceil(np.log2(np.ones(1))), 1)
    assert judge(allowed, declared("ConvTranspose", 11, x, w, strides=(2, 2))).holds
    size = bounds("ConvTranspose", 11, np.abs(x), np.abs(w), strides=(2, 2)).most
    assert ((allowed.most - allowed.least) <= 2 * 14 * 2.0**-24 * size * terms).all(), "3 * 4 products at most"


@table("op_type", ["ReduceSum", "ReduceMean", "ReduceSumSquare", "ReduceL1"])
@table("dtype", [HALF, FLOAT, DOUBLE], ids=str)
def test_reductions_by_numpy_pairwise_are_allowed(op_type: str, dtype: Any) -> None:
    x = tensor(np.random.default_rng(1).standard_normal((3, 700)), dtype)
    axes = (np.asarray([1]),) if op_type == "ReduceSum" else ()
    attributes = {"keepdims": 0} if axes else {"keepdims": 0, "axes": (1,)}
    allowed = bounds(op_type, 13, x, *axes, **attributes)
    numpy: Any = {
        "ReduceSum": lambda: x.sum(axis=1),
        "ReduceMean": lambda: x.mean(axis=1),
        "ReduceSumSquare": lambda: (x * x).sum(axis=1),
        "ReduceL1": lambda: np.abs(x).sum(axis=1),
    }[op_type]()
    assert judge(allowed, numpy).holds


def test_data_that_sums_up_without_rounding_has_one_sum() -> None:
    rng = np.random.default_rng(2)
    a, b = tensor(rng.integers(-9, 9, (5, 40))), tensor(rng.integers(-9, 9, (40, 6)) / 8)
    allowed = bounds("MatMul", 13, a, b)
    assert (allowed.least == allowed.most).all() and (allowed.least == a.astype(float) @ b.astype(float)).all()


def test_integers_wrap_around_in_every_order() -> None:
    rng = np.random.default_rng(2)
    a, b = (
        rng.integers(-(2**31), 2**31, (3, 9)).astype(np.int32),
        rng.integers(-(2**31), 2**31, (9, 4)).astype(np.int32),
    )
    allowed = bounds("MatMul", 13, a, b)
    assert allowed.exact.all() and judge(allowed, declared("MatMul", 13, a, b)).holds


# ---- what is wrong lies outside ---------------------------------------------------------------


def _product(dtype: Any = np.float32) -> tuple[Any, Any, Allowed]:
    rng = np.random.default_rng(11)
    a, b = tensor(rng.standard_normal((6, 6)), dtype), tensor(rng.standard_normal((6, 6)), dtype)
    return a, b, bounds("MatMul", 13, a, b)


def test_a_dropped_last_term_is_found() -> None:
    a, b, allowed = _product()
    assert not judge(allowed, a[:, :-1] @ b[:-1]).allowed.any()


def test_swapped_axes_are_found() -> None:
    a, b, allowed = _product()
    assert judge(allowed, a @ b).holds
    assert not judge(allowed, a @ b.T).allowed.any()
    assert not judge(allowed, (a @ b).T.copy()).holds


@pytest.mark.parametrize(
    ("count", "dtype", "narrow"), [(64, FLOAT, HALF), (64, FLOAT, BFLOAT), (64, DOUBLE, FLOAT)], ids=str
)
def test_accumulation_in_a_narrower_type_is_found(count: int, dtype: Any, narrow: Any) -> None:
    a, b = data("random", count, dtype, np.random.default_rng(5))
    allowed = bounds("MatMul", 13, a.reshape(1, count), b.reshape(count, 1))
    products = [times(exact(x), exact(y)) for x, y in zip(a, b, strict=True)]
    assert not allows(allowed, float(chain(products, narrow)))


def test_results_flushed_to_zero_are_found() -> None:
    a = tensor([1e-39, 3e-40])
    assert not allows(bounds("Mul", 14, a, tensor([0.5, 0.5])), [0.0, 0.0])
    assert not allows(bounds("MatMul", 13, tensor([[1e-20, 1e-20]]), tensor([[3e-20], [4e-20]])), [0.0])


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_neighbour_of_a_single_operation_is_found(dtype: Any) -> None:
    a, b = tensor([1.1, 3.3, -0.7], dtype), tensor([0.3, 7.7, 0.9], dtype)
    for op_type in ("Add", "Sub", "Mul", "Div"):
        value = declared(op_type, 14, a, b)
        allowed = bounds(op_type, 14, a, b)
        code = value.view(f"u{dtype.itemsize}")
        for other in (code + 1, code - 1):
            assert not judge(allowed, other.view(dtype)).allowed.any()


# ---- one operation ----------------------------------------------------------------------------


def _provoking(dtype: Any, count: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(4)
    info = ml_dtypes.finfo(dtype)
    special = [0.0, -0.0, INF, -INF, NAN, 1.0, -1.0, float(info.max), -float(info.max), float(info.tiny), 0.1, 3.0]
    special += [float(info.smallest_subnormal), -float(info.smallest_subnormal), 1 + float(info.eps)]
    pairs = [(x, y) for x in special for y in special]
    wide = 2.0 ** rng.integers(int(info.minexp) // 2, int(info.maxexp) // 2, (2, count))
    a, b = rng.standard_normal((2, count)) * wide
    return (tensor([*z, *w], dtype) for z, w in zip(zip(*pairs, strict=True), (a, b), strict=True))  # type: ignore[return-value]


@table("dtype", TYPES, ids=str)
@table("op_type", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_an_operation_on_two_numbers_has_its_correctly_rounded_value_only(op_type: str, dtype: Any) -> None:
    a, b = _provoking(dtype)
    version = {"Max": 13, "Min": 13}.get(op_type, 14)
    allowed, value = bounds(op_type, version, a, b), declared(op_type, version, a, b)
    assert judge(allowed, value).holds
    either = (a == 0) & (b == 0) if op_type in ("Max", "Min") else np.zeros(a.shape, bool)
    assert (allowed.exact | either).all(), "of two zeros either is the greater one"


@table("dtype", TYPES, ids=str)
@table("op_type", ["Sqrt", "Abs", "Neg", "Floor", "Ceil", "Round", "Relu"])
def test_an_operation_on_one_number_has_its_correctly_rounded_value_only(op_type: str, dtype: Any) -> None:
    x, _ = _provoking(dtype)
    version = {"Round": 22, "Relu": 14}.get(op_type, 13)
    allowed, value = bounds(op_type, version, x), declared(op_type, version, x)
    assert judge(allowed, value).holds and allowed.exact.all()


# ---- functions --------------------------------------------------------------------------------


def test_every_function_that_is_not_exact_states_its_accuracy() -> None:
    functions = specification().functions
    stated = {name for name, f in functions.items() if f.accuracy is not None}
    assert stated == {*SHAPES, "power"}
    assert all(f.accuracy is None or f.accuracy.reason for f in functions.values())


def _value(name: str, x: float) -> float:
    return float(getattr(math, name)(x))


@table("dtype", [HALF, BFLOAT, FLOAT], ids=str)
@table("name", sorted(SHAPES))
def test_a_function_may_be_off_by_its_accuracy_and_no_more(name: str, dtype: Any) -> None:
    first, last = SHAPES[name].domain
    x = tensor(np.random.default_rng(8).uniform(max(first, -3.0), min(last, 3.0), 300), dtype)
    x = x[(x.astype(float) != SHAPES[name].exact) & (np.abs(x.astype(float)) < min(last, 3.0))]
    allowed = _allowed(operation(name, dtype)(x), dtype)
    value = np.asarray([_value(name, float(v)) for v in x])
    ulps, gap = accuracy(name), unit(value, dtype)
    for sign in (1, -1):
        for steps in (0, ulps - 1):
            near = np.maximum(value + sign * steps * gap, SHAPES[name].floor)
            assert judge(allowed, tensor(near, dtype)).holds
        far = tensor(value + sign * (ulps + 2.6) * gap, dtype)
        assert not judge(allowed, far).allowed.any()


@table("name", ["exp", "log", "atan", "tanh", "erf", "sin", "cos", "acos", "cosh", "tan"])
def test_the_bounds_of_an_interval_hold_the_values_in_it(name: str) -> None:
    rng = np.random.default_rng(9)
    first, last = (max(z, -6.0) if z < 0 else min(z, 6.0) for z in SHAPES[name].domain)
    ends = np.sort(rng.uniform(max(first, -6.0), last, (200, 2)) * [1, 1], axis=1)
    ends[:100, 1] = np.minimum(ends[:100, 0] + rng.uniform(0, 0.2, 100), last)
    sets = packed(ends[:, 0], ends[:, 1], ends[:, 0], ends[:, 1], None, None)
    with np.errstate(all="ignore"):
        allowed = _allowed(operation(name, FLOAT)(sets), FLOAT)
    for part in rng.uniform(0, 1, (20, 1)):
        x = ends[:, 0] + part[0] * (ends[:, 1] - ends[:, 0])
        value = tensor([_value(name, v) for v in x])
        assert judge(allowed, value).holds


def test_a_function_is_exact_where_its_value_is() -> None:
    assert bounds("Exp", 13, tensor([0.0, -INF, INF])).exact.all()
    assert bounds("Tanh", 13, tensor([0.0, INF, -INF, NAN])).exact.all()
    assert bounds("Pow", 13, tensor([5.0, 0.3, 0.0]), tensor([1.0, 0.0, 2.0])).exact.all()
    assert bounds("Log", 13, tensor([1.0, 0.0, -1.0])).exact.all()


# ---- infinities, NaN, zero --------------------------------------------------------------------


def test_a_sum_overflows_when_each_order_does_may_when_one_does_and_never_otherwise() -> None:
    big = 60000.0
    must = bounds("ReduceSum", 13, tensor([big] * 3, np.float16), keepdims=0)
    assert must.exact and must.least == INF
    may = bounds("ReduceSum", 13, tensor([big, big, -big], np.float16), keepdims=0)
    assert may.most == INF and allows(may, big) and allows(may, INF) and not may.maybe_nan
    assert not allows(may, -INF)
    both = bounds("ReduceSum", 13, tensor([big, big, -big, -big], np.float16), keepdims=0)
    assert both.maybe_nan and both.most == INF and both.least == -INF and not both.nan
    never = bounds("ReduceSum", 13, tensor([big, 5000.0], np.float16), keepdims=0)
    assert never.most < INF


def test_infinities_and_nans_among_the_terms_decide_the_sum() -> None:
    sums = bounds(
        "ReduceSum",
        13,
        tensor([[1, INF, 2], [INF, -INF, 1], [NAN, 1, 2], [-INF, -INF, 1]]),
        np.asarray([1]),
        keepdims=0,
    )
    assert sums.exact.all()
    assert sums.least[0] == INF and sums.nan[1] and sums.nan[2] and sums.most[3] == -INF
    a = tensor([[1.0, INF], [0.0, 1.0], [1.0, 2.0], [-INF, 1.0]])
    product = bounds("MatMul", 13, a, tensor([[2.0, INF], [1.0, 3.0]]))
    expected = declared("MatMul", 13, a, tensor([[2.0, INF], [1.0, 3.0]]))
    assert judge(product, expected).holds
    assert product.nan.tolist() == np.isnan(expected).tolist()
    assert (product.exact | np.isfinite(expected)).all()


def test_a_nan_among_products_is_one_whatever_the_other_factors_may_be() -> None:
    a, ones = tensor([[0.5, NAN], [0.5, 0.25]]), tensor(np.ones((2, 2)))
    for left, right, given in ((a, ones, [_between(a - 0.01, a + 0.01)]), (a, ones, [None, _between(ones, ones * 2)])):
        sums = bounds("MatMul", 13, left, right, given=given)
        assert sums.nan.tolist() == [[True, True], [False, False]]
    sums = bounds("MatMul", 13, ones, a.T, given=[None, _between(a.T - 0.01, a.T + 0.01)])
    assert sums.nan.tolist() == [[True, False], [True, False]]


@pytest.mark.parametrize("factor", [2.0, -2.0, 0.0])
def test_infinities_and_nans_of_a_sum_are_scaled_with_it(factor: float) -> None:
    """Whatever the numbers are that stand beside them."""
    a = tensor([[1, INF], [-INF, 2], [NAN, 1], [1, 2], [INF, -INF]])
    one, c = tensor([[1], [1]]), tensor([0.5])
    scaled = bounds("Gemm", 13, a, one, c, alpha=factor)
    expected = declared("Gemm", 13, a, one, c, alpha=factor)
    assert judge(scaled, expected).holds
    assert scaled.nan.tolist() == np.isnan(expected).tolist()
    assert (scaled.exact | np.isfinite(expected)).all()
    for wrong in (0.0, 1.0, -INF * factor if factor else INF):
        assert not judge(scaled, np.where(np.isfinite(expected), expected, tensor(wrong))).allowed[:3].all()


def test_the_sign_of_a_zero_is_kept_where_it_is_known() -> None:
    relu = bounds("Relu", 14, tensor([-0.0, 0.0]))
    assert judge(relu, tensor([-0.0, 0.0])).holds or judge(relu, tensor([0.0, 0.0])).holds
    neg = bounds("Neg", 13, tensor([0.0]))
    assert allows(neg, [-0.0]) and not allows(neg, [0.0])


def test_empty_tensors_and_rank_0_have_bounds() -> None:
    assert bounds("Add", 14, tensor(np.zeros((0, 3))), tensor(np.zeros((1, 3)))).least.shape == (0, 3)
    assert bounds("MatMul", 13, tensor(np.zeros((2, 0))), tensor(np.zeros((0, 3)))).exact.all()
    assert bounds("Add", 14, tensor(1.0), tensor(2.0)).least == 3.0
    assert judge(bounds("Neg", 13, tensor([])), tensor([])).worst is None


# ---- discontinuities --------------------------------------------------------------------------


def test_quantization_allows_both_neighbours_at_a_breakpoint_and_one_elsewhere() -> None:
    scale, zero = np.float32(0.1), np.asarray(np.uint8(0))
    near = [np.float32(k + 0.5) * scale for k in range(1, 40, 2)]
    x = next(
        v for k, v in zip(range(1, 40, 2), near, strict=True) if v / scale == k + 0.5 and _quotient(v, scale) < k + 0.5
    )
    allowed = bounds("QuantizeLinear", 13, tensor([x, x * 1.01]), np.asarray(scale), zero)
    odd = int(_quotient(x, scale))
    assert allowed.least.tolist() == [odd, odd + 1] and allowed.most.tolist() == [odd + 1, odd + 1]


def _quotient(a: Any, b: Any) -> Fraction:
    return Fraction(float(a)) / Fraction(float(b))


def _between(low: Any, high: Any, dtype: Any = np.float32) -> Allowed:
    made = exactly(tensor(low, dtype))
    ends = tensor(low, dtype).astype(float), tensor(high, dtype).astype(float)
    return Allowed(made.type, *ends, made.maybe_nan, made.nan, *ends)


def test_inputs_that_are_not_known_open_conditions_and_roundings() -> None:
    x = _between([-1.0, 0.4, 2.0], [1.0, 0.6, 3.0])
    plain = tensor([0.0, 0.5, 2.5])
    relu = bounds("Relu", 14, plain, given=[x])
    assert relu.least.tolist() == [0.0, 0.4000000059604645, 2.0] and relu.most.tolist()[2] == 3.0
    assert np.signbit(relu.least).tolist() == [True, False, False]  # a set with numbers below 0 has -0.0
    assert bounds("Round", 11, plain, given=[x]).most.tolist() == [1.0, 1.0, 3.0]
    greater = bounds("Greater", 13, plain, tensor([0.5, 0.7, 1.0]), given=[x])
    assert (greater.least.tolist(), greater.most.tolist()) == ([False, False, True], [True, False, True])
    leaky = bounds("LeakyRelu", 16, plain, given=[x], alpha=0.5)
    assert leaky.least[0] <= -0.5 and leaky.most[0] == 1.0
    cast = bounds("Cast", 13, plain, given=[x], to=7)
    assert (cast.least.tolist(), cast.most.tolist()) == ([-1, 0, 2], [1, 0, 3])


def test_an_open_choice_of_an_element_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="decides"):
        bounds("ArgMax", 13, tensor([0.0, 0.5]), given=[_between([0.0, 0.4], [1.0, 0.6])])
    assert bounds("ArgMax", 13, tensor([0.0, 0.5]), given=[exactly(tensor([0.0, 0.5]))]).least.tolist() == [1]


def test_bounds_of_inputs_go_through_products() -> None:
    rng = np.random.default_rng(6)
    a, b = tensor(rng.standard_normal((3, 8))), tensor(rng.standard_normal((8, 2)))
    off = tensor(np.abs(rng.standard_normal((3, 8))) * 1e-3)
    allowed = bounds("MatMul", 13, a, b, given=[_between(a - off, a + off)])
    for sign in rng.choice([-1, 1], (20, 3, 8)):
        moved = tensor(a + sign * off * 0.999)
        assert judge(allowed, moved @ b).holds
    assert not judge(allowed, (a + 3 * off) @ b + np.abs(off).sum() * np.abs(b).sum()).holds
    drift = tensor(np.abs(rng.standard_normal((8, 2))) * 1e-3)
    right = bounds("MatMul", 13, a, b, given=[None, _between(b - drift, b + drift)])
    both = bounds("MatMul", 13, a, b, given=[_between(a - off, a + off), _between(b - drift, b + drift)])
    for sign in rng.choice([-1, 1], (20, 8, 2)):
        moved = tensor(b + sign * drift * 0.999)
        assert judge(right, a @ moved).holds and judge(both, tensor(a + off * 0.999) @ moved).holds


def test_a_stuck_application_has_no_bounds() -> None:
    assert isinstance(bound.apply(application("MatMul", 13, tensor([[1.0]]), tensor([[1.0], [2.0]]))), Stuck)


# ---- verdicts ---------------------------------------------------------------------------------


def test_a_verdict_names_the_worst_element_its_distance_and_its_ratio() -> None:
    a, b, allowed = _product()
    value = (a @ b).copy()
    value[2, 3] += np.float32(0.25)
    found = judge(allowed, value, a @ b)
    assert not found.holds and found.worst == (2, 3) and found.ratio[2, 3] > 1000 and found.ulp[2, 3] > 1000
    assert found.declared is not None and found.declared.sum() == 35
    assert (found.ratio[found.allowed] <= 1).all()


def test_a_verdict_on_single_values_counts_in_numbers_of_the_type() -> None:
    allowed = exactly(tensor([1.0, -2.0, 0.0]))
    found = judge(allowed, tensor([1.0 + 2.0**-22, -2.0, 0.0]))
    assert found.ulp.tolist() == [2.0, 0.0, 0.0] and found.ratio.tolist() == [INF, 0.0, 0.0]
    assert judge(exactly(np.asarray([3, 250], np.uint8)), np.asarray([5, 250], np.uint8)).ulp.tolist() == [2.0, 0.0]
