"""The rechecker's inference stretch by stretch: what one run over the whole gives, or nothing."""

from __future__ import annotations

import subprocess
from functools import partial
from types import SimpleNamespace

import pytest
import random_bodies
from onnx import ModelProto, parser
from sampling import left
from sonnx.checker.rechecker import inference, inference_worker, stretches
from sonnx.checker.rechecker.facts import facts
from sonnx.checker.rechecker.inference import Type, _Builder, _collect
from sonnx.checker.rechecker.reader import read
from tables import table

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
BRANCHES = (
    "then_branch = a () => (float[2,2] P) { Q = Relu(X) P = Neg(Q) }, "
    "else_branch = b () => (float[2,2] R) { R = Abs(A) }"
)
STRICT = partial(inference_worker._inferred, strict=True, propagate=True)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "COPIES", -1)
    monkeypatch.setattr(stretches, "NODES", 1)


def request(model: ModelProto) -> ModelProto:
    return _Builder(facts(read(model)), {}).model()


def types(model: ModelProto) -> tuple[str, dict[int, Type]]:
    text, proto = inference_worker.infer(model.SerializeToString())
    found: dict[int, Type] = {}
    _collect(ModelProto.FromString(proto).graph, found)
    return text, found


def whole(model: ModelProto, monkeypatch: pytest.MonkeyPatch) -> tuple[str, dict[int, Type]]:
    with monkeypatch.context() as patch:
        patch.setattr(stretches, "COPIES", 10**12)
        return types(model)


@table(
    "text",
    [
        "g (float[2,2] X, bool C) => (float[2,2] Y) { A = Relu(X) B = Add(A, X) I = If (C) <"
        + BRANCHES
        + "> Y = Mul(I, B) }",
        "g (float[2,3] X) => (float[3,2] Y) <float[3] W = {1, 2, 3}> { A = Add(X, W) B = Add(A, W) Y = Transpose(B) }",
        "g (float[4] X) => (float[4] Y) { A = Relu(X) B = Add(A, X) Y = Mul(A, B) }",
        "g (float[N,3] X, int64[2] S) => (float[a,b] Y) { Y = Reshape(X, S) }",
    ],
)
def test_stretches_give_what_one_run_gives(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = request(parser.parse_model(f"{HEAD} {text}"))
    assert stretches.inferred(model, STRICT) is not None
    assert types(model) == whole(model, monkeypatch)


@table(
    "text",
    [
        # elements that are known, of integers, and of other numbers
        "g (float[2,3] X, float[6] V) => (float[a,b] Y) { S = Shape(X) Y = Reshape(V, S) }",
        "g (float[2,3] X) => (float[a,b] Y) { S = Shape(X) "
        "F = Cast<to = 1>(S) G = Cast<to = 7>(F) Y = ConstantOfShape(G) }",
        "g (float[2] V) => (float[a,b] Y) { F = Constant<value = float[2] {3, 4}>() G = Add(F, V) Y = Relu(G) }",
        "g (float[4] X, int64[2] S) => (float[a,b] Y) { A = Add(S, S) Y = Reshape(X, S) }",
        "g (float[4] X, float[2] S) => (float[a,b] Y) { A = Relu(S) Y = Reshape(X, A) }",
        "g (bool C, float[4] X) => (float[a,b] Y) <int64[2] S = {2, 2}> { A = Add(S, S) Y = If (C) <"
        "then_branch = a () => (float[c,d] P) { P = Reshape(X, S) }, "
        "else_branch = b () => (float[c,d] Q) { Q = Reshape(X, S) }> }",
        # sizes that are open
        "g (float[2,3] X, float[2] V) => (float[a,b] Y) { A = Compress(X, V) Y = Relu(A) }",
        "g (float[N,3] X) => (float[N,3] Y) { A = Relu(X) Y = Relu(A) }",
        # what is no sequence of steps
        "g (float[2] X) => (float[2] Y) { A = Relu(X) A = Neg(X) Y = Relu(A) }",
        "g (float[2] X) => (float[2] Y) { A = Max(X, B) B = Relu(A) Y = Relu(X) }",
        "g (float[2,2] X) => (float[2,2] Y) { A = Clip(X, B) B = ReduceMax(A) Y = Relu(X) }",
        # errors
        "g (float[2,3] X, float[4,5] W) => (float[a,b] Y) { A = Relu(X) B = MatMul(A, W) Y = Relu(B) }",
    ],
)
def test_what_only_one_run_can_tell_is_inferred_as_a_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = request(parser.parse_model(f"{HEAD} {text}"))
    assert stretches.inferred(model, STRICT) is None
    assert types(model) == whole(model, monkeypatch)


@table(
    "text",
    [
        "g (float[2,3] X) => (float[a,b] Y) { S = Shape(X) R = Relu(X) A = Add(S, S) Y = ConstantOfShape(A) }",
        "g (float[2] V, float[6] X) => (float[a,b] Y) { F = Mul(V, V) R = Relu(X) G = Cast<to = 7>(F) "
        "Y = Reshape(X, G) }",
    ],
)
def test_elements_that_a_stretch_passes_on_need_one_run(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "NODES", 2)
    model = request(parser.parse_model(f"{HEAD} {text}"))
    assert stretches.inferred(model, STRICT) is None
    assert types(model) == whole(model, monkeypatch)


@pytest.mark.parametrize("seeds", [range(60), left(range(60, 6_000))], ids=str)
def test_random_models_with_bodies_are_inferred_alike(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    differing, done = [], 0
    for seed in seeds:
        try:
            model = request(random_bodies.model(seed)[0])
            one = whole(model, monkeypatch)
        except Exception:  # a model that cannot be read, or inference gives no types at all
            continue
        for nodes in (1, 2, 3):
            monkeypatch.setattr(stretches, "NODES", nodes)
            done += stretches.inferred(model, STRICT) is not None
            differing += [(seed, nodes)] if types(model) != one else []
    assert not differing
    assert done > len(seeds) / 6


def test_the_timeout_grows_with_the_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []

    def run(*_command: object, timeout: float, **_options: object) -> None:
        limits.append(timeout)
        raise subprocess.TimeoutExpired("", timeout)

    monkeypatch.setattr(inference, "subprocess", SimpleNamespace(**{**vars(subprocess), "run": run}))
    model = facts(read(parser.parse_model(f"{HEAD} g (float[2] X) => (float[2] Y) {{ A = Relu(X) Y = Relu(A) }}")))
    for each, most in ((1.0, 60.0), (50.0, 100.0)):
        monkeypatch.setattr(inference, "PER_NODE", each)
        assert inference.infer(model).failed
        assert most - 5 < limits.pop() <= most
