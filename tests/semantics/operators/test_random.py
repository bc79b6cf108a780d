from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.schemas import draws
from sonnx.semantics.operators.application import Application, Draw, Outputs, Stuck
from sonnx.semantics.operators.compiled import bound, ieee
from sonnx.semantics.operators.compiled.drawing import DRAWING
from sonnx.spec.language.syntax import clause
from sonnx.spec.library import specification

F, D, H = np.float32, np.float64, np.float16
CODES = {1: F, 10: H, 11: D, 16: bfloat16}


def _drawn(
    name: str, version: int, *inputs: Any, seed: int = 0, place: str = "/n", outputs: int = 1, **stated: Any
) -> Any:
    application = Application(name, version, inputs, stated, (True,) * outputs, draw=Draw(seed, place))
    done = ieee.apply(application)
    if isinstance(done, Stuck):
        return done
    assert isinstance(done, Outputs)
    return done.values[0] if outputs == 1 else done.values


def _premise(found: Any) -> str:
    assert isinstance(found, Stuck), found
    return found.premise


# ---- Draws --------------------------------------------------------------------------------------


def test_a_draw_follows_from_the_seed_and_the_place_of_the_node_alone() -> None:
    first = _drawn("RandomNormal", 22, shape=(50,))
    assert np.array_equal(first, _drawn("RandomNormal", 22, shape=(50,)))
    assert np.array_equal(first, _drawn("RandomNormal", 22, shape=(50,), seed=0))
    for other in (_drawn("RandomNormal", 22, shape=(50,), seed=1), _drawn("RandomNormal", 22, shape=(50,), place="/m")):
        assert not np.isin(other, first).any()


def test_the_attribute_seed_has_no_influence() -> None:
    assert np.array_equal(_drawn("RandomUniform", 1, shape=(9,)), ieee_with_attribute(5.0))


def ieee_with_attribute(seed: float) -> Any:
    done = ieee.apply(Application("RandomUniform", 1, (), {"shape": (9,), "seed": seed}, (True,), draw=Draw(0, "/n")))
    assert isinstance(done, Outputs)
    return done.values[0]


def test_every_element_that_is_drawn_is_left_open_and_no_other() -> None:
    x, on, off = np.ones((2, 3), F), np.array(True), np.array(False)
    for name, inputs, count in (("Multinomial", (x,), 1), ("Bernoulli", (x / 2,), 1), ("RandomNormalLike", (x,), 1)):
        done = ieee.apply(Application(name, 22, inputs, {}, (True,) * count))
        assert isinstance(done, Outputs)
        assert all(mask is not None and mask.all() for mask in done.free), name
    for training, free in ((on, True), (off, False)):
        done = ieee.apply(Application("Dropout", 22, (x, np.array(0.5, F), training), {}, (True, True)))
        assert isinstance(done, Outputs)
        assert any(mask is not None and mask.any() for mask in done.free) == free


@pytest.mark.parametrize("version", [1, 22])
def test_uniform_numbers_lie_between_the_boundaries_in_the_type_that_is_asked_for(version: int) -> None:
    for code, dtype in CODES.items():
        if version == 1 and code == 16:
            continue
        found = _drawn("RandomUniform", version, shape=(40, 5), low=-0.3, high=0.7, dtype=code)
        assert found.dtype == dtype
        assert found.shape == (40, 5)
        assert (found >= dtype(-0.3)).all()
        assert (found <= dtype(0.7)).all()
        assert len(np.unique(found)) > 50
        like = _drawn("RandomUniformLike", version, np.zeros((2, 0, 3), np.int64), dtype=code)
        assert like.dtype == dtype
        assert like.shape == (2, 0, 3)


def test_the_distributions_are_those_that_are_named() -> None:
    u = _drawn("RandomUniform", 22, shape=(20000,), low=1.0, high=3.0)
    assert abs(u.mean() - 2) < 0.02
    assert abs(u.std() - 2 / np.sqrt(12)) < 0.02
    n = _drawn("RandomNormal", 22, shape=(20000,), mean=-1.0, scale=4.0, dtype=11)
    assert abs(n.mean() + 1) < 0.1
    assert abs(n.std() - 4) < 0.1
    assert 0.66 < (abs(n + 1) < 4).mean() < 0.70
    p = np.array([0.1, 0.25, 0.65], F)
    counts = np.bincount(_drawn("Multinomial", 7, np.log(p)[None], sample_size=20000)[0], minlength=3)
    assert np.abs(counts / 20000 - p).max() < 0.01
    assert abs(_drawn("Bernoulli", 15, np.full((20000,), 0.1, F)).mean() - 0.1) < 0.01
    _, mask = _drawn("Dropout", 13, np.ones((20000,), F), np.array(0.3, F), np.array(True), outputs=2)
    assert abs(mask.mean() - 0.7) < 0.01


def test_normal_numbers_are_the_mean_where_the_deviation_is_zero() -> None:
    assert _drawn("RandomNormal", 22, shape=(3,), mean=2.5, scale=0.0).tolist() == [2.5] * 3


def test_multinomial_draws_only_what_has_a_probability() -> None:
    x = np.array([[0, -np.inf, -100, -np.inf], [-np.inf, -np.inf, -np.inf, -1e4]], D)
    found = _drawn("Multinomial", 22, x, sample_size=300, dtype=7)
    assert found.dtype == np.int64
    assert found.shape == (2, 300)
    assert set(found[0]) <= {0, 2}
    assert set(found[1]) == {3}
    assert _drawn("Multinomial", 22, x, sample_size=0).shape == (2, 0)
    assert _drawn("Multinomial", 22, x[:0], sample_size=4).shape == (0, 4)


def test_bernoulli_is_certain_at_0_and_1_in_every_type() -> None:
    p = np.array([0, -0.0, 1, 1, 0], F)
    for code, dtype in {**CODES, 9: np.bool_, 2: np.uint8, 7: np.int64, 13: np.uint64}.items():
        found = _drawn("Bernoulli", 22, p, dtype=code)
        assert found.dtype == dtype
        assert found.astype(int).tolist() == [0, 0, 1, 1, 0]
    assert _drawn("Bernoulli", 22, p.astype(H)).dtype == H


@pytest.mark.parametrize("version", [12, 13, 22])
def test_dropout_in_training_mode_scales_what_the_mask_keeps(version: int) -> None:
    x = np.array([[1, -2, np.inf], [4, np.nan, -6]] * 30, F)
    y, mask = _drawn("Dropout", version, x, np.array(0.75, D), np.array(True), outputs=2)
    assert mask.dtype == np.bool_
    assert 0 < mask.sum() < mask.size
    with np.errstate(invalid="ignore"):
        assert np.array_equal(y, F(4) * x * mask, equal_nan=True)
    y, mask = _drawn("Dropout", version, x, None, np.array(True), outputs=2)
    with np.errstate(invalid="ignore"):
        assert np.array_equal(y, F(2) * x * mask, equal_nan=True)


@pytest.mark.parametrize(("ratio", "training"), [(0, True), (0.5, False), (0.5, None), (None, None)])
def test_dropout_elsewhere_is_its_input_bit_for_bit(ratio: float | None, training: bool | None) -> None:
    x = np.array([-0.0, np.nan, np.inf, 1e-45, 3], F)
    given = [None if ratio is None else np.array(ratio, F), None if training is None else np.array(training)]
    y, mask = _drawn("Dropout", 22, x, *given, outputs=2)
    assert y.tobytes() == x.tobytes()
    assert mask.all()


REFUSED: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("RandomUniform", (), {"shape": (-1,)}, "sizes"),
    ("RandomUniform", (), {"shape": (1,), "low": 2.0}, "low is at most high"),
    ("RandomUniform", (), {"shape": (1,), "low": -np.inf}, "finite"),
    ("RandomUniform", (), {"shape": (1,), "high": np.nan}, "finite"),
    ("RandomUniform", (), {"shape": (1,), "dtype": 6}, "floating-point"),
    ("RandomUniformLike", (np.zeros(2, np.int32),), {}, "floating-point"),
    ("RandomNormal", (), {"shape": (1,), "scale": -1.0}, "not negative"),
    ("RandomNormal", (), {"shape": (1,), "mean": np.inf}, "finite"),
    ("RandomNormalLike", (np.zeros(2, np.bool_),), {}, "floating-point"),
    ("Multinomial", (np.full((2, 3), -np.inf, F),), {}, "outcome"),
    ("Multinomial", (np.zeros((2, 0), F),), {}, "outcome"),
    ("Multinomial", (np.array([[0, np.nan]], F),), {}, "NaN"),
    ("Multinomial", (np.array([[0, np.inf]], F),), {}, "infinity"),
    ("Multinomial", (np.zeros((1, 1), F),), {"sample_size": -1}, "sample_size"),
    ("Multinomial", (np.zeros((1, 1), F),), {"dtype": 1}, "int32"),
    ("Bernoulli", (np.array([1.5], F),), {}, "at most 1"),
    ("Bernoulli", (np.array([np.nan], F),), {}, "at least 0"),
    ("Bernoulli", (np.array([0.5], F),), {"dtype": 8}, "number of a type"),
    ("Dropout", (np.zeros(2, F), np.array(1, F), np.array(True)), {}, "less than 1"),
    ("Dropout", (np.zeros(2, F), np.array(np.nan, F), np.array(True)), {}, "less than 1"),
]


@pytest.mark.parametrize(("name", "inputs", "stated", "why"), REFUSED)
def test_what_has_no_distribution_is_refused(name: str, inputs: Any, stated: dict[str, Any], why: str) -> None:
    assert why in _premise(_drawn(name, 22, *inputs, **stated))


# ---- Bounds -------------------------------------------------------------------------------------


def test_bounds_know_what_is_drawn_from_an_interval_and_refuse_outcomes() -> None:
    for stated, least, most in (({"low": -2.0}, -2, 1), ({"low": 0.5, "high": 0.5}, 0.5, 0.5), ({}, 0, 1)):
        found = bound.apply(Application("RandomUniform", 22, (), {"shape": (2,), **stated}, (True,)))
        assert isinstance(found, bound.Bounds)
        (allowed,) = found.values
        assert isinstance(allowed, bound.Allowed)
        assert (allowed.least == least).all()
        assert (allowed.most == most).all()
        assert not allowed.maybe_nan.any()
    half = Application("Bernoulli", 22, (np.array([0.5], F),), {}, (True,))
    with pytest.raises(Unsupported, match="random outcome"):
        bound.apply(half)
    assert isinstance(bound.apply(replace(half, inputs=(np.array([0, 1], F),))), bound.Bounds)


def test_only_texts_that_draw_are_said_to_draw() -> None:
    assert draws("Multinomial", 7)
    assert draws("Dropout", 22)
    assert not draws("Dropout", 10)
    assert not draws("Relu", 14)
    assert not draws("Nothing", 1)
    assert not draws("Relu", None)


def test_what_the_text_says_is_drawn_is_what_can_be_drawn() -> None:
    functions = specification().functions
    assert {name for name in functions if clause(functions[name].clauses, "drawn")} == DRAWING.keys()
