from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from fastpath_cases import computed, disagreements, every, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath import workers
from sonnx.semantics.runtimes.fastpath.kernels import pooling
from sonnx.semantics.runtimes.fastpath.kernels.pooling import KERNELS
from sonnx.semantics.runtimes.fastpath.windows import Window, place
from tables import table

POOLS = [(op_type, version) for op_type, version in every(KERNELS) if op_type != "GlobalAveragePool"]
AVERAGE = [version for op_type, version in POOLS if op_type == "AveragePool"]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1.0, 2.0], np.float32)


def _case(x: tuple[int, ...], outputs: int = 1, dtype: Any = np.float32, **attributes: Any) -> Case:
    return (whole("x", x, dtype),), attributes, outputs


def _special(x: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).choice(SPECIAL, x)


WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 7, 5), {"kernel_shape": (3, 2), "strides": (2, 1), "pads": (1, 0, 2, 1)}),
    ((1, 2, 8, 8), {"kernel_shape": (3, 3), "strides": (2, 2), "ceil_mode": 1}),
    ((1, 1, 5, 5), {"kernel_shape": (2, 2), "strides": (2, 2), "ceil_mode": 1, "pads": (0, 0, 1, 1)}),
    ((1, 2, 9), {"kernel_shape": (3,), "dilations": (2,), "pads": (1, 3)}),
    ((1, 2, 6), {"kernel_shape": (4,), "pads": (3, 3)}),
    ((1, 2, 3, 4, 5), {"kernel_shape": (2, 2, 3), "strides": (1, 2, 2)}),
    *(((1, 2, d, 5), {"kernel_shape": (3, 2), "strides": (s, 1), "auto_pad": word})
      for d in (5, 6) for s in (1, 2) for word in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    ((0, 2, 5), {"kernel_shape": (2,)}), ((2, 0, 5), {"kernel_shape": (2,)}),
]  # fmt: skip


@pytest.mark.parametrize(("op_type", "version"), POOLS)
def test_each_window_agrees_with_the_definition(op_type: str, version: int) -> None:
    more = [{}, {"count_include_pad": 1}] if op_type == "AveragePool" else [{}, {"storage_order": 1}]
    cases = [_case(x, n, **{**a, **extra}) for x, a in WINDOWS for extra in more for n in (1, 2)]
    assert not disagreements(KERNELS, op_type, version, cases, signs=False)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8])
def test_each_element_type_agrees_with_the_definition(dtype: Any) -> None:
    cases = [_case(x, n, dtype, **a) for x, a in WINDOWS[:6] for n in (1, 2)]
    assert not disagreements(KERNELS, "MaxPool", 22, cases)
    exact = _case((1, 2, 7), 1, dtype, kernel_shape=(4,), count_include_pad=1, pads=(3, 3))
    assert not disagreements(KERNELS, "AveragePool", 22, [exact], signs=False)


@table("outputs", [1, 2])
@table("version", [8, 12, 22])
def test_the_maximum_of_special_values_is_the_first_of_the_greatest(version: int, outputs: int) -> None:
    cases = [((_special(x, seed),), a, outputs) for seed in range(3) for x, a in WINDOWS[:6]]
    assert not disagreements(KERNELS, "MaxPool", version, cases)


ROWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 4, 9), {"kernel_shape": (2, 3), "strides": (1, 2), "pads": (0, 1, 0, 1)}),
    ((2, 2, 3, 10), {"kernel_shape": (1, 4), "strides": (1, 3), "pads": (0, 1, 0, 0)}),
    ((1, 2, 5, 11), {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
    ((2, 2, 1, 7), {"kernel_shape": (1, 3)}),
    ((2, 3, 12), {"kernel_shape": (5,), "pads": (2, 2)}),
    ((0, 3, 5, 9), {"kernel_shape": (2, 2)}),
]


@pytest.mark.parametrize("parts", [1, 3])
def test_a_window_at_the_end_of_a_row_does_not_see_the_next_one(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"THREADS": parts, "_BYTES": 1}.items():
        monkeypatch.setattr(workers, name, value)
    for x, attributes in ROWS:
        stated = (attributes.get(name) for name in ("kernel_shape", "strides", "dilations", "pads"))
        placed = place(Window(*stated, "NOTSET"), x[2:], attributes["kernel_shape"])
        assert pooling.inside(placed) != (0, 0)
        ends = whole("x", x, np.float32)
        ends[..., 0], ends[..., -1] = np.nan, np.inf
        spread = np.repeat(ends, 2, axis=-1)[..., ::2]
        for data in (_special(x, 4), ends, whole("x", x, np.float32), spread):
            assert not disagreements(KERNELS, "MaxPool", 12, [((data,), attributes, 1)])
        for data in (ends, whole("x", x, np.float32), spread):
            for counted in (0, 1):
                case = ((data,), {**attributes, "count_include_pad": counted}, 1)
                assert not disagreements(KERNELS, "AveragePool", 11, [case], signs=False)


def test_a_window_of_negative_infinities_gives_one_and_its_first_place() -> None:
    x = np.full((1, 1, 4), -np.inf, np.float32)
    assert not disagreements(KERNELS, "MaxPool", 12, [((x,), {"kernel_shape": (3,), "pads": (1, 1)}, 2)])


@pytest.mark.parametrize("version", AVERAGE)
def test_the_mean_of_special_values_is_that_of_the_definition(version: int) -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1.0, 2.0, -3.0], np.float32)
    cases = [((np.random.default_rng(seed).choice(values, x),), a, 1) for seed in range(3) for x, a in WINDOWS[:6]]
    assert not disagreements(KERNELS, "AveragePool", version, cases, signs=False)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_the_mean_of_zeros_has_the_sign_of_the_definition(dtype: Any) -> None:
    """Negative zeros alone have a negative mean, and the padding is a positive one."""
    rng = np.random.default_rng(5)
    zeros = [rng.choice(np.array([-0.0, -0.0, -0.0, 0.0], dtype), x) for x, _ in WINDOWS]
    for shown in (0, 1):
        cases = [((x,), {**a, "count_include_pad": shown}, 1) for x, (_, a) in zip(zeros, WINDOWS, strict=True)]
        assert not disagreements(KERNELS, "AveragePool", 22, cases)
    whole = [((x,), {}, 1) for x in (*zeros, np.full((2, 1, 3), -0.0, dtype)) if 0 not in x.shape[2:]]
    assert not disagreements(KERNELS, "GlobalAveragePool", 22, whole)


def test_a_count_beyond_the_greatest_number_of_float16_is_infinite() -> None:
    x = np.ones((1, 1, 70000), np.float16)
    (found,) = computed(KERNELS, Application("GlobalAveragePool", 22, (x,), {}, (True,)))
    assert np.isnan(found).all()


@settings(derandomize=True, max_examples=80, deadline=None)
@given(st.data())
def test_small_windows_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    op_type, version = data.draw(st.sampled_from(POOLS))
    axes = data.draw(st.integers(1, 2))
    lists = lambda low, high, n=axes: tuple(data.draw(st.lists(st.integers(low, high), min_size=n, max_size=n)))  # noqa: E731
    attributes: dict[str, Any] = {"kernel_shape": lists(1, 3)}
    if data.draw(st.booleans()):
        attributes["strides"] = lists(1, 3)
    if version >= 19 or (op_type == "MaxPool" and version >= 10):
        attributes["dilations"] = lists(1, 3)
    if version >= 10:
        attributes["ceil_mode"] = data.draw(st.integers(0, 1))
    if op_type == "AveragePool":
        attributes["count_include_pad"] = data.draw(st.integers(0, 1))
    if data.draw(st.booleans()):
        attributes["pads"] = lists(0, 3, 2 * axes)
    else:
        attributes["auto_pad"] = data.draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    outputs = data.draw(st.integers(1, 2))
    assert not disagreements(
        KERNELS, op_type, version, [_case((1, 2, *lists(1, 6)), outputs, **attributes)], signs=False
    )


K = (2,)
BROKEN = [
    _case((1, 2), kernel_shape=()),
    _case((1, 2, 5), kernel_shape=(2, 2)),
    _case((1, 2, 5), kernel_shape=K, strides=(1, 1)),
    _case((1, 2, 5), kernel_shape=K, dilations=(1, 1)),
    _case((1, 2, 5), kernel_shape=K, pads=(1,)),
    _case((1, 2, 5), kernel_shape=K, pads=(-1, 0)),
    _case((1, 2, 5), kernel_shape=K, pads=(0, 0), auto_pad="VALID"),
    _case((1, 2, 5), kernel_shape=K, auto_pad="SAME"),
    _case((1, 2, 5), kernel_shape=K, storage_order=2),
    _case((1, 2, 5), kernel_shape=K, ceil_mode=2),
    _case((1, 2, 5), kernel_shape=K, strides=(0,)),
    _case((1, 2, 5), kernel_shape=K, dilations=(0,)),
    _case((1, 2, 5), kernel_shape=(0,)),
    _case((1, 2, 5), kernel_shape=(6,)),
    _case((1, 2, 5), kernel_shape=K, strides=(2,), ceil_mode=1, auto_pad="VALID"),
    _case((1, 2, 3), kernel_shape=(1,), strides=(3,), ceil_mode=1, pads=(0, 3)),
    _case((1, 2, 3), kernel_shape=(1,), pads=(0, 1)),
    _case((1, 2, 1), kernel_shape=K, dilations=(4,), pads=(2, 2)),
    _case((1, 2, 0), kernel_shape=(1,), pads=(1, 0)),
]
GLOBAL = [_case((1, 2)), _case((1, 2, 3, 0)), _case((1,))]


@table(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    broken = GLOBAL if op_type == "GlobalAveragePool" else BROKEN
    assert not unbroken(op_type, version, broken)
    assert not disagreements(KERNELS, op_type, version, broken, signs=False)
