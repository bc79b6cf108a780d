"""Mutants: a model with one thing changed is never called equal; it is found with an input, or with the place named."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import numpy as np
import onnx
import onnx.parser
import pytest
from light_models import light_model
from onnx import AttributeProto, NodeProto, helper, numpy_helper
from sampling import seeds
from sonnx.checker.equivalence.comparing.comparison import Comparison, Verdict, compare
from sonnx.checker.equivalence.comparing.rewriting import CLAIMS, Trusted
from sonnx.semantics import load_proto
from sonnx.spec.library import specification

NET = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 3, 9, 9] x) => (float[1, 5] y) {
  c = Conv<pads = [1, 1, 0, 1], strides = [1, 1]>(x, w, b)
  n = BatchNormalization(c, s, o, m, v)
  r = LeakyRelu(n)
  p = MaxPool<kernel_shape = [2, 2], strides = [2, 2], pads = [0, 1, 1, 0]>(r)
  t = Transpose<perm = [0, 2, 3, 1]>(p)
  u = ReduceMean<axes = [1]>(t)
  k = Sub(u, h)
  z = Concat<axis = 2>(k, u)
  f = Flatten<axis = 1>(z)
  q = Gemm(f, a, d)
  y = Softmax<axis = 1>(q)
}"""
FLOW = """<ir_version: 8, opset_import: ["" : 17]>
g (bool c, int64 n, float[2, 3] x, float[2, 3] w0) => (float[3, 2] y) {
  one = Constant<value_int = 1>()
  go = Cast<to = 9>(one)
  i = If(c) <then_branch = t () => (float[2, 3] p) { p0 = Exp(x) p = Sub(p0, w0) },
             else_branch = e () => (float[2, 3] q) { q0 = Neg(x) q = Mul(q0, k) }>
  l = Loop(n, go, i) <body = b (int64 j, bool g, float[2, 3] s) => (bool g, float[2, 3] v)
    { a = Div(s, k) v = Sub(a, x) }>
  m = Sub(l, k)
  y = Transpose<perm = [1, 0]>(m)
}"""


@cache
def bases() -> tuple[onnx.ModelProto, ...]:
    """The models that are changed, with drawn weights."""
    shapes = {
        "w": (4, 3, 3, 3),
        "b": (4,),
        "s": (4,),
        "o": (4,),
        "m": (4,),
        "v": (4,),
        "h": (1, 1, 5, 4),
        "a": (40, 5),
        "d": (5,),
    }
    net, flow = onnx.parser.parse_model(NET), onnx.parser.parse_model(FLOW)
    rng = np.random.default_rng(7)
    for name, shape in shapes.items():
        array = rng.uniform(0.5, 1.5, shape) if name in "sv" else rng.standard_normal(shape)
        net.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    flow.graph.initializer.append(numpy_helper.from_array(rng.uniform(0.5, 2, (2, 3)).astype(np.float32), "k"))
    return net, flow


Mutator = Callable[[onnx.ModelProto, random.Random], bool]


def graphs(model: onnx.ModelProto) -> list[onnx.GraphProto]:
    made = [model.graph]
    for graph in made:
        made += [it.g for node in graph.node for it in node.attribute if it.type == AttributeProto.GRAPH]
    return made


def nodes(model: onnx.ModelProto, *kinds: str) -> list[tuple[onnx.GraphProto, NodeProto]]:
    return [(graph, node) for graph in graphs(model) for node in graph.node if not kinds or node.op_type in kinds]


def weight_bit(model: onnx.ModelProto, rng: random.Random) -> bool:
    stored = rng.choice([it for it in model.graph.initializer if it.data_type == 1])
    array = numpy_helper.to_array(stored).copy()
    bits = array.reshape(-1).view(np.uint32)
    bits[rng.randrange(bits.size)] ^= np.uint32(1 << rng.randrange(23))
    stored.CopyFrom(numpy_helper.from_array(array, stored.name))
    return True


def constant(model: onnx.ModelProto, rng: random.Random) -> bool:
    stored = rng.choice([it for it in model.graph.initializer if it.data_type == 1])
    array = numpy_helper.to_array(stored).copy()
    array.reshape(-1)[rng.randrange(array.size)] += np.float32(rng.choice([0.25, -2.0, 1e-3]))
    stored.CopyFrom(numpy_helper.from_array(array, stored.name))
    return True


def _list_attribute(
    model: onnx.ModelProto, rng: random.Random, name: str, change: Callable[[list[int]], list[int]]
) -> bool:
    found = [it for _, node in nodes(model) for it in node.attribute if it.name == name]
    if not found:
        return False
    chosen = rng.choice(found)
    before = list(chosen.ints)
    chosen.ints[:] = change(list(before))
    return list(chosen.ints) != before


def pad(model: onnx.ModelProto, rng: random.Random) -> bool:
    def moved(pads: list[int]) -> list[int]:
        at = rng.randrange(len(pads) // 2)
        other = at + len(pads) // 2
        pads[at], pads[other] = (pads[other], pads[at]) if pads[at] != pads[other] else (pads[at] + 1, pads[other] - 1)
        return pads

    return _list_attribute(model, rng, "pads", moved)


def perm(model: onnx.ModelProto, rng: random.Random) -> bool:
    def other(order: list[int]) -> list[int]:
        i, j = rng.sample(range(1, len(order)), 2) if len(order) > 2 else (0, 1)
        order[i], order[j] = order[j], order[i]
        return order

    return _list_attribute(model, rng, "perm", other)


def axis(model: onnx.ModelProto, rng: random.Random) -> bool:
    found = [it for _, node in nodes(model, "Concat", "Softmax") for it in node.attribute if it.name == "axis"]
    lists = [it for _, node in nodes(model, "ReduceMean") for it in node.attribute if it.name == "axes"]
    if not found + lists:
        return False
    chosen = rng.choice(found + lists)
    if chosen.ints:
        chosen.ints[0] = 2 if chosen.ints[0] != 2 else 3
    else:
        chosen.i = {2: 3, 1: 0}[chosen.i]
    return True


def swapped(model: onnx.ModelProto, rng: random.Random) -> bool:
    found = nodes(model, "Sub", "Div")
    if not found:
        return False
    _, node = rng.choice(found)
    node.input[0], node.input[1] = node.input[1], node.input[0]
    return True


def dropped(model: onnx.ModelProto, rng: random.Random) -> bool:
    found = nodes(model, "LeakyRelu", "Exp", "Neg", "BatchNormalization", "Sub", "Softmax")
    if not found:
        return False
    graph, node = rng.choice(found)
    at = list(graph.node).index(node)
    made = helper.make_node("Identity", node.input[:1], node.output)
    del graph.node[at]
    graph.node.insert(at, made)
    return True


def branch(model: onnx.ModelProto, rng: random.Random) -> bool:
    found = [node for _, node in nodes(model, "If")]
    if not found:
        return False
    node = rng.choice(found)
    for attribute in node.attribute:
        attribute.name = {"then_branch": "else_branch", "else_branch": "then_branch"}.get(
            attribute.name, attribute.name
        )
    return True


MUTATORS: tuple[Mutator, ...] = (weight_bit, constant, pad, perm, axis, swapped, dropped, branch)


@cache
def every_rule() -> Trusted:
    """All rules that claim something, whether they are proved or not."""
    rules = specification().rules
    return Trusted(tuple(rules[name] for name in rules if rules[name].claim in CLAIMS))


def mutant(seed: int) -> tuple[onnx.ModelProto, onnx.ModelProto, str] | None:
    rng = random.Random(seed)
    base = bases()[seed % len(bases())]
    changed = onnx.ModelProto()
    changed.CopyFrom(base)
    mutator = MUTATORS[(seed // len(bases())) % len(MUTATORS)]
    return (base, changed, mutator.__name__) if mutator(changed, rng) else None


def is_found(comparison: Comparison) -> bool:
    """It is different with an input, or unknown with a place."""
    places = comparison.differences or any(comparison.sides.unmatched)
    if comparison.verdict is Verdict.DIFFERS:
        return comparison.witness is not None
    return comparison.verdict is Verdict.UNKNOWN and bool(places)


@pytest.mark.parametrize("range_", seeds(420, 8))
def test_every_mutant_is_found(range_: range) -> None:
    missed, tried = [], 0
    for seed in range_:
        made = mutant(seed)
        if made is None:
            continue
        a, b = load_proto(made[0]), load_proto(made[1])
        found = compare(a, b, rules=every_rule(), seconds=0.2)
        tried += 1
        if not is_found(found):
            missed.append((seed, made[2], found.verdict))
    assert not missed
    assert tried >= len(range_) // 2


@pytest.mark.campaign
def test_changes_of_light_nets_are_found() -> None:
    for name, seed in (("squeezenet", 1), ("shufflenet", 2), ("zfnet512", 3)):
        base = light_model(name)
        changed = onnx.ModelProto()
        changed.CopyFrom(base)
        assert weight_bit(changed, random.Random(seed))
        found = compare(load_proto(base), load_proto(changed), rules=every_rule(), seconds=0.001)
        assert is_found(found), name
