"""Kernels that move elements: their outputs are those of the definition in every bit, and views where they can be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from fastpath_cases import agreement, agrees, application, chosen, computed, defaults, same, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Optional, Sequence
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError, Site
from sonnx.semantics.runtimes.fastpath.kernels import filling, shape
from tables import table

TABLE = {**shape.KERNELS, **filling.KERNELS}
VIEWS = ("Identity", "Dropout", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Split")


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def moving(x: Any) -> Iterator[tuple[Any, ...]]:
    """Applications on data of shape 2, 3, 4: operator, version, inputs; the attributes last."""
    yield "Identity", 25, x, {}
    yield "Reshape", 25, x, ints(0, -1, 2), {}
    yield "Flatten", 25, x, {"axis": -1}
    yield "Squeeze", 25, x[:1], ints(0), {}
    yield "Unsqueeze", 25, x, ints(-1, 0), {}
    yield "Transpose", 25, x, {"perm": (2, 0, 1)}
    for mode in ("constant", "reflect", "edge", "wrap"):
        yield "Pad", 25, x, ints(1, -1, 2, 0, 1, 3), x[0, 0, :1], {"mode": mode}
    yield "Pad", 25, x, ints(1, 2), None, ints(-1), {}


def older(x: Any) -> Iterator[tuple[Any, ...]]:
    """Applications of operators that admit fewer element types."""
    yield "Slice", 13, x, ints(9, 0), ints(-9, 2), ints(2, 0), ints(-2, 1), {}
    yield "Concat", 13, x, x[:, :0], x[:, 1:2], {"axis": -2}
    yield "Expand", 13, x[:, :1], ints(2, 1, 3, 1), {}
    yield "Tile", 13, x, ints(2, 0, 1), {}
    yield "Tile", 13, x, ints(2, 1, 3), {}


def test_elements_of_each_type_are_moved_as_they_are() -> None:
    for element in admitted("Identity", 25, 0):
        x = provoking(element, 24, 7).reshape(2, 3, 4)
        for *given, attributes in moving(x):
            agrees(*given, **attributes)
        if element in admitted("Slice", 13, 0):
            for *given, attributes in older(x):
                agrees(*given, **attributes)
            agrees("Split", 18, x, ints(3, 1), outputs=2, axis=2)


def test_constants_of_each_type_are_as_stated() -> None:
    for element in admitted("Identity", 25, 0):
        x = provoking(element, 6, 3).reshape(2, 3)
        agrees("Constant", 25, value=x)
        if element not in ("string", "complex64", "complex128"):
            agrees("ConstantOfShape", 25, ints(2, 3), value=x[0, :1])
    agrees("ConstantOfShape", 25, ints())
    agrees("Constant", 12, value_float=0.1)
    agrees("Constant", 12, value_floats=(0.1, math.inf))
    agrees("Constant", 12, value_int=-3)
    agrees("Constant", 12, value_ints=(1, 2**62))
    agrees("Constant", 12, value_string="ü")
    agrees("Constant", 12, value_strings=("a", ""))


def test_sequences_and_optionals_are_identical_to_themselves() -> None:
    kind, x = ValueType("tensor", "float"), np.ones(3, np.float32)
    agrees("Identity", 16, Sequence(kind, (x, x[:1])))
    agrees("Identity", 16, Optional(kind, None))


def test_empty_and_scalar_tensors_are_moved() -> None:
    empty, scalar = np.zeros((2, 0, 3), np.float32), np.asarray(7, np.float32)
    agrees("Reshape", 25, empty, ints(3, 0, 5), allowzero=1)
    agrees("Reshape", 25, empty, ints(0, 0, -1)[:2])
    agrees("Reshape", 25, scalar, ints(1, 1))
    agrees("Reshape", 25, scalar.reshape(1, 1), ints())
    agrees("Flatten", 25, empty, axis=2)
    agrees("Flatten", 25, scalar, axis=0)
    agrees("Transpose", 25, scalar)
    agrees("Squeeze", 25, scalar.reshape(1, 1))
    agrees("Unsqueeze", 25, scalar, np.int64(0).reshape(()))
    agrees("Slice", 13, empty, ints(0), ints(9), ints(1), ints(-1))
    agrees("Split", 18, empty, outputs=2, axis=1, num_outputs=2)
    agrees("Concat", 13, empty, empty, axis=0)
    agrees("Expand", 13, scalar, ints(2, 0))
    agrees("Expand", 13, scalar, ints())
    agrees("Tile", 13, scalar, ints())
    agrees("Pad", 25, scalar, ints())
    agrees("Pad", 25, empty, ints(0, 1, 0, 0, 1, 0), scalar)
    agrees("Shape", 25, scalar)
    agrees("Shape", 25, empty, start=-2, end=-1)
    agrees("Shape", 25, empty, start=2, end=1)
    agrees("Size", 25, empty)
    agrees("Size", 25, scalar)


def test_slices_agree_for_all_bounds_and_steps_around_an_axis() -> None:
    x = np.arange(5, dtype=np.float32)
    for start in (-7, -5, -1, 0, 2, 4, 5, 9):
        for end in (-(2**63), -6, -5, -1, 0, 3, 5, 2**63 - 1):
            for step in (1, 2, -1, -3):
                given = application("Slice", 13, x, ints(start), ints(end), None, ints(step))
                assert not (reason := agreement(TABLE, given)), (start, end, step, reason)


def test_ranges_agree_where_the_number_of_elements_is_at_an_edge() -> None:
    for element in admitted("Range", 27, 0):
        dtype = DTYPES[element]
        for start, limit, delta in ((0, 10, 3), (3, -4, -1), (1, 1, 1), (5, 1, 2), (0, 100, 7), (-3, 40, 1)):
            parts = [np.asarray(v).astype(dtype) for v in (start, limit, delta)]
            agrees("Range", 27, *parts)
            if element in ("float16", "bfloat16"):
                for stash in (1, 10, 11, 16):
                    agrees("Range", 27, *(np.asarray(v * 0.3).astype(dtype) for v in (0, 30, 1)), stash_type=stash)
            if element in admitted("Range", 11, 0):
                agrees("Range", 11, *parts)
    for start, limit, delta in ((0.0, 1.0, 0.1), (0.1, 0.7, 0.2), (1.0, 0.0, -0.3)):
        agrees("Range", 11, *(np.float32(v).reshape(()) for v in (start, limit, delta)))
        agrees("Range", 11, *(np.float64(v).reshape(1) for v in (start, limit, delta)))


def test_dropout_gives_its_input_and_a_mask() -> None:
    x = provoking("float", 12).reshape(3, 4)
    yes, ratio = np.asarray(True), np.float32(0.5).reshape(())
    for given in ((x, ratio), (x, ratio, ~yes), (x, ratio * 0, yes)):
        agrees("Dropout", 13, *given, outputs=2)
        agrees("Dropout", 13, *given)
    agrees("Dropout", 7, x, outputs=2)
    agrees("Dropout", 10, x, outputs=2)


# ---- memory -----------------------------------------------------------------------------------


@table("op_type", VIEWS)
def test_views_copy_nothing_and_cannot_be_written(op_type: str) -> None:
    x = np.ones((2, 3, 1), np.float32)
    inputs: dict[str, tuple[Any, ...]] = {
        "Reshape": (ints(-1),), "Squeeze": (ints(2),), "Unsqueeze": (ints(0),), "Slice": (ints(1), ints(3), ints(1))
    }  # fmt: skip
    attributes: dict[str, Any] = {"num_outputs": 2} if op_type == "Split" else {}
    given = application(
        op_type, widest(op_type)[-1], x, *inputs.get(op_type, ()), outputs=1 + (op_type == "Split"), **attributes
    )
    present = (True,) * len(given.inputs)
    stated = {**defaults(op_type, given.version), **attributes}
    site = Site(op_type, given.version, stated, (None,) * len(present), present, given.outputs)
    for found in chosen(TABLE, given).prepare(site)(given.inputs, np.empty):
        if isinstance(found, np.ndarray) and found.dtype != bool:
            assert np.shares_memory(found, x)
            assert x.flags.writeable
            assert not found.flags.writeable


def test_a_reshape_of_transposed_data_is_a_copy_in_row_major_order() -> None:
    x = provoking("float", 12).reshape(3, 4)
    (found,) = computed(TABLE, application("Reshape", 14, x.T, ints(2, 6)))
    assert same(found, np.ascontiguousarray(x.T).reshape(2, 6))


# ---- refusals ---------------------------------------------------------------------------------


def refusals() -> list[Application]:
    x, f = np.ones((2, 3), np.float32), np.float32(1).reshape(())
    return [
        application("Reshape", 14, x, ints(4)),
        application("Reshape", 14, x, ints(-1, -1)),
        application("Reshape", 14, x, ints(-2, 3)),
        application("Reshape", 14, x, ints(6, 1, 0)),
        application("Reshape", 14, x, ints(0, -1), allowzero=1),
        application("Reshape", 14, x, ints(2, 3), allowzero=2),
        application("Reshape", 14, x[:0], ints(0, -1)),
        application("Flatten", 13, x, axis=3),
        application("Flatten", 9, x, axis=-1),
        application("Transpose", 13, x, perm=(0, 0)),
        application("Squeeze", 13, x, ints(0)),
        application("Squeeze", 13, x, ints(2)),
        application("Squeeze", 1, x[:1], axes=(-2,)),
        application("Squeeze", 11, x[:1], axes=(0, -2)),
        application("Unsqueeze", 13, x, ints(0, 0)),
        application("Unsqueeze", 13, x, ints(3)),
        application("Unsqueeze", 1, x, axes=(-1,)),
        application("Slice", 13, x, ints(0), ints(1), ints(2)),
        application("Slice", 13, x, ints(0, 0), ints(1, 1), ints(1, -1)),
        application("Slice", 13, x, ints(0), ints(1), ints(0), ints(0)),
        application("Slice", 13, x, ints(0, 0, 0), ints(1, 1, 1)),
        application("Slice", 1, x, starts=(0,), ends=(1, 1)),
        application("Slice", 1, x, starts=(0,), ends=(1,), axes=(0, 1)),
        application("Split", 13, x, ints(1, 1), outputs=2, axis=1),
        application("Split", 13, x, ints(4, -1), outputs=2, axis=1),
        application("Split", 13, x, ints(3), outputs=2, axis=1),
        application("Split", 13, x, outputs=2, axis=1),
        application("Split", 13, x, outputs=2, axis=2),
        application("Split", 2, x, outputs=2, axis=1, split=(1, 1)),
        application("Split", 18, x, outputs=2),
        application("Split", 18, x, ints(1, 1), outputs=2, num_outputs=2),
        application("Split", 18, x, outputs=2, num_outputs=3),
        application("Split", 18, np.ones(3, np.float32), outputs=5, num_outputs=5),
        application("Dropout", 13, x, f, np.asarray(True)),
        application("Dropout", 13, x, f, np.asarray([False])),
        application("Dropout", 13, x, f.reshape(1)),
        application("Concat", 13, x, x[:, :2], axis=0),
        application("Concat", 13, x, x[0], axis=0),
        application("Concat", 13, x, x, axis=2),
        application("Concat", 13, f, f, axis=0),
        application("Constant", 12, value_int=1, value_float=1.0),
        application("ConstantOfShape", 9, ints(2, -1)),
        application("ConstantOfShape", 9, ints(2), value=ints(1, 2)),
        application("Expand", 13, x, ints(4)),
        application("Expand", 13, x, ints(-1, 1)),
        application("Tile", 13, x, ints(1)),
        application("Tile", 13, x, ints(1, -1)),
        application("Pad", 18, x, ints(1, 1)),
        application("Pad", 18, x, ints(1, 1), None, ints(2)),
        application("Pad", 18, x, ints(1, 1, 1, 1), None, ints(0, -2)),
        application("Pad", 18, x, ints(0, 0, -3, 0)),
        application("Pad", 18, x, ints(0, 0, 0, 3), mode="reflect"),
        application("Pad", 18, x[:0], ints(1, 0, 0, 0), mode="edge"),
        application("Pad", 18, x, ints(0, 0, 0, 0), mode="wrap"),
        application("Pad", 18, x, ints(0, 0, 0, 0), np.ones(2, np.float32)),
        application("Pad", 2, x, pads=(1, 1)),
        application("Range", 11, f, f, f * 0),
        application("Range", 11, f, f * np.inf, f),
        application("Range", 11, np.ones(2, np.float32), f, f),
        application("Range", 27, f, f, f, stash_type=2),
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)


# ---- exact data, and the wheel ----------------------------------------------------------------
