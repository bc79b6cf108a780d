"""Models written to make the default verdict wrong: called CONFORMS though invalid, or though a run gets stuck."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import parser
from sampling import sampled
from sonnx.checker import Report, Verdict, certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.report import RuleVerdict
from sonnx.semantics import load_proto, run

HEADER = '<ir_version: 10, opset_import: ["" : 21]>'


def judged(text: str) -> Report:
    return certify(parser.parse_model(text))


def confirmed(model: onnx.ModelProto, folder: Path) -> bool:
    """Whether the certificate of the default rule set is confirmed."""
    file = folder / "m.onnx"
    onnx.save(model, file)
    return recheck(seal(certificate(certify(file, witnesses=True))), file).outcome == "CONFIRMED"


def violations(report: Report) -> dict[str, list[str]]:
    """The messages of each counted rule that is violated."""
    return {
        rule.id: [finding.message for finding in rule.findings]
        for rule in report.rules
        if rule.counted and rule.verdict is RuleVerdict.VIOLATED
    }


def accepted(model: onnx.ModelProto) -> bool:
    """Whether onnx.checker takes a model, its shape inference included."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True


OUTSIDE = {
    "a float beyond int64": ("1e30", "s = Cast<to = 7>(z) i = Identity(s)", "/3:Gather"),
    "a negative float beyond int64": ("-1e30", "s = Cast<to = 7>(z) i = Identity(s)", "/3:Gather"),
    "a negative float as uint8": ("-5", "s = Cast<to = 2>(z) i = Cast<to = 7>(s)", "/3:Gather"),
    "a float beyond uint8": ("300", "s = Cast<to = 2>(z) i = Cast<to = 7>(s)", "/3:Gather"),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_float_cast_outside_its_type_may_be_any_index(name: str) -> None:
    """Cast allows any value there; that the number wraps around was taken for granted, and no obligation was listed."""
    number, casts, where = OUTSIDE[name]
    text = f"{HEADER} g (float[3] x) => (float[1] y) {{ z = Constant<value = float[1] {{{number}}}>() {casts}"
    model = parser.parse_model(f"{text} y = Gather(x, i) }}")
    report = certify(model)
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, (), 1)
    (finding,) = [it for rule in report.rules for it in rule.left_to(RuleVerdict.OBLIGATION)]
    assert finding.where == where
    ended = run(load_proto(model), {"x": np.zeros(3, np.float32)})
    assert ended.stuck is None or ended.stuck.at == where


@pytest.mark.parametrize("number, needed", [("2.9", "N >= 3"), ("-0.5", "N >= 1"), ("-2.5", "N >= 2")])
def test_a_float_cast_inside_its_type_is_cut_off(number: str, needed: str) -> None:
    report = judged(
        f"{HEADER} g (float[N] x) => (float[1] y) {{ z = Constant<value = float[1] {{{number}}}>()"
        " i = Cast<to = 7>(z) y = Gather(x, i) }"
    )
    assert report.verdict is Verdict.CONFORMS
    assert report.conditions == (() if needed == "N >= 1" else (needed,))


def test_integers_wrap_around() -> None:
    report = judged(
        f"{HEADER} g (float[N] x) => (float[1] y) {{ z = Constant<value = int32[1] {{300}}>()"
        " s = Cast<to = 2>(z) i = Cast<to = 7>(s) y = Gather(x, i) }"
    )
    assert (report.verdict, report.conditions) == (Verdict.CONFORMS, ("N >= 45",))


@pytest.mark.parametrize("version, conforms", [(1, False), (2, False), (3, True)])
def test_before_ir_version_3_a_model_imports_no_operator_sets(version: int, conforms: bool) -> None:
    model = parser.parse_model(f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    model.ir_version = version
    report = certify(model)
    assert (report.verdict is Verdict.CONFORMS) == conforms
    assert ("opset-import" in [rule.id for rule in report.rules if rule.verdict == "violated"]) != conforms


# ---- Operator sets of functions -----------------------------------------------------------------

IMPORTING = '<ir_version: 10, opset_import: ["" : 21, "local" : 1, "other" : 1]>'
CALLING = f"{IMPORTING} g (float[2,3] x) => (float[2,3] y) {{ y = local.f(x) }}"
TWO = f"{IMPORTING} g (float[2,3] x) => (float[2,3] y) {{ z = local.f(x) y = local.h(z) }}"
UNLIKE = {
    "Softmax of version 11": (
        f'{CALLING} <domain: "local", opset_import: ["" : 11]> f (x) => (y) {{ y = Softmax(x) }}',
        ["local::f applies Softmax: version 11 of", "version 13 by"],
    ),
    "a function that nothing calls": (
        f'{CALLING} <domain: "local", opset_import: ["" : 21]> f (x) => (y) {{ y = Neg(x) }}'
        ' <domain: "local", opset_import: ["" : 12]> unused (x) => (y) { y = Neg(x) }',
        ["local::unused applies Neg: version 6 of", "version 13 by"],
    ),
    "a function that a function calls": (
        f'{CALLING} <domain: "local", opset_import: ["" : 21, "other" : 1]> f (x) => (y) {{ y = other.h(x) }}'
        ' <domain: "other", opset_import: ["" : 12]> h (x) => (y) { y = Neg(x) }',
        ["other::h applies Neg: version 6 of", "version 13 by"],
    ),
    "an operator that the model's version has no more": (
        f'{CALLING} <domain: "local", opset_import: ["" : 2]> f (x) => (y)'
        " { y = Upsample<width_scale = 1.0, height_scale = 1.0>(x) }",
        ["local::f applies Upsample: version 1 of", "version 10 by"],
    ),
    "two functions, and a model that does not import the domain": (
        f'{TWO} <domain: "local", opset_import: ["" : 21, "ai.onnx.ml" : 1]> f (x) => (y)'
        " { y = ai.onnx.ml.Scaler<offset = [0.0], scale = [1.0]>(x) }"
        ' <domain: "local", opset_import: ["" : 21, "ai.onnx.ml" : 2]> h (x) => (y)'
        " { i = Cast<to = 7>(x) y = ai.onnx.ml.LabelEncoder<keys_int64s = [0], values_floats = [0.5]>(i) }",
        ["local::h applies ai.onnx.ml::LabelEncoder: version 2 of", "version 1 by"],
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_a_function_may_not_import_another_definition_of_what_it_applies(name: str, tmp_path: Path) -> None:
    """onnx.checker refuses these; the machine and onnxruntime run them by the function's own imports."""
    text, parts = UNLIKE[name]
    model = parser.parse_model(text)
    assert not accepted(model)
    (message,) = violations(certify(model))["function/imports"]
    assert all(part in message for part in parts), message


def test_a_definition_inside_a_body_of_a_function_counts() -> None:
    """The text speaks of every node in the body of the function; onnx.checker does not look into an If."""
    branches = "then_branch = t () => (p) { p = Add(x, x) }, else_branch = e () => (q) { q = Add(x, x) }"
    model = parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 13, "local" : 1]> g (bool c, float[2,3] x) => (float[2,3] y)'
        ' { y = local.f(c, x) } <domain: "local", opset_import: ["" : 14]> f (c, x) => (y)'
        f" {{ y = If(c)<{branches}> }}"
    )
    assert accepted(model)
    assert "Add: version 14" in " ".join(violations(certify(model))["function/imports"])


@pytest.mark.parametrize("version", sampled([13, 18, 20, 21], 2))
def test_a_function_may_import_another_version_with_the_same_definitions(version: int, tmp_path: Path) -> None:
    model = parser.parse_model(
        f'{CALLING} <domain: "local", opset_import: ["" : {version}]> f (x) => (y) {{ y = Softmax(x) }}'
    )
    assert accepted(model) and certify(model).verdict is Verdict.CONFORMS and confirmed(model, tmp_path)


def test_the_verdict_on_imports_of_functions_is_confirmed(tmp_path: Path) -> None:
    text, _ = UNLIKE["a function that a function calls"]
    assert confirmed(parser.parse_model(text), tmp_path)


def test_the_imports_of_functions_have_a_script(tmp_path: Path) -> None:
    text, _ = UNLIKE["a function that a function calls"]
    certify(parser.parse_model(text), dump=tmp_path)
    script = (tmp_path / "ImportsCompatible.formula.smt2").read_text()
    assert "version_in" in script and "version_outside" in script


# ---- Training mode that data decide -------------------------------------------------------------

TRAINING = f"{HEADER} g (float[2,3] x, bool t, float r, float[2,3] z) => (float[2,3] y)"
DROPOUTS = {
    "training_mode is an input": ("<float half = {0.5}> { o = Dropout(x, half, t) y = Sum(o, o, r, z) }", ["R2"]),
    "training_mode and ratio are inputs": (
        "{ o = Dropout(x, r, t) y = Add(o, z) }",
        ["R2", "Dropout-12/ratio_in_range"],
    ),
    "ratio is an input, training_mode is true": (
        "<bool yes = {1}> { o = Dropout(x, r, yes) y = Where(t, o, z) }",
        ["R2", "Dropout-12/ratio_in_range"],
    ),
    "training_mode is an input, ratio is 0": (
        "<float none = {0.0}> { o = Dropout(x, none, t) y = Sum(o, r, z) }",
        [],
    ),
    "training_mode is an input, ratio is -0": (
        "<float none = {-0.0}> { o = Dropout(x, none, t) y = Sum(o, r, z) }",
        [],
    ),
    "ratio is an input, training_mode is false": (
        "<bool no = {0}> { o = Dropout(x, r, no) y = Where(t, o, z) }",
        [],
    ),
}


@pytest.mark.parametrize("name", sampled(DROPOUTS, 3))
def test_training_mode_that_data_decide_is_an_obligation(name: str, tmp_path: Path) -> None:
    """It was undecided; stored zeros and false make the Dropout deterministic."""
    text, left = DROPOUTS[name]
    model = parser.parse_model(f"{TRAINING} {text}")
    report = certify(model)
    assert accepted(model) and report.verdict is Verdict.CONFORMS
    owed = [it.id for it in report.rules if it.counted and it.verdict is RuleVerdict.OBLIGATION]
    assert owed == left
    assert report.obligations == len(owed)
    assert (certify(model, strict=True).verdict is Verdict.UNDECIDED) == bool(left)
    for finding in next(it for it in report.rules if it.id == "R2").left_to(RuleVerdict.OBLIGATION):
        assert (finding.where, finding.condition) == ("/0:Dropout", "training_mode is false, or ratio is 0")
    assert confirmed(model, tmp_path)


def test_training_mode_that_is_stored_and_an_unknown_operator_are_no_obligations(tmp_path: Path) -> None:
    imports = HEADER.replace('"" : 21', '"" : 21, "own" : 1')
    graph = "g (float[2] x, bool t) => (float[2] y) <float half = {0.5}, bool yes = {1}>"
    model = parser.parse_model(
        f"{imports} {graph} {{ a = Dropout(x, half, t) b = own.F(a) c = Dropout(b, half, yes) y = own.F(c) }}"
    )
    report = certify(model)
    (rule,) = [it for it in report.rules if (it.rule_set, it.id) == ("sonnx", "R2")]
    assert (rule.verdict, [it.where for it in rule.findings]) == (RuleVerdict.VIOLATED, ["/2:Dropout"])
    assert [it.where for it in rule.left_to(RuleVerdict.OBLIGATION)] == ["/0:Dropout"] and rule.obligations == 1
    assert confirmed(model, tmp_path)
    del model.graph.node[2]
    model.graph.node[2].input[0] = "b"
    (rule,) = [it for it in certify(model).rules if (it.rule_set, it.id) == ("sonnx", "R2")]
    assert (rule.verdict, rule.total_findings, rule.obligations) == (RuleVerdict.UNKNOWN, 2, 1)


def test_an_obligation_of_a_graph_rule_cannot_be_left_out_of_a_certificate(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    onnx.save(parser.parse_model(f"{TRAINING} {DROPOUTS['training_mode and ratio are inputs'][0]}"), file)
    for change in ({"verdict": "holds", "findings": [], "total": 0, "obligations": 0}, {"obligations": 0}):
        statement = certificate(certify(file, witnesses=True))
        (rule,) = [it for it in statement["predicate"]["rules"] if it["id"] == "R2"]
        rule |= change
        for entry in (statement["predicate"], statement["predicate"]["rule_sets"][0]):
            entry["obligations"] -= 1
        if "verdict" in change:
            statement["predicate"]["witnesses"]["Deterministic"] = {"kind": "table", "operators": []}
        assert recheck(seal(statement), file).outcome == "REFUTED"


# ---- Integers that wrap around ------------------------------------------------------------------

WRAPPING = {"a sum": "Add(big, big)", "a product": "Mul(big, two)", "a difference": "Sub(least, big)"}
REST = {"a sum": 5, "a product": 5, "a difference": 2}
"""What makes a 3 of the number that is left: -2, -2 and 1."""


@pytest.mark.parametrize("name", sampled(WRAPPING, 2))
@pytest.mark.parametrize("declared", [2, 3])
def test_constant_integers_wrap_around(name: str, declared: int, tmp_path: Path) -> None:
    """ONNX's data propagation refuses them; its checker, the runtimes and the texts of the operators do not."""
    stored = f"int64[1] big = {{{2**63 - 1}}}, int64[1] least = {{{-(2**63)}}}, int64[1] two = {{2}}"
    model = parser.parse_model(
        f"{HEADER} g (float[2,3] x) => (float[2,{declared}] y) <{stored}, int64[1] rest = {{{REST[name]}}}>"
        f" {{ w = {WRAPPING[name]} n = Add(w, rest) m = Add(big, least) r = Concat<axis = 0>(two, n) z = Reshape(x, r)"
        " a = Mul(m, m) b = Cast<to = 1>(a) y = Mul(z, b) }"
    )
    report = certify(model)
    assert accepted(model) or declared == 2
    assert (report.verdict, set(violations(report))) == (
        (Verdict.CONFORMS, set()) if declared == 3 else (Verdict.VIOLATES, {"shapes"})
    )
    assert (run(load_proto(model), {"x": np.ones((2, 3), np.float32)}).stuck is None) == (declared == 3)
    assert confirmed(model, tmp_path)


COUNTING = "g (float[N] x) => (float[1] y) <int64[1] one = {1}, int64[1] zero = {0}, int64[1] far = {1000},"
COUNTED = {
    "a power of a size": ("int64[1] k = {0}>", "a = Mul(n, n) b = Mul(a, a) c = Mul(b, n) i = Min(c, d)", 6209),
    "a size and a large constant": (f"int64[1] k = {{{2**63 - 1}}}>", "c = Add(n, k) i = Min(c, d)", 3),
    "a multiple of a size": (f"int64[1] k = {{{2**62}}}>", "c = Mul(n, k) i = Min(c, d)", 3),
    "a sum in a reduction": (
        f"int64[1] k = {{{2**63 - 1}}}>", "u = Concat<axis = 0>(n, k) c = ReduceSum(u) i = Min(c, d)", 3
    ),
    "a number that a size chooses": (
        f"int64[1] k = {{{2**62}}}>", "g = Greater(n, one) b = Where(g, k, one) c = Add(b, b) i = Min(c, d)", 3
    ),
    "an unsigned difference": (
        "uint64[1] k = {3}, uint64[1] none = {0}>",
        "u = Cast<to = 13>(n) v = Sub(u, k) m = Max(v, none) c = Cast<to = 7>(m) e = Min(c, d) i = Add(c, zero)", 1
    ),
    "a negative number as an unsigned one": (
        "int64[1] k = {3}, uint64[1] two = {2}>",
        "v = Sub(k, n) u = Cast<to = 13>(v) g = Greater(u, two) i = Where(g, far, zero)", 5
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(COUNTED, 3))
def test_numbers_over_sizes_wrap_around(name: str, tmp_path: Path) -> None:
    """They were taken for exact, by both parties: CONFORMS for all N, and confirmed."""
    stored, nodes, size = COUNTED[name]
    text = f"{HEADER} {COUNTING} {stored} {{ n = Shape(x) d = Sub(n, one) {nodes} y = Gather(x, i) }}"
    model = parser.parse_model(text)
    report = certify(model, ["domain"])
    assert (report.verdict, report.conditions) == (Verdict.CONFORMS, ())
    rows = [it for rule in report.rules if rule.rule_set == "domain" for it in rule.left_to(RuleVerdict.OBLIGATION)]
    ended = run(load_proto(model), {"x": np.ones(size, np.float32)})
    assert ended.stuck is not None and [it.where for it in rows] == [ended.stuck.at]
    assert confirmed(model, tmp_path)


SMALL = {
    "a product of sizes": ("float[N,C,H,W] x", "a = ReduceProd<keepdims = 1>(n) y = Reshape(x, a)"),
    "a product of halves": (
        "float[N,1,H,W] x",
        "p = MaxPool<kernel_shape = [1, 1], strides = [2, 2]>(x) s = Shape(p) a = ReduceProd(s) z = Reshape(p, a)"
        " b = Concat<axis = 0>(a) y = Expand(z, b)",
    ),
    "the size of a square": ("float[N,N] x", "a = Size(x) b = Reshape(a, one) y = Reshape(x, b)"),
}


@pytest.mark.parametrize("name", sampled(SMALL, 2))
def test_numbers_that_no_size_makes_large_are_exact(name: str, tmp_path: Path) -> None:
    declared, nodes = SMALL[name]
    model = parser.parse_model(
        f"{HEADER} g ({declared}) => (float[k] y) <int64[1] one = {{1}}> {{ n = Shape(x) {nodes} }}"
    )
    report = certify(model, ["domain"])
    assert (report.verdict, report.conditions, report.obligations) == (Verdict.CONFORMS, (), 0)


# ---- Sizes of one name --------------------------------------------------------------------------


def test_a_variable_that_bears_the_name_of_another_size_is_told_apart(tmp_path: Path) -> None:
    """The condition read `x[0] = x[0]`, and the certificate was refuted."""
    model = parser.parse_model(f"{HEADER} g (float[A] x, float[B] z) => (float[C] y) {{ y = Add(x, z) }}")
    model.graph.input[0].type.tensor_type.shape.dim[0].ClearField("dim_param")
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "x[0]"
    report = certify(model)
    assert accepted(model) and report.verdict is Verdict.CONFORMS
    assert report.conditions == ('x[0] = "x[0]\'" or x[0] = 1 or "x[0]\'" = 1',)
    assert confirmed(model, tmp_path)


# ---- Outputs that are listed twice --------------------------------------------------------------

TWICE = {
    "a Loop that carries and collects one tensor": (
        "g (int64 m, bool c, float[2] x) => (float[2] y, float[m2,2] z) { y, z = Loop(m, c, x)<body = b (int64 i,"
        " bool ci, float[2] s) => (bool co, float[2] so, float[2] so) { co = Identity(ci) so = Relu(s) }> }"
    ),
    "a Scan that carries and collects one tensor": (
        "g (float[2,3] x, float[2] s) => (float[2] y, float[3,2] z) { y, z = Scan<num_scan_inputs = 1,"
        " scan_input_axes = [1], body = b (float[2] a, float[2] e) => (float[2] o, float[2] o)"
        " { o = Add(a, e) }>(s, x) }"
    ),
    "a branch": (
        "g (bool c, float[2] x) => (float[2] y, float[2] z) { y, z = If(c)<then_branch = t () =>"
        " (float[2] p, float[2] p) { p = Relu(x) }, "
        "else_branch = e () => (float[2] q, float[2] r) { q = Neg(x) r = Abs(x) }> }"
    ),
    "a branch that gives a tensor from outside": (
        "g (bool c, float[2] x) => (float[2] y, float[2] z) { n = Neg(x) y, z = If(c)<then_branch = t () =>"
        " (float[2] p, float[2] p) { p = Relu(n) }, else_branch = e () =>"
        " (float[2] q, float[2] q) { q = Identity(n) }> }"
    ),
    "the model": "g (float[2] x) => (float[2] y, float[2] y) { y = Relu(x) }",
}


@pytest.mark.parametrize("name", sampled(TWICE, 2))
def test_an_output_may_be_listed_twice(name: str, tmp_path: Path) -> None:
    """onnx.checker, onnxruntime and the machine take these; the inference model was built wrongly."""
    model = parser.parse_model(f"{HEADER} {TWICE[name]}")
    assert accepted(model) and certify(model).verdict is Verdict.CONFORMS
    assert confirmed(model, tmp_path)


def test_an_output_that_is_listed_twice_keeps_its_type(tmp_path: Path) -> None:
    text = TWICE["a branch"].replace("float[2] r)", "bool[2] r)").replace("r = Abs(x)", "r = IsNaN(x)")
    model = parser.parse_model(f"{HEADER} {text}")
    assert not accepted(model)
    assert {"If/branches", "body/branches"} <= set(violations(certify(model)))
    assert confirmed(model, tmp_path)


# ---- Declared shapes ----------------------------------------------------------------------------


def loop(condition: str, gives: str, state: str = "float[N]", made: str = "Unsqueeze(ci, k)", k: str = "0") -> str:
    return (
        f"{HEADER} g (float[N] x) => (float[N] y) <int64 m = {{3}}, bool c = {{1}}> {{ y = Loop(m, c, x)<body = b"
        f" (int64 i, {condition} ci, {state} s) => ({gives} co, float[N] so)"
        f" {{ k = Constant<value_ints = [{k}]>() co = {made} so = Relu(s) }}> }}"
    )


def told(model: onnx.ModelProto) -> str:
    """The messages of the places of `domain` that do not simply hold."""
    rules = [it for it in certify(model).rules if it.counted and it.rule_set == "domain" and it.verdict != "holds"]
    return "\n".join(finding.message for rule in rules for finding in rule.findings)


def test_a_condition_that_is_no_scalar_any_more_is_named() -> None:
    """It said that the Loop gives y: [N], violated."""
    message = told(parser.parse_model(loop("bool", "bool[1]")))
    assert '/0:Loop.body/"ci" has the shape [1], and is declared []' in message
    assert '/0:Loop.body/"co" has the shape [1, 1], and is declared [1]' in message
    assert "gives y" not in message


def test_a_condition_of_two_elements_is_named() -> None:
    model = parser.parse_model(loop("bool", "bool[2]", made="Expand(ci, k)", k="2"))
    assert "the condition that the body gives has not one element" in told(model)


def test_a_wrong_size_of_an_input_of_a_body_is_named() -> None:
    model = parser.parse_model(loop("bool", "bool", "float[5]", "Identity(ci)"))
    assert certify(model).conditions == ("N = 5",)
    assert '/0:Loop.body/"s" has the shape [N], and is declared [5]' in told(model)


@pytest.mark.parametrize("declared, told_", [(5, "[5]"), ("M", "")])
def test_a_wrong_size_in_value_info_is_named(declared: int | str, told_: str) -> None:
    model = parser.parse_model(f"{HEADER} g (float[N] x) => (float[N] y) {{ z = Relu(x) y = Neg(z) }}")
    model.graph.value_info.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [declared]))
    assert certify(model).conditions == (("N = 5",) if told_ else ())
    assert (f'/"z" has the shape [N], and is declared {told_}' in told(model)) == bool(told_)


@pytest.mark.parametrize("gives", sampled(["bool[1]", "bool[2]", "bool", ""], 2))
@pytest.mark.parametrize("runs", [3, 40])
def test_an_axis_more_in_every_run_refutes_no_honest_certificate(gives: str, runs: int, tmp_path: Path) -> None:
    """The rechecker does not go through the runs; it took what it does not follow for met."""
    made = {"made": "Expand(ci, k)", "k": "2"} if gives == "bool[2]" else {}
    model = parser.parse_model(loop("bool", gives, **made).replace("m = {3}", f"m = {{{runs}}}"))
    file = tmp_path / "m.onnx"
    onnx.save(model, file)
    assert recheck(seal(certificate(certify(file, witnesses=True))), file).outcome != "REFUTED"


# ---- Attributes for which an operator has no meaning --------------------------------------------

MEANINGLESS = {
    "an output label twice": ("float[3,3] y", 'y = Einsum<equation = "ij->ii">(x)', "Einsum-12/inputs"),
    "an output label that no operand has": ("float[3,3] y", 'y = Einsum<equation = "ij->ik">(x)', "Einsum-12/inputs"),
    "two arrows": ("float[3] y", 'y = Einsum<equation = "ij->ij->j">(x)', "Einsum-12/inputs"),
    "two terms for one operand": ("float[3] y", 'y = Einsum<equation = "ij,j->i">(x)', "Einsum-12/inputs"),
    "the type 0": ("float[3,3] y", "y = Cast<to = 0>(x)", "Cast-19/inputs"),
    "a type that there is not": ("float[3,3] y", "y = Cast<to = 99>(x)", "Cast-19/inputs"),
}


@pytest.mark.parametrize("name", sampled(MEANINGLESS, 2))
def test_attributes_without_a_meaning_are_violations(name: str, tmp_path: Path) -> None:
    """They were undecided: the text has no value for them, and the machine gets stuck."""
    declared, node, rule = MEANINGLESS[name]
    model = parser.parse_model(f"{HEADER} g (float[3,3] x) => ({declared}) {{ {node} }}")
    report = certify(model)
    assert report.verdict is Verdict.VIOLATES
    assert "has no value" in " ".join(violations(report)[rule])
    assert run(load_proto(model), {"x": np.ones((3, 3), np.float32)}).stuck is not None
    assert confirmed(model, tmp_path)


def test_a_type_without_a_meaning_is_a_violation_for_any_size(tmp_path: Path) -> None:
    model = parser.parse_model(f"{HEADER} g (float[N] x) => (float[N] y) {{ y = Cast<to = 0>(x) }}")
    assert "Cast-19/inputs" in violations(certify(model)) and confirmed(model, tmp_path)


def test_a_node_without_a_meaning_that_never_runs_violates_nothing() -> None:
    model = parser.parse_model(
        f"{HEADER} g (float[3,3] x) => (float[3,3] y) <bool no = {{0}}> {{ y = If(no)<then_branch = t () =>"
        ' (float[3,3] p) { p = Einsum<equation = "ij->ii">(x) }, else_branch = e () => (float[3,3] q) { q = Neg(x) }> }'
    )
    assert certify(model).verdict is Verdict.CONFORMS


# ---- Definitions of functions -------------------------------------------------------------------

UNSOUND = {
    "an operator that there is not, and no call": ("z = Neg(x) y = Abs(z)", "f (x) => (y) { y = Nog(x) }", "operators"),
    "an output twice": ("a, y = local.f(x)", "f (x) => (y, y) { y = Neg(x) }", "formals"),
    "an output twice, and no call": ("y = Neg(x)", "f (x) => (y, y) { y = Neg(x) }", "formals"),
    "an input twice": ("y = local.f(x, x)", "f (x, x) => (y) { y = Neg(x) }", "formals"),
    "an attribute twice": ("y = local.f(x)", "f <a, a> (x) => (y) { y = Neg(x) }", "formals"),
}


@pytest.mark.parametrize("name", sampled(UNSOUND, 2))
def test_definitions_of_functions_are_judged_whether_they_are_called_or_not(name: str, tmp_path: Path) -> None:
    """onnx.checker refuses these; they were called CONFORMS."""
    nodes, function, rule = UNSOUND[name]
    model = parser.parse_model(
        f"{IMPORTING} g (float[2] x) => (float[2] y) {{ {nodes} }}"
        f' <domain: "local", opset_import: ["" : 21]> {function}'
    )
    assert not accepted(model)
    assert f"function/{rule}" in violations(certify(model))
    assert confirmed(model, tmp_path)


# ---- Positions, equations and attributes that decide --------------------------------------------

SINGLE = "i = ArgMax <axis = 0, keepdims = 0> (v)"
POSITIONS = {
    "behind the last element": ("float[4] x", "s = Shape(x) n = Squeeze(s) j = Add(i, n)", Verdict.VIOLATES, 0),
    "behind the last of any number": ("float[N] x", "s = Shape(x) n = Squeeze(s) j = Add(i, n)", Verdict.VIOLATES, 0),
    "in some runs": ("float[4] x", "j = Identity(i)", Verdict.CONFORMS, 1),
    "in all runs": ("float[5] x", "j = Identity(i)", Verdict.CONFORMS, 0),
    "from behind": ("float[5] x", "s = Shape(x) n = Squeeze(s) j = Sub(i, n)", Verdict.CONFORMS, 0),
}


@pytest.mark.parametrize("name", sampled(POSITIONS, 2))
def test_an_index_that_a_single_argmax_makes_is_within_its_bounds(name: str, tmp_path: Path) -> None:
    """It was listed as an obligation where every run fails, and the rechecker refuted the certificate."""
    x, made, verdict, obligations = POSITIONS[name]
    model = parser.parse_model(f"{HEADER} g (float[5] v, {x}) => (float y) {{ {SINGLE} {made} y = Gather(x, j) }}")
    report = certify(model)
    assert (report.verdict, report.obligations) == (verdict, obligations)
    assert confirmed(model, tmp_path)


def test_nothing_need_be_said_of_nodes_behind_one_that_fails_in_every_run(tmp_path: Path) -> None:
    """The certificate of a model whose ArgMax has no elements was refuted: it says nothing of the Gather behind."""
    model = parser.parse_model(f"{HEADER} g (float[0] v, float[4] x) => (float y) {{ {SINGLE} y = Gather(x, i) }}")
    assert "ArgMax-12/axis_not_empty" in violations(certify(model))
    assert confirmed(model, tmp_path)


@pytest.mark.parametrize("equation", ["ijk,jk->ik", "ij,jk->iq", "ij->i"])
def test_an_equation_that_no_sizes_fit_is_a_violation(equation: str, tmp_path: Path) -> None:
    """With free sizes the requirement was left open: the text has no value for such an equation."""
    shapes = "float[N, M] a, float[M, K] b"
    model = parser.parse_model(
        f'{HEADER} g ({shapes}) => (float[N, K] y) {{ y = Einsum <equation = "{equation}"> (a, b) }}'
    )
    (message,) = violations(certify(model))["Einsum-12/inputs"]
    assert "terms of Einsum-12 has no value" in message
    assert confirmed(model, tmp_path)


@pytest.mark.parametrize("direction, violated", [("UP", True), ("LEFT", False), ("RIGHT", False)])
def test_a_shift_in_no_direction_is_a_violation(direction: str, violated: bool, tmp_path: Path) -> None:
    """It was UNDECIDED: the operator has no text here."""
    model = parser.parse_model(
        f'{HEADER} g (uint8[3] x, uint8[3] z) => (uint8[3] y) {{ y = BitShift <direction = "{direction}"> (x, z) }}'
    )
    assert ("attribute/BitShift" in violations(certify(model))) == violated
    assert confirmed(model, tmp_path)


@pytest.mark.parametrize("box, violated", [(5, True), (-1, True), (0, False), (1, False)])
def test_boxes_in_no_format_are_a_violation(box: int, violated: bool, tmp_path: Path) -> None:
    model = parser.parse_model(
        f"{HEADER} g (float[1, N, 4] b, float[1, 1, N] s) => (int64[K, 3] y) "
        f"{{ y = NonMaxSuppression <center_point_box = {box}> (b, s) }}"
    )
    assert ("attribute/NonMaxSuppression" in violations(certify(model))) == violated
    assert confirmed(model, tmp_path)


def test_an_obligation_on_elements_that_cannot_be_followed_is_told_in_words() -> None:
    """The ratio of a Dropout: "compared" was all that was said."""
    report = judged(f"{HEADER} g (float[N] a, float r, bool t) => (float[N] y) {{ y = Dropout(a, r, t) }}")
    (finding,) = next(rule for rule in report.rules if rule.id == "Dropout-12/ratio_in_range").findings
    assert "needed: In training mode ratio is at least 0 and less than 1." in finding.message


def test_a_tensor_without_elements_whose_sizes_numpy_does_not_take_is_judged() -> None:
    """The constants were computed, and certify ended in a traceback of numpy."""
    sizes = f"z = Constant<value = int64[3] {{0, {2**63 - 1}, 2}}>() e = Constant<value = float[0, 3] {{}}>()"
    report = judged(
        f"{HEADER} g (float[0] x) => (float[A] y) {{ {sizes} r = Reshape<allowzero = 1>(e, z)"
        " f = Flatten<axis = 1>(r) q = Squeeze(f) y = Concat<axis = 0>(x, q) }"
    )
    assert not any(rule.id.startswith("Reshape") and rule.verdict is not RuleVerdict.HOLDS for rule in report.rules)


@pytest.mark.parametrize(("size", "verdict"), [(5000, Verdict.CONFORMS), (2**50, Verdict.UNDECIDED)])
def test_a_model_does_not_conform_for_sizes_alone_that_are_not_examined(size: int, verdict: Verdict) -> None:
    """It was CONFORMS for N >= 2^50, and sizes are taken to be below 2^48."""
    text = (
        f"{HEADER} g (float[N] x) => (float[A] y) <int64[1] b = {{{size}}}, int64[1] e = {{{size + 2}}},"
        " float[2] w = {1, 2}> { s = Slice(x, b, e) y = Add(s, w) }"
    )
    assert judged(text).verdict is verdict


@pytest.mark.parametrize(("declared", "obligation"), [("", True), ("float[2, 3] ", False)])
def test_a_sequence_map_that_may_not_run_needs_the_type_of_what_its_body_gives(
    declared: str, obligation: bool, tmp_path: Path
) -> None:
    """A body without the declared type gives nothing for an empty sequence, and CONFORMS listed no obligation."""
    model = parser.parse_model(
        f"{HEADER} g (seq(float[2, 3]) s) => (seq(float[2, 3]) y)"
        f" {{ y = SequenceMap(s) <body = b (float[2, 3] e) => ({declared}r) {{ r = Neg(e) }}> }}"
    )
    report = certify(model)
    assert report.verdict is Verdict.CONFORMS
    rule = next(rule for rule in report.rules if rule.id == "SequenceMap-17/step")
    assert (rule.verdict is RuleVerdict.OBLIGATION) == obligation
    assert confirmed(model, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "g (float[2, 3] x) => (float[A] y) { v = Constant<value = float[3] {1, 1, 1}>()"
        " y = Scan<num_scan_inputs = 1, body = b () => (float[3] r) { r = Identity(q) }>(v, x) }",
        "g (int64 m, bool c, float[2] x) => (float[2] y) { y = Loop(m, c, x)"
        " <body = b (bool i, bool d, float[2] z) => (bool e, float[2] r) { e = Identity(d)"
        " r = If(i) <then_branch = t () => (float[2] p) { p = Identity(z) },"
        " else_branch = f () => (float[2] q) { q = Neg(z) }> }> }",
    ],
    ids=["a Scan whose body has no inputs", "an If on the number of a run"],
)
def test_bodies_that_read_what_they_are_not_given_are_violations(text: str) -> None:
    """Both ended in an internal error."""
    assert judged(f"{HEADER} {text}").verdict is Verdict.VIOLATES
