from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.operators.application import Application
from sonnx.semantics.operators.compiled import bound
from sonnx.semantics.operators.compiled.elements.bounds.verdict import judge

F, D, H = np.float32, np.float64, np.float16
Run = Callable[..., Any]
Check = Callable[[Any, Any], None]
RNG = np.random.default_rng(14)

# ---- windows ------------------------------------------------------------------------------------

WINDOWS = {"HannWindow": (0.5, 0.5, 0.0), "HammingWindow": (25 / 46, 21 / 46, 0.0), "BlackmanWindow": (0.42, 0.5, 0.08)}


def _window(name: str, size: int, periodic: int) -> Any:
    """In double."""
    a, b, c = WINDOWS[name]
    angle = np.arange(size) * (2 * np.pi / max(size if periodic else size - 1, 1))
    return a - b * np.cos(angle) + c * np.cos(2 * angle)


@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("name", WINDOWS)
def test_windows_are_computed_in_float_and_their_bound_holds_for_double(name: str, periodic: int, run: Run) -> None:
    for size in (0, 2, 3, 4, 16, 37, 400):
        stated = {"periodic": periodic, "output_datatype": 11}
        expected = _window(name, size, periodic)
        found = run(name, 17, np.array(size), **stated)
        assert found.dtype == D
        np.testing.assert_allclose(found, expected, atol=1e-6)
        np.testing.assert_array_equal(found, found.astype(F))
        np.testing.assert_array_equal(run(name, 17, np.array(size), periodic=periodic), found.astype(F))
        allowed = bound.apply(Application(name, 17, (np.array(size),), stated, (True,))).values[0]
        assert judge(allowed, expected).holds
        assert not size or not judge(allowed, expected + 1e-5).holds


def test_windows_of_other_types_and_what_they_refuse(run: Run, refused: Run, same: Check) -> None:
    size = np.array([5], np.int32)
    same(run("HannWindow", 17, size, output_datatype=10, periodic=0), np.array([0, 0.5, 1, 0.5, 0], H))
    same(run("HannWindow", 17, size, output_datatype=7, periodic=0), np.array([0, 0, 1, 0, 0]))
    assert "one element alone" in refused("HannWindow", 17, np.array(1), periodic=0)
    assert "negative" in refused("HannWindow", 17, np.array(-1))
    assert "scalar" in refused("HannWindow", 17, np.array([1, 2]))
    assert "periodic" in refused("HannWindow", 17, size, periodic=2)
    for kind in (0, 8, 9, 14, 99):
        assert "output_datatype" in refused("HannWindow", 17, size, output_datatype=kind)
