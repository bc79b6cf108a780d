"""Models that are drawn, and the data of a picture read back as its script reads them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import onnx
import onnx.helper
from onnx import TensorProto
from sonnx.semantics import load_proto
from sonnx.semantics.model.graph import Model


def drawn_graph(count: int, seed: int, reach: int) -> Model:
    """A graph of Add and Relu whose nodes read tensors at most about `reach` before them."""
    drawn = random.Random(seed)
    names = ["x"]
    nodes = []
    for i in range(count):
        wanted = [names[-1 - min(int(drawn.expovariate(1 / reach)), i)] for _ in range(1 + i % 2)]
        nodes.append(
            onnx.helper.make_node("Add" if i % 2 else "Relu", wanted, [f"tensor_{i}"], f"block_{i // 9}/layer_{i}")
        )
        names.append(f"tensor_{i}")
    value = onnx.helper.make_tensor_value_info
    used = {it for node in nodes for it in node.input}
    outputs = [value(name, TensorProto.FLOAT, [4]) for name in names if name not in used]
    graph = onnx.helper.make_graph(nodes, "drawn", [value("x", TensorProto.FLOAT, [4])], outputs)
    return load_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9))


def page_data(page: str) -> dict[str, Any]:
    """The data in a page."""
    found = re.search(r'<script type="application/json" id="graph-data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def unfolded(steps: Sequence[int]) -> list[int]:
    """Numbers that are stated as differences."""
    at, numbers = 0, []
    for step in steps:
        at += step
        numbers.append(at)
    return numbers


def column(data: dict[str, Any], name: str, table: str) -> list[str]:
    """A column of texts."""
    shared, rest = data["texts"][table]["shared"], data["texts"][table]["rest"]
    before, texts = "", []
    for same, tail in zip(shared, rest, strict=True):
        before = before[:same] + tail
        texts.append(before)
    return [texts[it] for it in unfolded(data[name])]
