from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

F, I64 = np.float32, np.int64
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
X = np.arange(2 * 7 * 3, dtype=F).reshape(2, 7, 3)


def _split(run: Run, version: int, x: Any, sizes: Any, count: int, **attributes: Any) -> Any:
    """Version 13 makes an input of the attribute split."""
    if version < 13:
        return run("Split", version, x, count=count, **({} if sizes is None else {"split": sizes}), **attributes)
    given = () if sizes is None else (np.array(sizes, I64),)
    return run("Split", version, x, *given, count=count, **attributes)


@pytest.mark.parametrize("version", [2, 11, 13, 18])
def test_the_parts_are_those_of_numpy(version: int, run: Run, same: Check) -> None:
    for axis in (1, -2):
        for found, part in zip(
            _split(run, version, X, (2, 4, 1), 3, axis=axis), np.split(X, [2, 6], axis), strict=True
        ):
            same(found, part)


@pytest.mark.parametrize("version", [2, 11, 13])
def test_without_sizes_the_parts_are_equal(version: int, run: Run, refused: Run, same: Check) -> None:
    for found, part in zip(_split(run, version, X, None, 3, axis=2), np.split(X, 3, 2), strict=True):
        same(found, part)
    assert "equal" in _split(refused, version, X, None, 2, axis=1)


def test_the_last_of_num_outputs_parts_is_smaller(run: Run, refused: Run) -> None:
    found = run("Split", 18, X, count=3, axis=1, num_outputs=3)
    assert [part.shape[1] for part in found] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(found, 1), X)
    assert "fit into the axis" in refused("Split", 18, np.ones(5, F), count=4, num_outputs=4)


@pytest.mark.parametrize("version", [2, 11, 13, 18])
def test_a_part_may_be_empty(version: int, run: Run) -> None:
    assert [part.shape for part in _split(run, version, np.ones((2, 0), F), (0, 0), 2, axis=1)] == [(2, 0), (2, 0)]
    assert [part.shape for part in _split(run, version, X, (0, 7), 2, axis=1)] == [(2, 0, 3), (2, 7, 3)]


def test_an_output_that_is_left_out_counts(run: Run) -> None:
    from sonnx.semantics.operators.application import Application, Outputs
    from sonnx.semantics.operators.compiled.ieee import apply

    found = apply(Application("Split", 11, (X,), {"axis": 2}, (True, False, True)))
    assert isinstance(found, Outputs)
    first, none, last = found.values
    assert none is None
    np.testing.assert_array_equal(np.asarray(first), X[..., :1])
    np.testing.assert_array_equal(np.asarray(last), X[..., 2:])


@pytest.mark.parametrize("version", [2, 11, 13, 18])
def test_sizes_that_do_not_fit_are_refused(version: int, refused: Run) -> None:
    assert "add up" in _split(refused, version, X, (2, 4), 2, axis=1)
    assert "not negative" in _split(refused, version, X, (8, -1), 2, axis=1)
    assert "for each output" in _split(refused, version, X, (3, 4), 3, axis=1)
    assert "axis" in _split(refused, version, X, (1, 1), 2, axis=3)
    assert "axis" in _split(refused, version, np.ones((), F), (1,), 1)


def test_split_and_num_outputs_exclude_each_other(refused: Run) -> None:
    assert "not both" in refused("Split", 18, X, count=3, axis=2)
    assert "not both" in refused("Split", 18, X, np.array([1, 1, 1]), count=3, axis=2, num_outputs=3)
    assert "number of outputs" in refused("Split", 18, X, count=3, axis=2, num_outputs=2)


def test_the_first_version_takes_sizes_from_an_attribute_or_an_input(run: Run, refused: Run) -> None:
    x = np.arange(5, dtype=np.float32)
    for sizes in ({"split": (2, 0, 3)}, np.array([2, 0, 3], np.float32)):
        given, stated = ((), sizes) if isinstance(sizes, dict) else ((sizes,), {})
        found = run("Split", 1, x, *given, count=3, axis=0, **stated)
        assert [part.tolist() for part in found] == [[0, 1], [], [2, 3, 4]]
        assert "size for each" in refused("Split", 1, x, *given, count=2, axis=0, **stated)
        assert "axis is given" in refused("Split", 1, x, *given, count=3, **stated)
        assert "add up" in refused("Split", 1, x[:4], *given, count=3, axis=0, **stated)
    equal = run("Split", 1, x[:4], count=2, axis=-1)
    assert [part.tolist() for part in equal] == [[0, 1], [2, 3]]
    assert "parts are equal" in refused("Split", 1, x, count=2, axis=0)
    ones = np.ones(5, np.float32)
    assert "given once" in refused("Split", 1, x, ones, count=5, axis=0, split=(1, 1, 1, 1, 1))
    assert "not negative" in refused("Split", 1, x, np.array([6, -1], np.float32), count=2, axis=0)
    for odd in (2.5, np.nan, np.inf):
        assert "integers" in refused("Split", 1, x, np.array([odd, 1], np.float32), count=2, axis=0)
