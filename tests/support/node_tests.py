"""The onnx wheel's node tests (onnx 1.23.2) that are wrong, and those that are refused, each with the reason."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np

NUMPY = "expects what NumPy's generator draws; ONNX fixes no generator"
UNROUNDED = (
    "expects coordinates from the unrounded length scale * d; text and onnxruntime take the length of the output"
)
HALF = "a unit in the last place of float16 is up to 1e-3, the tolerance of the test: it forbids other orders of sums"
WEIGHTED = (
    "expects the greatest of the weighted elements around the samples; the text interpolates a sample, then pools"
)
BFLOAT = "a unit in the last place of bfloat16 is up to 8e-3, the tolerance 1e-3: it forbids other roundings"
SCALAR = "onnx's runner takes the length of each tensor in a sequence, which a scalar lacks; test_shared_outputs has it"

CANCELLED = (
    "expects, to 1e-7, what a transform in double makes of terms that nearly cancel; sums in float are farther off"
)
IN_A_CORNER = "takes positions in the shape without output_shape; text and onnxruntime take those in the output"

UNSTATED = "ImageDecoder-20: It does not hold for "
IMAGES: dict[str, str] = {
    "test_image_decoder_decode_jpeg2k_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_jpeg_bgr": f"{UNSTATED}b",
    "test_image_decoder_decode_jpeg_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_png_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_pnm_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_tiff_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_webp_rgb": f"{UNSTATED}b",
    "test_image_decoder_decode_jpeg_grayscale": f'{UNSTATED}pixel_format = "Grayscale"',
}
"""Images in formats whose pixels the text does not state, and in shades of gray: what the refusal says."""
SINGLE: dict[str, str] = {
    **dict.fromkeys(IMAGES, "refused: the text decodes BMP files alone, and makes no shades of gray"),
    "test_dft": CANCELLED,
    "test_dft_axis": CANCELLED,
    "test_dft_axis_opset19": CANCELLED,
    "test_dft_inverse": CANCELLED,
    "test_dft_inverse_opset19": CANCELLED,
    "test_dft_opset19": CANCELLED,
    "test_dft_rfft": CANCELLED,
    "test_dft_rfft_opset19": CANCELLED,
    "test_stft": CANCELLED,
    "test_stft_with_window": CANCELLED,
    "test_maxunpool_export_with_output_shape": IN_A_CORNER,
    "test_celu_bfloat16": BFLOAT,
    "test_resize_downsample_scales_cubic_align_corners": UNROUNDED,
    "test_resize_downsample_scales_linear_align_corners": UNROUNDED,
    "test_roialign_mode_max": WEIGHTED,
    "test_attention_4d_fp16": HALF,
    "test_attention_4d_gqa_with_past_and_present_fp16": HALF,
    "test_attention_4d_causal_fp16": HALF,
    "test_attention_4d_gqa_causal_nonpad_decode_fp16": HALF,
    "test_causal_conv_with_state_silu_fp16": HALF,
    "test_attention_4d_causal_bf16": BFLOAT,
    "test_attention_4d_padded_kv_bf16": BFLOAT,
    "test_attention_4d_causal_padded_kv_bf16": BFLOAT,
    "test_attention_4d_attn_mask_causal_bf16": BFLOAT,
    "test_attention_3d_causal_bf16": BFLOAT,
}
"""Tests of a single node, applied by itself."""
FAULTY: dict[str, str] = {
    **SINGLE,
    "test_bernoulli": NUMPY,
    "test_bernoulli_expanded": NUMPY,
    "test_bernoulli_double": NUMPY,
    "test_bernoulli_double_expanded": NUMPY,
    "test_bernoulli_seed": NUMPY,
    "test_bernoulli_seed_expanded": NUMPY,
    "test_training_dropout": NUMPY,
    "test_training_dropout_default": NUMPY,
    "test_training_dropout_default_mask": NUMPY,
    "test_training_dropout_mask": NUMPY,
    "test_loop16_seq_none": SCALAR,
    "test_attention_4d_causal_fp16_expanded": HALF,
    "test_attention_4d_fp16_expanded": HALF,
    "test_attention_4d_gqa_causal_nonpad_decode_fp16_expanded": HALF,
    "test_attention_4d_gqa_with_past_and_present_fp16_expanded": HALF,
    "test_causal_conv_with_state_silu_fp16_expanded": HALF,
}
"""Those among all node tests, as ONNX's own runner judges them."""

REFUSED: dict[str, str] = {
    **IMAGES,
    **dict.fromkeys(
        (
            "test_flexattention_causal_mask",
            "test_flexattention_prob_mod",
            "test_flexattention_relative_positional",
            "test_flexattention_score_mod",
            "test_flexattention_soft_cap",
        ),
        "no meaning to ai.onnx.preview::FlexAttention-1 with a graph as attribute",
    ),
}
"""Those of operators that the specification defines in part: what the refusal says."""


@cache
def node_cases() -> tuple[Any, ...]:
    """The node tests, loaded once."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return tuple(load_model_tests(kind="node"))
