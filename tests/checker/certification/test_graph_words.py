"""Determinism and training, hidden names, missing sources: the verdict, the words, and what the machine does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, parser
from sonnx.checker.certification.findings import finding
from sonnx.semantics import load_proto, run
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.machine.inputs import random_inputs
from sonnx.semantics.model.loader import load
from sonnx.semantics.operators.application import Stuck
from sonnx.spec.library import specification
from tables import table

TEXT = specification()
SHARED = Path(__file__).parents[3] / ".." / "shared" / "misjudged"


def told(model: ModelProto, constraint: str) -> tuple[str, list[str]]:
    """The verdict of a constraint, and the sentences of its findings."""
    facts, rule = structure(load_proto(model)), TEXT.constraints[constraint]
    judgement = direct.judge(rule, TEXT.functions, facts)
    found = [finding(rule, it, TEXT.functions, facts, violated=True) for it in judgement.failures]
    return judgement.verdict, [it.message for it in found]


def ended(model: ModelProto) -> Stuck | None:
    """Why the machine gives no outputs for drawn inputs; None when it does."""
    loaded = load_proto(model)
    return run(loaded, random_inputs(loaded, 1)[0]).stuck


def results(model: ModelProto) -> set[bytes]:
    """The values that the output y has for drawn inputs, with the random numbers of a few seeds."""
    loaded = load_proto(model)
    given = random_inputs(loaded, 1)[0]
    found = [run(loaded, given, draws=seed).outputs["y"] for seed in range(6)]
    return {it.tobytes() for it in found if isinstance(it, np.ndarray)}


def listed(parts: str) -> str:
    """A list of ONNX's textual syntax, which has no empty ones."""
    return f"<{parts}>" if parts else ""


# ---- Training ---------------------------------------------------------------------------------


def normalised(version: int, outputs: str, written: str = "") -> ModelProto:
    named = [name for name in outputs.split(", ") if name != '""']
    declared = ", ".join(f"float{'[1,3,2,2]' if name == 'y' else '[3]'} {name}" for name in named)
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {version}]>
      g (float[1,3,2,2] x) => ({declared}) <float[3] s = {{1, 2, 3}}, float[3] v = {{1, 1, 1}}> {{
        {outputs} = BatchNormalization{listed(written)}(x, s, s, s, v)
      }}""")


MODES = "asks for training mode, in which it updates running statistics"
BY_OUTPUT = "asks for training mode, by an optional output: it updates running statistics"


@table("version", [7, 9])
@table(
    ("outputs", "cases"),
    [
        ("y", "holds"),
        ("y, m, v2, sm, sv", "holds"),
        ('y, "", v2, sm, sv', "holds"),
        ('y, "", "", "", sv', "holds"),
        ('y, m, v2, "", ""', "holds"),
        ('y, "", v2', "violated"),
        ("y, m", "violated"),
        ("y, m, v2, sm", "violated"),
    ],
)
def test_any_optional_output_of_an_old_batch_normalization_asks_for_training(
    version: int, outputs: str, cases: str
) -> None:
    """One output, or all five are listed: ONNX admits no other number. In training mode nothing is computed."""
    model = normalised(version, outputs)
    alone = outputs == "y"
    verdict, words = told(model, "Deterministic")
    assert verdict == ("holds" if alone else "violated")
    assert words == ([] if alone else [f"/0:BatchNormalization {BY_OUTPUT}"])
    assert told(model, "OutputCases")[0] == cases
    stuck = ended(model)
    assert (stuck is None) is alone
    assert alone or (stuck is not None and stuck.premise == "Y is the only output.")


@table(
    ("version", "outputs", "written", "words"),
    [
        (15, "y", "training_mode = 1", MODES),
        (14, "y, m, v2", "training_mode = 1", MODES),
        (15, "y", "training_mode = 0", ""),
        (15, "y", "", ""),
        (6, "y", "", MODES),
        (6, "y", "is_test = 1", ""),
    ],
)
def test_a_training_mode_is_rejected_as_one(version: int, outputs: str, written: str, words: str) -> None:
    found = told(normalised(version, outputs, written), "Deterministic")
    assert found == (("violated", [f"/0:BatchNormalization {words}"]) if words else ("holds", []))


def dropped(version: int, inputs: str = "x", written: str = "", stored: str = "") -> ModelProto:
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {version}]>
      g (float[2,3] x) => (float[2,3] y) {listed(stored)} {{ y = Dropout{listed(written)}({inputs}) }}""")


RANDOM = "asks for training mode, in which elements are dropped at random"
DROPOUTS = [
    (12, "x, r, t", "", "float r = {0.0}, bool t = {1}", True),
    (13, "x, r, t", "", "float r = {-0.0}, bool t = {1}", True),
    (22, "x, r, t", "", "double r = {0.0}, bool t = {1}", True),
    (17, "x, r, t", "", "float16 r = {0}, bool t = {1}", True),
    (13, "x, r, t", "", "float r = {0.5}, bool t = {0}", True),
    (13, 'x, "", t', "", "bool t = {0}", True),
    (13, "x, r", "", "float r = {0.5}", True),
    (13, "x, r, t", "", "float r = {0.5}, bool t = {1}", False),
    (13, 'x, "", t', "", "bool t = {1}", False),
    (6, "x", "ratio = 0.0", "", True),
    (6, "x", "ratio = 0.5", "", False),
    (6, "x", "", "", False),
    (6, "x", "is_test = 1", "", True),
    (7, "x", "ratio = 0.5", "", True),
]


@table(("version", "inputs", "written", "stored", "holds"), DROPOUTS)
def test_a_dropout_that_drops_nothing_is_deterministic(
    version: int, inputs: str, written: str, stored: str, holds: bool
) -> None:
    model = dropped(version, inputs, written, stored)
    assert told(model, "Deterministic") == (("holds", []) if holds else ("violated", [f"/0:Dropout {RANDOM}"]))
    if version >= 12:
        assert (len(results(model)) == 1) is holds


@pytest.mark.parametrize(
    ("constant", "holds"),
    [
        ("Constant<value = float {0.0}>()", True),
        ("Constant<value_float = 0.0>()", True),
        ("Constant<value = float {0.25}>()", False),
        ("Constant<value_float = 0.25>()", False),
    ],
)
def test_a_ratio_from_a_constant_is_known(constant: str, holds: bool) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
      g (float[2] x) => (float[2] y) <bool t = {{1}}> {{ r = {constant} y = Dropout(x, r, t) }}""")
    assert told(model, "Deterministic")[0] == ("holds" if holds else "violated")


@pytest.mark.parametrize("replaceable", ["float r, ", ""])
def test_a_ratio_that_a_caller_may_replace_or_that_is_computed_is_not_known(replaceable: str) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]>
      g (float[2] x, {replaceable}float q) => (float[2] y) <float r = {{0.0}}, bool t = {{1}}> {{
        z = Mul(r, q)
        y = Dropout(x, {"r" if replaceable else "z"}, t)
      }}""")
    assert told(model, "Deterministic")[0] == "unknown"


def test_another_operator_is_called_not_deterministic() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]>
      g (float[2] x) => (float[2] y) { r = RandomNormalLike(x) y = Add(x, r) }""")
    assert told(model, "Deterministic") == ("violated", ["/0:RandomNormalLike is not deterministic"])


# ---- Names ------------------------------------------------------------------------------------

LOOP = """<ir_version: 8, opset_import: ["" : 17]>
g (int64 n, bool c, float[2] x) => (float[2] y) {{
  e = Abs(x)
  y = Loop(n, c, e)<body = b (int64 i, bool k, float[2] {formal}) => (bool k2, float[2] {inner}) <{stored}> {{
    k2 = Identity(k)
    {inner} = Neg({formal})
  }}>
  l = Neg(y)
}}"""


def body(formal: str = "v", inner: str = "o", stored: str = "float[1] w = {1}") -> ModelProto:
    return parser.parse_model(LOOP.format(formal=formal, inner=inner, stored=stored))


@table(
    "change",
    [
        {"inner": "y"}, {"inner": "l"}, {"formal": "x"}, {"formal": "e"}, {"formal": "y"}, {"formal": "l"},
        {"stored": "float[1] x = {1}"}, {"stored": "float[1] e = {1}"},
    ],
    ids=str,
)  # fmt: skip
def test_a_name_that_is_not_visible_or_not_a_nodes_output_may_be_used_again(change: dict[str, str]) -> None:
    """onnx.checker and onnxruntime accept all of these, and give the value that the machine gives."""
    model = body(**change)
    assert told(model, "NothingHidden") == ("holds", [])
    assert told(model, "UniqueNames") == ("holds", [])
    inputs = {"n": np.array(3), "c": np.array(True), "x": np.array([1, -2], np.float32)}
    assert np.array_equal(np.asarray(run(load_proto(model), inputs).outputs["y"]), [-1, -2])


@pytest.mark.parametrize("name", ["x", "e", "n"])
def test_a_node_in_a_body_must_not_write_a_visible_name(name: str) -> None:
    """onnx.checker and onnxruntime refuse all of these."""
    verdict, words = told(body(inner=name), "NothingHidden")
    assert verdict == "violated"
    assert words == [f'/1:Loop.body/"{name}" hides /"{name}", which its graph could read']
    assert told(body(inner=name), "UniqueNames") == ("holds", [])


@pytest.mark.parametrize(
    ("inputs", "stored", "words"),
    [
        (
            "float[2] x, float[2] x",
            "float[2] w = {1, 2}",
            '/"x" is listed more than once among the inputs of its graph',
        ),
        (
            "float[2] x",
            "float[2] w = {1, 2}, float[2] w = {1, 3}",
            '/"w" is listed more than once among the initializers of its graph',
        ),
        (
            "float[2] x, float[2] w, float[2] w",
            "float[2] w = {1, 2}, float[2] w = {1, 3}",
            '/"w" is listed more than once among the inputs, and more than once among the initializers of its graph',
        ),
    ],
)
def test_a_name_that_is_listed_twice_is_told_from_the_list(inputs: str, stored: str, words: str) -> None:
    model = parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => (float[2] y) <{stored}> {{ y = Add(x, w) }}'
    )
    assert told(model, "UniqueNames") == ("violated", [words])


# ---- Sources ----------------------------------------------------------------------------------


@table(
    ("text", "broken"),
    [
        ("g (float[2] x) => (float[2] y) { y = Add(x, z) }", {"Sourced", "Completeness"}),
        ("g (float[2] x) => (float[2] y) { y = Neg(x) a = Add(x, z) }", {"Sourced"}),
        ("g (float[2] x) => (float[2] y) { a = Neg(x) }", {"Completeness"}),
        (
            "g (bool c, float[2] x) => (float[2] y) { y = If(c)<"
            "then_branch = t () => (float[2] p) { p = Add(x, z) },"
            "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
            {"Sourced", "Completeness"},
        ),
        ("g (float[2] x) => (float[2] y) { y = Neg(x) y = Abs(x) }", {"SingleAssignment"}),
        ("g (float[2] x) => (float[2] y) { y, y = Split<axis = 0>(x) }", {"SingleAssignment"}),
    ],
)
def test_a_missing_source_is_one_and_a_double_writer_another(text: str, broken: set[str]) -> None:
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    rules = ("SingleAssignment", "Sourced", "Completeness")
    assert {rule for rule in rules if told(model, rule)[0] == "violated"} == broken


# ---- The models that were judged wrongly ------------------------------------------------------

MISJUDGED = {
    "bn9_5out_nomean": {"Deterministic": "violated", "OutputCases": "holds"},
    "bn9_train": {"Deterministic": "violated", "OutputCases": "holds"},
    "bn9_var_only": {"Deterministic": "violated", "OutputCases": "violated"},
    "branch_out_same_as_outer": {"UniqueNames": "holds", "NothingHidden": "holds"},
    "dropout_train_ratio0": {"Deterministic": "holds"},
    "if2": {"Completeness": "violated", "BranchesAgree": "violated", "BodyArity": "violated"},
    "if_count2": {"Completeness": "holds", "BranchesAgree": "violated", "BodyArity": "violated"},
    "if_declared_same_really_differ": {"BranchesAgree": "violated"},
    "ifsparse": {"BranchesAgree": "violated"},
}
RUNS = {"branch_out_same_as_outer", "dropout_train_ratio0", "if_count2"}
"""Those that the machine runs to their end, whatever their condition is; if_count2 is no valid ONNX all the same."""


@pytest.mark.skipif(not SHARED.is_dir(), reason="the models are not at ../shared/misjudged")
@pytest.mark.parametrize("name", MISJUDGED)
def test_a_model_that_was_judged_wrongly_is_judged_rightly(name: str) -> None:
    model = load(SHARED / f"{name}.onnx")
    facts = structure(model)
    for constraint, verdict in MISJUDGED[name].items():
        assert direct.judge(TEXT.constraints[constraint], TEXT.functions, facts).verdict == verdict, constraint
    if name != "ifsparse":
        drawn = [random_inputs(model, seed)[0] for seed in range(4)]
        stuck = [run(model, inputs).stuck for inputs in drawn]
        assert all(it is None for it in stuck) is (name in RUNS)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the models are not at ../shared/misjudged")
@pytest.mark.parametrize("name", ["wrong_decl", "concat_sym"])
def test_a_run_refuses_what_contradicts_the_declaration(name: str) -> None:
    model = load(SHARED / f"{name}.onnx")
    done = run(model, random_inputs(model, 1)[0])
    assert done.stuck is not None and done.stuck.rule == "AsDeclared" and not done.outputs
