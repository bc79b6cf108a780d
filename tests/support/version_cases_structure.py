"""Cases that tell versions apart: shapes, selection, padding, resizing, sequences and optionals."""

from __future__ import annotations

import numpy as np
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.values import Sequence
from version_cases import FOREIGN, Stuck, case, f32, i64

MATRIX = f32([[1, 2, 3], [4, 5, 6]])
COLUMN = f32([[1], [2]])
EIGHT = np.arange(8)
SEQUENCE = Sequence(ValueType("tensor", "float"), (f32([1]),))

SHAPES = (
    case("Constant", (), {1: FOREIGN, 11: Stuck("Exactly one of the two attributes is given.")}),
    case("Constant", (), {1: FOREIGN, 11: FOREIGN, 12: i64(3)}, value_int=3),
    case(
        "Flatten",
        MATRIX,
        {1: Stuck("axis is in 0 .. r, where r is the number of axes."), 11: MATRIX},
        axis=-1,
    ),
    case("Identity", (SEQUENCE,), {1: FOREIGN, 14: SEQUENCE}),
    case("Reshape", (np.zeros((2, 0), np.float32), i64([0, 2])), {5: FOREIGN, 14: f32(np.zeros((0, 2)))}, allowzero=1),
    case("Shape", MATRIX, {1: FOREIGN, 15: i64([3])}, start=1),
    case("Slice", f32([1, 2, 3]), {1: f32([2]), 10: FOREIGN}, starts=(1,), ends=(2,)),
    case("Slice", (f32([1, 2, 3]), i64([1]), i64([2])), {1: FOREIGN, 10: f32([2])}),
    case(
        "Squeeze",
        COLUMN,
        {1: Stuck("axes lists axes of the input, from 0."), 11: f32([1, 2]), 13: FOREIGN},
        axes=(-1,),
    ),
    case("Squeeze", (COLUMN, i64([-1])), {1: FOREIGN, 11: FOREIGN, 13: f32([1, 2])}),
    case(
        "Unsqueeze",
        f32([1, 2]),
        {1: Stuck("axes lists axes of the result, from 0."), 11: COLUMN, 13: FOREIGN},
        axes=(-1,),
    ),
    case("Unsqueeze", (f32([1, 2]), i64([-1])), {1: FOREIGN, 11: FOREIGN, 13: COLUMN}),
    case(
        "Split",
        (f32([1, 2, 3]), i64([1, 2])),
        {2: FOREIGN} | dict.fromkeys((13, 18), (f32([1]), f32([2, 3]))),
        outputs=2,
    ),
    case(
        "Split",
        f32([1, 2]),
        {1: Stuck("axis is given."), 18: Stuck("Either split or num_outputs is given, not both.")}
        | dict.fromkeys((2, 13), (f32([1]), f32([2]))),
        outputs=2,
    ),
    case("Split", f32([1, 2, 3]), {2: FOREIGN, 13: FOREIGN, 18: (f32([1, 2]), f32([3]))}, outputs=2, num_outputs=2),
    case(
        "DepthToSpace",
        f32(EIGHT.reshape(1, 8, 1, 1)),
        {1: FOREIGN, 11: f32(EIGHT.reshape(1, 2, 2, 2))},
        blocksize=2,
        mode="CRD",
    ),
    case(
        "SpaceToDepth",
        f32(EIGHT.reshape(1, 2, 2, 2)),
        {1: FOREIGN, 28: f32(EIGHT.reshape(1, 8, 1, 1))},
        blocksize=2,
        mode="CRD",
    ),
)

THREE_WORDS = Stuck("reduction is one of the three words.")
SELECTION = (
    case("GatherND", (MATRIX, i64([[0], [2]])), {11: FOREIGN, 12: f32([1, 6])}, batch_dims=1),
    # a negative index names no position before version 11
    case("OneHot", (i64([-1]), i64(2), f32([0, 1])), {9: f32([[0, 0]]), 11: f32([[0, 1]])}),
    *(
        one
        for op_type, indices in (("ScatterElements", i64([0])), ("ScatterND", i64([[0]])))
        for one in (
            case(
                op_type,
                (f32([1, 2]), indices, f32([5])),
                {11: FOREIGN, 16: f32([6, 2]), 18: f32([6, 2])},
                reduction="add",
            ),
            case(
                op_type,
                (f32([1, 2]), indices, f32([5])),
                {11: FOREIGN, 16: THREE_WORDS, 18: f32([5, 2])},
                reduction="max",
            ),
        )
    ),
    case("TopK", f32([1, 3, 2]), {1: (f32([3, 2]), i64([1, 2])), 10: FOREIGN, 11: FOREIGN}, outputs=2, k=2),
    case(
        "TopK",
        (f32([1, 3, 2]), i64([2])),
        {1: FOREIGN, 10: FOREIGN, 11: (f32([1, 2]), i64([0, 2]))},
        outputs=2,
        largest=0,
    ),
)

PADDING = (
    case("Pad", f32([1, 2]), {2: f32([0, 1, 2]), 11: FOREIGN, 18: FOREIGN, 19: FOREIGN}, pads=(1, 0)),
    case(
        "Pad",
        (COLUMN, i64([1, 0]), None, i64([1])),
        {2: FOREIGN, 11: FOREIGN} | dict.fromkeys((18, 19), f32([[0, 1], [0, 2]])),
    ),
    case(
        "Pad",
        (f32([1, 2]), i64([2, 0])),
        {19: f32([1, 2, 1, 2])} | dict.fromkeys((11, 18), Stuck("mode is one of the three words.")),
        mode="wrap",
    ),
)

PIXELS, TWICE = f32([[[[1, 2]]]]), f32([1, 1, 1, 2])
DOUBLED = f32([[[[1, 1, 2, 2]]]])
FIVE_WORDS, SIX_WORDS = (Stuck(f"coordinate_transformation_mode is one of the {n} words.") for n in ("five", "six"))
RESIZING = (
    case(
        "Resize",
        (PIXELS, TWICE),
        {10: DOUBLED, 11: FOREIGN} | dict.fromkeys((13, 18, 19), Stuck("Either scales or sizes say how far.")),
    ),
    case("Resize", (PIXELS, None, TWICE), {10: FOREIGN, 11: FOREIGN} | dict.fromkeys((13, 18, 19), DOUBLED)),
    case(
        "Resize",
        (PIXELS, f32([]), TWICE),
        {11: f32([[[[1, 2, 2, 2]]]]), 18: FIVE_WORDS, 19: SIX_WORDS},
        coordinate_transformation_mode="tf_half_pixel_for_nn",
    ),
    case(
        "Resize",
        (PIXELS, f32([]), TWICE),
        {11: SIX_WORDS, 18: FIVE_WORDS, 19: DOUBLED},
        coordinate_transformation_mode="half_pixel_symmetric",
    ),
    case(
        "Resize",
        (PIXELS, f32([]), TWICE),
        {10: FOREIGN, 11: FOREIGN, 13: FOREIGN, 18: DOUBLED, 19: DOUBLED},
        antialias=0,
    ),
)

OPTIONALS = (
    case("OptionalGetElement", f32([1]), {15: FOREIGN, 18: f32([1])}),
    case("OptionalHasElement", (), {15: FOREIGN, 18: np.array(False)}),
)

PIXELS, TWICE = f32([[[[1, 2]]]]), f32([[[[1, 1, 2, 2]]]])
UPSAMPLING = (
    case("Upsample", PIXELS, {1: TWICE, 7: FOREIGN, 9: FOREIGN}, height_scale=1.0, width_scale=2.0),
    case("Upsample", PIXELS, {1: FOREIGN, 7: TWICE, 9: FOREIGN}, scales=(1.0, 1.0, 1.0, 2.0)),
)

LABELS = (
    case(
        "ai.onnx.ml::LabelEncoder",
        f32([3]),
        {1: FOREIGN, 2: f32([1]), 4: f32([2])},
        keys_floats=(3.0, 3.0),
        values_floats=(1.0, 2.0),
    ),
)

LEAF = {
    "nodes_treeids": (0,), "nodes_nodeids": (0,), "nodes_featureids": (0,), "nodes_modes": ("LEAF",),
    "nodes_values": (0.0,), "nodes_truenodeids": (0,), "nodes_falsenodeids": (0,),
}  # fmt: skip
"""A tree of one leaf."""
TREES = (
    case(
        "ai.onnx.ml::TreeEnsembleRegressor",
        np.ones((1, 1)),
        {1: FOREIGN, 3: f32([[2]])},
        n_targets=1,
        target_treeids=(0,),
        target_nodeids=(0,),
        target_ids=(0,),
        target_weights_as_tensor=np.array([2.0]),
        **LEAF,
    ),
    case(
        "ai.onnx.ml::TreeEnsembleClassifier",
        np.ones((1, 1)),
        {1: FOREIGN, 3: (i64([5]), f32([[2, 1]]))},
        2,
        classlabels_int64s=(5, 6),
        class_treeids=(0, 0),
        class_nodeids=(0, 0),
        class_ids=(0, 1),
        class_weights_as_tensor=np.array([2.0, 1.0]),
        **LEAF,
    ),
)

CASES = (*UPSAMPLING, *SHAPES, *SELECTION, *PADDING, *RESIZING, *OPTIONALS, *LABELS, *TREES)
