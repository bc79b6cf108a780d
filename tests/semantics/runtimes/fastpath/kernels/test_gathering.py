"""Gathered elements and slices are those of the definition in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agrees, application, computed, stuck
from fastpath_values import admitted, provoking
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import indexing
from tables import table

TABLE = indexing.KERNELS


def places(size: int, shape: tuple[int, ...], dtype: Any = np.int64) -> Any:
    """Positions along an axis, counted from either end."""
    return np.random.default_rng(size).integers(-size, size, shape).astype(dtype)


def test_elements_of_each_type_are_gathered_as_they_are() -> None:
    for element in admitted("Gather", 13, 0):
        x = provoking(element, 60, 3).reshape(3, 4, 5)
        for axis, kind in ((0, np.int32), (-2, np.int64), (2, np.int64)):
            size = x.shape[axis]
            for shape in ((2, 3), (4,), (), (0,), (1, 1, 1)):
                agrees("Gather", 13, x, np.asarray(places(size, shape, kind)), axis=axis)
            fitting = tuple(6 if k == axis % 3 else n - 1 for k, n in enumerate(x.shape))
            agrees("GatherElements", 13, x, places(size, fitting, kind), axis=axis)
        for width in (1, 2, 3):
            for batch in (0, 1):
                if batch + width <= 3:
                    agrees("GatherND", 13, x, places(3, (3, 2, width)), batch_dims=batch)
        if element in admitted("GatherND", 11, 0):
            agrees("GatherND", 11, x, places(3, (2,)))


def test_nothing_is_gathered_from_nothing() -> None:
    x = np.zeros((2, 0, 3), np.float32)
    agrees("Gather", 13, x, np.zeros((0, 2), np.int64), axis=1)
    agrees("Gather", 13, x, np.zeros((2,), np.int64), axis=0)
    agrees("Gather", 13, x, np.asarray(1, np.int64), axis=0)
    agrees("GatherElements", 13, x, np.zeros((2, 0, 3), np.int64), axis=1)
    agrees("GatherND", 13, x, np.zeros((4, 1), np.int64))
    agrees("GatherND", 13, x, np.zeros((0, 3), np.int64))


def test_one_slice_is_a_view() -> None:
    x = np.arange(12.0).reshape(3, 4)
    (found,) = computed(TABLE, application("Gather", 13, x, np.asarray(-1, np.int64), axis=1))
    assert np.shares_memory(found, x)
    assert not found.flags.writeable


def refusals() -> list[Application]:
    x = np.ones((2, 3), np.float32)

    def at(*values: int) -> Any:
        return np.array(values, np.int64)

    return [
        application("Gather", 13, x, at(2)),
        application("Gather", 13, x, at(-3)),
        application("Gather", 13, x, at(0), axis=2),
        application("Gather", 13, x, np.asarray(2, np.int64)),
        application("Gather", 13, np.asarray(x[0, 0]), at(0)),
        application("Gather", 13, x[:0], np.asarray(0, np.int64)),
        application("GatherElements", 13, x, at(0, 0, 2).reshape(1, 3)),
        application("GatherElements", 13, x, at(0, 0)),
        application("GatherElements", 13, x, np.zeros((1, 4), np.int64)),
        application("GatherElements", 13, x, at(0).reshape(1, 1), axis=-3),
        application("GatherND", 13, x, at(2).reshape(1, 1)),
        application("GatherND", 13, x, at(0, 3)),
        application("GatherND", 13, x, at(0, 0, 0)),
        application("GatherND", 13, x, np.zeros((1, 0), np.int64)),
        application("GatherND", 13, x, at(0), batch_dims=1),
        application("GatherND", 13, x, np.zeros((3, 1), np.int64), batch_dims=1),
        application("GatherND", 13, x, at(0), batch_dims=-1),
        application("GatherND", 11, x, np.asarray(0, np.int64)),
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
