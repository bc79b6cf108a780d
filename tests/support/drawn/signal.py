"""Windows, discrete Fourier transforms and mel weights."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, maybe, numbers, shape
from sonnx.checker.runtimes.differential.outcomes import Class, Result
from sonnx.semantics.model.elements import dtype_of

TYPES = (1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 16)
"""The numbers of the types of numbers."""


def _window(rng: Rng, name: str, version: int) -> Drawn:
    attributes = maybe(rng, periodic=rng.randint(0, 1), output_datatype=rng.choice([1, 1, *TYPES]))
    size = rng.choice([2, 3, 8, rng.randint(2, 40)]) if attributes.get("periodic") == 0 else rng.randint(0, 40)
    return Drawn([integers(size, kind(rng, name, version, "T1"))], attributes)


def _dft(rng: Rng, name: str, version: int) -> Drawn:
    onesided, inverse = rng.choice([(0, 0), (0, 0), (1, 0), (0, 1), (1, 1)])
    parts = 1 if onesided and not inverse else 2 if onesided else rng.randint(1, 2)
    axes = shape(rng, 1, 3, (1, 2, 3, 4, 7, 8, 16))
    axis = rng.randint(1 if version == 17 and len(axes) > 1 else 0, len(axes) - 1)
    if onesided and inverse:
        axes[axis] = max(axes[axis], 2)
    x = numbers(rng, [*axes, parts], kind(rng, name, version, "T1"), 0.05)
    length = integers(rng.choice([1, 2, 4, 5, 8, 16, axes[axis]]), kind(rng, name, version, "T2"))
    attributes = {key: it for key, it in (("onesided", onesided), ("inverse", inverse)) if it}
    given = length if rng.random() < 0.4 else None
    if version == 17:
        return Drawn([x, given], attributes | {"axis": axis})
    return Drawn([x, given, integers(rng.choice([axis, axis - len(axes) - 1]))], attributes)


def _stft(rng: Rng, name: str, version: int) -> Drawn:
    onesided = rng.randint(0, 1)
    length = rng.randint(1, 24)
    frame = rng.choice([k for k in (1, 2, 3, 4, 8, 16, length) if k <= length])
    element, index = kind(rng, name, version, "T1"), kind(rng, name, version, "T2")
    x = numbers(rng, [rng.randint(1, 2), length, 1 if onesided else rng.randint(1, 2)], element, 0.05)
    window = numbers(rng, [frame], element, 0) if rng.random() < 0.6 else None
    named = integers(frame, index) if rng.random() < 0.6 or (window is None and frame != length) else None
    attributes = {} if onesided and rng.random() < 0.5 else {"onesided": onesided}
    return Drawn([x, integers(rng.randint(1, 6), index), window, named], attributes)


def _mel(rng: Rng, name: str, version: int) -> Drawn:
    rate, element = rng.choice([100, 8000, 8192, 16000, 44100]), kind(rng, name, version, "T2")
    low, high = sorted(rng.choice([0, rate / 64, rate / 4, rate / 2, rng.uniform(0, rate / 2)]) for _ in range(2))
    index = kind(rng, name, version, "T1")
    edges = [np.array(it, np.float64).astype(dtype_of(element)) for it in (low, min(high, rate / 2 * 0.99))]
    counts = [integers(it, index) for it in (rng.randint(0, 10), rng.choice([1, 2, 16, 64, rng.randint(1, 99)]), rate)]
    return Drawn([*counts, min(edges), max(edges)], maybe(rng, output_datatype=rng.choice([1, 1, *TYPES])))


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("BlackmanWindow", 17): _window,
    ("HannWindow", 17): _window,
    ("HammingWindow", 17): _window,
    ("DFT", 17): _dft,
    ("DFT", 20): _dft,
    ("STFT", 17): _stft,
    ("MelWeightMatrix", 17): _mel,
}


def _length(it: Drawn) -> int:
    """The length of a transform."""
    if len(it.inputs) == 4:
        named = it.inputs[3] if it.inputs[2] is None else np.array(it.inputs[2].size)
        return it.inputs[0].shape[1] if named is None else int(named)
    if it.inputs[1] is not None:
        return int(it.inputs[1])
    size = _size(it)
    return 2 * size - 2 if {"onesided", "inverse"} <= it.attributes.keys() else size


def _size(it: Drawn) -> int:
    """The size of the axis of a transform."""
    x = it.inputs[0]
    return int(x.shape[it.attributes["axis"] if "axis" in it.attributes else int(it.inputs[2])])


def _is_no_power_of_two(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and _length(it).bit_count() > 1


def _is_onesided_inverse(it: Drawn, result: Result) -> bool:
    both = {"onesided", "inverse"} <= it.attributes.keys()
    return result.outcome is Class.MISMATCH and both and _size(it) != _length(it) // 2 + 1


def _half(it: Drawn) -> bool:
    return it.attributes.get("output_datatype") == 10


def _has_half_edges(it: Drawn, result: Result) -> bool:
    return result.outcome in (Class.MISMATCH, Class.NOT_COMPARED) and it.inputs[3].dtype.itemsize == 2


POINTS = "a point close to the edge of a bin, computed in float, may fall into another bin: the note of the text"
KNOWN = (
    Known("onnxruntime", "DFT STFT", "DFT-20/length-of-three", _is_no_power_of_two),
    Known("onnxruntime", "DFT", "DFT-20/onesided-inverse-of-a-length", _is_onesided_inverse),
    Known("onnxruntime", "STFT", "STFT-17/no-length", lambda it, result: it.inputs[2] is None and it.inputs[3] is None),
    Known("onnxruntime", "MelWeightMatrix", "MelWeightMatrix-17/float16", lambda it, result: _half(it)),
    Known(
        "onnxruntime", "MelWeightMatrix", "MelWeightMatrix-17/upper-edge", lambda it, result: "upper_edge" in result.why
    ),
    Known("onnxruntime", "MelWeightMatrix", POINTS, lambda it, result: result.outcome is Class.NOT_COMPARED),
    Known("reference", "MelWeightMatrix", "MelWeightMatrix-17/edges-of-float16", _has_half_edges),
    Known("reference", "DFT STFT", "STFT-17/infinity", lambda it, result: not np.isfinite(it.inputs[0]).all()),
    Known("reference", "HannWindow HammingWindow", "HannWindow-17/float16", lambda it, result: _half(it)),
)
