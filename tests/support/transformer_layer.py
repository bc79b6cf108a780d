"""One layer of a transformer, its normalizations and its activation written out as exporters write them."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

BATCH, LENGTH, HIDDEN, HEADS = 1, 4, 8, 2
INNER = 2 * HIDDEN

LAYER = """<ir_version: 8, opset_import: ["" : {opset}]>
g (float[{batch}, {length}, {hidden}] x) => (float[{batch}, {length}, {hidden}] y) {{
  q0 = MatMul(x, wq)
  q1 = Add(q0, bq)
  q2 = Reshape(q1, split)
  q = Transpose<perm = [0, 2, 1, 3]>(q2)
  k0 = MatMul(x, wk)
  k1 = Add(k0, bk)
  k2 = Reshape(k1, split)
  k = Transpose<perm = [0, 2, 3, 1]>(k2)
  v0 = MatMul(x, wv)
  v1 = Add(v0, bv)
  v2 = Reshape(v1, split)
  v = Transpose<perm = [0, 2, 1, 3]>(v2)
  s0 = MatMul(q, k)
  s1 = Div(s0, scale)
  s = Softmax<axis = -1>(s1)
  c0 = MatMul(s, v)
  c1 = Transpose<perm = [0, 2, 1, 3]>(c0)
  c = Reshape(c1, join)
  o0 = MatMul(c, wo)
  o1 = Add(o0, bo)
  o = Add(o1, x)
{first}
  i0 = MatMul(n, wi)
  i1 = Add(i0, bi)
{activation}
  u0 = MatMul(e, wu)
  u1 = Add(u0, bu)
  u = Add(u1, n)
{second}
}}"""
GELU = """
  e0 = Div(i1, root)
  e1 = Erf(e0)
  e2 = Add(e1, one)
  e3 = Mul(i1, half)
  e = Mul(e3, e2)
"""
NORMALIZATION = """
  m0{t} = ReduceMean<axes = [-1]>({x})
  m1{t} = Sub({x}, m0{t})
  m2{t} = Pow(m1{t}, two)
  m3{t} = ReduceMean<axes = [-1]>(m2{t})
  m4{t} = Add(m3{t}, eps)
  m5{t} = Sqrt(m4{t})
  m6{t} = Div(m1{t}, m5{t})
  m7{t} = Mul(m6{t}, g{t})
  {y} = Add(m7{t}, b{t})
"""


def transformer_layer(opset: int = 17, activation: str = GELU, heads: int = HEADS) -> onnx.ModelProto:
    """The layer with random weights, which is a small one. opset: from 18 on the axes of means are an input.
    activation: the nodes that make `e` of `i1`."""
    means = (
        NORMALIZATION
        if opset < 18
        else NORMALIZATION.replace("<axes = [-1]>", "")
        .replace("({x})", "({x}, axes)")
        .replace("(m2{t})", "(m2{t}, axes)")
    )
    text = LAYER.format(
        opset=opset,
        batch=BATCH,
        length=LENGTH,
        hidden=HIDDEN,
        activation=activation,
        first=means.format(t=1, x="o", y="n"),
        second=means.format(t=2, x="u", y="y"),
    )
    proto = onnx.parser.parse_model(text)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "wq": (HIDDEN, HIDDEN),
        "wk": (HIDDEN, HIDDEN),
        "wv": (HIDDEN, HIDDEN),
        "wo": (HIDDEN, HIDDEN),
        "bq": (HIDDEN,),
        "bk": (HIDDEN,),
        "bv": (HIDDEN,),
        "bo": (HIDDEN,),
        "wi": (HIDDEN, INNER),
        "bi": (INNER,),
        "wu": (INNER, HIDDEN),
        "bu": (HIDDEN,),
        "g1": (HIDDEN,),
        "b1": (HIDDEN,),
        "g2": (HIDDEN,),
        "b2": (HIDDEN,),
    }
    stored = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    numbers = {"scale": np.sqrt(HIDDEN // heads), "root": np.sqrt(2), "one": 1, "half": 0.5, "two": 2, "eps": 1e-5}
    stored |= {name: np.array(value, np.float32) for name, value in numbers.items()}
    lists = {"split": [BATCH, LENGTH, heads, HIDDEN // heads], "join": [BATCH, LENGTH, HIDDEN]} | (
        {"axes": [-1]} if opset >= 18 else {}
    )
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name)
        for name, array in [*stored.items(), *((name, np.array(it, np.int64)) for name, it in lists.items())]
    )
    onnx.checker.check_model(proto, full_check=True)
    return proto
