from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case
from fastpath_cases import computed, disagreements, every, same, unbroken, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath import correlation
from sonnx.semantics.runtimes.fastpath.kernels.convolution import KERNELS

CONV, INTEGERS = [1, 11, 22], [np.uint8, np.int8]
FLOATS = [np.float32, np.float64, np.float16]


def _conv(
    x: tuple[int, ...], w: tuple[int, ...], bias: bool = False, dtype: Any = np.float32, **attributes: Any
) -> Case:
    inputs = [whole("x", x, dtype), whole("w", w, dtype), *([whole("b", w[:1], dtype)] if bias else [])]
    return tuple(inputs), attributes, 1


SHAPES = [
    _conv((2, 3, 5, 7), (4, 3, 1, 1), True),
    _conv((1, 4, 7, 5), (2, 4, 1, 1), strides=(2, 3)),
    _conv((1, 4, 5, 5), (6, 2, 1, 1), True, group=2),
    _conv((2, 3, 7, 11), (2, 3, 3, 2), True, pads=(1, 0, 2, 1), strides=(2, 3), dilations=(1, 2)),
    _conv((1, 6, 7, 7), (4, 3, 3, 3), True, group=2, pads=(1, 1, 1, 1)),
    _conv((2, 3, 7, 7), (3, 1, 3, 3), True, group=3, pads=(1, 1, 1, 1), strides=(2, 2)),
    _conv((1, 2, 9, 5), (6, 1, 2, 3), group=2, dilations=(3, 1), pads=(0, 2, 1, 0)),
    _conv((1, 3, 11), (2, 3, 5), True, pads=(4, 4), strides=(3,)),
    _conv((1, 3, 11), (3, 1, 2), True, strides=(5,), group=3),
    _conv((1, 2, 3, 5, 4), (3, 2, 2, 1, 3), True, pads=(1, 0, 1, 0, 2, 1), strides=(1, 2, 2)),
    _conv((1, 2, 4, 3, 4), (4, 1, 2, 2, 2), group=2, strides=(2, 1, 2)),
    _conv((1, 2, 4, 4), (3, 2, 2, 2), strides=(5, 5)),
    _conv((1, 1, 4, 4), (3, 1, 2, 2), True, pads=(3, 3, 3, 3)),
    *(_conv((1, 2, d, 7), (3, 2, 3, 2), auto_pad=word, strides=(s, 1)) for d in (5, 6) for s in (1, 2)
      for word in ("SAME_UPPER", "SAME_LOWER", "VALID")),
    _conv((1, 2, 6), (3, 2, 3), auto_pad="SAME_UPPER", dilations=(2,)),
    _conv((2, 5, 6, 7), (3, 5, 3, 2), True, pads=(2, 1, 0, 1), dilations=(1, 2)), _conv((1, 3, 7), (2, 3, 2)),
    _conv((0, 2, 5), (3, 2, 3)), _conv((1, 0, 5), (3, 0, 3), True), _conv((2, 2, 5), (0, 2, 3)),
    _conv((1, 0, 5), (3, 0, 1)), _conv((1, 2, 0), (3, 2, 1), pads=(1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("version", CONV)
def test_each_way_to_convolve_agrees_with_the_definition(version: int) -> None:
    assert not disagreements(KERNELS, "Conv", version, SHAPES, signs=False)


@pytest.mark.parametrize("dtype", [*FLOATS, ml_dtypes.bfloat16])
def test_each_element_type_agrees_with_the_definition(dtype: Any) -> None:
    cases = [(tuple(x.astype(dtype) for x in inputs), a, n) for inputs, a, n in SHAPES[:9]]
    assert not disagreements(KERNELS, "Conv", 22, cases, signs=False)


def test_blocks_of_rows_images_and_channels_agree_with_the_definition(monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 700, 2000):
        monkeypatch.setattr(correlation, "COLUMN_BYTES", size)
        monkeypatch.setattr(correlation, "CHANNEL_BYTES", size)
        assert not disagreements(KERNELS, "Conv", 11, SHAPES[:11], signs=False)


def test_an_infinity_in_a_kernel_meets_the_padding() -> None:
    for case in (SHAPES[3], SHAPES[5]):
        x, w, *rest = case[0]
        w = w.copy()
        w.reshape(-1)[0], w.reshape(-1)[-1] = np.inf, np.nan
        assert not disagreements(KERNELS, "Conv", 11, [((x, w, *rest), *case[1:])], signs=False)


def test_data_that_is_no_contiguous_array_is_read_by_its_strides() -> None:
    for inputs, attributes, _ in SHAPES[:6]:
        x = np.asfortranarray(inputs[0])
        a = Application("Conv", 11, inputs, attributes, (True,))
        b = Application("Conv", 11, (x, *inputs[1:]), attributes, (True,))
        assert same(computed(KERNELS, b)[0], computed(KERNELS, a)[0])


@settings(derandomize=True, max_examples=60, deadline=None)
@given(st.data())
def test_small_convolutions_agree_with_the_definition_or_both_refuse(data: st.DataObject) -> None:
    axes = data.draw(st.integers(0, 3))
    small, sizes = st.integers(1, 3), st.integers(1, 5)
    group = data.draw(st.sampled_from([1, 1, 2, 3]))
    per = data.draw(st.integers(1, 2))
    kernel = data.draw(st.lists(small, min_size=axes, max_size=axes))
    attributes: dict[str, Any] = {"group": group}
    if data.draw(st.booleans()):
        attributes["strides"] = tuple(
            data.draw(st.lists(st.integers(0 if axes == 3 else 1, 3), min_size=axes, max_size=axes))
        )
    if data.draw(st.booleans()):
        attributes["dilations"] = tuple(data.draw(st.lists(small, min_size=axes, max_size=axes)))
    if data.draw(st.booleans()):
        attributes["pads"] = tuple(data.draw(st.lists(st.integers(0, 2), min_size=2 * axes, max_size=2 * axes)))
    else:
        attributes["auto_pad"] = data.draw(st.sampled_from(["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"]))
    x = (data.draw(small), group * per, *data.draw(st.lists(sizes, min_size=axes, max_size=axes)))
    case = _conv(x, (group * data.draw(small), per, *kernel), data.draw(st.booleans()), **attributes)
    assert not disagreements(KERNELS, "Conv", data.draw(st.sampled_from(CONV)), [case], signs=False)


def _broken(make: Any) -> list[Case]:
    return [
        make((1, 2), (3, 2)),
        make((1, 2, 5), (3, 2, 2, 2)),
        make((1, 2, 5), (3, 2, 2), group=0),
        make((1, 2, 5), (3, 1, 2)),
        make((1, 2, 5), (3, 1, 2), group=2),
        make((1, 2, 5), (3, 2, 2), kernel_shape=(3,)),
        make((1, 2, 5), (3, 2, 2), strides=(1, 1)),
        make((1, 2, 5), (3, 2, 2), dilations=(1, 1)),
        make((1, 2, 5), (3, 2, 2), pads=(1,)),
        make((1, 2, 5), (3, 2, 2), pads=(-1, 1)),
        make((1, 2, 5), (3, 2, 2), pads=(1, 1), auto_pad="VALID"),
        make((1, 2, 5), (3, 2, 2), auto_pad="SAME"),
        make((1, 2, 5), (3, 2, 2), strides=(0,)),
        make((1, 2, 5), (3, 2, 2), dilations=(0,)),
        make((1, 2, 5), (3, 2, 0)),
        make((1, 2, 5), (3, 2, 2), auto_pad="SAME_UPPER", strides=(2,)),
        make((1, 2, 5), (3, 2, 6)),
        make((1, 2, 5), (3, 2, 3), dilations=(3,)),
        make((1,), (3, 2, 3)),
    ]


def _bytes(x: tuple[int, ...], w: tuple[int, ...], zeros: tuple[Any, ...] = (), **attributes: Any) -> Case:
    return (whole("x", x, np.uint8, 0, 255), whole("w", w, np.int8, -128, 127), *zeros), attributes, 1


B = np.ones(2, np.float32)
BROKEN = {
    "Conv": [*_broken(_conv), ((*SHAPES[0][0][:2], B), {}, 1)],
    "ConvInteger": [
        *_broken(_bytes),
        _bytes((1, 2, 5), (3, 2, 2), (np.zeros(2, np.uint8),)),
        _bytes((1, 2, 5), (3, 2, 2), (None, np.zeros(2, np.int8))),
    ],
}


@pytest.mark.parametrize(("op_type", "version"), [it for it in every(KERNELS) if it[0] in BROKEN])
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, BROKEN[op_type])
    assert not disagreements(KERNELS, op_type, version, BROKEN[op_type], signs=False)


@pytest.mark.parametrize("x", INTEGERS)
@pytest.mark.parametrize("w", INTEGERS)
def test_integers_agree_with_the_definition(x: Any, w: Any) -> None:
    cases = []
    for (data, kernels, *_), attributes, _ in SHAPES:
        given_x, given_w = (whole("i", v.shape, t, *_range(t)) for v, t in ((data, x), (kernels, w)))
        for zeros in ((), (np.array(3, x),), (np.array([7], x), whole("z", given_w.shape[:1], w, *_range(w)))):
            cases.append(((given_x, given_w, *zeros), attributes, 1))
    assert not disagreements(KERNELS, "ConvInteger", 10, cases)


def _range(dtype: Any) -> tuple[int, int]:
    return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)


def test_sums_of_integers_that_float_cannot_hold_are_exact() -> None:
    channels = 2**24 // (255 * 255) + 40
    x, w = np.full((1, channels, 3), 255, np.uint8), np.full((1, channels, 1), 255, np.uint8)
    w[0, 0, 0] = 254
    (found,) = computed(KERNELS, Application("ConvInteger", 10, (x, w), {}, (True,)))
    assert found.tolist() == [[[channels * 255 * 255 - 255] * 3]]
    assert math.log2(channels * 255 * 255) > 24
