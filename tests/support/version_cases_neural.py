"""Cases that tell versions apart: layers of networks, that is windows, normalization, recurrence, activations."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from version_cases import FOREIGN, Free, Stuck, case, f32, i64

ROW = f32([[[1, 2, 3, 4]]])
ONE, ZERO = f32([1]), f32([0])
IN_THE_PADDING = Stuck("No window starts in the padding at the end.")
TAIL = {"kernel_shape": (1,), "strides": (3,), "pads": (0, 2), "ceil_mode": 1}
"""The third position of the window lies in the padding at the end."""


def half(content: object) -> object:
    return np.array(content, np.float16)


def brain(content: object) -> object:
    return np.array(content, ml_dtypes.bfloat16)


FOUR_CHANNELS = f32([[[-1], [1], [-2], [2]]])
MEANS = f32([[[2, 3.5]]])
WINDOWS = (
    case(
        "AveragePool",
        ROW,
        {7: FOREIGN, 10: MEANS, 19: MEANS, 22: MEANS},
        kernel_shape=(3,),
        strides=(2,),
        ceil_mode=1,
    ),
    case(
        "AveragePool",
        ROW,
        {7: FOREIGN, 10: FOREIGN, 19: f32([[[2, 3]]]), 22: f32([[[2, 3]]])},
        kernel_shape=(2,),
        dilations=(2,),
    ),
    case(
        "AveragePool",
        ROW,
        {10: IN_THE_PADDING, 19: IN_THE_PADDING, 22: f32([[[1, 4]]])},
        count_include_pad=1,
        **TAIL,
    ),
    case(
        "MaxPool",
        ROW,
        {1: FOREIGN} | dict.fromkeys((8, 10, 22), (f32([[[2, 3, 4]]]), i64([[[1, 2, 3]]]))),
        outputs=2,
        kernel_shape=(2,),
    ),
    case(
        "MaxPool",
        ROW,
        {1: FOREIGN, 8: FOREIGN, 10: f32([[[3, 4]]]), 22: f32([[[3, 4]]])},
        kernel_shape=(2,),
        dilations=(2,),
    ),
    case("MaxPool", ROW, {10: IN_THE_PADDING, 22: f32([[[1, 4]]])}, **TAIL),
    # version 1 says of SAME_UPPER what holds for strides of 1, and has no bfloat16
    case(
        "Conv", (ROW, f32([[[1, 1]]])), {1: f32([[[3, 7]]]), 11: f32([[[3, 7]]])}, auto_pad="SAME_UPPER", strides=(2,)
    ),
    case("Conv", (brain([[[1, 2]]]), brain([[[1, 1]]])), {1: FOREIGN, 22: brain([[[3]]])}),
    # the odd padding is cut off at the end in version 1, at the beginning in version 11
    case(
        "ConvTranspose",
        (f32([[[1, 2]]]), f32([[[1, 2, 4]]])),
        {1: f32([[[1, 2, 6, 4]]]), 11: f32([[[2, 6, 4, 8]]])},
        strides=(2,),
        output_shape=(4,),
    ),
)

NORMALIZATION = (
    case(
        "BatchNormalization",
        (f32([[[1, 3]]]), f32([[1, 1]]), f32([[0, 0]]), f32([[1, 1]]), f32([[1, 4]])),
        {7: f32([[[0, 1]]]), 9: FOREIGN, 14: FOREIGN, 15: FOREIGN},
        spatial=0,
        epsilon=0.0,
    ),
    case(
        "BatchNormalization",
        (f32([[1], [3]]), ONE, ZERO, ZERO, ONE),
        {7: FOREIGN, 9: FOREIGN, 14: f32([[-1], [1]]), 15: f32([[-1], [1]])},
        training_mode=1,
        epsilon=0.0,
    ),
    # the sum of the elements is infinite in float16, in which version 14 adds
    case(
        "BatchNormalization",
        (half([[60000], [60000]]), half([1]), half([0]), half([0]), half([1])),
        {9: FOREIGN, 14: half([[np.nan], [np.nan]]), 15: half([[0], [0]])},
        training_mode=1,
        epsilon=1.0,
    ),
    # scale and bias belong to the groups in version 18, to the channels in version 21
    case(
        "GroupNormalization",
        (FOUR_CHANNELS, f32([2, 3]), f32([10, 20])),
        {18: f32([[[8], [12], [17], [23]]]), 21: Stuck("scale: T[c]")},
        num_groups=2,
        epsilon=0.0,
    ),
    case(
        "GroupNormalization",
        (FOUR_CHANNELS, f32([1, 2, 3, 4]), f32([0, 0, 0, 0])),
        {18: Stuck("scale and bias have one element for each group."), 21: f32([[[-1], [2], [-3], [4]]])},
        num_groups=2,
        epsilon=0.0,
    ),
)

RECURRENCE = tuple(
    case(
        op_type,
        (f32([[[0], [0]]]), f32(np.ones((1, gates, 1))), f32(np.ones((1, gates, 1)))),
        {7: FOREIGN, 14: (f32(np.zeros((1, 2, 1, 1))), f32([[[0]]]))},
        outputs=2,
        layout=1,
        hidden_size=1,
    )
    for op_type, gates in (("GRU", 3), ("LSTM", 4), ("RNN", 1))
)

ACTIVATIONS = (
    case("Clip", np.array([1e300]), {6: np.array([float(np.finfo(np.float32).max)]), 11: np.array([1e300])}),
    case(
        "Dropout",
        f32([1, 2]),
        {
            7: (f32([1, 2]), Free(np.float32, (2,))),
            10: (f32([1, 2]), Free(np.bool_, (2,))),
            12: (f32([1, 2]), np.array([True, True])),
        },
        outputs=2,
    ),
    case("Relu", f32([-1]), {1: f32([0]), 6: FOREIGN}, consumed_inputs=(0,)),
    case(
        "Softmax",
        f32([[[0, 0], [0, 0]]]),
        {1: f32([[[0.25, 0.25], [0.25, 0.25]]]), 13: f32([[[0.5, 0.5], [0.5, 0.5]]])},
        axis=1,
    ),
    case(
        "Hardmax",
        f32([[[1, 2], [3, 0]]]),
        {1: f32([[[0, 0], [1, 0]]]), 13: f32([[[0, 1], [1, 0]]])},
        axis=1,
    ),
    case(
        "LogSoftmax",
        f32([[[0, -np.inf], [-np.inf, -np.inf]]]),
        {1: f32([[[0, -np.inf], [-np.inf, -np.inf]]]), 13: f32([[[0, np.nan], [-np.inf, np.nan]]])},
        axis=1,
    ),
)

ZEROS, TWO_KEYS = f32(np.zeros((1, 1, 1, 1))), f32([[[[2], [4]]]])
ATTENTION = (
    case(
        "Attention",
        (ZEROS, TWO_KEYS, TWO_KEYS, None, None, None, i64([1])),
        {23: FOREIGN, 24: f32([[[[2]]]]), 25: f32([[[[2]]]])},
    ),
    case("Attention", (ZEROS, TWO_KEYS, TWO_KEYS), {23: FOREIGN, 24: FOREIGN, 25: f32([[[[2]]]])}, right_window_size=0),
    # a mask of one column is broadcast in version 23, and too short later
    case(
        "Attention",
        (ZEROS, TWO_KEYS, TWO_KEYS, f32([[1]])),
        {23: f32([[[[3]]]]), 24: f32([[[[2]]]]), 25: f32([[[[2]]]])},
    ),
)

# from version 16 on coordinates are moved by half an element
REGIONS = (
    case(
        "RoiAlign",
        (f32([[[[1, 3]]]]), f32([[0, 0, 1, 1]]), i64([0])),
        {10: f32([[[[2]]]]), 16: f32([[[[1]]]])},
    ),
    case(
        "GridSample",
        (f32([[[[1, 3]]]]), f32([[[[0, 0]]]])),
        {16: f32([[[[2]]]]), 20: Stuck("mode is one of the three words.")},
        mode="bilinear",
    ),
    case("GridSample", (f32([[[1, 3]]]), f32([[[0]]])), {16: Stuck("X: T1[n, c, h, w]"), 20: f32([[[2]]])}),
)
SIGNALS = (
    case("DFT", f32([[[1]]]), {17: Stuck("axis is an axis of the signal."), 20: FOREIGN}, axis=-1),
    case("DFT", (f32([[[1]]]), i64(1), i64(-1)), {17: FOREIGN, 20: Stuck("axis is an axis of the signal.")}),
)

CASES = (*REGIONS, *SIGNALS, *ATTENTION, *WINDOWS, *NORMALIZATION, *RECURRENCE, *ACTIVATIONS)
