"""The pass `layout`: Transposes meet and vanish where that leaves fewer of them, and stay where they are elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_models import means_the_same, model_of, proto_of
from sonnx.checker.equivalence.optimizing import layout
from sonnx.checker.equivalence.optimizing.graphs import OpenModel, Trial
from sonnx.checker.equivalence.optimizing.optimizer import GLOBAL, LOCAL, ORDER, optimize
from sonnx.checker.rechecker import Outcome
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.writing import model_proto
from transformed import optimized

WITHOUT = tuple(it for it in ORDER if it != "layout")
IMAGE, MOVED = "float[N,2,3,4]", "float[N,3,4,2]"
TO, BACK, ON = "Transpose<perm=[0,2,3,1]>", "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[2,1,3,0]>"
"""Channels are moved last, and back; and another order, in which batch and channels change places too."""
STORED = {
    "pads": np.int64([0, 1, 0, 2, 0, 1, 0, 0]),
    "axis": np.int64([2]),
    "lo": np.float32(-1),
    "hi": np.float32(0.5),
    "each": np.float32([1, 2]),
    "K": np.float32([[1, 2, 3], [0, -1, 2]]),
}

HELPED: Mapping[str, tuple[str, str]] = {
    "Relu": (f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Relu(A) D = {BACK}(R) Y = Neg(D) }}", "Neg Relu"),
    "operators in a row": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Relu(A) S = Softmax<axis=-1>(R) U = Add(lo, S)"
        f" C = Clip(U, lo, hi) Q = Sigmoid(C) D = {BACK}(Q) Y = Neg(D) }}",
        "Add Clip Neg Relu Sigmoid Softmax",
    ),
    "functions of single elements and of two": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) T = Tanh(A) E = Exp(T) M = Neg(E) S = Sub(M, A) V = Div(S, E)"
        f" D = {BACK}(V) Y = Relu(D) }}",
        "Div Exp Neg Relu Sub Tanh",
    ),
    "a term and a factor for each channel": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) B = Add(A, each) M = Mul(B, each) D = {BACK}(M) Y = Neg(D) }}",
        "Add Mul Neg",
    ),
    "residual": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Relu(A) S = Add(R, A) D = {BACK}(S) Y = Neg(D) }}",
        "Add Neg Relu",
    ),
    "two residual blocks": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Relu(A) S = Add(R, A) Q = Sigmoid(S) P = Mul(Q, S)"
        f" D = {BACK}(P) Y = Neg(D) }}",
        "Add Mul Neg Relu Sigmoid",
    ),
    "concatenation": (
        f"({IMAGE} X, {IMAGE} Z) => (float[N,4,3,4] Y) {{ A = {TO}(X) B = {TO}(Z) R = Relu(A)"
        f" C = Concat<axis=3>(R, B) D = {BACK}(C) Y = Neg(D) }}",
        "Concat Neg Relu",
    ),
    "padding and a sum": (
        f"({IMAGE} X) => (float[N,3,4,1] Y) {{ A = {TO}(X) P = Pad(A, pads) S = ReduceSum(P, axis) D = {BACK}(S)"
        " Y = Neg(D) }",
        "Neg Pad ReduceSum",
    ),
    "branches without an inverse": (
        f"({IMAGE} X, {IMAGE} Z) => ({MOVED} Y) {{ A = {TO}(X) B = {TO}(Z) R = Relu(A) Q = Sigmoid(B)"
        " S = Add(R, Q) Y = Neg(S) }",
        "Add Neg Relu Sigmoid Transpose",
    ),
    "an output that is read too": (
        f"({IMAGE} X) => ({MOVED} A, {IMAGE} Y) {{ A = {TO}(X) R = Relu(A) D = {BACK}(R) Y = Neg(D) }}",
        "Neg Relu Transpose",
    ),
    "another reader on the way": (
        f"({IMAGE} X) => ({MOVED} W, {IMAGE} Y) {{ A = {TO}(X) R = Relu(A) W = Exp(R) D = {BACK}(R) Y = Neg(D) }}",
        "Exp Neg Relu Transpose",
    ),
    "the inverse of what others read": (
        f"({IMAGE} X) => ({MOVED} W, {IMAGE} Y) {{ A = {TO}(X) W = Exp(A) D = {BACK}(A) Y = Neg(D) }}",
        "Exp Neg Transpose",
    ),
    "an inverse that is an output": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Relu(A) Y = {BACK}(R) }}", "Relu Transpose",
    ),
    "another order of axes": (
        f"({IMAGE} X) => (float[4,3,2,N] Y) {{ A = {TO}(X) R = Relu(A) D = {ON}(R) Y = Neg(D) }}",
        "Neg Relu Transpose",
    ),
    "into Gemm": (
        "(float[2,3] X) => (float[3,3] Y) { A = Transpose<perm=[1,0]>(X) R = Relu(A) Y = Gemm(R, K) }", "Gemm Relu",
    ),
    "within a branch": (
        f"({IMAGE} X, bool c) => ({IMAGE} Y) {{ Y = If(c) <then_branch = t () => ({IMAGE} P) {{ A = {TO}(X)"
        f" R = Relu(A) D = {BACK}(R) P = Neg(D) }}, else_branch = e () => ({IMAGE} Q) {{ Q = Exp(X) }}> }}",
        "Exp If Neg Relu",
    ),
}  # fmt: skip
"""Models, and the operators that are left."""

LEFT: Mapping[str, str] = {
    "one that is needed": f"({IMAGE} X) => ({MOVED} Y) {{ A = {TO}(X) R = Relu(A) Y = Exp(R) }}",
    "one that is needed at an output": f"({IMAGE} X) => ({MOVED} Y) {{ R = Relu(X) Y = {TO}(R) }}",
    "an operator without a rewrite": (
        f"({IMAGE} X) => ({IMAGE} Y) {{ A = {TO}(X) R = Cos(A) D = {BACK}(R) Y = Neg(D) }}"
    ),
    "readers on the way, and another order": (
        f"({IMAGE} X) => ({MOVED} V, {MOVED} W, float[4,3,2,N] Y) {{ A = {TO}(X) V = Exp(A) R = Relu(A) W = Exp(R)"
        f" D = {ON}(R) Y = Neg(D) }}"
    ),
    "two orders": (
        f"({IMAGE} X, float[N,3,2,4] Z) => ({MOVED} Y) {{ A = {TO}(X) R = Relu(A)"
        " B = Transpose<perm=[0,1,3,2]>(Z) Q = Relu(B) S = Add(R, Q) Y = Exp(S) }"
    ),
    "one operand of two": (
        f"({IMAGE} X, {MOVED} Z) => ({IMAGE} Y) {{ A = {TO}(X) S = Add(A, Z) D = {BACK}(S) Y = Neg(D) }}"
    ),
    "an operand for each channel that is not stored": (
        f"({IMAGE} X, float[2] T) => ({IMAGE} Y) {{ A = {TO}(X) S = Add(A, T) D = {BACK}(S) Y = Neg(D) }}"
    ),
    "from outside of a branch": (
        f"({IMAGE} X, bool c) => ({IMAGE} Y) {{ A = {TO}(X) Y = If(c) <then_branch = t () => ({IMAGE} P)"
        f" {{ R = Relu(A) D = {BACK}(R) P = Neg(D) }}, else_branch = e () => ({IMAGE} Q) {{ B = Exp(A)"
        f" Q = {BACK}(B) }}> }}"
    ),
    "out of a branch": (
        f"({IMAGE} X, bool c) => ({IMAGE} Y) {{ B = If(c) <then_branch = t () => ({MOVED} P) {{ P = {TO}(X) }},"
        f" else_branch = e () => ({MOVED} Q) {{ R = {TO}(X) Q = Relu(R) }}> D = {BACK}(B) Y = Neg(D) }}"
    ),
    "more axes than in proofs": (
        "(float[1,2,1,2,3] X) => (float[1,2,1,2,3] Y) { A = Transpose<perm=[0,2,3,4,1]>(X) R = Relu(A)"
        " D = Transpose<perm=[0,4,1,2,3]>(R) Y = Neg(D) }"
    ),
}


def model(text: str, opset: int = 22) -> Model:
    return model_of(f"g {text}", opset, stored_in(text))


def stored_in(text: str) -> Mapping[str, np.ndarray]:
    return {name: data for name, data in STORED.items() if re.search(rf"[( ]{name}[,)]", text)}


def operators(made: Model) -> str:
    return " ".join(sorted(node.op_type for node in made.nodes))


@pytest.mark.parametrize("case", HELPED)
def test_transposes_meet(case: str) -> None:
    text, left = HELPED[case]
    before = model(text)
    done = optimize(before)
    assert done.finished and done.strength == "exact" and done.after == len(left.split())
    made = load_proto(model_proto(done.model))
    assert operators(made) == left
    assert means_the_same(before, made, seeds=range(2), sizes=(0, 2))


@pytest.mark.parametrize("case", LEFT)
def test_what_would_not_leave_fewer_is_left_as_it_was(case: str) -> None:
    before = model(LEFT[case])
    assert optimize(before).log == optimize(before, passes=WITHOUT).log


def test_without_the_pass_transposes_stay() -> None:
    before = model(HELPED["residual"][0])
    assert optimize(before, passes=WITHOUT).after == len(before.nodes)
    made = optimize(before).model
    assert not optimize(load_proto(model_proto(made))).log


def test_only_rewrites_that_are_proved_are_used() -> None:
    before = model(HELPED["residual"][0])
    assert not optimize(before, proved={}, passes=GLOBAL).log
    assert {it.rule for it in optimize(before, passes=("layout",)).log} == {
        "ReluTranspose", "AddTranspose", "TransposeTranspose", "TransposeNothing",
    }  # fmt: skip
    assert "layout" in GLOBAL and "layout" not in LOCAL


def test_equal_nodes_are_merged_before_transposes_move() -> None:
    """Two sums are equal once two Transposes are gone, and would not be if the others had moved before that."""
    text = (
        f"({IMAGE} X) => ({IMAGE} Y, {MOVED} V) {{ A = {TO}(X) R = Relu(A) P = Add(R, lo) U = Add(P, R) D = {BACK}(U)"
        f" Y = Exp(D) C = {BACK}(R) E = {TO}(C) Q = Add(E, lo) V = Exp(Q) }}"
    )
    again = text.replace(f", {MOVED} V", f", {MOVED} V, {IMAGE} W").replace("V = Exp(Q)", "V = Exp(Q) W = Exp(C)")
    for it, left in ((text, "Add Add Exp Exp Relu Transpose"), (again, "Add Add Exp Exp Exp Relu Transpose")):
        assert operators(load_proto(model_proto(optimize(model(it)).model))) == left


def test_what_bitcast_shows_stays() -> None:
    text = f"({IMAGE} X) => (int32[N,2,3,4] Y) {{ A = {TO}(X) R = Relu(A) D = {BACK}(R) Y = BitCast<to=6>(D) }}"
    assert not optimize(model(text, 26)).log
    assert optimize(model(text.replace("BitCast", "Cast"), 26)).after == 2


def test_what_cannot_leave_fewer_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[OpenModel] = []
    monkeypatch.setattr(OpenModel, "on_trial", started.append)
    optimize(model(LEFT["readers on the way, and another order"]))
    assert not started


def test_fewer_transposes_do_not_pay_for_more_nodes() -> None:
    open_ = OpenModel(
        model(f"({IMAGE} X) => ({IMAGE} Y) {{ A = Relu(X) B = Exp(A) C = Neg(B) D = {TO}(X) Y = {BACK}(D) }}")
    )
    gone = [open_.nodes[3], open_.nodes[0]]
    for made, less in (([0, 1, 2], False), ([0, 1], True), ([3], False)):
        assert layout._is_less(open_, Trial(0, [], dict.fromkeys(made), gone)) is less


def test_no_more_is_tried_than_the_number_of_nodes_admits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty Transposes read what twenty operators make of another one; none of them is its inverse."""
    chain = " ".join(f"R{k + 1} = Relu(R{k})" for k in range(20))
    ends = " ".join(f"D{k} = {ON}(R20) Y{k} = Neg(D{k})" for k in range(20))
    before = model(
        f"({IMAGE} X) => ({', '.join(f'float[4,3,2,N] Y{k}' for k in range(20))}) {{ R0 = {TO}(X) {chain} {ends} }}"
    )
    fired: list[object] = []
    fire = layout.fire

    def counted(*given: Any, **how: Any) -> Any:
        fired.append(fire(*given, **how))
        return fired[-1]

    monkeypatch.setattr(layout, "fire", counted)
    assert not optimize(before, passes=("layout",)).log
    assert 0 < sum(it is not None for it in fired) <= layout.AGAIN * len(before.nodes) < 20 * 20


@pytest.mark.parametrize("case", ["two residual blocks", "an output that is read too", "padding and a sum"])
def test_a_trial_leaves_no_trace(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tried is taken back, numbers that were given included."""
    states: list[tuple[object, ...]] = []
    start, settle = OpenModel.on_trial, OpenModel.settle

    def started(open_: OpenModel) -> Trial:
        states.append(state(open_))
        return start(open_)

    def settled(open_: OpenModel, trial: Trial, *, keep: bool) -> None:
        assert trial.undo
        settle(open_, trial, keep=keep)
        assert state(open_) == states[-1]

    monkeypatch.setattr(OpenModel, "on_trial", started)
    monkeypatch.setattr(OpenModel, "settle", settled)
    monkeypatch.setattr(layout, "_is_less", lambda *_: False)
    optimize(model(HELPED[case][0]), passes=("layout",))
    assert states


def state(open_: OpenModel) -> tuple[object, ...]:
    read = {t: set(readers) for t, readers in open_.readers.items() if readers}
    members = [list(it) for it in open_.members]
    kept = (dict(open_.nodes), list(open_.tensors), dict(open_.producers), dict(open_.contents), list(open_.journal))
    return read, members, *kept, open_.closed()


@pytest.mark.parametrize("case", ["residual", "padding and a sum", "within a branch"])
def test_a_certificate_has_the_steps(case: str, tmp_path: Path) -> None:
    text, _ = HELPED[case]
    certified = optimized(tmp_path, proto_of(f"g {text}", 22, stored_in(text)))
    assert certified.outcome().outcome is Outcome.CONFIRMED
