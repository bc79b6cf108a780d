"""ONNX's own node tests, run by ONNX's own runner on the machine as a backend."""

from __future__ import annotations

import re
import unittest
from functools import cache
from pathlib import Path

import onnx
import onnx.backend.test
from onnx.backend.test.loader import load_model_tests
from sonnx.semantics.backend import Machine
from sonnx.spec.library import specification

NUMPY = "expects what NumPy's generator draws; ONNX fixes no generator, and a Dropout in training mode is refused"
HALF = "a unit in the last place of float16 is up to 1e-3, the tolerance of the test: it forbids other orders of sums"
UNROUNDED = (
    "expects coordinates from the unrounded length scale * d; text and onnxruntime take the length of the output"
)
SCALAR = "onnx's runner takes the length of each tensor in a sequence, which a scalar lacks; test_shared_outputs has it"
FAULTY: dict[str, str] = {
    "test_loop16_seq_none": SCALAR,
    "test_attention_4d_causal_fp16_expanded": HALF,
    "test_attention_4d_fp16_expanded": HALF,
    "test_attention_4d_gqa_causal_nonpad_decode_fp16_expanded": HALF,
    "test_attention_4d_gqa_with_past_and_present_fp16_expanded": HALF,
    "test_causal_conv_with_state_silu_fp16_expanded": HALF,
    "test_training_dropout": NUMPY,
    "test_training_dropout_default": NUMPY,
    "test_training_dropout_default_mask": NUMPY,
    "test_training_dropout_mask": NUMPY,
    "test_resize_downsample_scales_cubic_align_corners": UNROUNDED,
    "test_resize_downsample_scales_linear_align_corners": UNROUNDED,
}
"""Node tests that are left out, each with the reason why the test is wrong."""


def operators(graph: onnx.GraphProto) -> set[str]:
    """The operators of a graph and of the bodies in it."""
    found = set()
    for node in graph.node:
        found.add(f"{node.domain}:{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type)
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                found |= operators(body)
    return found


@cache
def covered() -> tuple[str, ...]:
    """The node tests whose models are made of operators that the specification defines."""
    known = set(specification().operators)
    names = []
    for case in load_model_tests(kind="node"):
        model = case.model if case.model is not None else onnx.load(Path(str(case.model_dir)) / "model.onnx")
        inner = {op for function in model.functions for op in operators(onnx.GraphProto(node=function.node))}
        if operators(model.graph) | inner <= known:
            names.append(case.name)
    return tuple(names)


def chosen(case: type[unittest.TestCase], wanted: set[str]) -> type[unittest.TestCase]:
    """The test case of ONNX's runner with the wanted tests alone."""
    kept = {name: member for name, member in vars(case).items() if name in wanted or not name.startswith("test_")}
    return type(case.__name__, (unittest.TestCase,), kept)


runner = onnx.backend.test.BackendTest(Machine, __name__)
for name in covered():
    if name not in FAULTY:
        runner.include(f"^{re.escape(name)}_cpu$")
OnnxBackendNodeModelTest = chosen(
    runner.test_cases["OnnxBackendNodeModelTest"], {f"{name}_cpu" for name in covered() if name not in FAULTY}
)


def test_the_tests_left_out_exist() -> None:
    assert set(FAULTY) <= set(covered())


def test_hundreds_of_node_tests_are_covered() -> None:
    assert len(covered()) > 400
