"""Random models over the defined operators: 1 to 40 nodes, prime dimensions, special values, bodies and captures.

`random_model(seed)` is a conforming model with its inputs. Each entry of `MAKERS` adds one node that fits the tensors
that exist, or gives up; shapes are tracked here, so that a model is well formed by construction.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper
from random_draft import PRIMES, Array, Draft, Misfit
from random_nodes import MAKERS


def random_model(seed: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of opset 21 whose sinks are its outputs, and values for its inputs."""
    choose = random.Random(seed)
    draft = Draft(choose, np.random.default_rng(seed))
    primes = choose.sample(PRIMES, 4)
    given: dict[str, Array] = {}
    for i in range(choose.randint(1, 3)):
        rank = choose.choice((0, 1, 2, 3, 4, 4))
        shape = tuple(
            choose.choice((1, size)) if rank == 4 and axis == 0 else size for axis, size in enumerate(primes[:rank])
        )
        dtype = np.dtype(choose.choice((np.float32, np.float32, np.float16, np.float64, np.int64)))
        given[f"x{i}"] = draft.values(dtype, shape)
        draft.tensors[f"x{i}"] = (dtype, shape)
    wanted = choose.randint(1, 40)
    for _ in range(4 * wanted):
        if len(draft.nodes) >= wanted:
            break
        before = len(draft.nodes), len(draft.stored), len(draft.tensors)
        try:
            MAKERS[choose.choice(sorted(MAKERS))](draft)
        except Misfit:
            del draft.nodes[before[0] :]
            for table, size in ((draft.stored, before[1]), (draft.tensors, before[2])):
                for name in list(table)[size:]:
                    del table[name]  # type: ignore[attr-defined]
    return _model(draft, given), given


def _model(draft: Draft, given: Mapping[str, Array]) -> onnx.ModelProto:
    read = {name for node in draft.nodes for name in node.input}
    read |= {
        name for node in draft.nodes for a in node.attribute if a.HasField("g") for n in a.g.node for name in n.input
    }

    def info(name: str) -> onnx.ValueInfoProto:
        dtype, shape = draft.tensors[name]
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)

    sinks = [name for name in draft.tensors if name not in read and name not in given] or list(draft.tensors)[-1:]
    graph = helper.make_graph(
        draft.nodes,
        "random",
        [info(name) for name in given],
        [info(name) for name in sinks],
        [numpy_helper.from_array(value, name) for name, value in draft.stored.items() if name in read],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def permuted(model: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The same model with its nodes in another topological order."""
    choose = random.Random(seed)
    result = onnx.ModelProto()
    result.CopyFrom(model)
    made = {name for node in model.graph.node for name in node.output}
    waiting = list(model.graph.node)
    order: list[onnx.NodeProto] = []
    done: set[str] = set()
    while waiting:
        ready = [node for node in waiting if all(name in done or name not in made for name in _reads(node))]
        node = choose.choice(ready)
        waiting.remove(node)
        order.append(node)
        done.update(node.output)
    del result.graph.node[:]
    result.graph.node.extend(order)
    return result


def _reads(node: onnx.NodeProto) -> set[str]:
    """What a node reads, what its bodies capture included."""
    inner = {name for a in node.attribute if a.HasField("g") for n in a.g.node for name in n.input}
    return set(node.input) | inner
