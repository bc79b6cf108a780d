"""What data and free sizes decide: who has to see to it, bodies run by run, declared shapes, conditions together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import parser, save
from sonnx.checker import recheck
from sonnx.checker.certification import certificate as form
from sonnx.checker.certification.certifier import certify
from sonnx.checker.certification.report import Finding, Report, RuleResult
from sonnx.checker.rechecker import Outcome
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto
from tables import table

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
SHARED = Path(__file__).parents[3] / ".." / "shared"
MISJUDGED = SHARED / "misjudged"
shared = pytest.mark.skipif(not MISJUDGED.is_dir(), reason="the misjudged models are not at ../shared/misjudged")


def judged(text: str, **options: Any) -> Report:
    return certify(parser.parse_model(f"{HEADER}g {text}"), ["domain"], others=False, **options)


def rules(report: Report, verdict: str) -> dict[str, RuleResult]:
    return {rule.id: rule for rule in report.rules if rule.verdict == verdict and rule.counted}


def only(report: Report, rule: str) -> Finding:
    (finding,) = next(it for it in report.rules if it.id == rule).findings
    return finding


# ---- Sizes that data decide -------------------------------------------------------------------

MAKERS = {
    "NonZero": "(float[5] x, float[4,2] w) => (float[a,b] y) { p = NonZero(x) u = Cast<to=1>(p) y = MatMul(u, w) }",
    "Reshape": "(float[8] x, int64[2] s, float[4,2] w) => (float[a,b] y) { u = Reshape(x, s) y = MatMul(u, w) }",
    "Range": (
        "(int64 e, int64[5] w) => (int64[a] y) <int64 o = {0}, int64 t = {1}> { r = Range(o, e, t) y = Add(r, w) }"
    ),
    "Expand": "(float[1] x, int64[2] s, float[4,2] w) => (float[a,b] y) { u = Expand(x, s) y = MatMul(u, w) }",
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_size_that_data_decide_is_an_obligation_on_the_node_that_makes_it(name: str) -> None:
    report = judged(MAKERS[name])
    found = next(rule for rule in report.rules if rule.id == "data-shapes")
    assert found.verdict == "obligation"
    assert [it.where.partition(":")[2] for it in found.findings] == [name]
    assert report.verdict == "CONFORMS"
    assert report.domain is not None
    assert report.domain.conditions == ()


def test_one_size_is_one_obligation_for_all_nodes_behind() -> None:
    report = judged(
        """(float[5] x, float[4,2] w) => (float[a,b] y, float[c,d] z) {
        p = NonZero(x) u = Cast<to=1>(p) y = MatMul(u, w) v = Relu(u) z = MatMul(v, w) }"""
    )
    finding = only(report, "data-shapes")
    assert "shape(p)[1] = 4" in finding.message
    assert finding.witness["needed_by"] == ["/2:MatMul"]
    assert report.obligations == 1


def test_a_number_of_axes_that_data_decide_is_one_obligation_that_names_the_nodes_behind() -> None:
    report = judged("(float[6] x, int64[K] s, float[4,2] w) => (float[a,b] y) { u = Reshape(x, s) y = MatMul(u, w) }")
    finding = only(report, "data-shapes")
    assert (finding.where, finding.witness["needed_by"]) == ("/0:Reshape", ["/1:MatMul"])
    assert not rules(report, "unknown")


def test_what_holds_for_all_values_of_a_size_is_no_obligation() -> None:
    report = judged("(float[5] x) => (float[a,b] y) { p = NonZero(x) u = Cast<to=1>(p) v = Relu(u) y = Add(u, v) }")
    assert not rules(report, "obligation")


def test_data_that_cannot_satisfy_is_a_violation() -> None:
    text = "(float[5] x, float[4,2] v, float[3,2] w) => (float[a,b] y) { u = NonZero(x) c = Cast<to=1>(u)"
    assert judged(text + " y = MatMul(c, c) }").verdict == "CONFORMS"  # with one element that is not zero
    report = judged(text + " o = MatMul(c, v) y = MatMul(c, w) }")  # 4 columns and 3
    assert [(rule.id, rule.findings[0].where) for rule in rules(report, "violated").values()] == [
        ("MatMul-1/inner_dimensions", "/3:MatMul")
    ]


def test_what_no_shape_that_a_node_can_give_satisfies_is_a_violation() -> None:
    """5 elements have no shape with 4 columns."""
    report = judged("(float[5] x, int64[2] s, float[4,2] w) => (float[a,b] y) { u = Reshape(x, s) y = MatMul(u, w) }")
    assert list(rules(report, "violated")) == ["MatMul-1/inner_dimensions"]


@pytest.mark.parametrize(("first", "second", "places"), [(5, 5, [0]), (5, 7, [0]), (7, 5, [0, 1])])
def test_what_a_node_requires_of_data_is_known_behind_it(first: int, second: int, places: list[int]) -> None:
    report = judged(f"""(float[{first}] x, float[{second}] z, int64[2] i) => (float[a] y)
        {{ a = Gather(x, i) b = Gather(z, i) y = Add(a, b) }}""")
    found = rules(report, "obligation")["Gather-1/indices_in_range"].findings
    assert [it.where for it in found] == [f"/{place}:Gather" for place in places]


def test_which_elements_a_small_tensor_holds_is_known() -> None:
    """Parts of one input, joined again: both nodes make the same sizes of it."""
    report = judged(
        """(int64[3] s) => (float[a,b] y) <int64 o = {0}, int64 t = {1}, int64[1] one = {1}> {
        p, q, r = Split<axis=0, num_outputs=3>(s) u = Concat<axis=0>(r, q) v = ConstantOfShape(u)
        e = Squeeze(q) w = Range(o, e, t) z = Cast<to=1>(w) y = Add(v, z) }"""
    )
    assert [(rule, it.findings[0].where) for rule, it in rules(report, "obligation").items()] == [
        ("ConstantOfShape-9/sizes_not_negative", "/2:ConstantOfShape")
    ]


def test_arithmetic_on_elements_may_wrap_around() -> None:
    report = judged("""(float[5] x, int64[1] i) => (float[a] y) <int64[1] one = {1}, int64[1] two = {2}> {
        j = Identity(i) a = Gather(x, i) k = Add(j, one) y = Gather(x, k) }""")
    owed = rules(report, "obligation")["Gather-1/indices_in_range"].findings
    assert [it.where for it in owed] == ["/1:Gather", "/3:Gather"]


def test_an_index_out_of_range_for_all_sizes_and_data_is_a_violation() -> None:
    for inner in (
        "s = Shape(x) i = Gather(s, o)",
        "i = Size(x)",
        "n = Size(x) m = Sub(n, t) i = Add(m, t)",
        "n = Size(x) m = Neg(n) i = Sub(m, t)",
        "n = Size(x) m = Add(n, t) i = Range(n, m, t)",
    ):
        report = judged(
            f"(float[N] x, int64 k) => (float y) <int64 o = {{0}}, int64 t = {{1}}> {{ {inner} y = Gather(x, i) }}"
        )
        assert "Gather-1/indices_in_range" in rules(report, "violated"), inner
    squared = """(float[N] x) => (float y) { n = Size(x) i = Mul(n, n) y = Gather(x, i) }"""  # 0 where N is 2^32
    assert "Gather-1/indices_in_range" in rules(judged(squared), "obligation")
    clipped = """(float[5] x, int64 k) => (float y) <int64 f = {{ {} }}, int64 g = {{ 9 }}>
        {{ i = Clip(k, f, g) y = Gather(x, i) }}"""
    assert "Gather-1/indices_in_range" in rules(judged(clipped.format(5)), "violated")
    assert "Gather-1/indices_in_range" in rules(judged(clipped.format(4)), "obligation")


def test_indices_that_are_stored_are_known_where_they_are_repeated() -> None:
    text = """(float[2,2,3] x, int64[1] n) => (float[a,b,c] y)
        <int64[2,3] at = {{0, 1, 2, 0, 1, {}}}, int64[2] rest = {{2, 3}}> {{
        s = Concat<axis=0>(n, rest) i = Expand(at, s) y = GatherElements<axis=2>(x, i) }}"""
    assert "GatherElements-11/indices_in_range" not in rules(judged(text.format(2)), "obligation")
    assert "GatherElements-11/indices_in_range" not in rules(judged(text.format(3)), "holds")


# ---- Conditions on free sizes -----------------------------------------------------------------


def test_conditions_come_with_sizes_that_satisfy_them() -> None:
    report = judged("(float[N,1,H,W] x, float[4,1,3,3] w) => (float[a,b,c,d] y) { y = Conv(x, w) }")
    domain = report.domain
    assert domain is not None
    assert domain.terms == (["<=", 3, "H"], ["<=", 3, "W"])
    sizes = dict(domain.example)
    assert sizes["H"] >= 3
    assert sizes["W"] >= 3


def test_conditions_that_exclude_each_other_are_a_violation_at_the_node_that_closes_them() -> None:
    text = """(float[N] x, float[5] z, float[4] w) => (float[a] y, float[b] v) {{
        u = Relu(x) y = Add(u, z) v = Concat<axis=0>(x, x) {} }}"""
    first = judged(text.format("")).domain
    assert first is not None
    assert first.conditions == ("N = 5 or N = 1",)
    report = judged(text.format("k = Add(v, w)"))  # N = 2
    assert report.verdict == "VIOLATES"
    assert [it.where for it in rules(report, "violated")["Add-7/shapes_broadcast"].findings] == ["/3:Add"]
    assert report.domain is not None
    assert report.domain.conditions == ("false",)


def test_declared_shapes_and_requirements_that_exclude_each_other_leave_no_size() -> None:
    text = "(float[N,2] x) => (float[4,2] y) <int64[2] s = {{{},2}}> {{ y = Reshape(x, s) }}"
    assert judged(text.format("-1")).domain.conditions == ("N = 4",)  # type: ignore[union-attr]
    report = judged(text.format(3))
    assert report.verdict == "VIOLATES"
    assert report.domain is not None
    assert report.domain.conditions == ("false",)


def test_two_declarations_that_no_size_satisfies_are_a_violation() -> None:
    report = judged("(float[N] x) => (float[3] y, float[4] z) { y = Relu(x) z = Relu(x) }")
    assert report.verdict == "VIOLATES"
    (found,) = rules(report, "violated").values()
    assert (found.id, [it.where for it in found.findings]) == ("shapes", ["/1:Relu"])


# ---- Bodies -----------------------------------------------------------------------------------

LOOP = """(float[2,N] x, int64 t, bool c) => (float[a,b] y) <int64 k = {{ {trips} }}, bool go = {{1}}> {{
    y = Loop ({limit}, {begins}, x) <body = b (int64 i, bool o, float[p,q] h) => (bool d, float[r,s] n) {{
        d = Identity(o) n = {step} }}> }}"""


def unnamed(text: str) -> Report:
    """The model, with no shapes declared in bodies."""
    model = parser.parse_model(f"{HEADER}g {text}")
    for node in model.graph.node:
        for attribute in node.attribute:
            for it in (*attribute.g.input, *attribute.g.output):
                it.type.tensor_type.ClearField("shape")
    return certify(model, ["domain"], others=False)


@pytest.mark.parametrize(("limit", "begins"), [("t", "c"), ("k", "go"), ("t", ""), ("", "c")])
def test_what_stays_the_same_over_all_runs_is_known_in_all_runs(limit: str, begins: str) -> None:
    report = judged(LOOP.format(step="Add(h, x)", limit=limit, begins=begins, trips=3))
    assert not rules(report, "unknown")
    assert not rules(report, "obligation")
    assert report.domain is not None
    assert report.domain.conditions == ()


def test_a_size_that_changes_is_open_in_each_run() -> None:
    text = LOOP.format(step="Concat<axis=1>(h, x) z = Add(h, x)", limit="t", begins="c", trips=3)
    report = unnamed(text)
    assert report.domain is not None
    assert report.domain.obligations >= 1
    assert not rules(report, "violated")


def test_of_a_loop_whose_runs_are_known_each_is_judged() -> None:
    text = LOOP.format(step="Concat<axis=1>(h, x) z = Add(h, x)", limit="k", begins="go", trips=3)
    report = unnamed(text)
    assert report.domain is not None
    assert report.domain.obligations == 0
    assert report.domain.conditions == ("N = 1",)
    assert unnamed(text.replace("float[2,N] x", "float[2,2] x")).verdict == "VIOLATES"


def test_a_body_that_gets_stuck_in_the_fifth_of_many_runs_is_violated() -> None:
    text = """(float[4] x) => (float[a] y) <int64 k = {300}, bool go = {1}> {
        y = Loop (k, go, x) <body = b (int64 i, bool o, float[4] h) => (bool d, float[4] n) {
            d = Identity(o) g = Gather(x, i) n = Add(h, g) }> }"""
    report = judged(text)
    assert "Gather-1/indices_in_range" in rules(report, "violated")
    assert "Gather-1/indices_in_range" not in rules(judged(text.replace("{300}", "{4}")), "violated")


def test_nothing_that_a_body_needs_is_known_outside_of_a_body_that_may_not_run() -> None:
    text = """(float[2,N] x, bool c, float[2,3] z) => (float[a,b] y, float[d,e] v) {
        y = Loop (, c, x) <body = b (int64 i, bool o, float[2,N] h) => (bool d, float[2,N] n) {
            d = Identity(o) n = MatMul(h, h) }> v = MatMul(x, x) }"""
    report = judged(text)
    assert report.domain is not None
    assert report.domain.conditions == ("N = 2",)  # from the MatMul outside
    inner = next(rule for rule in report.rules if rule.id == "MatMul-1/inner_dimensions")
    assert [it.where for it in inner.findings] == ["/1:MatMul"]


@pytest.mark.parametrize(("size", "given"), [("3", 3), ("N", 0), ("K", 0)])
@pytest.mark.parametrize(("trips", "begins"), [(0, 1), (-1, 1), (3, 0)])
def test_without_a_run_a_scan_output_has_the_sizes_that_the_body_declares(
    size: str, given: int, trips: int, begins: int
) -> None:
    """In the shapes, the machine and onnxruntime (its pull request 1233) alike: 0 for a size that is no number."""
    text = f"""(float[N] x) => (float[a,b] y)
        <int64 t = {{{trips}}}, bool c = {{{begins}}}, float[3] w = {{1, 2, 3}}> {{
        y = Loop (t, c) <body = b (int64 i, bool o) => (bool d, float[{size}] z) {{ d = Identity(o)
        z = Add({"w" if size == "3" else "x"}, x) }}> }}"""
    declared = [text.replace("float[a,b]", f"float[0,{number}]") for number in (given, 7)]
    assert [judged(it).verdict for it in declared] == ["CONFORMS", "VIOLATES"]
    model = parser.parse_model(f"{HEADER}g {text}")
    inputs = {"x": np.ones(3, np.float32)}
    ended = run(load_proto(model), inputs)
    assert ended.stuck is None
    assert ended.outputs["y"].shape == (0, given)  # type: ignore[union-attr]
    runtime = pytest.importorskip("onnxruntime")
    runtime.set_default_logger_severity(4)
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    assert session.run(None, inputs)[0].shape == (0, given)


def test_a_loop_gives_no_runs_or_some() -> None:
    text = """(float[2] x, int64 t) => (float[a] y, float[b,c] v, float[d,e] z) {
        y, v = Loop (t, , x) <body = b (int64 i, bool o, float[2] h) => (bool d, float[2] n, float[SIZE] m) {
            d = Identity(o) n = Add(h, x) m = Identity(h) }> z = Add(v, x) }"""
    assert not rules(judged(text.replace("SIZE", "2")), "obligation")
    finding = only(judged(text.replace("SIZE", "?")), "data-shapes")  # 0 where it has no run
    assert finding.witness["needed_by"] == ["/1:Add"]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("(bool[2] c, float[2] x) => (float[a] y) { y = If (c) <then_branch = t () => (float[2] u) { u = Relu(x) },"
         " else_branch = e () => (float[2] v) { v = Neg(x) }> }", "If-1/step"),
        ("(int64[2] t, bool c, float[2] x) => (float[a] y) { y = Loop (t, c, x) <body = b (int64 i, bool o, float[2] h)"
         " => (bool d, float[2] n) { d = Identity(o) n = Relu(h) }> }", "Loop-1/step"),
        ("(float[2] s, float[3,2] x, float[4,2] z) => (float[2] y) { y = Scan<num_scan_inputs=2, body = b"
         " (float[2] h, float[2] e, float[2] f) => (float[2] n) { n = Sum(h, e, f) }>(s, x, z) }", "Scan-9/step"),
    ],
)  # fmt: skip
def test_what_part_3_asks_of_the_inputs_of_control_flow_is_required(text: str, where: str) -> None:
    assert where in rules(judged(text), "violated")


def test_a_scan_over_a_free_length_asks_for_equal_lengths() -> None:
    report = judged(
        "(float[2] s, float[N,2] x, float[M,2] z) => (float[2] y) { y = Scan<num_scan_inputs=2,"
        " body = b (float[2] h, float[2] e, float[2] f) => (float[2] n) { n = Sum(h, e, f) }>(s, x, z) }"
    )
    assert report.domain is not None
    assert report.domain.conditions == ("N = M",)


# ---- Sequences and optionals ------------------------------------------------------------------


def test_the_entries_of_a_sequence_have_the_declared_shape() -> None:
    text = "(seq(float[N,3]) s, int64 k, float[3,2] w) => (float[a,b] y) { x = SequenceAt(s, k) y = MatMul(x, w) }"
    report = judged(text)
    assert list(rules(report, "obligation")) == ["SequenceAt-11/position_in_range"]
    report = judged(text.replace("float[3,2]", "float[4,2]"))
    assert list(rules(report, "violated")) == ["MatMul-1/inner_dimensions"]


def test_the_length_of_a_sequence_that_is_built_is_known() -> None:
    text = """(float[2] x, float[3] z) => (float[a] y) <int64 k = {{ {} }}> {{
        e = SequenceEmpty() f = SequenceInsert(e, x) s = SequenceInsert(f, z) y = SequenceAt(s, k) v = Add(y, z) }}"""
    assert not judged(text.format(1)).domain.violated  # type: ignore[union-attr]
    assert list(rules(judged(text.format(0)), "violated")) == ["Add-7/shapes_broadcast"]
    assert list(rules(judged(text.format(2)), "violated")) == ["SequenceAt-11/position_in_range"]


def test_an_optional_that_is_asked_whether_it_holds_a_value_gives_it() -> None:
    text = """(optional(float[2]) o, float[2] x) => (float[a] y) {{ h = OptionalHasElement(o) {} }}"""
    safe = """y = If (h) <then_branch = t () => (float[2] u) { u = OptionalGetElement(o) },
        else_branch = e () => (float[2] v) { v = Identity(x) }>"""
    assert not rules(judged(text.format(safe)), "obligation")
    assert rules(judged(text.format("y = OptionalGetElement(o)")), "obligation")


# ---- Declared shapes and types ----------------------------------------------------------------


@shared
@pytest.mark.parametrize(
    ("name", "verdict", "rule", "conditions"),
    [
        ("concat_sym", "VIOLATES", "shapes", ("false",)),
        ("transpose_sym", "CONFORMS", "shapes", ("N = M",)),
        ("wrong_decl", "VIOLATES", "shapes", ("false",)),
        ("if_declared_same_really_differ", "VIOLATES", "types", ("false",)),
        ("wrong_shape", "VIOLATES", "MatMul-1/inner_dimensions", ("false",)),
        ("softmax_axis", "VIOLATES", "Softmax-13/axis_in_range", ("false",)),
    ],
)
def test_misjudged_models(name: str, verdict: str, rule: str, conditions: tuple[str, ...]) -> None:
    report = certify(MISJUDGED / f"{name}.onnx", ["domain"], others=False)
    found = {it.id for it in report.rules if it.verdict in ("violated", "conditional") and it.counted}
    assert (report.verdict, found) == (verdict, {rule})
    assert report.domain is not None
    assert report.domain.conditions == conditions


@table(
    ("text", "conditions"),
    [
        ("(float[N] x) => (float[N] y) { y = Concat<axis=0>(x, x) }", ("false",)),
        ("(float[N] x) => (float[K] y) { y = Concat<axis=0>(x, x) }", ()),
        ("(float[N] x) => (float[K] y, float[K] z) { y = Concat<axis=0>(x, x) z = Relu(x) }", ("false",)),
        ("(float[N] x) => (float[K] y, float[K] z) { y = Relu(x) z = Neg(x) }", ()),
        ("(float[N,M] x) => (float[N,M] y) { t = Transpose(x) y = Relu(t) }", ("N = M",)),
        ("(float[N,3] x) => (float[M,N] y) { y = Transpose(x) }", ()),
        ("(float[N,4] x) => (float[N,N] y) { y = Relu(x) }", ("N = 4",)),
        ("(float[N,M] x) => (float[a] y) { y = Relu(x) }", ("false",)),
    ],
)
def test_a_dimension_variable_is_one_size(text: str, conditions: tuple[str, ...]) -> None:
    domain = judged(text).domain
    assert domain is not None
    assert domain.conditions == conditions


def test_dimension_variables_are_shared_with_bodies_and_intermediate_values() -> None:
    text = """(float[N,M] x, bool c) => (float[a,b] y) { y = If (c) <
        then_branch = t () => (float[N,M] u) { u = Transpose(x) },
        else_branch = e () => (float[M,N] v) { v = Transpose(x) }> }"""
    report = judged(text)
    finding = only(report, "shapes")
    assert "not c or N = M" in finding.message
    text = "(float[N] x) => (float[a] y) <float[N] u> { u = Concat<axis=0>(x, x) y = Relu(u) }"
    assert judged(text).verdict == "VIOLATES"


def test_a_size_that_a_body_names_is_to_be_the_same_in_all_runs() -> None:
    text = LOOP.format(step="Concat<axis=1>(h, x)", limit="t", begins="c", trips=3)
    assert "shapes" in rules(judged(text), "obligation")
    assert "shapes" not in rules(unnamed(text), "obligation")


def test_a_declared_element_type_that_is_not_computed_is_a_violation() -> None:
    report = judged("(float[2] x) => (int64[2] y) { y = Relu(x) }")
    assert "types" in rules(report, "violated")


# ---- Strings that spell numbers -----------------------------------------------------------------

SPELLED = "Cast-19/strings_spell_numbers"


@table(
    ("stored", "code", "verdict"),
    [
        ("1.5 -INF 2e3", 1, "holds"),
        ("1.5 abc 2e3", 1, "violated"),
        ("1 -22 +3", 7, "holds"),
        ("1 2.5 3", 7, "violated"),
        (" ".join(["1", "x"] * 60), 7, "violated"),
        ("1.5 abc", 8, "holds"),
    ],
)
def test_stored_strings_decide_what_is_converted(stored: str, code: int, verdict: str, tmp_path: Path) -> None:
    words = stored.split(" ")
    texts = ", ".join(f'"{word}"' for word in words)
    kind, size = {1: "float", 7: "int64", 8: "string"}[code], len(words)
    text = f"() => ({kind}[{size}] Y) <string[{size}] X = {{{texts}}}> {{ Y = Cast <to = {code}> (X) }}"
    model = parser.parse_model(f"{HEADER}g {text}")
    path = tmp_path / "model.onnx"
    save(model, path)
    report = certify(path, ["domain"], witnesses=True)
    assert [it.verdict for it in report.rules if it.id == SPELLED] == [verdict]
    assert recheck(form.seal(form.certificate(report)), path).outcome is Outcome.CONFIRMED
    assert (run(load_proto(model), {}).stuck is None) is (verdict == "holds")


def test_strings_of_an_input_are_an_obligation() -> None:
    report = judged("(string[n] X) => (float[n] Y) { Y = Cast <to = 1> (X) }")
    assert report.verdict == "CONFORMS"
    assert list(rules(report, "obligation")) == [SPELLED]


def test_entries_of_a_sequence_may_differ_in_a_size_that_has_a_name() -> None:
    stored = "<int64 i = {0}, int64 k = {1}>"
    report = judged(
        f"(seq(float[N]) s) => (float[M] y) {stored} {{ a = SequenceAt (s, i) b = SequenceAt (s, k) y = Add (a, b) }}"
    )
    assert report.verdict == "CONFORMS"
    assert "data-shapes" in rules(report, "obligation")


# ---- Sizes beyond what is examined --------------------------------------------------------------

LARGE = {
    "ConstantOfShape": ("() => (float[n] Y) <int64[1] S = {%d}> { Y = ConstantOfShape (S) }", 2**48),
    "of two sizes": ("() => (float[a,b] Y) <int64[2] S = {16777216, %d}> { Y = ConstantOfShape (S) }", 2**24),
    "Expand": ("(float[N,1] X) => (float[N,b] Y) <int64[2] S = {1, %d}> { Y = Expand (X, S) }", 2**48),
    "Tile": ("(float[2] X) => (float[a] Y) <int64[1] R = {%d}> { Y = Tile (X, R) }", 2**47),
    "Range": ("() => (int64[a] Y) <int64 A = {0}, int64 B = {%d}, int64 C = {1}> { Y = Range (A, B, C) }", 2**48),
    "an input": ("(float[%d] X) => (float[a] Y) { Y = Relu (X) }", 2**48),
    "an input alone": ("(float[%d] X) => (float Y) { Y = ReduceSum <keepdims = 0> (X) }", 2**48),
    "an input of two sizes": ("(float[16777216,%d] X) => (float Y) { Y = ReduceSum <keepdims = 0> (X) }", 2**24),
    "a body": (
        "(bool c) => (float[a] Y) { Y = If (c) <then_branch = t () => (float[a] Z) <int64[1] S = {%d}>"
        " { Z = ConstantOfShape (S) }, else_branch = e () => (float[a] W) <int64[1] O = {1}>"
        " { W = ConstantOfShape (O) }> }",
        2**48,
    ),
}


@table("name", LARGE)
def test_a_fixed_size_from_2_to_the_48_on_violates(name: str, tmp_path: Path) -> None:
    text, least = LARGE[name]
    path = tmp_path / "model.onnx"
    for size, holds in ((least - 1, True), (least, False), (2**62, False)):
        save(parser.parse_model(f"{HEADER}g {text % size}"), path)
        report = certify(path, ["domain"], witnesses=True)
        assert [it.verdict for it in report.rules if it.id == "sizes"] == ([] if holds else ["violated"]), size
        certificate = form.certificate(report)
        assert recheck(form.seal(certificate), path).outcome is Outcome.CONFIRMED, size
        if not holds:
            predicate = certificate["predicate"]
            assert isinstance(predicate, dict)
            predicate["rules"] = [rule for rule in predicate["rules"] if rule["id"] != "sizes"]
            assert recheck(form.seal(certificate), path).outcome is Outcome.REFUTED
