"""Reductions give what the definition gives: in every bit where one order is as good as another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agreement, agrees, application, computed, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import reduction
from tables import table

TABLE = reduction.KERNELS
REDUCTIONS = sorted(name for name in TABLE if name.startswith("Reduce"))
FIRST_INPUT = {"ReduceSum": 13}


def along(op_type: str, version: int, x: Any, axes: tuple[int, ...] | None, **attributes: Any) -> Application:
    """A reduction along axes, an attribute or an input as the version has it."""
    if axes is None:
        return application(op_type, version, x, **attributes)
    if version < FIRST_INPUT.get(op_type, 18):
        return application(op_type, version, x, axes=axes, **attributes)
    return application(op_type, version, x, np.array(axes, np.int64), **attributes)


def exact(element: str, shape: tuple[int, ...], seed: int, least: int = -2) -> Any:
    """Small integers, whose sums and squares every type here holds."""
    low = 0 if element.startswith("uint") else least
    return np.random.default_rng(seed).integers(low, 3, shape).astype(DTYPES[element])


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reductions_of_integers_of_each_type_are_exact_in_every_shape(op_type: str) -> None:
    """Sums of exponentials agree where at most two are added."""
    long = 2 if op_type == "ReduceLogSumExp" else 5
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            x = exact(element, (3, long, 1), version, 0 if op_type == "ReduceLogSum" else -2)
            everything = [(1,), (-1, 1)] if op_type == "ReduceLogSumExp" else [None, (), (0, 2), (1,), (-1, 0, 1)]
            for axes in everything:
                for keepdims in (0, 1):
                    given = along(op_type, version, x, axes, keepdims=keepdims)
                    assert not (reason := agreement(TABLE, given)), (given, reason)
            for empty in (x[:0], x[:, :0]):
                assert not (reason := agreement(TABLE, along(op_type, version, empty, (0,)))), (
                    version,
                    element,
                    reason,
                )
            one = np.array(x[:1, :1]).reshape(())
            assert not (reason := agreement(TABLE, along(op_type, version, one, None))), (version, element, reason)
            if version >= FIRST_INPUT.get(op_type, 18):
                given = along(op_type, version, x, None, noop_with_empty_axes=1)
                assert not (reason := agreement(TABLE, given)), (given, reason)


@pytest.mark.parametrize("op_type", REDUCTIONS)
def test_reductions_of_at_most_two_elements_agree_on_provoking_values(op_type: str) -> None:
    """One order is the other one, so every bit is the same; that of -0.0 and -0.0 too."""
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            x = provoking(element, 200, version).reshape(100, 2)
            for given in (along(op_type, version, x, (1,)), along(op_type, version, x[:, :1], (-1,), keepdims=0)):
                assert not (reason := agreement(TABLE, given)), (version, element, reason)


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceMin", "ArgMax", "ArgMin"])
def test_extremes_agree_on_provoking_values_along_each_axis(op_type: str) -> None:
    for version in widest(op_type):
        for element in admitted(op_type, version, 0):
            x = provoking(element, 120, version).reshape(4, 5, 6)
            zeros = np.resize(np.array([0.0, -0.0, -0.0]), (3, 4)).astype(x.dtype)
            for axis in (0, 1, -1):
                if op_type.startswith("Arg"):
                    for last in (0, 1) if version >= 12 else (None,):
                        stated = {} if last is None else {"select_last_index": last}
                        agrees(op_type, version, x, axis=axis, **stated)
                        agrees(op_type, version, zeros, axis=axis % 2, keepdims=0, **stated)
                    continue
                for data in (x, zeros):
                    given = along(op_type, version, data, (axis % 2,))
                    assert not (reason := agreement(TABLE, given)), (element, reason)


def test_running_sums_are_those_of_the_definition_in_every_bit() -> None:
    for element in admitted("CumSum", 14, 0):
        x = provoking(element, 60, 3).reshape(3, 4, 5)
        for axis in (0, 1, -1):
            for reverse in (0, 1):
                for exclusive in (0, 1):
                    place = np.asarray(axis, np.int32)
                    agrees("CumSum", 14, x, place, reverse=reverse, exclusive=exclusive)
                    agrees("CumSum", 14, x[:, :0], place.reshape(1), reverse=reverse, exclusive=exclusive)


def test_sums_of_floats_of_16_bits_are_rounded_once() -> None:
    """The bits of 1000 ones: a sum that is rounded after each addition stops at 256 in bfloat16."""
    for element in ("bfloat16", "float16"):
        x = np.ones(1000, DTYPES[element])
        (found,) = computed(TABLE, along("ReduceSum", 13, x, None, keepdims=0))
        assert found == np.asarray(1000).astype(x.dtype)


def refusals() -> list[Application]:
    x = np.ones((2, 3), np.float32)
    axis = np.asarray(0, np.int64)
    found = [along(name, version, x, (2,)) for name in REDUCTIONS for version in widest(name)]
    found += [along(name, widest(name)[-1], x, (0, -2)) for name in REDUCTIONS]
    found += [along(name, widest(name)[-1], x, (0,), keepdims=2) for name in REDUCTIONS]
    found += [along(name, widest(name)[-1], x, (0,), noop_with_empty_axes=2) for name in REDUCTIONS]
    for name in ("ArgMax", "ArgMin"):
        found += [
            application(name, 13, x, axis=2),
            application(name, 13, x[:0], axis=0),
            application(name, 11, x[:0], axis=1),
            application(name, 13, x, keepdims=-1),
            application(name, 13, x, select_last_index=2),
            application(name, 13, x[0, 0].reshape(1)[0:0], axis=0),
        ]
    found += [
        application("CumSum", 14, x, axis + 2),
        application("CumSum", 14, x, np.zeros(2, np.int64)),
        application("CumSum", 14, x, axis, reverse=2),
        application("CumSum", 14, x, axis, exclusive=-1),
    ]
    return [
        Application(it.op_type, it.version, tuple(map(np.asarray, it.inputs)), it.attributes, (True,)) for it in found
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
