from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tables import table

F = np.float32
INT_MAX, INT_MIN = 2**63 - 1, -(2**63)
Run = Callable[..., Any]


def _count(*shape: int) -> Any:
    return np.arange(int(np.prod(shape)), dtype=F).reshape(shape)


def _i(*values: int) -> Any:
    return np.array(values, np.int64)


@table("version", [4, 11, 13])
@table("axis", [0, 1, 2, -1, -3])
def test_concat_puts_the_inputs_one_after_the_other(version: int, axis: int, run: Run, same: Run) -> None:
    shapes = [[2, 3, 5] for _ in range(4)]
    for size, shape in zip((1, 0, 7, 4), shapes, strict=True):
        shape[axis] = size
    parts = [_count(*shape) + 100 * p for p, shape in enumerate(shapes)]
    same(run("Concat", version, *parts, axis=axis), np.concatenate(parts, axis))


def test_concat_of_one_tensor_is_that_tensor(run: Run, same: Run) -> None:
    x = np.array([b"a", b"bc"], object)
    same(run("Concat", 13, x, axis=0), x)
    same(run("Concat", 13, np.zeros((0,), bool), np.array([True]), axis=0), np.array([True]))


def test_concat_refuses_other_sizes_ranks_and_axes(refused: Run) -> None:
    assert "same size" in refused("Concat", 13, _count(2, 3), _count(2, 4), axis=0)
    assert "same number of axes" in refused("Concat", 13, _count(2, 3), _count(2), axis=0)
    assert "axis" in refused("Concat", 13, _count(2, 3), axis=2)
    assert "axis" in refused("Concat", 13, np.array(1, F), axis=0)


def test_constant_is_the_value_that_one_attribute_gives(run: Run, same: Run) -> None:
    x = np.array([[1, -2]], np.int8)
    for version in (9, 11, 12, 13, 19, 21, 23, 24, 25):
        same(run("Constant", version, value=x), x)
    same(run("Constant", 1, value=_count(2)), _count(2))
    for version in (12, 25):
        same(run("Constant", version, value_float=0.5), np.array(0.5, F))
        same(run("Constant", version, value_floats=(0.5, -1.0)), np.array([0.5, -1], F))
        same(run("Constant", version, value_int=-(2**63)), np.array(-(2**63)))
        same(run("Constant", version, value_ints=(3, 4, 5)), _i(3, 4, 5))
        same(run("Constant", version, value_ints=()), _i())
        same(run("Constant", version, value_string="ab"), np.array(b"ab", object))
        same(run("Constant", version, value_strings=("ab", "")), np.array([b"ab", b""], object))


def test_constant_refuses_none_and_two_attributes(refused: Run) -> None:
    assert "Exactly one" in refused("Constant", 13)
    assert "Exactly one" in refused("Constant", 13, value_int=1, value_float=1.0)
    assert "Exactly one" in refused("Constant", 11)


@pytest.mark.parametrize("version", [11, 12, 13, 25])
def test_constant_is_the_dense_tensor_that_a_sparse_one_stands_for(version: int, run: Run, same: Run) -> None:
    same(run("Constant", version, sparse_value=_count(2, 3)), _count(2, 3))


def test_constant_keeps_the_sign_of_zero_and_every_byte_of_a_text(run: Run, same: Run) -> None:
    same(run("Constant", 13, value_float=-0.0), np.array(-0.0, F))
    same(run("Constant", 13, value_floats=(-0.0, 0.0, 0.5)), np.array([-0.0, 0.0, 0.5], F))
    text = b"\xff\xfea".decode("utf-8", "surrogateescape")
    same(run("Constant", 13, value_string=text), np.array(b"\xff\xfea", object))
    same(run("Constant", 13, value_strings=(text, "")), np.array([b"\xff\xfea", b""], object))


@table("version", [9, 20, 21, 23, 24, 25])
def test_constant_of_shape_repeats_the_element_of_value(version: int, run: Run, same: Run) -> None:
    same(run("ConstantOfShape", version, _i(2, 3)), np.zeros((2, 3), F))
    same(run("ConstantOfShape", version, _i(2, 0), value=np.array([7], np.int32)), np.zeros((2, 0), np.int32))
    same(run("ConstantOfShape", version, _i(), value=np.array([[True]])), np.array(True))
    same(run("ConstantOfShape", version, _i(2), value=np.array(-0.0, F)), np.array([-0.0, -0.0], F))


def test_constant_of_shape_refuses_negative_sizes_and_long_values(refused: Run) -> None:
    assert "No size is negative." in refused("ConstantOfShape", 9, _i(2, -1))
    assert "one element" in refused("ConstantOfShape", 9, _i(2), value=np.zeros(2, F))


@table("version", [5, 13, 14, 19, 21, 23, 24, 25])
@table(
    ("shape", "wanted", "expected"),
    [((2, 3, 5), (6, 5), (6, 5)), ((2, 3, 5), (5, 3, 2), (5, 3, 2)), ((2, 3, 5), (-1,), (30,)),
     ((2, 3, 5), (0, -1), (2, 15)), ((2, 3, 5), (0, 0, -1, 1), (2, 3, 5, 1)), ((1, 1), (), ()), ((), (-1,), (1,)),
     ((), (1, 1), (1, 1)), ((0, 3), (-1, 3), (0, 3)), ((0, 3), (0, 5), (0, 5)), ((0, 3), (3, -1), (3, 0))],
)  # fmt: skip
def test_reshape_keeps_the_elements_in_row_major_order(
    version: int, shape: Any, wanted: Any, expected: Any, run: Run, same: Run
) -> None:
    x = _count(*shape)
    same(run("Reshape", version, x, np.array(wanted, np.int64)), x.reshape(expected))


def test_reshape_takes_0_literally_where_allowzero_is_1(run: Run, same: Run) -> None:
    x = np.zeros((0, 3), F)
    same(run("Reshape", 14, x, _i(3, 0), allowzero=1), np.zeros((3, 0), F))
    same(run("Reshape", 14, x, _i(0, 0, 7), allowzero=1), np.zeros((0, 0, 7), F))


@pytest.mark.parametrize("version", [5, 14])
def test_reshape_refuses_shapes_that_do_not_determine_the_result(version: int, refused: Run) -> None:
    assert "less than -1" in refused("Reshape", version, _count(6), _i(-2, -3))
    assert "At most one" in refused("Reshape", version, _count(6), _i(-1, -1))
    assert "same number of elements" in refused("Reshape", version, _count(6), _i(4))
    assert "same number of elements" in refused("Reshape", version, _count(6), _i(4, -1))
    assert "has an axis" in refused("Reshape", version, _count(6), _i(6, 0))
    assert "determine" in refused("Reshape", version, np.zeros((0, 3), F), _i(0, -1))


def test_reshape_14_refuses_0_beside_minus_1_where_allowzero_is_1(refused: Run) -> None:
    assert "both 0 and -1" in refused("Reshape", 14, np.zeros((0, 3), F), _i(0, -1), allowzero=1)
    assert "allowzero" in refused("Reshape", 14, _count(6), _i(6), allowzero=2)


@table("version", [1, 9, 11, 13, 21, 23, 24, 25])
@table("axis", [0, 1, 2, 3, -1, -3])
def test_flatten_makes_a_matrix(version: int, axis: int, run: Run, refused: Run, same: Run) -> None:
    x = _count(2, 3, 5)
    if axis < 0 and version < 11:
        assert "axis" in refused("Flatten", version, x, axis=axis)
        return
    rows = int(np.prod(x.shape[: axis if axis >= 0 else axis + 3]))
    same(run("Flatten", version, x, axis=axis), x.reshape(rows, -1))


def test_flatten_of_a_scalar_and_of_an_empty_tensor(run: Run, refused: Run, same: Run) -> None:
    same(run("Flatten", 13, np.array(3, F), axis=0), np.array([[3]], F))
    same(run("Flatten", 13, np.zeros((2, 0, 3), F), axis=2), np.zeros((0, 3), F))
    assert "axis" in refused("Flatten", 13, np.array(3, F))
    assert "axis" in refused("Flatten", 9, _count(2, 3), axis=3)


@table("version", [1, 13, 21, 23, 24, 25])
def test_transpose_permutes_the_axes(version: int, run: Run, same: Run) -> None:
    x = _count(2, 3, 5)
    same(run("Transpose", version, x), x.transpose())
    for perm in [(0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2)]:
        same(run("Transpose", version, x, perm=perm), x.transpose(perm))
    same(run("Transpose", version, np.array(1, F)), np.array(1, F))


@pytest.mark.parametrize("perm", [(0, 1), (0, 0, 1), (0, 1, 3), (-1, 0, 1)])
def test_transpose_refuses_what_is_no_permutation(perm: Any, refused: Run) -> None:
    assert "each axis once" in refused("Transpose", 13, _count(2, 3, 5), perm=perm)


def _squeeze(version: int, x: Any, axes: Any) -> tuple[Any, dict[str, Any]]:
    """The inputs and attributes of Squeeze and Unsqueeze: axes are an attribute before 13."""
    if axes is None:
        return (x,), {}
    return ((x,), {"axes": axes}) if version < 13 else ((x, np.array(axes, np.int64)), {})


@table("version", [1, 11, 13, 21, 23, 24, 25])
@table(
    ("axes", "expected"),
    [(None, (3,)), ((0,), (3, 1, 1)), ((3, 0), (3, 1)), ((-1,), (1, 3, 1)), ((), (1, 3, 1, 1)), ((2, 0, 3), (3,))],
)
def test_squeeze_removes_axes_of_size_1(
    version: int, axes: Any, expected: Any, run: Run, refused: Run, same: Run
) -> None:
    x = _count(1, 3, 1, 1)
    inputs, attributes = _squeeze(version, x, axes)
    if version == 1 and axes and min(axes) < 0:
        assert "axes" in refused("Squeeze", version, *inputs, **attributes)
    else:
        same(run("Squeeze", version, *inputs, **attributes), x.reshape(expected))


@pytest.mark.parametrize("version", [1, 11, 13])
def test_squeeze_refuses_other_sizes_repetitions_and_what_is_no_axis(version: int, refused: Run) -> None:
    for axes, word in (((1,), "size 1"), ((0, 0), "twice"), ((4,), "axes")):
        inputs, attributes = _squeeze(version, _count(1, 3, 1, 1), axes)
        assert word in refused("Squeeze", version, *inputs, **attributes)


@table("version", [1, 11, 13, 21, 23, 24, 25])
@table(
    ("axes", "expected"),
    [((0,), (1, 3, 5)), ((3, 0), (1, 3, 5, 1)), ((), (3, 5)), ((-1,), (3, 5, 1)), ((-3, 2), (3, 1, 1, 5))],
)
def test_unsqueeze_inserts_axes_of_size_1(
    version: int, axes: Any, expected: Any, run: Run, refused: Run, same: Run
) -> None:
    x = _count(3, 5)
    inputs, attributes = _squeeze(version, x, axes)
    if version == 1 and axes and min(axes) < 0:
        assert "axes" in refused("Unsqueeze", version, *inputs, **attributes)
    else:
        same(run("Unsqueeze", version, *inputs, **attributes), x.reshape(expected))


@pytest.mark.parametrize("version", [1, 11, 13])
def test_unsqueeze_refuses_repetitions_and_what_is_no_axis(version: int, refused: Run) -> None:
    for axes, word in (((0, 0), "twice"), ((3,), "axes")):
        inputs, attributes = _squeeze(version, _count(3, 5), axes)
        assert word in refused("Unsqueeze", version, *inputs, **attributes)
    if version >= 11:
        inputs, attributes = _squeeze(version, _count(3, 5), (0, -4))
        assert "twice" in refused("Unsqueeze", version, *inputs, **attributes)


@table("version", [1, 13, 15, 19, 21, 23, 24, 25])
def test_shape_lists_the_sizes(version: int, run: Run, same: Run) -> None:
    for shape in [(2, 3, 5), (), (0,), (4, 0, 2)]:
        same(run("Shape", version, np.zeros(shape, F)), np.array(shape, np.int64))


@table("start", [None, 0, 1, 2, 3, 4, 9, -1, -2, -3, -4, -9])
@table("end", [None, 0, 1, 2, 3, 4, 9, -1, -2, -3, -4, -9])
def test_shape_15_limits_start_and_end(start: int | None, end: int | None, run: Run, same: Run) -> None:
    given = {name: v for name, v in (("start", start), ("end", end)) if v is not None}
    same(run("Shape", 15, np.zeros((2, 3, 5), F), **given), np.array((2, 3, 5)[start or 0 : end], np.int64))


@table("version", [1, 11, 13])
@table("kind", [np.int32, np.int64])
@table("axis", [0, 1, 2, -1])
def test_gather_selects_along_an_axis(version: int, kind: Any, axis: int, run: Run, same: Run) -> None:
    x = _count(3, 4, 3)
    for indices in (np.array(1), np.array([2, 0, -1, -3]), np.array([[0, 0], [1, -2]]), np.zeros((0, 2))):
        indices = indices.astype(kind)
        same(run("Gather", version, x, indices, axis=axis), np.take(x, indices, axis))


def test_gather_refuses_indices_outside_the_axis(refused: Run, run: Run, same: Run) -> None:
    for index in (3, -4):
        assert "positions along the axis" in refused("Gather", 13, _count(3, 2), _i(0, index))
    assert "axis" in refused("Gather", 13, _count(3, 2), _i(0), axis=2)
    assert "axis" in refused("Gather", 13, np.array(1, F), _i(0))
    same(run("Gather", 13, np.zeros((0, 2), F), _i()), np.zeros((0, 2), F))


SLICES = [
    ((1, 0), (2, 3), (0, 1), (1, 2)), ((0, 1), (-1, 1000), None, None), ((-1,), (INT_MIN,), (1,), (-1,)),
    ((INT_MAX,), (INT_MIN,), (0,), (-2,)), ((1,), (INT_MAX,), (-1,), (3,)), ((3,), (1,), (1,), (1,)),
    ((1,), (3,), (1,), (-1,)), ((0, 0), (0, 0), None, None), ((4,), (0,), (1,), (-3,)), ((), (), None, None),
    ((-2, -3), (-1, -1), (1, 0), None), ((INT_MIN,), (INT_MAX,), (1,), (INT_MAX,)),
    ((INT_MAX,), (INT_MIN,), (1,), (INT_MIN,)),
]  # fmt: skip


@table("version", [1, 10, 11, 13])
@table(("starts", "ends", "axes", "steps"), SLICES)
def test_slice_is_that_of_numpy(
    version: int, starts: Any, ends: Any, axes: Any, steps: Any, run: Run, same: Run
) -> None:
    x = _count(4, 5, 2)
    if version == 1 and steps is not None:
        return
    index = [slice(None)] * 3
    for j, axis in enumerate(axes if axes is not None else range(len(starts))):
        index[axis] = slice(starts[j], ends[j], steps[j] if steps is not None else 1)
    if version == 1:
        given = {"starts": starts, "ends": ends} | ({"axes": axes} if axes is not None else {})
        same(run("Slice", 1, x, **given), x[tuple(index)])
    else:
        inputs = [None if v is None else np.array(v, np.int64) for v in (starts, ends, axes, steps)]
        same(run("Slice", version, x, *inputs), x[tuple(index)])


@pytest.mark.parametrize("version", [10, 11, 13])
def test_a_backward_slice_from_before_the_axis_starts_at_0(version: int, run: Run, same: Run) -> None:
    same(run("Slice", version, _count(3), _i(-10), _i(INT_MIN), _i(0), _i(-1)), np.array([0], F))
    same(run("Slice", version, np.zeros((0,), F), _i(0), _i(INT_MIN), _i(0), _i(-1)), np.zeros((0,), F))


def test_slice_takes_int32(run: Run, same: Run) -> None:
    given = [np.array([v], np.int32) for v in (2**31 - 1, -(2**31), 0, -1)]
    same(run("Slice", 13, _count(3), *given), np.array([2, 1, 0], F))


@pytest.mark.parametrize("version", [10, 11, 13])
def test_slice_refuses_step_0_and_repeated_axes(version: int, refused: Run) -> None:
    assert "No step is 0" in refused("Slice", version, _count(3), _i(0), _i(1), _i(0), _i(0))
    assert "twice" in refused("Slice", version, _count(3, 3), _i(0, 0), _i(1, 1), _i(0, -2))
    assert "axes" in refused("Slice", version, _count(3), _i(0), _i(1), _i(1))
    assert "axes" in refused("Slice", version, _count(3), _i(0, 0), _i(1, 1))


def test_slice_1_refuses_lists_of_different_lengths(refused: Run) -> None:
    assert "as many ends" in refused("Slice", 1, _count(3, 3), starts=(0, 0), ends=(1,))
    assert "as many axes" in refused("Slice", 1, _count(3, 3), starts=(0, 0), ends=(1, 1), axes=(0,))


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.float4_e2m1fn, ml_dtypes.bfloat16]
)
def test_narrow_elements_are_moved_unchanged(dtype: Any, run: Run, same: Run) -> None:
    x = np.array([[0, 1, 2], [3, 1, 0]]).astype(dtype)
    same(run("Transpose", 25, x), x.T)
    same(run("Reshape", 25, x, _i(3, 2)), x.reshape(3, 2))
    same(run("Unsqueeze", 25, x, _i(0)), x[None])
    same(run("Squeeze", 25, x[None], _i(0)), x)
    same(run("Flatten", 25, x), x)
    same(run("Identity", 25, x), x)
