"""`sonnx compare --provider`: each part alone on the definition's values, and what it inherits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_calls import called
from machine_models import graph, node, proto, stored, value
from random_models import random_model
from sampling import seeds
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
    toy = Toy(products, lambda x, w: (first(x, w),) if np.array_equal(x, X) else (second(x, w),), name)
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


def of_three() -> Any:
    """A function that is wrong when it is called for the second time, and right otherwise."""
    calls = iter(range(1, 9))
    return lambda x, w: np.exp(x @ w) * np.float32(2 if next(calls) == 2 else 1)


def writing(x: Any, w: Any) -> Any:
    result = np.exp(x @ w)
    x[...] = 0
    return result


def keeping(kept: Any) -> Any:
    return lambda x, w: np.exp(x @ w, out=kept)


@table(
    ("second", "verdict", "said"),
    [
        (of_three(), Verdict.DIVERGE, "4 of 4 elements are outside the bound"),
        (writing, Verdict.NOT_COMPARED, "gives nothing: the provider writes to its inputs, which others read"),
        (keeping(np.empty((2, 2), np.float32)), Verdict.NOT_COMPARED, "the provider gives the memory again"),
        (lambda x, w: 1 // 0, Verdict.NOT_COMPARED, "gives nothing: the provider failed with ZeroDivisionError"),
    ],
)
def test_a_part_that_is_right_once_or_by_the_way_is_not_passed(second: Any, verdict: Verdict, said: str) -> None:
    case = judged(product, second)
    assert case.verdict is verdict and said in case.reason and "Fused (/2:MatMul to /3:Exp)" in case.reason
    assert np.array_equal(X, np.array([[0.1, 0.2], [-0.3, 0.7]], np.float32)) and len(case.parts) == 2


def test_a_part_that_gives_too_much_is_not_passed_and_a_wrong_one_before_an_end_stays_wrong() -> None:
    nodes = node("Neg", ["x"], ["t"]), node("Reshape", ["t", "s"], ["y"])
    for size, reply, verdict, said in (
        (4, lambda x: (-x, x), Verdict.NOT_COMPARED, "the provider gives 2 values for 1 outputs"),
        (7, lambda x: (x,), Verdict.DIVERGE, "4 of 4 elements are outside the bound"),
    ):
        made = net(*nodes, weights=[stored("s", [size], np.int64)])
        toy = Toy(lambda viewer: [together(viewer, 0)], reply)
        (case,) = compare_parts(load_proto(made), [toy], [("it", {"x": X})])
        assert case.verdict is verdict and said in case.reason


def test_a_run_by_the_providers_that_ends_early_is_not_one_that_agrees() -> None:
    nodes = node("Neg", ["x"], ["t"]), node("Neg", ["t"], ["y"])
    calls = iter(range(9))

    def tired(x: Any) -> Any:
        return fail() if next(calls) > 1 else (-x,)

    toy = Toy(lambda viewer: [together(viewer, 0)], tired)
    (case,) = compare_parts(load_proto(net(*nodes)), [toy], [("it", {"x": X})])
    assert case.verdict is Verdict.NOT_COMPARED and case.stopped and "ends early" in case.reason


def test_what_a_part_reads_of_weights_without_listing_it_is_known_to_the_definition() -> None:
    made = net_of_three()

    def fused(viewer: GraphViewer) -> Sequence[ComputeCapability]:
        (offer,) = [together(viewer, 0)]
        meta = offer.sub_graph.meta_def
        assert meta is not None
        unlisted = replace(meta, inputs=tuple(t for t in meta.inputs if viewer.constant(t) is None))
        return [replace(offer, sub_graph=replace(offer.sub_graph, meta_def=unlisted))]

    (case,) = compare_parts(load_proto(made), [Toy(fused, lambda x: (x @ W,))], [("it", {"x": X})])
    assert case.verdict is Verdict.AGREE and len(case.parts) == 1


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


def test_constants_that_a_part_does_not_list_are_known_to_the_definition() -> None:
    made = net(node("Add", ["x", "w"], ["t"]), node("Mul", ["t", "w"], ["y"]), weights=[stored("w", [3, 5])])
    (case,) = compare_parts(load_proto(made), ["numpy"], [("it", {"x": X})])
    assert case.verdict is Verdict.AGREE and [len(it.part.nodes) for it in case.parts] == [2]


def test_a_draw_that_differs_is_not_called_wrong() -> None:
    made = net(node("RandomNormalLike", ["x"], ["r"]), node("Add", ["r", "x"], ["y"]))
    (case,) = compare_parts(load_proto(made), ["numpy"], [("it", {"x": X})])
    assert case.verdict is not Verdict.DIVERGE


@pytest.mark.parametrize("numbers", seeds(200, 1))
def test_no_part_of_random_models_is_wrong_by_the_kernels_in_numpy(numbers: range) -> None:
    agreed = 0
    for seed in numbers:
        made, given = random_model(seed)
        (case,) = compare_parts(load_proto(made), ["numpy"], [(f"{seed}", given)])
        assert case.verdict is not Verdict.DIVERGE, (seed, case.reason)
        agreed += case.verdict is Verdict.AGREE
    assert 2 * agreed > len(numbers)


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
