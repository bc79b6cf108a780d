"""The greatest element of a window of which only bounds are known lies between the bounds of the greatest ones."""

from __future__ import annotations

import numpy as np
import pytest
from sonnx.semantics.operators.application import Application, AttributeData, Outputs
from sonnx.semantics.operators.compiled import bound, ieee
from sonnx.semantics.operators.compiled.extremes import chosen, sought
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.library import extended, specification

POOLS: list[dict[str, AttributeData]] = [
    {"kernel_shape": (3, 3), "strides": (2, 2)},
    {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)},
    {"kernel_shape": (2, 2), "dilations": (2, 2)},
    {"kernel_shape": (3, 3), "ceil_mode": 1, "strides": (2, 2)},
]


@pytest.mark.parametrize("attributes", POOLS, ids=str)
@pytest.mark.parametrize("nans", [0.0, 0.05, 0.2])
def test_what_the_machine_gives_is_allowed(attributes: dict[str, AttributeData], nans: float) -> None:
    draw = np.random.default_rng(0)
    shape = (1, 2, 7, 7)
    least = draw.integers(-3, 4, shape).astype(np.float64)
    most = least + draw.integers(0, 3, shape)
    endless = draw.uniform(size=shape) < nans  # as far out as a number can be, and a NaN is farther
    least[endless], most[endless] = np.inf, np.inf
    maybe = draw.uniform(size=shape) < nans
    sure = maybe & (draw.uniform(size=shape) < 0.3)
    given = bound.Allowed(np.dtype(np.float32), least, most, maybe, sure, least, most)
    found = bound.apply(Application("MaxPool", 12, (least.astype(np.float32),), attributes, (True, True)), [given])
    assert isinstance(found, bound.Bounds)
    y, indices = found.values
    assert isinstance(y, bound.Allowed) and isinstance(indices, bound.Allowed)
    for _ in range(20):
        x = np.where(draw.uniform(size=shape) < 0.5, least, most).astype(np.float32)
        x[sure | (maybe & (draw.uniform(size=shape) < 0.5))] = np.nan
        done = ieee.apply(Application("MaxPool", 12, (x,), attributes, (True, True)))
        assert isinstance(done, Outputs)
        value, place = done.values
        assert isinstance(value, np.ndarray) and isinstance(place, np.ndarray)
        numbers = ~np.isnan(value)
        assert (numbers | y.maybe_nan).all() and not (numbers & y.nan).any()
        assert ((y.least <= value) & (value <= y.most))[numbers].all()
        assert ((indices.least <= place) & (place <= indices.most)).all()


@pytest.mark.parametrize("attributes", POOLS, ids=str)
def test_the_error_of_the_greatest_is_at_most_the_greatest_error(attributes: dict[str, AttributeData]) -> None:
    draw = np.random.default_rng(1)
    least = draw.uniform(-1, 1, (1, 2, 7, 7)).astype(np.float32).astype(np.float64)
    never = np.zeros(least.shape, np.bool_)
    given = bound.Allowed(np.dtype(np.float32), least, least + 0.5, never, never, least, least + 0.5)
    found = bound.apply(Application("MaxPool", 12, (least.astype(np.float32),), attributes, (True,)), [given])
    assert isinstance(found, bound.Bounds)
    (y,) = found.values
    assert isinstance(y, bound.Allowed)
    assert float((y.most - y.least).max()) == 0.5


OWN = """operator own::Pool @ 1 (X: T[n, h]) -> Y: T "Another element of the window of two."
  source "a test"
  types T = float
  require enough: h > 3 "There are four elements." demanded SONNX
  view best[b < n, y < h - 3] = argmax(k < 2) X[b, y + k]
  Y[b < n, y < h - 3] = {result}
"""


@pytest.mark.parametrize(
    ("result", "asked", "itself"),
    [
        ("X[b, y + unflatten(best[b, y], [2])[0]]", True, False),
        ("X[b, y + 1 + best[b, y]]", True, False),
        ("X[b, best[b, y]] + X[b, best[b, 0]]", False, False),
        ("sum(k < 2) X[b, best[k, y]]", False, False),
    ],
)
def test_what_a_text_makes_of_a_position_is_seen(result: str, asked: bool, itself: bool) -> None:
    text = extended(specification(), {"own.sonnx": OWN.format(result=result)})
    operator = text.meanings.at("own::Pool", 1)
    assert isinstance(operator, CoreOperator)
    assert (sought(operator) is not None, "Y" in chosen(operator)) == (asked, itself)


def test_the_greatest_of_a_window_is_seen() -> None:
    for version in (1, 8, 12, 22):
        operator = specification().meanings.at("MaxPool", version)
        assert operator is not None and chosen(operator) == {"Y"}
