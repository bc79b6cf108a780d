from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from applications import Case, applications
from fastpath_cases import agreement, computed, disagreements, every, unbroken, whole
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernels import normalization
from sonnx.semantics.runtimes.fastpath.kernels.normalization import KERNELS
from tables import table

F = np.float32
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.0, 1e30], F)
EXACT = ["BatchNormalization", "RMSNormalization", "LpNormalization", "LRN"]


def _powers(shape: tuple[int, ...], dtype: Any = F) -> Any:
    return (2.0 ** whole("p", shape, np.float64, -2, 2)).astype(dtype)


# ---- BatchNormalization -----------------------------------------------------------------------

BATCH = [7, 9, 14, 15]


def _batch(
    x: tuple[int, ...], outputs: int = 1, types: Any = (F, F, F), channels: Any = None, **attributes: Any
) -> Case:
    size = ((x[1],) if len(x) > 1 else (1,)) if channels is None else channels
    data = whole("x", x, types[0])
    parameters = [
        whole("s", size, types[1]),
        whole("b", size, types[1]),
        whole("m", size, types[2]),
        _powers(size, types[2]),
    ]
    return (data, *parameters), attributes, outputs


@pytest.mark.parametrize("version", BATCH)
def test_given_statistics_are_applied_bit_by_bit(version: int) -> None:
    cases = [
        _batch(x, epsilon=e) for x in ((2, 3, 5, 7), (4, 3), (0, 3, 2), (2, 0, 3), (5, 2, 1)) for e in (1e-5, 0.25)
    ]
    if version > 7:
        cases += [_batch((5,)), _batch((1,))]
    else:
        cases.append(_batch((2, 3, 4), channels=(3, 4), spatial=0))
    for dtype in FLOATS:
        cases.append(_batch((2, 3, 4), types=(dtype,) * 3))
    x, *rest = _batch((2, 8, 8))[0]
    cases.append(((np.random.default_rng(0).choice(SPECIAL, x.shape), *rest), {}, 1))
    cases.append(((x, *rest[:3], -rest[3]), {}, 1))
    assert not disagreements(KERNELS, "BatchNormalization", version, cases)


def test_blocks_of_channels_are_normalized_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalization, "BLOCK_BYTES", 100)
    assert not disagreements(KERNELS, "BatchNormalization", 15, [_batch((2, 7, 3)), _batch((3, 5)), _batch((5,))])


@pytest.mark.parametrize("version", [14, 15])
def test_inputs_of_different_types_agree_with_the_definition(version: int) -> None:
    types = [(a, b, c) for a in FLOATS for b in FLOATS for c in FLOATS if version == 15 or a == b]
    cases = [_batch((2, 2, 4), 1, t, training_mode=0) for t in types]
    exact = [t for t in types if version == 15 or ml_dtypes.bfloat16 not in t]
    cases += [_batch((2, 2, 4), 3, t, training_mode=1) for t in exact]
    assert not disagreements(KERNELS, "BatchNormalization", version, cases)


@pytest.mark.parametrize("version", [14, 15])
def test_statistics_of_exact_data_are_those_of_the_definition(version: int) -> None:
    more = [{"training_mode": 1}, {"training_mode": 1, "momentum": 0.25}]
    cases = [_batch(x, n, **a) for x in ((2, 3, 4), (4, 3), (8,), (2, 3, 2, 2)) for n in (1, 2, 3) for a in more]
    assert not disagreements(KERNELS, "BatchNormalization", version, cases)


def test_the_mean_of_float16_that_its_sum_would_overflow_is_finite_from_version_15_on() -> None:
    x, *rest = _batch((2, 2, 4), 3, (np.float16,) * 3)[0]
    case = ((np.full_like(x, 30000), *rest), {"training_mode": 1}, 3)
    assert not disagreements(KERNELS, "BatchNormalization", 15, [case])
    assert np.isfinite(computed(KERNELS, Application("BatchNormalization", 15, *case[:2], (True,) * 3))[1]).all()


# ---- layers, groups, instances, lines ---------------------------------------------------------


@pytest.mark.parametrize("stash", [1, 16])
@pytest.mark.parametrize("dtype", FLOATS)
def test_layers_of_exact_data_agree_with_the_definition(dtype: Any, stash: int) -> None:
    cases = []
    small = 1 if stash == 16 else 3  # so that the squares of bfloat16 are exact
    for x, axis in (((3, 4), -1), ((3, 2, 2), 1), ((2, 2), 0), ((4,), 0), ((3, 1), -1), ((0, 4), 1), ((2, 0), 1)):
        tail = x[axis:]
        for scale, bias in ((tail, tail), ((), None), (x[-1:], (1,))):
            inputs = [
                whole("x", x, dtype, -small, small),
                whole("s", scale, dtype),
                *([] if bias is None else [whole("b", bias, dtype)]),
            ]
            cases += [(tuple(inputs), {"axis": axis, "stash_type": stash, "epsilon": 0.5}, n) for n in (1, 2, 3)]
    assert not disagreements(KERNELS, "LayerNormalization", 17, cases)


@pytest.mark.parametrize("stash", [1, 10, 11, 16])
def test_roots_of_mean_squares_of_exact_data_agree_with_the_definition(stash: int) -> None:
    cases = [
        ((whole("x", x, a), whole("s", x[axis:], b)), {"axis": axis, "stash_type": stash, "epsilon": 0.5}, 1)
        for x, axis in (((3, 4), -1), ((3, 2, 4), 1), ((2, 2, 2), 0), ((3, 3, 3), 1), ((0, 4), 1), ((2, 0), -1))
        for a in FLOATS
        for b in FLOATS
    ]
    assert not disagreements(KERNELS, "RMSNormalization", 23, cases)


@table("stash", [1, 10, 11, 16])
@table(("version", "size"), [(18, 2), (21, 4)])
def test_groups_of_exact_data_agree_with_the_definition(version: int, size: int, stash: int) -> None:
    cases: list[Case] = []
    for dtype in FLOATS[: 3 if version == 18 else 4]:
        for x in ((2, 4, 2), (1, 4, 2, 2), (3, 4), (0, 4, 2), (2, 4, 0)):
            attributes: dict[str, Any] = {"num_groups": 2, "epsilon": 0.5}
            attributes |= {"stash_type": stash} if version == 21 else {}
            cases.append(
                ((whole("x", x, dtype), whole("s", (size,), dtype), whole("b", (size,), dtype)), attributes, 1)
            )
    assert not disagreements(KERNELS, "GroupNormalization", version, cases)


@pytest.mark.parametrize("version", [6, 22])
def test_instances_of_exact_data_agree_with_the_definition(version: int) -> None:
    cases: list[Case] = []
    for dtype in FLOATS:
        for x in ((2, 3, 4), (1, 2, 2, 4), (2, 3, 1), (2, 3), (0, 3, 4), (2, 3, 0)):
            parameters = whole("s", x[1:2], dtype), whole("b", x[1:2], dtype)
            cases.append(((whole("x", x, dtype), *parameters), {"epsilon": 0.5}, 1))
    assert not disagreements(KERNELS, "InstanceNormalization", version, cases)


@pytest.mark.parametrize("version", [1, 22])
@pytest.mark.parametrize("p", [1, 2])
def test_lines_of_exact_data_agree_with_the_definition(version: int, p: int) -> None:
    shapes = [((3, 5), 0), ((3, 5), -1), ((2, 3, 4), 1), ((2, 3, 4), -3), ((5,), 0), ((0, 3), 0), ((3, 0), 0)]
    cases: list[Case] = [((whole("x", x, t),), {"axis": a, "p": p}, 1) for t in FLOATS for x, a in shapes]
    cases.append(((np.zeros((2, 3), F),), {"axis": 1, "p": p}, 1))
    cases.append(((np.array([[0, -0.0], [np.inf, 1], [np.nan, 0], [-np.inf, 2]], F),), {"axis": 1, "p": p}, 1))
    assert not disagreements(KERNELS, "LpNormalization", version, cases)


@pytest.mark.parametrize("version", [1, 13])
def test_windows_of_channels_agree_with_the_definition(version: int) -> None:
    cases: list[Case] = []
    for dtype in FLOATS:
        for x in ((2, 7, 3), (1, 2, 2, 2), (3, 4), (0, 3, 2), (2, 0, 3)):
            for size in (1, 3, 4, 5, 9):
                cases.append(((whole("x", x, dtype),), {"size": size, "alpha": 0.5, "bias": 2.0}, 1))
    cases.append(((np.random.default_rng(1).choice(SPECIAL, (2, 5, 6)),), {"size": 3, "beta": 0.5}, 1))
    assert not disagreements(KERNELS, "LRN", version, cases)


@table(("op_type", "version"), every(KERNELS))
def test_cases_of_the_wheel_with_exact_sums_agree_with_the_definition(op_type: str, version: int) -> None:
    if op_type in EXACT:
        made = [a for a in applications(op_type, version, 0) if not a.attributes.get("training_mode")]
        assert not [r for a in made if (r := agreement(KERNELS, a))]


# ---- what is refused --------------------------------------------------------------------------


def _given(*shapes: tuple[int, ...], **attributes: Any) -> Case:
    return tuple(whole(k, shape) for k, shape in enumerate(shapes)), attributes, 1


C = ((2,),) * 4
BROKEN: dict[str, list[Case]] = {
    "BatchNormalization": [
        _given((), *C),
        _given((3,), *C),
        _given((2, 3), *C),
        _given((2, 2, 3), *C, spatial=0),
        (*_given((2, 2), *C)[:2], 2),
        (*_given((2, 2), *C)[:2], 3),
        (*_given((2, 2), *C)[:2], 4),
        (*_given((2, 2), *C)[:2], 5),
        (*_given((0, 2), *C, training_mode=1)[:2], 3),
        (*_given((2, 2, 0), *C, training_mode=1)[:2], 1),
        _given((2, 2), (2,), (2,), (3,), (2,)),
        _given((2,), (1,), (1,), (1,), (1,)),
    ],
    "LayerNormalization": [
        _given((2, 3), (3,), axis=2),
        _given((2, 3), (3,), axis=-3),
        _given((2, 3), (3,), stash_type=10),
        _given((2, 3), (2,)),
        _given((2, 3), (1, 2, 3)),
        _given((2, 3), (3,), (2,)),
        _given((), ()),
    ],
    "RMSNormalization": [
        _given((2, 3), (3,), axis=2),
        _given((2, 3), (3,), stash_type=2),
        _given((2, 3), (2,)),
        _given((), ()),
    ],
    "GroupNormalization": [
        _given((2, 4, 2), (4,), (4,), num_groups=0),
        _given((2, 4, 2), (4,), (4,), num_groups=3),
        _given((2, 4, 2), (4,), (4,), num_groups=2, stash_type=2),
        _given((2, 4, 2), (3,), (3,), num_groups=2),
        _given((2, 4, 2), (4,), (2,), num_groups=2),
        _given((4,), (4,), (4,), num_groups=2),
    ],
    "InstanceNormalization": [_given((2, 3, 2), (2,), (3,)), _given((2, 3, 2), (3,), (2,)), _given((3,), (3,), (3,))],
    "LpNormalization": [_given((2, 3), axis=2), _given((2, 3), axis=-3), _given(()), _given((2, 3), p=3)],
    "LRN": [_given((2, 3), size=0), _given((2,), size=1)],
}


@table(("op_type", "version"), every(KERNELS))
def test_each_requirement_is_demanded(op_type: str, version: int) -> None:
    assert not unbroken(op_type, version, BROKEN[op_type])
    assert not disagreements(KERNELS, op_type, version, BROKEN[op_type])
