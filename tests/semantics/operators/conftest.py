from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled.ieee import apply
from warm_fixtures import servers, shape_inference_is_warm

__all__ = ["servers", "shape_inference_is_warm"]
"""Fixtures of these folders."""


def _outcome(op_type: str, version: int, inputs: tuple[Any, ...], count: int, attributes: dict[str, Any]) -> Any:
    return apply(Application(op_type, version, inputs, attributes, (True,) * count))


@pytest.fixture(scope="session")
def run() -> Callable[..., Any]:
    """run("Add", 14, a, b, count=1, **attributes): the output, a tuple when count is given; fails if stuck."""

    def call(op_type: str, version: int, *inputs: Any, count: int = 0, **attributes: Any) -> Any:
        outcome = _outcome(op_type, version, inputs, count or 1, attributes)
        assert isinstance(outcome, Outputs), outcome
        return outcome.values if count else outcome.values[0]

    return call


@pytest.fixture(scope="session")
def refused() -> Callable[..., str]:
    """refused("Div", 14, a, b, count=1, **attributes): the premise that does not hold; fails if there is a result."""

    def call(op_type: str, version: int, *inputs: Any, count: int = 1, **attributes: Any) -> str:
        outcome = _outcome(op_type, version, inputs, count, attributes)
        assert isinstance(outcome, Stuck), outcome
        return outcome.premise

    return call


@pytest.fixture(scope="session")
def free() -> Callable[..., Any]:
    """free("Cast", 13, x, **attributes): which elements of the first output the text leaves open."""

    def call(op_type: str, version: int, *inputs: Any, **attributes: Any) -> Any:
        outcome = _outcome(op_type, version, inputs, 1, attributes)
        assert isinstance(outcome, Outputs), outcome
        mask = outcome.free[0] if outcome.free else None
        return np.zeros(outcome.values[0].shape, bool) if mask is None else mask

    return call


@pytest.fixture(scope="session")
def same() -> Callable[[Any, Any], None]:
    """same(found, expected): same shape, type and bits; all NaN are the same."""

    def check(found: Any, expected: Any) -> None:
        expected = np.asarray(expected)
        assert found.dtype == expected.dtype
        assert found.shape == expected.shape
        if found.dtype == object or found.dtype.kind in "iubc" or "int" in found.dtype.name:
            assert found.tolist() == expected.tolist()
            return
        a, b = found.astype(np.float64), expected.astype(np.float64)
        agree = (np.isnan(a) & np.isnan(b)) | ((a == b) & (np.signbit(a) == np.signbit(b)))
        assert agree.all(), (found, expected)

    return check
