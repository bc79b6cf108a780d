"""A run on a box of inputs tells of each tensor what it may be for all of them, or nothing."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from sonnx.checker.runtimes.differential.chaining import Chained, chained
from sonnx.semantics import load_proto, run
from sonnx.semantics.operators.compiled.bound import Allowed

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def box(least: float, most: float, shape: tuple[int, ...]) -> Allowed:
    ends, never = [np.full(shape, it, np.float64) for it in (least, most)], np.zeros(shape, np.bool_)
    return Allowed(np.dtype(np.float32), ends[0], ends[1], never, never, ends[0], ends[1])


def run_on(text: str, **boxes: tuple[float, float]) -> Chained:
    """The run in the middle of boxes of two elements each; the output is z."""
    feeds = {name: np.full(2, (a + b) / 2, np.float32) for name, (a, b) in boxes.items()}
    found = chained(
        load_proto(onnx.parser.parse_model(HEAD + text)), feeds, box={n: box(*it, (2,)) for n, it in boxes.items()}
    )
    assert isinstance(found, Chained)
    return found


@pytest.mark.parametrize(
    "body",
    [
        "z = Mul(x, y)",
        "z = Div(x, y)",
        "a = Exp(x) b = Neg(y) z = Sub(a, b)",
        "c = Less(x, y) z = Where(c, x, y)",
        "a = Max(x, y) z = Softmax(a)",
        "c = Constant<value = bool {1}>() z = If(c) <then_branch = g () => (t) { t = Add(x, y) },"
        " else_branch = h () => (e) { e = Sub(x, y) }>",
        "n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>() z = Loop(n, c, x) <body = b"
        " (int64 i, bool k, float[2] s) => (bool l, float[2] t) { l = Identity(k) t = Mul(s, y) }>",
    ],
)
def test_every_run_in_the_box_is_within(body: str) -> None:
    text = f"g (float[2] x, float[2] y) => (float[2] z) {{ {body} }}"
    boxes = {"x": (-1.0, 3.0), "y": (0.5, 1.5)}
    found = run_on(text, **boxes).allowed("z")
    assert isinstance(found, Allowed)
    model, draw = load_proto(onnx.parser.parse_model(HEAD + text)), np.random.default_rng(1)
    for _ in range(20):
        feeds = {name: draw.choice([a, b, draw.uniform(a, b)], 2).astype(np.float32) for name, (a, b) in boxes.items()}
        z = run(model, feeds).outputs["z"]
        assert isinstance(z, np.ndarray) and (found.least <= z).all() and (z <= found.most).all()


@pytest.mark.parametrize(
    ("body", "node"),
    [
        (
            "s = ReduceSum<keepdims = 0>(x) o = Constant<value = float {0}>() c = Greater(s, o) z = If(c)"
            " <then_branch = g () => (t) { t = Add(x, y) }, else_branch = h () => (e) { e = Sub(x, y) }>",
            "/3:If",
        ),
        ("a = NonZero(x) k = Shape(a) z = Cast<to = 1>(k)", "/0:NonZero"),
    ],
)
def test_what_is_not_known_for_the_whole_box_is_not_told(body: str, node: str) -> None:
    found = run_on(f"g (float[2] x, float[2] y) => (float[n] z) {{ {body} }}", x=(-1.0, 3.0), y=(0.5, 1.5))
    assert found.allowed("z") is None and found.ended == node


def test_a_value_of_a_loop_that_two_boxes_have_in_this_run_is_taken_for_neither() -> None:
    text = """g (float[2] x, float[2] y) => (float[2] z, float[2] w) {
        n = Constant<value = int64 {1}>() c = Constant<value = bool {1}>()
        z, w = Loop(n, c, x, y) <body = b (int64 i, bool k, float[2] s, float[2] t) => (bool l, float[2] p, float[2] q)
          { l = Identity(k) p = Identity(t) q = Identity(s) }> }"""
    found = run_on(text, x=(0.0, 2.0), y=(-9.0, 11.0))
    z, w = found.allowed("z"), found.allowed("w")
    assert z is None or (isinstance(z, Allowed) and z.most.max() == 11)
    assert w is None or (isinstance(w, Allowed) and w.most.max() == 2)
