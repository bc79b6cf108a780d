"""Inference piece by piece: what one run over the whole gives, or a refusal."""

from __future__ import annotations

from functools import partial

import pytest
import random_bodies
from onnx import ModelProto, parser
from onnx.onnx_cpp2py_export import shape_inference
from sampling import left
from sonnx.semantics.facts.inference import pieces, worker
from sonnx.semantics.facts.inference.model import Claims, _read, build
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from tables import table

HEAD = '<ir_version: 8, opset_import: ["" : 18]>'
STRICT = partial(shape_inference.infer_shapes, check_type=False, strict_mode=True, data_prop=True)
BRANCHES = (
    "then_branch = a () => (float[4] P) { Q = Relu(X) P = Neg(Q) }, else_branch = b () => (float[4] R) { R = Abs(A) }"
)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "WORTH", -1)
    monkeypatch.setattr(pieces, "NODES", 1)


def request(model: Model) -> bytes:
    return build(model, {}).proto.SerializeToString()


def claims(model: Model) -> Claims:
    text, inferred = worker.infer(request(model))
    return _read(b"%d\n" % len(text.encode()) + text.encode() + inferred, model, {})


def whole(model: Model, monkeypatch: pytest.MonkeyPatch) -> Claims:
    with monkeypatch.context() as patch:
        patch.setattr(pieces, "WORTH", 10**12)
        return claims(model)


@table(
    "text",
    [
        "g (float[4] X, bool C) => (float[4] Y) { A = Relu(X) B = Add(A, X) I = If (C) <"
        + BRANCHES
        + "> Y = Mul(I, B) }",
        "g (float[2,3] X) => (float[3,2] Y) <float[3] W = {1, 2, 3}> { A = Add(X, W) B = Add(A, W) Y = Transpose(B) }",
        "g (float[N,3] X, int64[2] S) => (float[3,N] Y) { A = Relu(X) B = Transpose(A) Y = Reshape(B, S) }",
    ],
)
def test_pieces_give_what_one_run_gives(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_proto(parser.parse_model(f"{HEAD} {text}"))
    assert pieces.in_pieces(ModelProto.FromString(request(model)), STRICT) is not None
    assert claims(model) == whole(model, monkeypatch)


@table(
    "text",
    [
        # elements that are known, of integers, and of other numbers
        "g (float[2,3] X, float[6] V) => (float[a,b] Y) { S = Shape(X) Y = Reshape(V, S) }",
        "g (float[2,3] X) => (float[a,b] Y) { S = Shape(X) "
        "F = Cast<to = 1>(S) G = Cast<to = 7>(F) Y = ConstantOfShape(G) }",
        "g (float[2] V) => (float[a,b] Y) { F = Constant<value = float[2] {3, 4}>() G = Add(F, V) Y = Relu(G) }",
        "g (float[4] X, int64[2] S) => (float[a,b] Y) { A = Add(S, S) Y = Reshape(X, S) }",
        "g (float[2] V) => (float[4] Y) { A = Concat<axis = 0>(V, V) Y = Relu(A) }",
        "g (float[4] X, float[2] S) => (float[a,b] Y) { A = Relu(S) Y = Reshape(X, A) }",
        "g (bool C, float[4] X) => (float[a,b] Y) <int64[2] S = {2, 2}> { A = Add(S, S) Y = If (C) <"
        "then_branch = a () => (float[c,d] P) { P = Reshape(X, S) }, "
        "else_branch = b () => (float[c,d] Q) { Q = Reshape(X, S) }> }",
        # sizes with names that are made up
        "g (float[2,3] X, float[2] V) => (float[a,b] Y) { A = Compress(X, V) Y = Relu(A) }",
        # what is no sequence of steps
        "g (float[2] X) => (float[2] Y) { A = Relu(X) A = Neg(X) Y = Relu(A) }",
        "g (float[2] X) => (float[2] Y) { A = Max(X, B) B = Relu(A) Y = Relu(X) }",
        # errors
        "g (float[2,3] X, float[4,5] W) => (float[a,b] Y) { A = Relu(X) B = MatMul(A, W) Y = Relu(B) }",
    ],
)
def test_what_only_one_run_can_tell_is_inferred_as_a_whole(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_proto(parser.parse_model(f"{HEAD} {text}"))
    with pytest.raises(pieces.WholeError):
        pieces.in_pieces(ModelProto.FromString(request(model)), STRICT)
    assert claims(model) == whole(model, monkeypatch)


@pytest.mark.parametrize("seeds", [range(60), left(range(60, 12_000))], ids=str)
def test_random_models_with_bodies_are_inferred_alike(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    differing, done = [], []
    monkeypatch.setattr(pieces, "in_pieces", partial(_noting, done, pieces.in_pieces))
    for seed in seeds:
        model = load_proto(random_bodies.model(seed)[0])
        monkeypatch.setattr(pieces, "NODES", 1 + seed % 3)
        try:
            one = whole(model, monkeypatch)
        except RuntimeError:  # inference gives no types at all
            continue
        differing += [seed] if claims(model) != one else []
    assert not differing
    assert len(done) > len(seeds) / 6


def _noting(done: list[object], function: object, *arguments: object) -> object:
    result = function(*arguments)
    done.append(result)
    return result
