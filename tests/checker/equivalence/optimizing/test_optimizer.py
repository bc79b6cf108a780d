"""What `optimize` makes of models: fewer nodes, the same bits, bodies and captures left in place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from onnx import checker
from small_models import means_the_same, model_of, proto_of
from sonnx.checker.equivalence.optimizing.admitting import UnknownRule
from sonnx.checker.equivalence.optimizing.optimizer import optimize
from sonnx.checker.equivalence.record import Proof
from sonnx.semantics.commands.options import write_whole
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.writing import model_proto
from sonnx.spec.library import specification

KNOWN: Mapping[str, Proof] = {
    name: Proof(name, it.claim, None, None) for name, it in specification().rules.items() if it.claim != "never"
}
"""As if each rule were proved that claims something: what the search makes of them is the matter here."""

CASES: Mapping[str, tuple[str, int]] = {
    "transpositions": (
        "g (float[2,3,4] X) => (float[4,3,2] Y) { A = Transpose<perm=[1,0,2]>(X) Y = Transpose<perm=[2,0,1]>(A) }", 1,
    ),
    "dead": ("g (float[2] X) => (float[2] Y) { A = Exp(X) B = Log(A) Y = Relu(X) }", 1),
    "equal": ("g (float[2] X) => (float[2] Y) { A = Exp(X) B = Exp(X) Y = Add(A, B) }", 2),
    "equal but for a sign of zero": (
        "g (float[2] X) => (float[4] Y) { A = LeakyRelu<alpha=0.0>(X) B = LeakyRelu<alpha=-0.0>(X)"
        " Y = Concat<axis=0>(A, B) }",
        3,
    ),
    "folded": (
        "g (float[2] X) => (float[2] Y) { a = Constant<value_floats=[1.0,2.0]>() b = Exp(a) Y = Mul(X, b) }", 1,
    ),
    "stuck is not folded": (
        "g (float[2] X) => (float[2] Y) { s = Constant<value_ints=[3]>() a = Constant<value_floats=[1.0,2.0]>()"
        " b = Reshape(a, s) Y = Mul(X, b) }",
        2,
    ),
    "in a branch": (
        "g (bool c, float[2,3] X) => (float[2,3] Y) { A = Transpose(X) Y = If(c) <then_branch = t () => (float[2,3] P)"
        " { P = Transpose(A) }, else_branch = e () => (float[2,3] Q) { B = Transpose(X) C = Transpose(B)"
        " Q = Transpose<perm=[0,1]>(C) }> }",
        4,
    ),
    "drawn twice": (
        "g (float[2] X) => (float[2] Y) { A = RandomNormalLike(X) B = RandomNormalLike(X) Y = Add(A, B) }", 3,
    ),
}  # fmt: skip


def written(model: Model) -> Model:
    return load_proto(model_proto(model))


@pytest.mark.parametrize("case", CASES)
def test_fewer_nodes_mean_the_same(case: str) -> None:
    text, most = CASES[case]
    model = model_of(text)
    done = optimize(model, proved=KNOWN)
    assert done.finished and done.strength == "exact"
    made = written(done.model)
    assert len(made.nodes) == done.after <= max(most, 1) and done.before == len(model.nodes)
    assert means_the_same(model, made)


def test_a_stored_value_that_a_caller_may_override_is_no_constant() -> None:
    text = "g (float[2] X, float[2] w) => (float[2] Y) { e = Exp(w) Y = Mul(X, e) }"
    model = model_of(text, stored={"w": np.float32([1, 2])})
    assert optimize(model, proved=KNOWN).after == 2
    fixed = optimize(model, proved=KNOWN, fixed=True)
    assert fixed.after == 1 and len(fixed.model.graphs[0].inputs) == 1


def test_a_rule_fires_only_as_far_as_its_proof_goes() -> None:
    text, _ = CASES["transpositions"]
    for axes, after in ((2, 2), (3, 1), (None, 1)):
        few = {"TransposeTranspose": Proof("TransposeTranspose", "exact", axes, None)}
        assert optimize(model_of(text), proved=few).after == after
    assert optimize(model_of(text), proved={}).after == 2


def test_a_rule_that_is_only_true_of_reals_needs_that_strength() -> None:
    text = "g (float[1,2,4,4] X) => (float[1,3,3,3] Y) { A = Conv(X, W) Y = Mul(A, k) }"
    stored = {"W": np.ones((3, 2, 2, 2), np.float32), "k": np.float32([[[2]], [[3]], [[4]]])}
    model = model_of(text, stored=stored)
    assert optimize(model, proved=KNOWN).after == 2
    done = optimize(model, proved=KNOWN, strength="reals")
    assert (done.after, done.strength) == (1, "reals")


@pytest.mark.parametrize(
    ("names", "said"),
    [(["NoSuchRule"], "no rewrite is named"), (["ConvMul"], "claims reals"), (["TransposeTranspose"], "is not proved")],
)
def test_rules_that_cannot_be_used_are_refused(names: list[str], said: str) -> None:
    model = model_of("g (float[2] X) => (float[2] Y) { Y = Relu(X) }")
    known = {} if said == "is not proved" else KNOWN
    with pytest.raises(UnknownRule, match=said):
        optimize(model, proved=known, rules=names)


def test_a_rule_that_is_proved_more_weakly_than_it_claims_is_not_used() -> None:
    text, _ = CASES["transpositions"]
    weak = {"TransposeTranspose": Proof("TransposeTranspose", "reals", None, None)}
    assert optimize(model_of(text), proved=weak, strength="reals").after == 2
    with pytest.raises(UnknownRule, match="claims exact and is proved as reals only"):
        optimize(model_of(text), proved=weak, strength="reals", rules=["TransposeTranspose"])


def test_a_model_is_raised_where_each_node_can_be() -> None:
    text = "g (float[1,2,4] X) => (float[1,2,4] Y) { Y = BatchNormalization(X, s, s, s, s) }"
    model = model_of(text, 9, {"s": np.ones(2, np.float32)})
    done = optimize(model, proved=KNOWN, opset=15)
    made = written(done.model)
    assert made.nodes[0].version == 15 and done.counts() == {"BatchNormalizationEarlier": 1}
    assert means_the_same(model, made)
    with pytest.raises(ModelError, match="cannot be raised to operator set 15: no rewrite"):
        optimize(model, proved={}, opset=15)
    with pytest.raises(ModelError, match="from 9 to"):
        optimize(model, proved=KNOWN, opset=8)


def test_a_model_that_is_not_well_formed_is_refused() -> None:
    with pytest.raises(ModelError, match="not well-formed"):
        optimize(model_of("g (float[2] X) => (float[2] Y) { Y = Relu(Z) }"), proved=KNOWN)


def test_shapes_are_known_for_size_zero_too() -> None:
    """A Reshape to [0, -1] has no value for a batch of 0: a rule that needs sizes above 0 must not fire."""
    text = "g (float[N,3] X) => (float[N,3] Y) { s = Constant<value_ints=[0,-1]>() Y = Reshape(X, s) }"
    model = model_of(text)
    made = written(optimize(model, proved=KNOWN).model)
    assert means_the_same(model, made, sizes=(0, 1, 2))


@pytest.mark.parametrize("seed", range(4))
def test_another_order_of_the_rules_gives_as_few_nodes(seed: int) -> None:
    for text, _ in CASES.values():
        model = model_of(text)
        assert optimize(model, proved=KNOWN, shuffled=seed).after == optimize(model, proved=KNOWN).after


def test_an_old_model_with_folded_values_gets_an_ir_version_that_has_them() -> None:
    proto = proto_of("g (float[2] X) => (float[2] Y) { a = Constant<value_floats=[1.0,2.0]>() Y = Mul(X, a) }", 12)
    proto.ir_version = 3
    found = optimize(load_proto(proto), proved=KNOWN)
    assert (found.after, found.model.ir_version) == (1, 4)
    checker.check_model(model_proto(found.model))


def test_texts_are_folded_and_written_as_they_are() -> None:
    text = "g () => (string[4] Y) { s = Constant<value_ints=[2]>() a = Reshape(c, s) Y = Concat<axis=0>(a, d) }"
    model = model_of(text, stored={"c": np.array([["a", "\u00e9"]], object), "d": np.array(["", "b'x'"], object)})
    made = written(optimize(model, proved={}).model)
    assert len(made.nodes) == 1 and means_the_same(model, made, seeds=(0,))


def test_what_bitcast_shows_is_not_rewritten() -> None:
    """Neg before and behind a product give NaNs of two signs."""
    text = "g (float[2] x, float[2] b) => (int32[2] y) { n = Neg(x) m = Mul(n, b) y = BitCast<to=6>(m) }"
    carried = (
        "g (float[2] x, float[3] xs) => (float[2] y, int32[3,2] z) { y, z = Scan(x, xs) <num_scan_inputs=1,"
        " body = l (float[2] s, float e) =>"
        " (float[2] v, int32[2] w) { n = Neg(s) v = Mul(n, e) w = BitCast<to=6>(s) }> }"
    )
    for shown in (text, carried):
        assert not optimize(model_of(shown, 26), rules=["NegMul"], proved=KNOWN).counts()
        hidden = model_of(shown.replace("BitCast", "Cast"), 26)
        assert optimize(hidden, rules=["NegMul"], proved=KNOWN).counts() == {"NegMul": 1}


def test_a_file_is_written_as_a_whole_or_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "s.onnx"
    target.write_bytes(b"before")

    def interrupted(self: Path, _target: Path) -> Path:
        assert self.read_bytes() == b"after"
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            write_whole(target, b"after")
    assert target.read_bytes() == b"before" and list(tmp_path.iterdir()) == [target]
    write_whole(target, b"after")
    assert target.read_bytes() == b"after"
    write_whole(Path("/dev/null"), b"after")
