"""Verdicts on draws: inside what the text allows they are its freedom, outside they are a mismatch."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner
from onnx import helper
from random_draws import VERSIONS, case
from sampling import left, sampled
from sonnx.checker.runtimes.differential.comparison import Verdict, compare
from sonnx.checker.runtimes.differential.outcomes import Class, judge_engines
from sonnx.semantics.commands.replay import replay
from sonnx.semantics.commands.run import run
from sonnx.semantics.machine.judging import Applied, Judged, Standing, applied, judge
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.engines.registry import engine

F, H = np.float32, np.float16


def _judged(name: str, inputs: tuple[Any, ...], results: tuple[Any, ...], **stated: Any) -> list[Judged | None]:
    asked = applied(Application(name, 22, inputs, stated, (True,) * len(results)))
    assert isinstance(asked, Applied)
    return list(judge(asked, results))


def _standing(name: str, inputs: tuple[Any, ...], *results: Any, **stated: Any) -> list[Standing]:
    return [it.standing for it in _judged(name, inputs, results, **stated) if it is not None]


def test_uniform_numbers_are_free_between_the_boundaries_alone() -> None:
    stated = {"shape": (2,), "low": -1.0, "high": 0.1}
    for x in ([-1, 0.1], [0, -0.0], [-0.5, np.nextafter(F(0.1), F(0))]):
        assert _standing("RandomUniform", (), np.array(x, F), **stated) == [Standing.FREE]
    for x in ([-1, np.nextafter(F(0.1), F(1))], [0, np.nan], [0, -np.inf], [np.nextafter(F(-1), F(-2)), 0]):
        (it,) = _judged("RandomUniform", (), (np.array(x, F),), **stated)
        assert it is not None
        assert (it.standing, it.outside, it.free) == (Standing.OUTSIDE, 1, 1)


def test_normal_numbers_are_free_but_for_nan() -> None:
    assert _standing("RandomNormal", (), np.array([1e38, -np.inf], F), shape=(2,)) == [Standing.FREE]
    assert _standing("RandomNormal", (), np.array([0, np.nan], F), shape=(2,)) == [Standing.OUTSIDE]
    assert _standing("RandomNormal", (), np.array([3], F), shape=(1,), mean=3.0, scale=0.0) == [Standing.EXACT]
    assert _standing("RandomNormal", (), np.array([4], F), shape=(1,), mean=3.0, scale=0.0) == [Standing.OUTSIDE]


def test_another_shape_or_type_is_no_draw() -> None:
    assert _standing("RandomNormal", (), np.zeros((3,), F), shape=(2,)) == [Standing.OUTSIDE]
    assert _standing("RandomNormal", (), np.zeros((2,), H), shape=(2,)) == [Standing.OUTSIDE]


def test_multinomial_outcomes_without_a_probability_are_outside_wherever_they_lie() -> None:
    x = (np.array([[-np.inf, 0, -np.inf, 1, -np.inf]], F),)
    assert _standing("Multinomial", x, np.array([[1, 3, 3]], np.int32), sample_size=3) == [Standing.FREE]
    for k in (0, 2, 4, 5, -1, 1 << 30):
        (it,) = _judged("Multinomial", x, (np.array([[1, k, 3]], np.int32),), sample_size=3)
        assert it is not None
        assert (it.outside, it.free) == (1, 2), k


@pytest.mark.parametrize(("code", "dtype"), [(1, F), (9, np.bool_), (6, np.int32), (2, np.uint8)])
def test_bernoulli_is_0_or_1_and_certain_at_the_ends(code: int, dtype: Any) -> None:
    p = (np.array([0, 0.5, 1], F),)
    for x in ([0, 0, 1], [0, 1, 1]):
        assert _standing("Bernoulli", p, np.array(x).astype(dtype), dtype=code) == [Standing.FREE]
    for x in ([1, 0, 1], [0, 0, 0]):
        assert _standing("Bernoulli", p, np.array(x).astype(dtype), dtype=code) == [Standing.OUTSIDE]
    if dtype != np.bool_:
        assert _standing("Bernoulli", p, np.array([0, 2, 1]).astype(dtype), dtype=code) == [Standing.OUTSIDE]
    if dtype == F:
        assert _standing("Bernoulli", p, np.array([0, 0.5, 1], F), dtype=code) == [Standing.OUTSIDE]


def test_dropout_has_to_fit_its_own_mask() -> None:
    x, ratio, on = np.array([1, 2, -3], F), np.array(0.5, F), np.array(True)
    mask = np.array([True, False, True])
    assert _standing("Dropout", (x, ratio, on), np.array([2, 0, -6], F), mask) == [Standing.FREE, Standing.FREE]
    for y in ([2, 4, -6], [2, 0, 0], [1, 0, -6], [2, 0, -3]):
        assert _standing("Dropout", (x, ratio, on), np.array(y, F), mask)[0] is Standing.OUTSIDE, y


def test_dropout_that_shows_no_mask_is_scaled_or_nothing() -> None:
    x, ratio, on = np.array([1, 2, -3], F), np.array(0.5, F), np.array(True)
    for y in ([2, 0, -6], [0, 4, -0.0]):
        assert _standing("Dropout", (x, ratio, on), np.array(y, F)) == [Standing.FREE]
    for y in ([1, 0, -6], [2, 2, -6], [2, 4, np.nan]):
        assert _standing("Dropout", (x, ratio, on), np.array(y, F)) == [Standing.OUTSIDE]


def test_dropout_may_round_its_scale_once_or_twice() -> None:
    x, ratio, on = np.full((64,), 1.1, F), np.array(0.3, F), np.array(True)
    exact = (x.astype(np.float64) / (1 - float(ratio))).astype(F)
    assert _standing("Dropout", (x, ratio, on), exact, np.ones(64, np.bool_))[0] is Standing.FREE
    far = exact * F(1 + 1e-6)
    assert _standing("Dropout", (x, ratio, on), far, np.ones(64, np.bool_))[0] is Standing.OUTSIDE


# ---- Whole models -------------------------------------------------------------------------------


def _model(path: Path) -> bytes:
    graph = onnx.parser.parse_graph(
        "g (float[4] P, float[2,3] L) => (float[6] Y, int64[1,K] Z, int32[2,4] D)"
        "<bool t = {1}, float r = {0.25}, int64[1] s = {6}>"
        "{ X = RandomNormalLike <seed = 3.0> (L) A, M = Dropout (X, r, t) N = Not (M) C = Cast <to = 1> (N)"
        "  V = Add (A, C) Y = Reshape (V, s) B = Bernoulli (P) Z = NonZero (B) D = Multinomial <sample_size = 4> (L) }"
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    model.opset_import[0].version = 15
    onnx.save(model, path)
    return model.SerializeToString()


@pytest.fixture
def model(tmp_path: Path) -> Path:
    _model(tmp_path / "draws.onnx")
    np.savez(tmp_path / "in.npz", P=np.array([0.5, 0.5, 0.5, 0.5], F), L=np.array([[0, -np.inf, 1], [2, 2, 2]], F))
    return tmp_path / "draws.onnx"


def test_two_engines_that_draw_differently_agree(model: Path) -> None:
    """Nodes behind a draw are judged on the engine's own values; shapes that follow from draws are no difference."""
    source = model.read_bytes()
    for seed in range(3):
        feeds = dict(np.load(model.with_name("in.npz")))
        feeds["P"] = np.array([0.5, 0.25, 0.75, 0.5], F)[np.roll(np.arange(4), seed)]
        (it,) = compare(source, (engine("machine"), engine("numpy")), [("x", feeds)])
        assert it.verdict is Verdict.AGREE, it.reason


def test_a_runtime_whose_draws_are_allowed_is_no_mismatch(model: Path) -> None:
    pytest.importorskip("onnxruntime")
    feeds = dict(np.load(model.with_name("in.npz")))
    (it,) = compare(model.read_bytes(), (engine("machine"), engine("onnxruntime")), [("x", feeds)])
    assert it.verdict is not Verdict.DIVERGE, it.reason
    nodes = it.sides[1].nodes
    assert nodes
    assert not [it for n in nodes for _, it in n.outputs if it.standing in (Standing.OUTSIDE, Standing.UNDECIDED)]


def test_run_says_what_was_drawn_and_a_trace_of_it_can_be_replayed(model: Path) -> None:
    runner, trace, given = CliRunner(), model.with_name("t"), ["--input", str(model.with_name("in.npz"))]
    outputs = []
    for more in ([], ["--draws", "0"], ["--draws", "7"], ["--draws", "7", "--schedule", "random:3"]):
        out = model.with_name(f"o{len(outputs)}.npz")
        done = runner.invoke(run, [str(model), *given, *more, "--trace", str(trace), "--output", str(out)])
        assert done.exit_code == 0, done.output
        seed = 7 if "7" in more else 0
        assert f"random results drawn from seed {seed}: " in done.output.replace("\n", " ")
        replayed = runner.invoke(replay, [str(trace), str(model)])
        assert replayed.exit_code == 0, replayed.output
        outputs.append({name: data.tolist() for name, data in np.load(out).items()})
    assert outputs[0] == outputs[1] != outputs[2] == outputs[3]
    changed = trace.read_text().replace('"draws":7', '"draws":8')
    trace.write_text(changed)
    assert runner.invoke(replay, [str(trace), str(model)]).exit_code == 1


def test_draws_are_an_option_of_the_machine(model: Path) -> None:
    done = CliRunner().invoke(run, [str(model), "--engine", "numpy", "--draws", "3"])
    assert done.exit_code == 2
    assert "--draws is an option of the machine" in done.output


# ---- Runtimes -----------------------------------------------------------------------------------


ENGINES = ("onnxruntime", "reference", "numpy")
REFUSED, CRASH, WRONG = Class.REFUSED, Class.CRASH, Class.MISMATCH
EXPLAINED = {
    ("onnxruntime", "Bernoulli", WRONG): "runs ONNX's function body, which gives 1 with the probability 1 - p",
    ("onnxruntime", "RandomNormal", CRASH): "dies of an assertion where scale is 0",
    ("onnxruntime", "RandomNormalLike", CRASH): "dies of an assertion where scale is 0",
    ("onnxruntime", "Dropout", WRONG): "computes the scale of doubles in float",
    ("reference", "RandomUniform", WRONG): "computes in float16, where the boundaries overflow",
    ("reference", "RandomUniformLike", WRONG): "computes in float16, where the boundaries overflow",
    ("reference", "RandomNormal", WRONG): "computes in float16, where the parameters overflow",
    ("reference", "RandomNormalLike", WRONG): "computes in float16, where the parameters overflow",
    ("reference", "Dropout", WRONG): "gives the wider one of the types of data and ratio",
}
"""The differences that a sweep may show, with their reason."""


@pytest.mark.parametrize(
    ("name", "version", "first", "count"),
    [*sampled([(name, version, 0, 1) for name, version in VERSIONS], 5), *(left((*it, 1, 200)) for it in VERSIONS)],
)
def test_draws_of_runtimes_are_allowed(name: str, version: int, first: int, count: int) -> None:
    pytest.importorskip("onnxruntime")
    engines = [engine(it) for it in ENGINES]
    classes: Counter[tuple[str, str, Class]] = Counter()
    for number in range(first, first + count):
        for it in judge_engines(engines, case(name, version, number)):
            classes[it.engine, name, it.outcome] += 1
    wrong = {key for key in classes if key[2] not in (Class.PASS, Class.FREEDOM, REFUSED)} - EXPLAINED.keys()
    assert not wrong, classes
