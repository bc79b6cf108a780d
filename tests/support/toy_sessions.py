"""Small models for tests of the session, and sessions with the plain kernels of `toy_kernels`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import onnx
from machine_models import graph, node, proto, value
from sonnx.semantics.runtimes.fastpath import Session
from toy_kernels import provider


def session(model: onnx.ModelProto, **options: Any) -> Session:
    return Session(model, [provider()], **options)


def floats(*content: Any) -> Any:
    return np.array(content, np.float32)


def net(nodes: Any, inputs: Any = ("x",), outputs: Any = ("y",), weights: Any = ()) -> onnx.ModelProto:
    return proto(graph(nodes, [value(x, shape=None) for x in inputs], [value(y, shape=None) for y in outputs], weights))


def chain(count: int, op_type: str = "Neg") -> onnx.ModelProto:
    names = ["x", *(f"t{i}" for i in range(count - 1)), "y"]
    return net([node(op_type, [a], [b]) for a, b in pairwise(names)])
