"""Rewrites from Python, and a user's own ones: proved on the spot, or refused."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from own_operators import TEXT, nothing_added
from small_models import means_the_same, model_of, proto_of
from sonnx.checker.equivalence import GLOBAL, LOCAL, rewrite
from sonnx.checker.equivalence.matching.patterns import by_root
from sonnx.checker.equivalence.optimizing import passes
from sonnx.checker.equivalence.optimizing.admitting import UnknownRule
from sonnx.checker.equivalence.optimizing.graphs import OpenModel
from sonnx.checker.equivalence.optimizing.optimizer import ORDER
from sonnx.checker.equivalence.record import Proof
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.writing import model_proto
from sonnx.spec import cli
from sonnx.spec.elaborate.core import CoreRewrite
from sonnx.spec.library import extended, specification

OWN = """
rewrite OwnNegations (X: T[d...]) -> Y: T "Four changes of sign are two." source "here"
  types T = float
  from Y = Neg@13(Neg@13(Neg@13(X)))
  to Y = Neg@13(X)
  exactly

rewrite OwnExponent (X: T[d...]) -> Y: T "The logarithm undoes exp, which rounding forbids." source "here"
  types T = float
  from Y = Log@13(Exp@13(X))
  to Y = X
  exactly

rewrite OwnReals (X: T[d...], A: T[d...]) -> Y: T "The order of a sum and a sign, of reals." source "here"
  types T = float
  from Y = Sub@14(Sub@14(X, A), A)
  to Y = Sub@14(X, Add@14(A, A))
  in reals
"""
MODEL = "g (float[2] X) => (float[2] Y) { A = Neg(X) B = Neg(A) C = Neg(B) Y = Relu(C) }"


def own() -> dict[str, CoreRewrite]:
    return dict(extended(specification(), {"own.sonnx": OWN}).rules)


def test_a_rewrite_of_an_added_text_is_proved_and_applied() -> None:
    model = model_of(MODEL)
    made, log = rewrite(model, [own()["OwnNegations"]])
    assert [(it.rule, it.claim) for it in log] == [("OwnNegations", "exact")]
    assert len(made.nodes) == 2 and means_the_same(model, made)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        (["OwnExponent"], "OwnExponent is refuted"),
        (["OwnReals"], "OwnReals claims reals"),
        (["OwnNegations", "OwnNegations"], "two rewrites are named"),
    ],
)
def test_a_rewrite_that_is_not_proved_is_refused_in_one_sentence(rules: Sequence[str], said: str) -> None:
    with pytest.raises(UnknownRule, match=said) as raised:
        rewrite(model_of(MODEL), [own()[name] for name in rules])
    assert "\n" not in str(raised.value)


def test_passes_are_local_or_global() -> None:
    assert sorted((*LOCAL, *GLOBAL)) == sorted(ORDER) and not set(LOCAL) & set(GLOBAL)


def test_the_names_are_loaded_when_they_are_used() -> None:
    code = "import sys, sonnx.checker.equivalence; print(any(it in sys.modules for it in ('onnx', 'z3', 'numpy')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def sonnx(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command in a folder, and what it prints."""
    out = io.StringIO()
    with nothing_added(folder), redirect_stdout(out), redirect_stderr(out):
        return cli.run([*arguments]), out.getvalue()


OPERATOR = """
rewrite ScaleOnce (X: T[d...]) -> Y: T "A scale stays what it is." source "here"
  types T = float
  from Y = com.example::Scale@1(X; alpha = 1.0)
  to Y = com.example::Scale@1(X; alpha = 1.0)
  exactly
"""


def test_the_command_proves_what_a_user_adds(tmp_path: Path) -> None:
    (tmp_path / "own.sonnx").write_text(OWN)
    (tmp_path / "m.onnx").write_bytes(proto_of(MODEL).SerializeToString())
    command = ("--spec", "own.sonnx", "optimize", "m.onnx", "-o", "small.onnx", "--rules")
    code, told = sonnx(tmp_path, *command, "OwnNegations")
    assert code == 0 and "1 OwnNegations (exact)" in told and "4 nodes before, 2 now; strength exact" in told
    (tmp_path / "small.onnx").unlink()
    code, told = sonnx(tmp_path, *command, "OwnExponent")
    assert code == 2 and "OwnExponent is refuted" in told and not (tmp_path / "small.onnx").exists()


def test_an_operator_that_is_not_shown_to_be_defined_is_no_right_side(tmp_path: Path) -> None:
    (tmp_path / "own.sonnx").write_text(TEXT + OPERATOR)
    (tmp_path / "m.onnx").write_bytes(proto_of(MODEL).SerializeToString())
    code, told = sonnx(tmp_path, "--spec", "own.sonnx", "optimize", "m.onnx", "-o", "s.onnx", "--rules", "ScaleOnce")
    assert code == 2
    assert "ScaleOnce is not proved: not shown to be defined wherever it says so: com.example::Scale" in told


ONE_STEP = """
rewrite OwnOneStep (X: T[l, b, k], W: T[d, g, k], R: T[d, g, h]) -> H: T "One step has no order." source "here"
  types T = float
  from A, H, C = LSTM@22(X, W, R; hidden_size = n)
  to A', H, C' = LSTM@22(X, W, R; hidden_size = n, direction = "reverse")
  when l = 1 "There is one step."
  exactly
"""


def test_an_output_that_is_left_out_keeps_its_place() -> None:
    rule = extended(specification(), {"own.sonnx": ONE_STEP}).rules["OwnOneStep"]
    proto = proto_of(
        "g (float[1,2,1] X, float[1,4,1] W, float[1,4,1] R) => (float[1,2,1] Y)"
        " { a, h, c = LSTM<hidden_size = 1>(X, W, R) Y = Sub(h, c) }"
    )
    proto.graph.node[0].output[0] = ""
    model = load_proto(proto)
    open_ = OpenModel(model)
    proofs = {rule.name: Proof(rule.name, "exact", None, None)}
    assert passes.rewrite(open_, by_root([rule]), (), proofs, [].append, 9, smaller=False) == 1
    made = model_proto(open_.closed())
    left = next(it for it in made.graph.node if "c" in it.output)
    assert list(left.output[::2]) == ["", "c"]
    assert means_the_same(model, load_proto(made))
