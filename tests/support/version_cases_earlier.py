"""Cases that tell apart versions which are in force before opset 7 only."""

from __future__ import annotations

import numpy as np
from version_cases import FOREIGN, Free, Stuck, case, f32, i64

ALIKE = {
    "Abs": (-2, 2),
    "Neg": (1, -1),
    "Ceil": (0.5, 1),
    "Floor": (0.5, 0),
    "Exp": (0, 1),
    "Log": (1, 0),
    "Sqrt": (4, 2),
    "Reciprocal": (2, 0.5),
    "Sigmoid": (0, 0.5),
    "Tanh": (0, 0),
    "LeakyRelu": (2, 2),
    "Elu": (2, 2),
    "Selu": (0, 0),
    "HardSigmoid": (0, 0.5),
    "Clip": (3, 3),
    "Max": (2, 2),
    "Min": (2, 2),
    "Mean": (2, 2),
    "Sum": (2, 2),
}
"""An element and the result, of operators whose first version differs in consumed_inputs alone."""
OTHERS = {"Max": (6, 8), "Min": (6, 8), "Mean": (6, 8), "Sum": (6, 8), "Clip": (6, 11)}
"""The first versions of their other texts, where there is more than one."""
ROWS, ROW = f32([[4, 6], [8, 12]]), f32([2, 4])
SPREAD = {"Add": [[6, 10], [10, 16]], "Sub": [[2, 2], [6, 8]], "Mul": [[8, 24], [16, 48]], "Div": [[2, 1.5], [4, 3]]}
TRUTH = np.array([[True, False], [True, True]])
LOGIC = {
    "And": [[True, False], [True, False]],
    "Or": [[True, False], [True, True]],
    "Xor": [[False, False], [False, True]],
}
KIND = Stuck("An attribute has the kind of value that its operator prescribes.")
FIT = Stuck("The shape of B fits that of A.")
IMAGE, CHANNEL = f32([[[[1, 2]]]]), f32([1])
NORMAL = (IMAGE, CHANNEL, CHANNEL, CHANNEL, f32([4]))

CASES = (
    *(
        case(op_type, f32([x]), {1: f32([y])} | dict.fromkeys(OTHERS.get(op_type, (6,)), FOREIGN), consumed_inputs=(0,))
        for op_type, (x, y) in ALIKE.items()
    ),
    *(
        case(op_type, (ROWS, ROW), {1: f32(result), 6: f32(result), 7: FOREIGN}, broadcast=1)
        for op_type, result in SPREAD.items()
    ),
    *(
        case(op_type, (i64([4]), i64([2])), {1: FOREIGN, 6: i64([result])})
        for op_type, result in (("Add", 6), ("Sub", 2), ("Mul", 8), ("Div", 2))
    ),
    *(
        case(op_type, (ROWS, ROW), {1: FIT, 7: np.array(result)})
        for op_type, result in (
            ("Less", [[False, False], [False, False]]),
            ("Greater", [[True, True], [True, True]]),
        )
    ),
    case("Equal", (i64([[1, 2], [3, 4]]), i64([1, 4])), {1: FIT, 7: np.array([[True, False], [False, True]])}),
    *(case(op_type, (TRUTH, TRUTH[0]), {1: FIT, 7: np.array(result)}) for op_type, result in LOGIC.items()),
    case("Pow", (ROWS, f32([1])), {1: Stuck("The shape of Y fits that of X."), 7: ROWS, 12: ROWS}),
    case("Pow", (ROWS, f32([1])), {1: ROWS, 7: FOREIGN, 12: FOREIGN}, broadcast=1),
    case("AveragePool", f32([[[1, 3]]]), {1: f32([[[2]]]), 7: f32([[[2]]]), 10: f32([[[2]]])}, kernel_shape=(2,)),
    case("AveragePool", f32([[[1, 3]]]), {1: FOREIGN, 7: f32([[[2]]])}, kernel_shape=(2,), count_include_pad=0),
    case("AveragePool", f32([[[1, 3]]]), {1: FOREIGN, 10: f32([[[2]]])}, kernel_shape=(2,), ceil_mode=0),
    case(
        "AveragePool",
        f32([[[1, 3]]]),
        {1: FOREIGN, 19: f32([[[2]]]), 22: f32([[[2]]])},
        kernel_shape=(2,),
        dilations=(1,),
    ),
    case(
        "BatchNormalization",
        NORMAL,
        {1: FOREIGN, 6: f32([[[[1, 1.5]]]]), 7: FOREIGN, 9: FOREIGN, 14: FOREIGN, 15: FOREIGN},
        is_test=1,
        epsilon=0.0,
    ),
    case(
        "BatchNormalization",
        NORMAL,
        {1: f32([[[[1, 1.5]]]]), 6: FOREIGN, 7: FOREIGN, 9: FOREIGN, 14: FOREIGN, 15: FOREIGN},
        is_test=1,
        epsilon=0.0,
        consumed_inputs=(0, 0, 0, 1, 1),
    ),
    case("Cast", f32([1.5]), {1: np.array([1], np.int8)} | dict.fromkeys((6, 19, 24), KIND), to="INT8"),
    case("Concat", (f32([[1]]), f32([[2]])), {1: f32([[1, 2]]), 4: FOREIGN}),
    case("Dropout", f32([1]), {1: f32([1]), 6: f32([1]), 7: FOREIGN, 10: FOREIGN, 12: FOREIGN}, is_test=1),
    case(
        "Dropout",
        f32([1]),
        {1: f32([1]), 6: FOREIGN, 7: FOREIGN, 10: FOREIGN, 12: FOREIGN},
        is_test=1,
        consumed_inputs=(0,),
    ),
    case("Dropout", f32([1]), {6: (f32([1]), Free(np.float32, (1,))), 7: FOREIGN}, outputs=2, is_test=1),
    case("Gemm", (f32([[1]]), f32([[2]]), f32([3])), {1: f32([[5]]), 7: FOREIGN, 11: FOREIGN}, broadcast=1),
    case(
        "InstanceNormalization",
        (f32([[[2, 2]]]), f32([1]), f32([5])),
        {1: Stuck("The input has four axes."), 6: f32([[[5, 5]]])},
    ),
    case(
        "PRelu",
        (f32([[-1, -2], [-3, -4]]), f32([2, 3])),
        {1: f32([[-2, -6], [-6, -12]]), 6: f32([[-2, -6], [-6, -12]])},
    ),
    case(
        "PRelu",
        (f32([[[-1], [-2]]]), f32([2, 3])),
        {6: f32([[[-2], [-6]]]), 7: Stuck("slope broadcasts to the shape of X.")},
    ),
    case(
        "PRelu",
        (f32([[[-1], [-2]]]), f32([2, 3])),
        {1: f32([[[-2], [-6]]]), 6: FOREIGN, 7: FOREIGN},
        consumed_inputs=(0,),
    ),
    case("Pad", f32([1]), {1: f32([0, 1]), 2: FOREIGN, 11: FOREIGN, 18: FOREIGN, 19: FOREIGN}, paddings=(1, 0)),
    case("Reshape", f32([[1, 2]]), {1: f32([1, 2]), 5: FOREIGN, 14: FOREIGN}, shape=(-1,)),
    *(
        case(
            op_type,
            (f32([[[0]]]), f32(np.ones((1, gates, 1))), f32(np.ones((1, gates, 1)))),
            dict.fromkeys(firsts, (f32([[[[0]]]]), f32([[[0]]]))) | {7: FOREIGN, 14: FOREIGN},
            outputs=2,
            output_sequence=1,
        )
        for op_type, gates, firsts in (("GRU", 3, (1, 3)), ("LSTM", 4, (1,)), ("RNN", 1, (1,)))
    ),
    case(
        "GRU",
        (f32([[[0]]]), f32(np.ones((1, 3, 1))), f32(np.ones((1, 3, 1)))),
        {1: FOREIGN, 3: (f32([[[[0]]]]), f32([[[0]]]))},
        outputs=2,
        linear_before_reset=1,
    ),
    case("Tile", (f32([1, 2]), f32(2), f32(0)), {1: f32([1, 2, 1, 2]), 6: FOREIGN}),
    case("GlobalLpPool", f32([[[1, -2]]]), {1: f32([[[3]]]), 2: KIND}, p=1.0),
    case("LpPool", f32([[[1, -2]]]), {1: f32([[[3]]]), 2: KIND, 18: KIND}, p=1.0, kernel_shape=(2,)),
    case("LpPool", f32([[[1, -2]]]), {2: FOREIGN, 18: f32([[[3]]])}, p=1, kernel_shape=(2,), dilations=(1,)),
)
