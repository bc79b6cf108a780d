"""Sampling, regions of interest, blocks and frames of images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from drawn.drawing import Draw, Drawn, Known, Rng, integers, kind, maybe, numbers, shape
from sonnx.checker.runtimes.differential.outcomes import Class, Result
from sonnx.semantics.model.elements import dtype_of


def _places(rng: Rng, whole: list[int], element: str) -> Any:
    """Places between -1 and 1 and around, round ones among them."""
    values = [rng.choice([-1, -0.5, 0, 0.25, 1, *[rng.uniform(-1.6, 1.6)] * 6]) for _ in range(int(np.prod(whole)))]
    return np.array(values).astype(dtype_of(element)).reshape(whole)


def _grid_sample(rng: Rng, name: str, version: int) -> Drawn:
    words = ("bilinear", "nearest", "bicubic") if version == 16 else ("linear", "nearest", "cubic")
    modes = maybe(rng, mode=rng.choice(words), align_corners=rng.randint(0, 1))
    modes |= maybe(rng, padding_mode=rng.choice(["zeros", "border", "reflection"]))
    axes = 2 if version == 16 or modes.get("mode") == "cubic" or rng.random() < 0.6 else rng.choice([1, 3])
    without = ["string"] if modes.get("mode") == "nearest" else ["string", "bool"]
    data = [rng.randint(1, 2), rng.randint(1, 3), *shape(rng, axes, axes, (1, 2, 3, 5))]
    places = [data[0], *shape(rng, axes, axes, (1, 2, 3)), axes]
    x = numbers(rng, data, kind(rng, name, version, "T1", without), 0.03)
    return Drawn([x, _places(rng, places, kind(rng, name, version, "T2"))], modes)


def _affine_grid(rng: Rng, name: str, version: int) -> Drawn:
    axes, corners = rng.randint(2, 3), rng.randint(0, 1)
    n = rng.randint(1, 2)
    size = [n, rng.randint(1, 3), *(rng.randint(1 + corners, 5) for _ in range(axes))]
    theta = numbers(rng, [n, axes, axes + 1], kind(rng, name, version, "T1"), 0.03)
    return Drawn([theta, integers(size)], {"align_corners": corners} if corners or rng.random() < 0.5 else {})


def _regions(rng: Rng, count: int, high: list[int], element: str, scale: float) -> Any:
    """Regions x1, y1, x2, y2 of data, some of them beyond it, few the wrong way round."""
    rows = []
    for _ in range(count):
        x, y = (sorted(rng.uniform(-1.5, size + 1.5) / scale for _ in range(2)) for size in reversed(high))
        ends = [x[0], y[0], x[1], y[1]] if rng.random() < 0.95 else [x[1], y[1], x[0], y[0]]
        rows.append([round(it) for it in ends] if rng.random() < 0.3 else ends)
    return np.array(rows).reshape(count, 4).astype(dtype_of(element))


def _roi_align(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version, "T1")
    data = [rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 6)]
    count, scale = rng.randint(0, 4), rng.choice([0.25, 0.5, 1.0, 1.0, 2.0])
    attributes = maybe(
        rng, mode=rng.choice(["avg", "avg", "max"]), sampling_ratio=rng.randint(0, 3), output_height=rng.randint(1, 3),
        output_width=rng.randint(1, 3),
    )  # fmt: skip
    if version > 10:
        attributes |= maybe(rng, coordinate_transformation_mode=rng.choice(["half_pixel", "output_half_pixel"]))
    x = numbers(rng, data, element, 0.03)
    members = integers([rng.randrange(data[0]) for _ in range(count)])
    return Drawn([x, _regions(rng, count, data[2:], element, scale), members], attributes | {"spatial_scale": scale})


def _max_roi_pool(rng: Rng, name: str, version: int) -> Drawn:
    element = kind(rng, name, version)
    data = [rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 6), rng.randint(1, 6)]
    count, scale = rng.randint(0, 4), rng.choice([0.25, 0.5, 1.0, 1.0, 2.0])
    regions = _regions(rng, count, data[2:], element, scale)
    members = np.array([rng.randrange(data[0]) for _ in range(count)]).reshape(count, 1).astype(regions.dtype)
    attributes = {"pooled_shape": [rng.randint(1, 4), rng.randint(1, 4)], "spatial_scale": scale}
    return Drawn([numbers(rng, data, element, 0.05), np.concatenate([members, regions], 1)], attributes)


def _windows(rng: Rng, axes: int, most: int) -> tuple[list[int], dict[str, Any], list[int], list[int]]:
    """A kernel, its attributes, a size on each axis that it fits, and the number of its positions there."""
    kernel = [rng.randint(1, 3) for _ in range(axes)]
    attributes = maybe(
        rng, strides=[rng.randint(1, 3) for _ in kernel], dilations=[rng.randint(1, 2) for _ in kernel],
        pads=[rng.randint(0, 2) for _ in kernel * 2],
    )  # fmt: skip
    strides, dilations = (attributes.get(it, [1] * axes) for it in ("strides", "dilations"))
    pads = attributes.get("pads", [0] * axes * 2)
    extent = [(k - 1) * t + 1 for k, t in zip(kernel, dilations, strict=True)]
    around = [pads[a] + pads[axes + a] for a in range(axes)]
    data = [max(1, e - p + rng.randint(0, most)) for e, p in zip(extent, around, strict=True)]
    count = [(d + p - e) // s + 1 for d, p, e, s in zip(data, around, extent, strides, strict=True)]
    return kernel, attributes, data, count


def _deform_conv(rng: Rng, name: str, version: int) -> Drawn:
    element, axes = kind(rng, name, version), rng.choice([1, 2, 2, 2, 2, 3])
    kernel, attributes, data, places = _windows(rng, axes, 3)
    group, parts, n = rng.choice([1, 1, 2]), rng.choice([1, 1, 2]), rng.randint(1, 2)
    c, m = group * parts * rng.randint(1, 2), group * rng.randint(1, 2)
    if group > 1:
        attributes["group"] = group
    if parts > 1:
        attributes["offset_group"] = parts
    attributes |= maybe(rng, kernel_shape=kernel) if rng.random() < 0.5 else {}
    volume = int(np.prod(kernel))
    offset = numbers(rng, [n, parts * volume * axes, *places], element, 0)
    if rng.random() < 0.4:
        offset = np.round(offset.astype(np.float64)).astype(offset.dtype)
    return Drawn(
        [
            numbers(rng, [n, c, *data], element, 0.02),
            numbers(rng, [m, c // group, *kernel], element, 0.02),
            offset,
            numbers(rng, [m], element, 0) if rng.random() < 0.5 else None,
            numbers(rng, [n, parts * volume, *places], element, 0) if rng.random() < 0.5 else None,
        ],
        attributes,
    )


def _col2im(rng: Rng, name: str, version: int) -> Drawn:
    element, axes = kind(rng, name, version, "T", ["string", "bool"]), rng.choice([2, 2, 2, 3])
    kernel, attributes, data, places = _windows(rng, axes, 4)
    columns = [rng.randint(1, 2), rng.randint(1, 2) * int(np.prod(kernel)), int(np.prod(places))]
    return Drawn([numbers(rng, columns, element, 0.05), integers(data), integers(kernel)], attributes)


def _center(rng: Rng, name: str, version: int) -> Drawn:
    whole = shape(rng, 1, 4, (0, 1, 2, 3, 4, 5))
    axes = rng.sample(range(len(whole)), rng.randint(1, len(whole)))
    attributes = {"axes": [a - rng.choice([0, len(whole)]) for a in axes]} if rng.random() < 0.6 else {}
    wanted = [rng.randint(0, 7) for _ in (axes if attributes else whole)]
    index = kind(rng, name, version, "Tind")
    return Drawn([numbers(rng, whole, kind(rng, name, version)), integers(wanted, index)], attributes)


def _upsample(rng: Rng, name: str, version: int) -> Drawn:
    attributes = maybe(rng, mode=rng.choice(["nearest", "bilinear" if version == 1 else "linear"]))
    smooth = attributes.get("mode", "nearest") != "nearest"
    element = kind(rng, name, version, "T", ["string", "bool", "complex64", "complex128"] if smooth else [])
    whole = shape(rng, 4, 4, (1, 2, 3, 5)) if version == 1 or smooth else shape(rng, 1, 4, (1, 2, 3, 5))
    scales = [float(np.float32(rng.choice([1, 1.5, 2, 2, 3, rng.uniform(1, 3)]))) for _ in whole]
    if version == 1 or smooth:
        scales[:2] = 1.0, 1.0
    x = numbers(rng, whole, element, 0.03)
    if version == 9:
        return Drawn([x, np.array(scales, np.float32)], attributes)
    if version == 7:
        return Drawn([x], attributes | {"scales": scales})
    return Drawn([x], attributes | {"height_scale": scales[2], "width_scale": scales[3]})


DRAWS: Mapping[tuple[str, int], Draw] = {
    ("GridSample", 16): _grid_sample,
    ("GridSample", 20): _grid_sample,
    ("GridSample", 22): _grid_sample,
    ("AffineGrid", 20): _affine_grid,
    ("RoiAlign", 10): _roi_align,
    ("RoiAlign", 16): _roi_align,
    ("RoiAlign", 22): _roi_align,
    ("MaxRoiPool", 1): _max_roi_pool,
    ("MaxRoiPool", 22): _max_roi_pool,
    ("DeformConv", 19): _deform_conv,
    ("DeformConv", 22): _deform_conv,
    ("Col2Im", 18): _col2im,
    ("CenterCropPad", 18): _center,
    ("Upsample", 1): _upsample,
    ("Upsample", 7): _upsample,
    ("Upsample", 9): _upsample,
}


def _mirrors_one_element(it: Drawn, result: Result) -> bool:
    return "infinity" in result.why and 1 in it.inputs[0].shape[2:]


def _is_cubic_at_the_border(it: Drawn, result: Result) -> bool:
    return it.attributes.get("mode") == "cubic" and it.attributes.get("padding_mode") == "border"


def _is_weighted(it: Drawn, result: Result) -> bool:
    return result.outcome in (Class.MISMATCH, Class.NOT_COMPARED) and it.attributes.get("mode") != "nearest"


def _is_greatest(it: Drawn, result: Result) -> bool:
    return result.outcome in (Class.MISMATCH, Class.NOT_COMPARED) and it.attributes.get("mode") == "max"


def _gives_instead(due: str) -> Callable[[Drawn, Result], bool]:
    """A mismatch whose first element should be something that is no finite number."""
    return lambda it, result: (
        (first := result.judged and result.judged.first) is not None and first.expected.decimal == due
    )


MIXED = "the reference computes partly with numbers of Python, partly in the element type: one number of 16 bits apart"


def _is_one_off(it: Drawn, result: Result) -> bool:
    first = result.judged and result.judged.first
    return it.inputs[0].dtype.itemsize == 2 and first is not None and first.ulps == 1


def _is_infinite(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and not np.isfinite(it.inputs[0].astype(np.float64)).all()


def _is_linear(it: Drawn, result: Result) -> bool:
    return result.outcome is Class.MISMATCH and it.attributes.get("mode", "nearest") != "nearest"


KNOWN = (
    Known("onnxruntime", "GridSample", "GridSample-20/one-axis", lambda it, result: it.inputs[0].ndim == 3),
    Known("reference", "GridSample", "GridSample-16/words", lambda it, result: "ic modes" in result.why),
    Known("reference", "GridSample", "GridSample-20/reflection-in-one-element", _mirrors_one_element),
    Known("reference", "GridSample", "GridSample-20/border-of-cubic", _is_cubic_at_the_border),
    Known("reference", "GridSample", "GridSample-20/integers", lambda it, result: it.inputs[0].dtype.kind in "iu"),
    Known("reference", "GridSample", "GridSample-20/places-in-double", _is_weighted),
    Known("reference", "AffineGrid", "AffineGrid-20/type", lambda it, result: it.inputs[0].dtype != np.float32),
    Known("onnxruntime", "RoiAlign", "RoiAlign-16/greatest-sample", _is_greatest),
    Known("reference", "RoiAlign", "RoiAlign-16/greatest-sample", _is_greatest),
    Known(
        "reference", "RoiAlign", "RoiAlign-10/coordinates", lambda it, result: result.case.startswith("RoiAlign-10/")
    ),
    Known("reference", "RoiAlign", MIXED, _is_one_off),
    Known("onnxruntime", "MaxRoiPool", "MaxRoiPool-1/negative-infinity", _gives_instead("-inf")),
    Known("onnxruntime", "MaxRoiPool", "MaxRoiPool-1/nan", _gives_instead("nan")),
    Known("onnxruntime", "DeformConv", "DeformConv-19/one-axis", lambda it, result: it.inputs[0].ndim != 4),
    Known("reference", "DeformConv", "DeformConv-19/one-axis", lambda it, result: it.inputs[0].ndim != 4),
    Known("onnxruntime", "DeformConv", "DeformConv-19/infinity-in-the-corner", _is_infinite),
    Known(
        "reference", "DeformConv", "DeformConv-19/axis-of-one-element", lambda it, result: 1 in it.inputs[0].shape[2:]
    ),
    Known("reference", "DeformConv", "DeformConv-19/places", lambda it, result: result.outcome is Class.MISMATCH),
    Known("onnxruntime", "Col2Im", "Col2Im-18/three-axes", lambda it, result: it.inputs[1].size > 2),
    Known("onnxruntime", "CenterCropPad", "CenterCropPad-18/sizes-of-32-bits", lambda it, result: "Max" in result.why),
    Known("reference", "Upsample", "Upsample-7/implementation", lambda it, result: len(it.inputs) == 1),
    Known("reference", "Upsample", "Upsample-9/linear", lambda it, result: "Not implemented" in result.why),
    Known("onnxruntime", "Upsample", "Upsample-9/coordinates", _is_linear),
)
