"""What `optimize` makes does not depend on the order in which the nodes of a graph stand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sampling import sampled
from small_models import model_of
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.stored import array_of

SHARED = Path(__file__).parents[4] / ".." / "shared" / "models"
BYTES = 1 << 24
"""Models with larger files are left out."""
SHUFFLES = 3


def shared() -> list[Path]:
    """The shared models that are meant to be right."""
    files = SHARED.glob("**/*.onnx") if SHARED.is_dir() else ()
    right = (it for it in files if it.relative_to(SHARED).parts[0] != "invalid")
    return sorted(it for it in right if it.stat().st_size <= BYTES)


def shuffled(model: Model, seed: int) -> Model:
    """The model with the nodes of each graph in another order in which they can run."""
    rng = random.Random(seed)
    graphs = []
    for graph in model.graphs:
        writers = {t: n for n in graph.nodes for t in model.nodes[n].outputs if t is not None}
        before = {
            n: {writers[t] for t in (*model.nodes[n].inputs, *model.nodes[n].captures) if t in writers}
            for n in graph.nodes
        }
        order: list[int] = []
        done: set[int] = set()
        while len(order) < len(graph.nodes):
            chosen = rng.choice([n for n in graph.nodes if n not in done and before[n] <= done])
            order.append(chosen)
            done.add(chosen)
        graphs.append(replace(graph, nodes=tuple(order)))
    return replace(model, graphs=tuple(graphs))


def meaning(model: Model) -> tuple[Counter[Hashable], tuple[Hashable, ...]]:
    """The nodes of the main graph, each as what it computes from inputs and stored values, and the outputs so."""
    made: dict[int, Hashable] = {}
    graph = model.graphs[0]
    for t in graph.inputs:
        made[t] = "input", model.tensors[t].name
    for t, constant in graph.initializers:
        array = array_of(constant, model, model.tensors[t].name)
        assert isinstance(array, np.ndarray)
        elements = tuple(array.reshape(-1).tolist()) if array.dtype.hasobject else array.tobytes()
        made.setdefault(t, ("stored", array.dtype.str, array.shape, hash(elements)))
    nodes: Counter[Hashable] = Counter()
    for n in graph.nodes:
        node = model.nodes[n]
        read = tuple(None if t is None else made.get(t, t) for t in node.inputs)
        key = hash((node.op_type, node.version, read, repr(sorted(node.attributes.items()))))
        nodes[key] += 1
        made |= {t: (key, k) for k, t in enumerate(node.outputs) if t is not None}
    return nodes, tuple(made[t] for t in graph.outputs)


def assert_one(model: Model, strength: str) -> None:
    first = optimize(model, strength=strength)
    for seed in range(SHUFFLES):
        other = optimize(shuffled(model, seed), strength=strength)
        assert other.after == first.after and meaning(other.model) == meaning(first.model), (strength, seed)


TEXT = (
    "g (float[2, 3] x, float[3, 2] w) => (float[2, 2] y, float[2, 3] z) { a = Transpose<perm = [1, 0]>(x)"
    " b = Transpose<perm = [1, 0]>(a) c = Relu(b) d = Relu(c) e = Identity(w) y = MatMul(d, e) f = Neg(x) z = Neg(f)"
    " h = Exp(a) i = Log(h) }"
)


MOVED = (
    "g (float[1,2,2,2] x) => (float[1,2,2,2] y, float[1,2,2,2] z, float[1,2,2,2] w) { a = Transpose<perm=[0,2,3,1]>(x)"
    " b = Add(a, s) c = Transpose<perm=[0,3,1,2]>(b) d = Transpose<perm=[0,3,1,2]>(b) e = Transpose<perm=[0,2,3,1]>(c)"
    " f = Transpose<perm=[0,3,1,2]>(c) g = Relu(f) h = Add(f, e) i = Add(h, f) y = Relu(g)"
    " j = Transpose<perm=[0,3,1,2]>(y) k = Transpose<perm=[0,3,1,2]>(e) z = Exp(j) w = Exp(k) }"
)
"""Whichever Transposes meet first decides which others can."""


@pytest.mark.parametrize("strength", ["exact", "reals"])
def test_the_order_of_nodes_does_not_matter(strength: str) -> None:
    assert_one(model_of(TEXT), strength)


def test_the_order_of_nodes_does_not_say_which_transposes_meet() -> None:
    assert_one(model_of(MOVED, stored={"s": np.float32(0.25)}), "exact")


def test_a_model_that_means_something_else_is_told_apart() -> None:
    other = TEXT.replace("z = Neg(f)", "z = Abs(f)")
    assert meaning(optimize(model_of(TEXT)).model) != meaning(optimize(model_of(other)).model)


@pytest.mark.parametrize("path", sampled(shared(), 2), ids=lambda it: it.name)
def test_a_shared_model_in_any_order_of_nodes(path: Path) -> None:
    try:
        model = load(path)
        optimize(model)
    except (ModelError, Unsupported) as reason:
        pytest.skip(f"it is not optimized: {reason}")
    assert_one(model, "exact")
