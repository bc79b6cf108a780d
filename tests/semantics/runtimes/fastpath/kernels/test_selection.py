"""Selected elements, their positions and one-hot vectors are those of the definition in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agrees, application, computed, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import selection
from tables import table

TABLE = selection.KERNELS


def test_the_greatest_and_the_least_agree_on_provoking_values_of_each_type() -> None:
    for version in widest("TopK"):
        for element in admitted("TopK", version, 0):
            x = provoking(element, 90, version).reshape(3, 6, 5)
            for axis in (0, 1, -1):
                for count in (0, 1, x.shape[axis]):
                    k = np.array([count], np.int64)
                    if version == 1:
                        agrees("TopK", 1, x, outputs=2, axis=axis, k=count)
                    elif version == 10:
                        agrees("TopK", 10, x, k, outputs=2, axis=axis)
                    else:
                        for largest in (0, 1):
                            agrees("TopK", version, x, k, outputs=2, axis=axis, largest=largest, sorted=1)


def test_few_of_many_are_those_that_come_first_among_equals() -> None:
    """Long rows, from which few are selected before they are sorted; with many equal elements, zeros and NaN."""
    rng = np.random.default_rng(5)
    for element in ("float", "double", "float16", "bfloat16", "int8", "uint64", "int64"):
        x = provoking(element, 3 * 700, 6).reshape(3, 700)
        x[1] = rng.choice(x[1, :6], 700)
        x[2] = x[2, 0]
        for largest in (0, 1):
            for count in (1, 3, 60):
                agrees("TopK", 24, x, np.array([count]), outputs=2, largest=largest)
                agrees("TopK", 24, x.T, np.array([count]), outputs=2, axis=0, largest=largest)


def test_elements_that_are_not_zero_are_found_in_each_type() -> None:
    for element in admitted("NonZero", 13, 0):
        x = provoking(element, 60, 2).reshape(3, 4, 5)
        agrees("NonZero", 13, x)
        agrees("NonZero", 13, x[:0])
        agrees("NonZero", 13, np.zeros((2, 2), x.dtype) if element != "string" else x[0])
        for at in range(8):
            agrees("NonZero", 13, x[0].reshape(-1)[at : at + 1].reshape(()))


def number(value: Any) -> bool:
    return isinstance(value, bytes) or bool(value == value)


def test_each_value_once_agrees_for_each_type() -> None:
    for version in widest("Unique"):
        for element in admitted("Unique", version, 0):
            some = [it for it in provoking(element, 40, 8).tolist() if number(it)]
            x = np.empty(24, provoking(element, 1, 1).dtype)
            x[:] = [some[k * k % 7 % len(some)] for k in range(24)]
            for in_order in (0,) if element.startswith("complex") else (0, 1):
                agrees("Unique", version, x.reshape(2, 3, 4), outputs=4, sorted=in_order)
                agrees("Unique", version, x.reshape(4, 6)[:, ::5], outputs=4, sorted=in_order, axis=0)
                agrees("Unique", version, x.reshape(2, 6, 2), outputs=4, sorted=in_order, axis=-2)


def test_each_value_once_agrees_for_zeros_and_empty_shapes() -> None:
    zeros = np.array([0.0, -0.0, 1.0, -0.0, -1.0, 1.0], np.float32)
    for in_order in (0, 1):
        for x in (zeros, zeros[::-1].copy(), zeros[1].reshape(())):
            agrees("Unique", 11, x, outputs=4, sorted=in_order)
        for size in ((0,), (0, 3), (3, 0), (1, 0)):
            agrees("Unique", 11, np.empty(size, np.float32), outputs=4, sorted=in_order)
            for axis in range(len(size)):
                agrees("Unique", 11, np.empty(size, np.float32), outputs=4, sorted=in_order, axis=axis)
        agrees("Unique", 11, np.array([[0.0, 1], [-0.0, 1], [0, -1]]), outputs=4, sorted=in_order, axis=0)
        mixed = np.random.default_rng(2).integers(-2, 3, (40, 3))
        agrees("Unique", 11, mixed, outputs=4, sorted=in_order, axis=0)
        agrees("Unique", 11, mixed, outputs=4, sorted=in_order, axis=1)


@pytest.mark.parametrize(
    ("x", "attributes"),
    [
        (np.array([1.0, np.nan]), {"sorted": 0}),
        (np.array([1.0, np.nan]), {}),
        (np.array([1j]), {"sorted": 1}),
        (np.ones(2), {"sorted": 2}),
        (np.ones(2), {"axis": 1}),
        (np.ones(()), {"axis": 0}),
    ],
)
def test_the_kernel_for_each_value_once_refuses_what_the_text_does(x: Any, attributes: dict[str, int]) -> None:
    case = application("Unique", 11, x, outputs=4, **attributes)
    assert stuck(case)
    with pytest.raises(KernelError):
        computed(TABLE, case)


def test_one_hot_vectors_agree_for_each_type_of_positions_and_values() -> None:
    version = widest("OneHot")[-1]
    for element in admitted("OneHot", version, 0):
        x = provoking(element, 60, 4) >> 2 if element == "uint64" else provoking(element, 60, 4)
        near = np.array([0, 1, 2, 3, 4, 5, 6, -1, -4, -5, -6] if not element.startswith("uint") else range(8))
        agrees("OneHot", version, x, np.array([5]), np.array([2.0, 3.0], np.float32))
        for data in (near.astype(x.dtype), near.astype(x.dtype).reshape(-1, 1), near[3:4].astype(x.dtype).reshape(())):
            for axis in range(-data.ndim - 1, data.ndim + 1):
                agrees("OneHot", version, data, np.asarray(5), np.array([2, 3], np.int8), axis=axis)
                if axis >= -1 and element in admitted("OneHot", 9, 0):
                    agrees("OneHot", 9, data, np.asarray(5), np.array([2, 3], np.int8), axis=axis)
    for element in admitted("OneHot", version, 2):
        agrees("OneHot", version, np.array([0, 2, 9]), np.asarray(4.7), provoking(element, 2, 1))
    for element in admitted("OneHot", version, 1):
        depth = np.asarray(3).astype(provoking(element, 1).dtype)
        agrees("OneHot", version, np.array([0, 2, 9]), depth, np.array([0, 1]))
    agrees("OneHot", version, np.array([0, -1]), np.asarray(-0.5), np.array([0, 1]))
    agrees("OneHot", version, np.zeros((0, 2), np.int64), np.asarray(3), np.array([0, 1]))


def refusals() -> list[Application]:
    x, i, pair = np.ones((2, 3), np.float32), np.array([0, 1]), np.array([0, 1])
    return [
        application("TopK", 24, x, np.array([4]), outputs=2),
        application("TopK", 24, x, np.array([-1]), outputs=2),
        application("TopK", 24, x, np.array([1, 1]), outputs=2),
        application("TopK", 24, x, np.array([1]), outputs=2, axis=2),
        application("TopK", 1, x, outputs=2, k=4),
        application("TopK", 1, x, outputs=2, k=-1),
        application("OneHot", 11, i, np.array([1, 2]), pair),
        application("OneHot", 11, i, np.asarray(-1), pair),
        application("OneHot", 11, i, np.asarray(np.nan), pair),
        application("OneHot", 11, i, np.asarray(np.inf), pair),
        application("OneHot", 11, i, np.asarray(2), pair, axis=2),
        application("OneHot", 9, i, np.asarray(2), pair, axis=-2),
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
