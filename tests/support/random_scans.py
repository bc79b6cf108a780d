"""Random Scan nodes of every version, with axes, directions and sequences of a batch; wrong ones too."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from machine_models import FLOAT, INT64, graph, node, proto, value

VERSIONS = (8, 9, 11, 16)
INPUTS = 2


def scan_model(seed: int) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """A Scan with up to two states and two scan inputs, and values for its inputs. Its body adds what it gets."""
    choose = random.Random(seed)
    opset = choose.choice(VERSIONS)
    states, scans, collected = choose.randint(0, 2), choose.randint(1, INPUTS), choose.randint(0, 2)
    collected = max(collected, 0 if states else 1)
    batch, length = choose.randint(0 if choose.random() < 0.2 else 1, 3), choose.choice((0, 1, 2, 3))
    lists, axes = _lists(choose, opset, scans, collected)
    given: dict[str, Any] = {}
    for i in range(states):
        shape = (batch, 2) if opset == 8 else (2,)
        given[f"s{i}"] = _tensor(seed + i, shape if choose.random() < 0.95 else (*shape, 1))
    for k in range(scans):
        shape = [2, 2]
        shape.insert(axes[k] if 0 <= axes[k] < 3 else 0, length)
        own = (batch, length, 2) if opset == 8 else (shape[0], shape[1], shape[2])
        given[f"x{k}"] = _tensor(seed + 10 + k, own if choose.random() < 0.95 else (*own[:-1], 3))
    names = [*given]
    if opset == 8:
        counts = [choose.randint(0 if choose.random() < 0.9 else -1, length) for _ in range(batch)]
        if choose.random() < 0.3:
            counts = [length] * batch
        with_lengths = choose.random() < 0.8
        given |= {"n": np.array(counts, np.int64)} if with_lengths else {}
        names.insert(0, "n" if with_lengths else "")
    holder = node("Scan", names, [*(f"l{i}" for i in range(states)), *(f"o{k}" for k in range(collected))],
                  body=_body(states, scans, collected, choose), num_scan_inputs=scans, **lists)  # fmt: skip
    inputs = [value(name, INT64 if name == "n" else FLOAT, None) for name in given]
    outputs = [value(name, FLOAT, None) for name in holder.output]
    return proto(graph([holder], inputs, outputs), opset), given


def _lists(choose: random.Random, opset: int, scans: int, collected: int) -> tuple[dict[str, list[int]], list[int]]:
    """The list attributes, and the axis of each scan input as it is written."""
    made: dict[str, list[int]] = {}
    axes = [0] * scans
    odd = 2 if choose.random() < 0.05 else 1
    if choose.random() < 0.6:
        made["directions" if opset == 8 else "scan_input_directions"] = [choose.randint(0, odd) for _ in axes]
    if opset > 8:
        lowest = -3 if opset > 9 or choose.random() < 0.1 else 0
        if choose.random() < 0.6:
            axes = made["scan_input_axes"] = [choose.randint(lowest, 2) for _ in axes]
        if collected and choose.random() < 0.6:
            highest = 3 if choose.random() < 0.1 else 2
            made["scan_output_axes"] = [choose.randint(lowest, highest) for _ in range(collected)]
        if collected and choose.random() < 0.6:
            made["scan_output_directions"] = [choose.randint(0, odd) for _ in range(collected)]
    if made and choose.random() < 0.05:
        made[choose.choice(list(made))].append(0)
    return made, axes


def _body(states: int, scans: int, collected: int, choose: random.Random) -> onnx.GraphProto:
    names = [*(f"bs{i}" for i in range(states)), *(f"bx{k}" for k in range(scans))]
    nodes = [
        node("Add", [names[i], names[choose.randrange(len(names))]], [out])
        for i, out in enumerate([*(f"bl{i}" for i in range(states)), *(f"bo{k}" for k in range(min(collected, scans)))])
    ]
    outs = [it.output[0] for it in nodes]
    more = [f"bo{k}" for k in range(scans, collected)]
    nodes += [node("Neg", [outs[0] if outs else names[0]], [it]) for it in more]
    typed = choose.random() < 0.9
    shape = [2, 2] if choose.random() < 0.5 else [2]
    outputs = [value(it, FLOAT, shape if typed else None) for it in [*outs, *more]]
    return graph(nodes, [value(it, FLOAT, None) for it in names], outputs, (), "body")


def _tensor(seed: int, shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
