"""Wrong rewrites of runtimes and tools, each as the smallest model that shows it: the rewrites of the ledger."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from sonnx.checker.runtimes.deviations.ledger import Case, ledger
from sonnx.semantics.model.values import Value

TABLE: Final = tomllib.loads((Path(__file__).parents[1] / "checker/equivalence/rows.toml").read_text(encoding="utf-8"))
"""The rows of the table of wrong rewrites, and which cases of the ledger are theirs."""


@dataclass(frozen=True, slots=True)
class Miscompilation:
    """A model with inputs. passes: the optimizers of onnxruntime without which the result is right, by the names under
    which it switches them off; none where it has repaired the rewrite, or never had it."""

    name: str
    passes: frozenset[str]
    source: bytes
    feeds: Mapping[str, Value]


def _made(case: Case) -> Miscompilation:
    live = case.deviation("onnxruntime")
    source = parser.parse_model(case.text).SerializeToString()
    return Miscompilation(case.name, frozenset(live.passes if live else ()), source, case.inputs)


ALL: Final = {case.name: _made(case) for case in ledger() if case.rewrite}
LIVE: Final = {name: it for name, it in ALL.items() if it.passes}
"""Those that are wrong in the version of onnxruntime that the ledger is about."""


def deep_model(nodes: int = 50) -> Miscompilation:
    """The short root of a Gelu deep inside a network of convolutions, whose outputs have bounds too wide to show it."""
    draw = np.random.default_rng(0)
    made: list[onnx.NodeProto] = []
    stored: list[onnx.TensorProto] = []

    def constant(name: str, value: object) -> str:
        stored.append(numpy_helper.from_array(np.asarray(value, np.float32), name))
        return name

    def node(operator: str, *inputs: str, **attributes: object) -> str:
        made.append(helper.make_node(operator, inputs, [f"t{len(made)}"], **attributes))
        return f"t{len(made) - 1}"

    last, block = "x", 0
    while len(made) < nodes - 3:
        last = node("Conv", last, constant(f"w{block}", draw.standard_normal((4, 4, 3, 3)) / 6), pads=[1, 1, 1, 1])
        statistics = (draw.random(4) + 0.5, draw.standard_normal(4), draw.standard_normal(4), draw.random(4) + 0.5)
        last = node("BatchNormalization", last, *(constant(f"s{block}.{k}", it) for k, it in enumerate(statistics)))
        if block == 6:
            given = last
            last = node("Erf", node("Div", last, constant("root", 1.4142)))
            last = node("Mul", given, node("Add", last, constant("one", 1)))
            last = node("Mul", last, constant("half", 0.5))
        else:
            last = node("Relu", last)
        block += 1
    while len(made) < nodes:
        last = node("Neg", last)
    shape = [1, 4, 8, 8]
    graph = helper.make_graph(
        made,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, onnx.TensorProto.FLOAT, shape)],
        stored,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    x = draw.standard_normal(shape).astype(np.float32)
    return Miscompilation("deep", frozenset({"GeluFusionL2"}), model.SerializeToString(), {"x": x})
