"""Every rule of the rule set onnx: a model that breaks it, and the place where; the sound model breaks none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from onnx import AttributeProto, ModelProto, TensorProto, helper, parser
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.facts.inference.model import Claims, infer
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.loader import load, load_proto
from sonnx.spec.language.syntax import clause
from sonnx.spec.library import specification
from tables import table

PROFILE = specification().profiles["onnx"]
STATUS = {rule.id: clause(rule.clauses, "status") or "current" for rule in PROFILE.rules}
SOUND = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
sound (float[2,3] X, bool C) => (float[2,3] Y) <float[1] W = {1.0}, int64[2] S = {3, 2}> {
  A = Add(X, W)
  R = Reshape(A, S)
  T = Transpose <perm = [1, 0]> (R)
  B = If (C) <then_branch = t () => (float[2,3] P) { P = Relu(T) },
              else_branch = e () => (float[2,3] Q) { Q = Neg(T) }>
  Y = local.f (B)
}
<domain: "local", opset_import: ["" : 18]> f (x) => (y) { y = Abs(x) }"""
"""A model that keeps to every rule: constants, a body of each kind, a function."""
ADD, RESHAPE, TRANSPOSE, IF = range(4)

Change = Callable[[ModelProto], object]


def sound() -> ModelProto:
    model = parser.parse_model(SOUND)
    for position, node in enumerate(model.graph.node):
        node.name = f"n{position}"
    return model


def judged(facts: Structure, rule: str) -> direct.Judgement:
    constraint = next(it.constraint for it in PROFILE.rules if it.id == rule)
    return direct.judge(specification().constraints[constraint], specification().functions, facts)


def places(facts: Structure, found: direct.Judgement) -> set[str]:
    """The place of each finding: of its node, else its tensor, else its graph, else the whole model."""
    out = set()
    for instance in found.failures or found.unknowns:
        bound = {sort.name: (sort, element) for _, sort, element in reversed(instance.bindings)}
        sort_element = bound.get("Node") or bound.get("Tensor") or bound.get("Graph")
        out.add(facts.place(*sort_element) if sort_element else "/")
    return out


def verdict(facts: Structure) -> str:
    """The verdict over the counted rules."""
    verdicts = {judged(facts, rule).verdict for rule, status in STATUS.items() if status != "advisory"}
    return "VIOLATES" if "violated" in verdicts else "UNDECIDED" if "unknown" in verdicts else "CONFORMS"


# ---- One defect for each rule -----------------------------------------------------------------


def node(model: ModelProto, op: str, inputs: list[str], outputs: list[str], **attributes: object) -> None:
    model.graph.node.append(helper.make_node(op, inputs, outputs, **attributes))


def sparse(indices: list[int], dims: list[int], name: str = "V") -> object:
    values = helper.make_tensor(name, TensorProto.FLOAT, [2], [1.0, 2.0])
    return helper.make_sparse_tensor(values, helper.make_tensor("I", TensorProto.INT64, [len(indices)], indices), dims)


def again(model: ModelProto, attribute: str) -> None:
    target = model.graph.node[TRANSPOSE].attribute
    target.append(next(it for it in target if it.name == attribute))


def second_function(model: ModelProto) -> None:
    model.functions.append(model.functions[0])


def in_function(
    op: str, inputs: list[str], outputs: list[str], *, twice: bool = False, valueless: str = "", **written: Any
) -> Change:
    """Another node in the first function, its first attribute twice, or an attribute of tensor kind without a value."""

    def change(model: ModelProto) -> None:
        made = helper.make_node(op, inputs, outputs, **written)
        if twice:
            made.attribute.append(made.attribute[0])
        if valueless:
            made.attribute.append(AttributeProto(name=valueless, type=AttributeProto.TENSOR))
        model.functions[0].node.append(made)

    return change


def second_function_calling(model: ModelProto) -> None:
    """A function that calls the first one with more inputs than it has."""
    first = model.functions[0]
    call = helper.make_node(first.name, [*first.input, "x"], ["q"], domain=first.domain)
    opsets = [*first.opset_import, helper.make_opsetid(first.domain, 1)]
    model.functions.append(helper.make_function(first.domain, "calling", [*first.input], ["q"], [call], opsets))


def held(**fields: object) -> Change:
    def change(model: ModelProto) -> None:
        tensor = TensorProto(**fields)  # type: ignore[arg-type]
        node(model, "Constant", [], ["K"], name="k", value=tensor)

    return change


def branch(model: ModelProto) -> ModelProto:
    """A model whose graph is the then branch: to edit it as graphs are edited."""
    return ModelProto(graph=next(it.g for it in model.graph.node[IF].attribute if it.name == "then_branch"))


def replace_branch(edit: Change) -> Change:
    def change(model: ModelProto) -> None:
        copy = branch(model)
        edit(copy)
        next(it.g for it in model.graph.node[IF].attribute if it.name == "then_branch").CopyFrom(copy.graph)

    return change


def output(name: str, element: int = TensorProto.FLOAT, shape: list[int] | None = None) -> object:
    return helper.make_tensor_value_info(name, element, shape)


def scan(
    inputs: list[str],
    outputs: Sequence[str] = ("F", "G"),
    element: int = TensorProto.FLOAT,
    op: str = "Neg",
    **written: object,
) -> Change:
    """A Scan over X whose body has one state s, and gives op(s) and the element of X."""

    def change(model: ModelProto) -> None:
        nodes = [helper.make_node(op, ["s"], ["s2"]), helper.make_node("Abs", ["e"], ["e2"])]
        formal = [output("s", element), output("e")]
        body = helper.make_graph(nodes, "b", formal, [helper.make_empty_tensor_value_info(n) for n in ("s2", "e2")])
        node(model, "Scan", inputs, list(outputs), body=body, num_scan_inputs=1, **written)

    return change


CASES: list[tuple[str, Change, str]] = [
    ("ir-version", lambda m: setattr(m, "ir_version", 99), "/"),
    ("ir-version", lambda m: m.ClearField("ir_version"), "/"),
    ("opset-import", lambda m: m.ClearField("opset_import"), "/"),
    ("opset-import/unique", lambda m: m.opset_import.add(domain="ai.onnx", version=17), "/"),
    ("opset-import/known", lambda m: setattr(m.opset_import[0], "version", 999), "/"),
    ("metadata", lambda m: [m.metadata_props.add(key="k", value="v") for _ in "ab"], "/"),
    ("graph-name", lambda m: m.graph.ClearField("name"), "/"),
    ("graph-name", replace_branch(lambda m: m.graph.ClearField("name")), '/3:If("n3").then_branch'),
    ("value-name", lambda m: m.graph.initializer.add(data_type=1, float_data=[1.0]), "/"),
    ("unique-names", lambda m: m.graph.input.append(m.graph.input[0]), '/"X"'),
    ("unique-names", lambda m: m.graph.sparse_initializer.append(sparse([0, 1], [4], "W")), '/"W"'),
    (
        "unique-names/bodies",
        replace_branch(lambda m: m.graph.node.append(helper.make_node("Relu", ["T"], ["A"]))),
        '/3:If("n3").then_branch/"A"',
    ),
    ("value-info", lambda m: [m.graph.value_info.append(output("A", shape=[2, 3])) for _ in "ab"], '/"A"'),
    ("ssa", lambda m: node(m, "Relu", ["X"], ["A"]), '/"A"'),
    ("ssa/inputs", lambda m: node(m, "Relu", ["A"], ["X"]), '/"X"'),
    ("ssa/initializers", lambda m: node(m, "Relu", ["A"], ["W"]), '/"W"'),
    ("initializer-input", lambda m: setattr(m, "ir_version", 3), '/"W"'),
    (
        "initializer-input/bodies",
        replace_branch(
            lambda m: (
                m.graph.input.append(output("V", shape=[1])),
                m.graph.initializer.append(helper.make_tensor("V", TensorProto.FLOAT, [1], [0.0])),
            )
        ),
        '/3:If("n3").then_branch/"V"',
    ),
    ("sourced", lambda m: node(m, "Relu", ["nowhere"], ["Z"], name="z"), '/5:Relu("z")'),
    ("sorted", lambda m: m.graph.node.insert(0, helper.make_node("Relu", ["A"], ["Z"])), "/0:Relu"),
    ("sorted", lambda m: node(m, "Add", ["Z", "X"], ["Z"]), "/5:Add"),
    ("graph-output", lambda m: m.graph.output.append(output("nowhere", shape=[1])), '/"nowhere"'),
    (
        "graph-output",
        replace_branch(lambda m: setattr(m.graph.output[0], "name", "T")),
        '/"T"',
    ),
    ("node-name", lambda m: setattr(m.graph.node[1], "name", "n0"), '/1:Reshape("n0")'),
    ("identifier", lambda m: node(m, "Relu", ["A"], ["a/b"]), "/"),
    ("domain", lambda m: node(m, "Foo", ["A"], ["Z"], domain="elsewhere"), "/5:elsewhere::Foo"),
    ("operator", lambda m: node(m, "Foo", ["A"], ["Z"]), "/5:Foo"),
    ("deprecated", lambda m: node(m, "Upsample", ["A", "W"], ["Z"]), "/5:Upsample"),
    ("node/ports", lambda m: node(m, "Relu", [], []), "/5:Relu"),
    ("arity", lambda m: node(m, "Relu", ["A", "A"], ["Z"]), "/5:Relu"),
    ("arity", lambda m: node(m, "Relu", ["A"], ["Z", "ZZ"]), "/5:Relu"),
    ("arity", lambda m: node(m, "Add", ["A"], ["Z"]), "/5:Add"),
    ("required", lambda m: node(m, "Add", ["A", ""], ["Z"]), "/5:Add"),
    ("attribute/known", lambda m: node(m, "Relu", ["A"], ["Z"], alpha=1.0), "/5:Relu"),
    ("attribute/required", lambda m: node(m, "Cast", ["A"], ["Z"]), "/5:Cast"),
    ("attribute/kind", lambda m: node(m, "Softmax", ["A"], ["Z"], axis=1.0), "/5:Softmax"),
    ("attribute/unique", lambda m: again(m, "perm"), '/2:Transpose("n2")'),
    (
        "attribute/value",
        lambda m: (
            m.graph.node[TRANSPOSE]
            .attribute[0]
            .CopyFrom(AttributeProto(name="perm", type=AttributeProto.INTS, ref_attr_name="p"))
        ),
        '/2:Transpose("n2")',
    ),
    (
        "attribute/BitShift",
        lambda m: node(m, "BitShift", ["A", "A"], ["K"], name="k", direction="UP"),
        '/5:BitShift("k")',
    ),
    (
        "attribute/NonMaxSuppression",
        lambda m: node(m, "NonMaxSuppression", ["A", "A"], ["K"], name="k", center_point_box=5),
        '/5:NonMaxSuppression("k")',
    ),
    ("function/resolution", lambda m: node(m, "g", ["A"], ["Z"], domain="local"), "/5:local::g"),
    ("function/arity", lambda m: node(m, "f", ["A", "A"], ["Z"], domain="local"), "/5:local::f"),
    ("function/imports", lambda m: setattr(m.functions[0].opset_import[0], "version", 12), "/"),
    ("function/operators", lambda m: setattr(m.functions[0].node[0], "op_type", "Abz"), "/"),
    ("function/formals", lambda m: m.functions[0].output.append("y"), "/"),
    ("function/formals", lambda m: m.functions[0].input.append("x"), "/"),
    ("function/formals", lambda m: m.functions[0].attribute.extend(["a", "a"]), "/"),
    ("function/spelling", lambda m: setattr(m.functions[0].node[0], "domain", "ai.onnx"), "/"),
    ("function/ports", in_function("Relu", [], []), "/"),
    ("function/domain", in_function("Relu", ["x"], ["q"], domain="elsewhere"), "/"),
    ("function/deprecated", in_function("Upsample", ["x", "x"], ["q"]), "/"),
    ("function/counts", in_function("Relu", ["x", "x"], ["q"]), "/"),
    ("function/calls", second_function_calling, "/"),
    ("function/required", in_function("Relu", [""], ["q"]), "/"),
    ("function/attribute/known", in_function("Relu", ["x"], ["q"], foo=1), "/"),
    ("function/attribute/kind", in_function("LeakyRelu", ["x"], ["q"], alpha=1), "/"),
    ("function/attribute/required", in_function("Cast", ["x"], ["q"]), "/"),
    ("function/attribute/unique", in_function("Cast", ["x"], ["q"], twice=True, to=1), "/"),
    ("function/attribute/value", in_function("Constant", [], ["q"], valueless="value"), "/"),
    ("function/sorted", in_function("Relu", ["nothing"], ["q"]), "/"),
    ("function/ssa", in_function("Relu", ["x"], ["x"]), "/"),
    ("function/outputs", lambda m: m.functions[0].output.append("nothing"), "/"),
    ("function/unique", second_function, "/"),
    ("interface-type", lambda m: m.graph.output[0].ClearField("type"), '/"Y"'),
    ("interface-type", lambda m: m.graph.input[0].type.tensor_type.ClearField("shape"), '/"X"'),
    ("interface-type", lambda m: m.graph.input[0].type.tensor_type.ClearField("elem_type"), '/"X"'),
    ("interface-type", lambda m: m.graph.input[0].type.sequence_type.SetInParent(), '/"X"'),
    ("type/admitted", lambda m: node(m, "Relu", ["C"], ["Z"]), "/5:Relu"),
    ("type/variable", lambda m: node(m, "Add", ["A", "S"], ["Z"]), "/5:Add"),
    ("type/agreement", lambda m: m.graph.value_info.append(output("A", TensorProto.INT64, [2, 3])), '/"A"'),
    ("type/agreement", lambda m: m.graph.value_info.append(output("A", shape=[2, 4])), '/"A"'),
    ("type/agreement", lambda m: m.graph.value_info.append(output("A", shape=[6])), '/"A"'),
    ("type/agreement", lambda m: m.graph.input.append(output("W", shape=[2])), '/"W"'),
    ("inference/operator", lambda m: node(m, "Softmax", ["A"], ["Z"], axis=7), "/5:Softmax"),
    ("inference/operator", lambda m: node(m, "MatMul", ["A", "A"], ["Z"]), "/5:MatMul"),
    ("initializer", lambda m: m.graph.initializer[0].dims.append(4), '/"W"'),
    ("initializer", lambda m: m.graph.initializer.add(name="V", data_type=1, dims=[-1]), '/"V"'),
    ("initializer", lambda m: m.graph.initializer.add(name="V", data_type=1, int64_data=[1]), '/"V"'),
    ("initializer", lambda m: m.graph.initializer.add(name="V", float_data=[1.0]), '/"V"'),
    ("initializer", lambda m: m.graph.initializer.add(name="V", data_type=8, raw_data=b"abc"), '/"V"'),
    ("initializer", lambda m: m.graph.initializer.add(name="V", data_type=1, dims=[0], float_data=[1.0]), '/"V"'),
    ("initializer/exact", lambda m: m.graph.initializer.add(name="V", data_type=1, raw_data=b"12345"), '/"V"'),
    ("initializer/sparse", lambda m: m.graph.sparse_initializer.append(sparse([1, 0], [4])), '/"V"'),
    ("initializer/sparse", lambda m: m.graph.sparse_initializer.append(sparse([1, 4], [4])), '/"V"'),
    ("initializer/sparse", lambda m: m.graph.sparse_initializer.append(sparse([0, 1, 2], [4])), '/"V"'),
    ("initializer/sparse", lambda m: m.graph.sparse_initializer.append(sparse([0, 1], [])), '/"V"'),
    ("attribute/tensor", held(data_type=1, dims=[2], float_data=[1.0]), '/5:Constant("k")'),
    ("attribute/exact", held(data_type=1, dims=[1], raw_data=b"12345678"), '/5:Constant("k")'),
    (
        "attribute/sparse",
        lambda m: node(m, "Constant", [], ["K"], name="k", sparse_value=sparse([1, 1], [4])),
        '/5:Constant("k")',
    ),
    (
        "body/arity",
        replace_branch(lambda m: m.graph.output.append(m.graph.output[0])),
        '/3:If("n3")',
    ),
    ("body/present", lambda m: m.graph.node[IF].attribute.pop(), '/3:If("n3")'),
    ("body/present", lambda m: m.graph.node[IF].ClearField("input"), '/3:If("n3")'),
    ("body/branches", replace_branch(lambda m: m.graph.output.append(m.graph.output[0])), '/3:If("n3")'),
    ("body/branches", replace_branch(lambda m: setattr(m.graph.node[0], "op_type", "IsNaN")), '/3:If("n3")'),
    ("body/arity", scan(["A", "X"], outputs=["F"]), "/5:Scan"),
    ("body/inputs", scan(["A", "X"], element=TensorProto.DOUBLE), "/5:Scan"),
    ("body/outputs", scan(["A", "X"], op="IsNaN"), "/5:Scan"),
    ("body/lists", scan(["A", "X"], scan_input_axes=[0, 1]), "/5:Scan"),
    ("body/lists", scan(["A", "X"], scan_output_directions=[2]), "/5:Scan"),
    (
        "operator/own",
        lambda m: node(m, "SimplifiedLayerNormalization", ["T", "W"], ["Z"]),
        "/5:SimplifiedLayerNormalization",
    ),
    (
        "arity/outputs",
        lambda m: node(m, "BatchNormalization", ["A", "W", "W", "W", "W"], ["Z", "M"]),
        "/5:BatchNormalization",
    ),
]
INFERRED = ("type/", "inference")
"""The rules that need the claims of shape inference."""


@cache
def sound_facts() -> Structure:
    model = load_proto(sound())
    return structure(model, infer(model, 60))


def facts_of(proto: ModelProto, rule: str) -> Structure:
    model = load_proto(proto)
    return structure(model, infer(model, 60) if rule.startswith(INFERRED) else Claims())


@table("rule", STATUS)
def test_the_sound_model_keeps_to_the_rule(rule: str) -> None:
    assert judged(sound_facts(), rule).verdict == "holds"


@table(("rule", "change", "place"), CASES)
def test_a_defect_violates_its_rule_at_its_place(rule: str, change: Change, place: str) -> None:
    proto = sound()
    change(proto)
    facts = facts_of(proto, rule)
    found = judged(facts, rule)
    assert found.verdict == "violated"
    assert place in places(facts, found)


def test_every_rule_has_a_defect_that_violates_it() -> None:
    never_violated = {"type/known", "inference", "inference/graph"}
    assert {rule for rule, _, _ in CASES} | never_violated == set(STATUS)


# ---- Unknown, never silence -------------------------------------------------------------------


def claimed(text: str, claims: Claims | None = None) -> Structure:
    model = load_proto(parser.parse_model(text))
    return structure(model, claims or infer(model, 60))


UNKNOWN_RANK = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] X, int64[n] S) => (float[a] Y) { R = Reshape(X, S)  Y = Relu(R) }"""
CUSTOM = """<ir_version: 8, opset_import: ["" : 18, "com.example" : 1]>
g (float[2,3] X) => (float[2,3] Y) { R = com.example.Foo(X)  Y = Relu(R) }"""


@pytest.mark.parametrize(
    ("rule", "text", "claims", "place"),
    [
        ("type/known", UNKNOWN_RANK, Claims(failure="it crashed"), '/"R"'),
        ("type/known", CUSTOM, None, '/"R"'),
        ("operator", CUSTOM, None, "/0:com.example::Foo"),
        ("inference", UNKNOWN_RANK, Claims(failure="it crashed"), "/"),
        ("inference/operator", CUSTOM, Claims(errors=((1, "no type"),)), "/1:Relu"),
    ],
)
def test_what_is_not_known_is_unknown_with_its_place(rule: str, text: str, claims: Claims | None, place: str) -> None:
    facts = claimed(text, claims)
    found = judged(facts, rule)
    assert found.verdict == "unknown"
    assert place in places(facts, found)


def test_a_rank_that_inference_leaves_open_is_no_open_type() -> None:
    assert judged(claimed(UNKNOWN_RANK), "type/known").verdict == "holds"


def test_a_general_error_of_inference_violates() -> None:
    assert judged(claimed(CUSTOM, Claims(errors=((None, "odd"),))), "inference/graph").verdict == "violated"


def test_a_printed_listing_is_never_found_guilty_of_what_it_does_not_show(tmp_path: Path) -> None:
    path = tmp_path / "listing.txt"
    path.write_text(
        "graph g (\n  %I1[FLOAT, 2]\n  %I2[FLOAT, 2]\n) {\n  %O1 = Add(%I1, %I2)\n"
        "  %c = Constant[value = <Tensor>]()\n  %O2 = Mul(%O1, %c)\n  return %O1, %O2\n}\n"
    )
    model = load(path)
    facts = structure(model, infer(model, 60))
    for rule in ("ir-version", "opset-import", "interface-type", "attribute/tensor"):
        assert judged(facts, rule).verdict == "unknown"
    assert verdict(facts) == "UNDECIDED"


def test_a_symbolic_dimension_contradicts_nothing() -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[N,3] X) => (float[5,K] Y) { Y = Relu(X) }'
    assert judged(claimed(text), "type/agreement").verdict == "holds"


def test_an_input_of_a_body_may_bear_an_outer_name() -> None:
    proto = sound()
    replace_branch(lambda m: m.graph.input.append(output("A", shape=[1])))(proto)
    assert judged(facts_of(proto, "unique-names/bodies"), "unique-names/bodies").verdict == "holds"


def test_a_body_may_reuse_a_name_that_comes_behind_it() -> None:
    proto = sound()
    replace_branch(lambda m: m.graph.node.append(helper.make_node("Relu", ["T"], ["Y"])))(proto)
    assert judged(facts_of(proto, "unique-names/bodies"), "unique-names/bodies").verdict == "holds"


# ---- Real models ------------------------------------------------------------------------------

SHARED = Path(__file__).parents[3] / ".." / "shared" / "models"
needs_models = pytest.mark.skipif(not SHARED.is_dir(), reason="the shared models are not at ../shared/models")

LATENT = {
    "decision_tree/network.onnx": ("type/admitted", '/4:MatMul("MatMul_4")'),
    "gradient_boosted_trees/network.onnx": ("type/admitted", '/103:MatMul("/trees.0.0/MatMul")'),
    "nanoGPT/network.onnx": ("type/admitted", '/88:Equal("/h.0/attn/Equal")'),
    "nodes_out_of_order/model.onnx": ("sorted", '/0:Slice("sclbl-onnx-node1")'),
    "self_attention/network.onnx": ("type/admitted", '/63:Equal("/attention/Equal")'),
}


@needs_models
@pytest.mark.parametrize("name", LATENT)
def test_a_latent_error_is_found_at_its_node(name: str) -> None:
    model = load(SHARED / "latent-errors" / name)
    facts = structure(model, infer(model, 60))
    rule, place = LATENT[name]
    found = judged(facts, rule)
    assert found.verdict == "violated"
    assert place in places(facts, found)


REJECTED_BY_ONNX = {"control-flow/nested_local_function.onnx"}
"""Among the valid models one that onnx.checker rejects too: its operators do not exist in the imported version."""
FOLDERS = ("acasxu/dnnv", "control-flow", "quantized", "recurrent", "safety", "sonnx-examples", "zoo")
VALID = [
    path.relative_to(SHARED).as_posix()
    for folder in FOLDERS
    for path in sorted((SHARED / folder).rglob("*"))
    if path.suffix == ".onnx" or path.name == "scan_1.pb"
]


@needs_models
@pytest.mark.parametrize("name", sorted(set(VALID) - REJECTED_BY_ONNX))
def test_a_valid_model_violates_no_rule(name: str) -> None:
    model = load(SHARED / name)
    assert verdict(structure(model, infer(model, 60))) != "VIOLATES"


@needs_models
def test_a_call_that_leaves_out_trailing_outputs_is_valid() -> None:
    """onnx.checker accepts it; shape inference stumbles: it asks for the type of an output that is not there."""
    model = load(SHARED / "invalid/onnx-tests/shape_type/test_function_output_count_mismatch_does_not_crash.onnx")
    assert verdict(structure(model, infer(model, 60))) == "CONFORMS"


OVERLOOKED_BY_THE_CHECKER = [
    (
        "shape_type/test_inference_with_conflow",
        "inference/operator",
        "/0:onnxscript.atenlib::aten_min_dim!6:If.then_branch/4:ArgMin",
    ),
    ("shape_type/test_check_graph_types", "type/admitted", '/0:Div("test_div")'),
    ("shape_type/test_check_model_inconsistent_type", "type/variable", "/0:Add"),
    ("shape_type/test_check_model_unsupported_output_type", "type/agreement", '/"Z"'),
    ("shape_type/test_infer_initializer_input_consistency_different_rank", "type/agreement", '/"x"'),
]


@needs_models
@pytest.mark.parametrize(("name", "rule", "place"), OVERLOOKED_BY_THE_CHECKER)
def test_what_plain_check_model_accepts_is_found_at_its_place(name: str, rule: str, place: str) -> None:
    model = load(SHARED / "invalid/onnx-tests" / f"{name}.onnx")
    facts = structure(model, infer(model, 60))
    found = judged(facts, rule)
    assert found.verdict == "violated"
    assert place in places(facts, found)
