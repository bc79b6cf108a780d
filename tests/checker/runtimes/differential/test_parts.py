"""`sonnx compare --provider`: each part alone on the definition's values, and what it inherits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import called
from machine_models import graph, node, proto, stored, value
from sonnx.checker.runtimes.differential.comparison import Verdict
from sonnx.checker.runtimes.differential.parts import PartsComparison, compare_parts
from sonnx.semantics.machine.judging import Standing
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.provider import ComputeCapability, GraphViewer, IndexedSubGraph
from tables import table
from toy_providers import Toy, net, together

X = np.array([[0.1, 0.2], [-0.3, 0.7]], np.float32)
W = np.array([[0.3, 0.7], [0.9, -0.2]], np.float32)
TOY = "ToyExecutionProvider"


def net_of_three() -> Any:
    """y = exp(tanh(x w) w), where the Tanh is nobody's."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Tanh", ["a"], ["b"])]
    nodes += [node("MatMul", ["b", "w"], ["c"]), node("Exp", ["c"], ["y"])]
    return net(*nodes, weights=[stored("w", W)])


def products(viewer: GraphViewer) -> Sequence[ComputeCapability]:
    """The first product alone, and the second with the Exp."""
    return [together(viewer, 0), together(viewer, 2, 3, outputs=[t for t in viewer.node(3).outputs if t])]


def judged(first: Any, second: Any, name: str = TOY) -> PartsComparison:
    """The parts of a provider that computes them by these functions of the flow."""
    toy = Toy(products, name=name)

    def compute(x: Any, w: Any) -> Any:
        return (first(x, w),) if len(calls) % 2 == 0 else (second(x, w),)

    calls: list[int] = []

    def counted(x: Any, w: Any) -> Any:
        try:
            return compute(x, w)
        finally:
            calls.append(1)

    toy.fused = counted
    (case,) = compare_parts(load_proto(net_of_three()), [toy], [("a case", {"x": X})])
    return case


def product(x: Any, w: Any) -> Any:
    return x @ w


def product_exp(x: Any, w: Any) -> Any:
    return np.exp(x @ w)


def test_parts_that_are_right_agree_and_each_is_listed() -> None:
    case = judged(product, product_exp)
    assert case.verdict is Verdict.AGREE and not case.stopped
    assert [(it.part.nodes, it.part.outputs) for it in case.parts] == [
        (("/0:MatMul",), ('/"a"',)), (("/2:MatMul", "/3:Exp"), ('/"y"',)),
    ]  # fmt: skip
    assert all(it.inherited is not None and it.together is not None for it in case.parts)


def test_the_first_wrong_part_is_named_and_what_is_behind_it_is_judged_on_right_values() -> None:
    case = judged(lambda x, w: x @ w * np.float32(1.01), product_exp)
    assert case.verdict is Verdict.DIVERGE
    assert case.reason == f'{TOY}, Fused (/0:MatMul), tensor /"a": 4 of 4 elements are outside the bound'
    first, second = case.parts
    assert case.first is first and second.own[0][1].standing in (Standing.EXACT, Standing.WITHIN)
    assert first.inherited is not None and first.inherited.ulps is None  # its inputs are the same
    assert second.inherited is not None and second.together is not None
    assert (second.inherited.ulps or 0) > 1000 and (second.together.ulps or 0) > 1000
    assert (second.own[0][1].ulps or 0) < 10


def test_a_wrong_part_behind_right_ones_is_found() -> None:
    case = judged(product, lambda x, w: np.exp(x @ w).T.copy())
    assert case.verdict is Verdict.DIVERGE and case.first is case.parts[1]
    assert "Fused (/2:MatMul to /3:Exp)" in case.reason


def fail(*_: object) -> Any:
    raise KernelError("no\nluck")


@table(
    ("second", "said"),
    [
        (fail, f"{TOY}, Fused (/2:MatMul to /3:Exp) gives nothing: no luck"),
        (lambda x, w: np.exp(x @ w).astype(float), "it is double[2, 2], expected float[2, 2]"),
        (lambda x, w: np.exp(x @ w)[:1], "it is float[1, 2], expected float[2, 2]"),
    ],
)
def test_a_part_that_gives_nothing_or_something_else_says_so(second: Any, said: str) -> None:
    case = judged(product, second)
    assert case.verdict is (Verdict.NOT_COMPARED if second is fail else Verdict.DIVERGE)
    assert said in case.reason
    assert second is not fail or case.stopped == f"/2:MatMul to /3:Exp ({TOY}, Fused): no\\nluck"


def test_a_provider_with_kernels_is_judged_node_by_node_also_in_bodies() -> None:
    body = graph(
        [node("Identity", ["k"], ["more"]), node("Mul", ["s", "x"], ["t"])],
        [value("i", onnx.TensorProto.INT64, []), value("k", onnx.TensorProto.BOOL, []), value("s", shape=None)],
        [value("more", onnx.TensorProto.BOOL, []), value("t", shape=None)], (), "b",
    )  # fmt: skip
    nodes = [node("Loop", ["n", "", "x"], ["y"], body=body)]
    made = proto(graph(nodes, [value("x", shape=[2])], [value("y", shape=None)], [stored("n", 3, np.int64)]))
    (case,) = compare_parts(load_proto(made), ["numpy"], [("it", {"x": X[0]})])
    assert case.verdict is Verdict.AGREE
    assert sum(it.part.runs.startswith("Mul") for it in case.parts) == 3
    assert all(it.part.provider == "NumpyExecutionProvider" and it.together is not None for it in case.parts)


def test_a_draw_that_differs_is_not_called_wrong() -> None:
    made = net(node("RandomNormalLike", ["x"], ["r"]), node("Add", ["r", "x"], ["y"]))
    (case,) = compare_parts(load_proto(made), ["numpy"], [("it", {"x": X})])
    assert case.verdict is not Verdict.DIVERGE


def test_where_the_definition_ends_nothing_is_compared() -> None:
    made = net(node("Neg", ["x"], ["t"]), node("Reshape", ["t", "s"], ["y"]), weights=[stored("s", [7], np.int64)])
    offers = Toy(lambda viewer: [ComputeCapability(IndexedSubGraph((0,)), grows=True)], lambda x: (-x,))
    (case,) = compare_parts(load_proto(made), [offers], [("it", {"x": X})])
    assert case.verdict is Verdict.NOT_COMPARED and "/1:Reshape (MachineExecutionProvider, " in case.reason
    assert len(case.parts) == 1


def test_the_command_prints_parts_as_text_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = net_of_three()
    made.graph.input[0].CopyFrom(value("x", shape=[2, 2]))
    onnx.save(made, tmp_path / "net.onnx")
    asked = ("compare", tmp_path / "net.onnx", "--provider", "numpy:only=Tanh", "--random", 1)
    code, out, err = called(capsys, *asked)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:2] == ["model      net.onnx (4 nodes)", "providers  numpy:only=Tanh"]
    assert lines[3].startswith("seed 1") and lines[3].endswith(": agree")
    assert lines[5].split() == [
        "part",
        "nodes",
        "exact",
        "within",
        "freedom",
        "undecided",
        "outside",
        "ULP",
        "inherited",
        "together",
    ]
    assert lines[6].split()[:3] == ["Numpy", "/1:Tanh", "1"]
    code, out, _ = called(capsys, *asked, "--format", "json")
    found = json.loads(out)
    assert (code, found["schema"], found["providers"]) == (0, "sonnx-parts/1", ["numpy:only=Tanh"])
    (part,) = found["cases"][0]["parts"]
    assert part["nodes"] == ["/1:Tanh"] and part["own"][0]["elements"] == 4 and part["inherited"]["outside"] == 0
    for more in (("--engine", "numpy"), ("--graph", tmp_path / "g.html")):
        code, _, err = called(capsys, *asked, *more)
        assert code == 2 and "--provider stands alone: leave --engine and --graph out" in err
