from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import ENGINES, agrees, owed
from onnx import TensorProto, helper, numpy_helper
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


# ---- DFT ----------------------------------------------------------------------------------------


def _transform(x: Any, inverse: int, onesided: int, n: int | None, axis: int) -> Any:
    """NumPy's, in double."""
    z = x[..., 0] + (1j * x[..., 1] if x.shape[-1] == 2 else 0)
    if inverse and onesided:
        return np.fft.irfft(z, n, axis)[..., None]
    found = (np.fft.ifft if inverse else np.fft.rfft if onesided else np.fft.fft)(z.real if onesided else z, n, axis)
    return np.stack([found.real, found.imag], -1)


@pytest.mark.parametrize("onesided", [0, 1])
@pytest.mark.parametrize("inverse", [0, 1])
def test_transforms_are_those_of_numpy_and_inside_the_bound(inverse: int, onesided: int, run: Run) -> None:
    for size, n, parts in ((1, None, 1), (4, None, 2), (5, 8, 2), (5, 3, 1), (6, 7, 2), (8, 5, 2), (9, None, 1)):
        width = parts if not onesided else 2 if inverse else 1
        if inverse and onesided and size == 1:
            continue
        x = RNG.normal(size=(2, size, 3, width))
        given = (None,) if n is None else (np.array(n),)
        stated = {"inverse": inverse, "onesided": onesided}
        expected = _transform(x, inverse, onesided, n, 1)
        for axis in (1, -3):
            found = run("DFT", 20, x, *given, np.array(axis), **stated)
            np.testing.assert_allclose(found, expected, atol=1e-13)
        np.testing.assert_array_equal(run("DFT", 17, x, *given, axis=1, **stated), found)
        single = x.astype(F)
        allowed = bound.apply(Application("DFT", 17, (single, *given), stated | {"axis": 1}, (True,))).values[0]
        assert judge(allowed, run("DFT", 17, single, *given, **stated)).holds
        nearly = _transform(single.astype(D), inverse, onesided, n, 1).astype(F)
        verdict = judge(allowed, nearly)
        assert verdict.allowed[np.abs(nearly) > 1e-9].all()
        assert not judge(allowed, nearly + F(1e-3)).allowed.any()


def test_dft_refuses_what_has_no_meaning(refused: Run) -> None:
    x = np.zeros((1, 4, 1), F)

    def why(x: Any, *others: Any, **attributes: Any) -> str:
        return refused("DFT", 20, x, *others, **attributes)

    assert "beside the last" in why(x[0, 0])
    assert "real part, or both" in why(np.zeros((1, 4, 3), F))
    assert "axis of the signal" in why(x, None, np.array(-1))
    assert "axis of the signal" in why(x, None, np.array(2))
    assert "axis is a scalar" in why(x, None, np.array([0, 1]))
    assert "real input" in why(x.repeat(2, 2), onesided=1)
    assert "complex input" in why(x, onesided=1, inverse=1)
    assert "dft_length is a scalar" in why(x, np.array([1, 2]))
    assert "length of the transform" in why(x, np.array(0))
    assert "onesided is" in why(x, onesided=2)
    assert "axis of the signal" in refused("DFT", 17, x, axis=2)


# ---- STFT ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_are_weighted_and_transformed(onesided: int, run: Run) -> None:
    for size, n, step, width in ((9, 4, 2, 1), (8, 8, 3, 1), (11, 3, 5, 1 if onesided else 2)):
        x, window = RNG.normal(size=(2, size, width)), RNG.normal(size=n)
        starts = range(0, size - n + 1, step)
        frames = np.stack([x[:, k : k + n] for k in starts], 1)
        for inputs, weights in (((window,), window), ((None, np.array(n)), 1), ((window, np.array([n])), window)):
            found = run("STFT", 17, x, np.array(step), *inputs, onesided=onesided)
            expected = _transform(frames * np.reshape(weights, (-1, 1)), 0, onesided, None, 2)
            np.testing.assert_allclose(found, expected, atol=1e-13)


def test_stft_refuses_what_has_no_meaning(refused: Run) -> None:
    x, step, window = np.zeros((1, 6, 1), F), np.array(2), np.ones(4, F)

    def why(x: Any, step: Any, *others: Any, **attributes: Any) -> str:
        return refused("STFT", 17, x, step, *others, **attributes)

    assert "real part, or both" in why(x.repeat(3, 2), step, onesided=0)
    assert "real signal" in why(x.repeat(2, 2), step)
    assert "onesided is" in why(x, step, onesided=3)
    assert "frame_step is a scalar" in why(x, step.repeat(2), window)
    assert "frame_step is positive" in why(x, np.array(0), window)
    assert "frame_length is a scalar" in why(x, step, None, step.repeat(2))
    assert "length of a frame" in why(x, step, window, np.array(5))
    assert "fits" in why(x, step, None, np.array(7))


# ---- MelWeightMatrix ----------------------------------------------------------------------------


def _triangles(bands: int, length: int, rate: int, low: float, high: float) -> Any:
    """In double, from the formula of the mel scale."""
    edges = 2595 * np.log10(1 + np.array([low, high]) / 700)
    mels = edges[0] + np.arange(bands + 2) * (edges[1] - edges[0]) / (bands + 2)
    points = np.floor((length + 1) * (700 * (10 ** (mels / 2595) - 1)) / rate)
    found = np.zeros((length // 2 + 1, bands))
    bins = np.arange(len(found))
    for i, (left, peak, right) in enumerate(zip(points, points[1:], points[2:], strict=False)):
        rising, falling = (bins - left) / max(peak - left, 1), (right - bins) / max(right - peak, 1)
        found[:, i] = np.where(bins == peak, 1, np.maximum(np.where(bins < peak, rising, falling), 0))
    return found


def test_bands_are_triangles_on_the_mel_scale(run: Run) -> None:
    for bands, length, rate, low, high in (
        (8, 16, 8192, 0, 4096),
        (3, 257, 16000, 133.5, 7000.25),
        (20, 512, 44100, 20, 2e4),
    ):
        edges = (np.array(low, F), np.array(high, F))
        found = run(
            "MelWeightMatrix", 17, np.array(bands), np.array(length), np.array(rate), *edges, output_datatype=11
        )
        np.testing.assert_allclose(found, _triangles(bands, length, rate, low, high), atol=1e-15)
        assert (found.max(0) == 1).all()


def test_mel_special_cases(run: Run, refused: Run, same: Check) -> None:
    n, length, rate, low, high = np.array(1), np.array(4), np.array(8), np.array(0, F), np.array(4, F)
    assert run("MelWeightMatrix", 17, np.array(0), length, rate, low, high).shape == (3, 0)
    same(run("MelWeightMatrix", 17, n, length, rate, high, high), np.array([[0], [0], [1]], F))
    same(run("MelWeightMatrix", 17, n, length, rate, low, low, output_datatype=2), np.array([[1], [0], [0]], np.uint8))

    def why(*inputs: Any, **attributes: Any) -> str:
        return refused("MelWeightMatrix", 17, *inputs, **attributes)

    assert "one number" in why(n, length, rate, low, np.array([0, 1], F))
    assert "num_mel_bins is not negative" in why(np.array(-1), length, rate, low, high)
    assert "are positive" in why(n, np.array(0), rate, low, high)
    assert "are positive" in why(n, length, np.array(-8), low, high)
    for edges in ((high, low), (np.array(-1, F), high), (low, np.array(np.nan, F))):
        assert "edges are not negative" in why(n, length, rate, *edges)
    for edge in (F(4.5), F(np.inf)):
        assert "half of the sample rate" in why(n, length, rate, low, np.array(edge))
    assert "output_datatype" in why(n, length, rate, low, high, output_datatype=9)


# ---- a front end --------------------------------------------------------------------------------


def front_end() -> onnx.ModelProto:
    """The logarithms of the powers of a signal of 64 elements, in bands, by frames of 16 under a Hann window."""
    bands = np.maximum(1 - np.abs(np.arange(9)[:, None] - np.array([1, 3, 6])) / 2, 0).astype(F)
    constants = {"length": np.array(16), "step": np.array(8), "bands": bands, "least": np.array(1e-3, F)}
    nodes = [
        helper.make_node("HannWindow", ["length"], ["window"]),
        helper.make_node("STFT", ["signal", "step", "window"], ["spectrum"], onesided=1),
        helper.make_node("ReduceSumSquare", ["spectrum"], ["power"], axes=[3], keepdims=0),
        helper.make_node("MatMul", ["power", "bands"], ["energy"]),
        helper.make_node("Add", ["energy", "least"], ["positive"]),
        helper.make_node("Log", ["positive"], ["features"]),
    ]
    graph = helper.make_graph(
        nodes,
        "front_end",
        [helper.make_tensor_value_info("signal", TensorProto.FLOAT, ["N", 64, 1])],
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["N", 7, 3])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the model and of a signal for it."""
    onnx.save(front_end(), tmp_path / "front_end.onnx")
    wave = np.sin(np.arange(64) * 0.7) + 0.25 * np.cos(np.arange(64) * 2.1)
    np.savez(tmp_path / "inputs.npz", signal=np.stack([wave, wave[::-1]])[..., None].astype(F))
    return tmp_path


@ENGINES
def test_a_front_end_runs_as_the_text_allows(engine: str, folder: Path) -> None:
    assert agrees(engine, folder / "front_end.onnx", "--input", folder / "inputs.npz")


def test_a_front_end_conforms_and_its_certificate_is_confirmed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not owed(capsys, folder / "front_end.onnx", folder / "c.json")
