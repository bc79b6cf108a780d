"""What the rule set sonnx-operators decides: the subset, absent attributes that are defaults, variants, what counts."""

from __future__ import annotations

import pytest
from onnx import defs, parser
from sonnx.checker.certification import rule_sets
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.model.graph import Graph, Model, Node, Tensor
from sonnx.semantics.model.loader import load_proto
from sonnx.spec.language.syntax import Expr, Profile, clause
from sonnx.spec.library import specification
from tables import table


def profile() -> Profile:
    return specification().profiles["sonnx-operators"]


EMPTY = Model((Graph("g", "/", (), (), (), ()),), (), (), 10, (("", 18),), "protobuf", ())


def holds(function: str, argument: str) -> bool:
    """Whether a definition over a text is true."""
    call = Expr("call", (function, Expr("text", (argument,))))
    return direct.evaluate(call, {}, specification().functions, structure(EMPTY)) is True


# ---- The subset -------------------------------------------------------------------------------

TABLE = """
    Abs Add Cast Clip Concat Constant ConstantOfShape Conv ConvTranspose ConvTransposeDeconvolution Dense Div Equal Erf
    Exp Expand Flatten FullyConnected GRU Gather Gemm GlobalAveragePool HardSwish Identity LSTM LeakyRelu Less Log
    MatMul Max MaxPool Min Mod Mul Neg Not Pad Padding Pow Range ReduceMean ReduceSum Relu Reshape Resize ScatterND
    Shape Sigmoid Slice SoftPlus Softmax Split Sqrt Squeeze Sub Tanh Transpose Unsqueeze Where
"""
READ_AS = {
    "ConvTransposeDeconvolution": "ConvTranspose",
    "Dense": "Gemm",
    "FullyConnected": "Gemm",
    "Padding": "Pad",
    "SoftPlus": "Softplus",
}
SINCE = "ArgMax BatchNormalization ConvInteger QuantizeLinear DequantizeLinear Acos Asin Atan Sin"


def test_the_subset_is_the_table_read_as_onnx_and_what_was_specified_since() -> None:
    table = set(TABLE.split())
    assert len(table) == 59
    expected = {READ_AS.get(name, name) for name in table} | set(SINCE.split())
    names = {it.name for it in defs.get_all_schemas_with_history() if it.domain == ""}
    assert expected <= names
    assert {name for name in names | table if holds("in_subset", name)} == expected


# ---- Absent attributes ------------------------------------------------------------------------

DEFAULTS = """
    activations axes axis dilations end hidden_size kernel_shape max min output_padding pads perm shape split strides
"""
NO_DEFAULTS = """
    activation_alpha activation_beta clip consumed_inputs num_outputs output_shape sparse_value value_float value_floats
    value_int value_ints value_string value_strings
"""


def bare(model: Model) -> set[tuple[str, int | None, str]]:
    """Operator, version and attribute of all findings about absent attributes."""
    found = direct.judge(
        specification().constraints["NoDefaultAttribute"], specification().functions, structure(model), limit=10_000
    )
    instances = [{name: element for name, _, element in instance.bindings} for instance in found.failures]
    nodes = [(model.nodes[int(instance["n"])], str(instance["a"])) for instance in instances]
    return {(node.op_type, node.version, attribute) for node, attribute in nodes}


def test_absence_is_decided_for_every_attribute_of_every_version_of_the_subset() -> None:
    schemas = [it for it in defs.get_all_schemas_with_history() if it.domain == "" and holds("in_subset", it.name)]
    nodes = tuple(
        Node("", f"/{i}:{it.name}", 0, "", it.name, "", it.since_version, it.since_version, (), (0,))
        for i, it in enumerate(schemas)
    )
    graph = Graph("g", "/", tuple(range(len(nodes))), (), (), ())
    model = Model((graph,), nodes, (Tensor("t", '/"t"', 0),), 10, (("", 18),), "protobuf", ())
    expected = set()
    for it in schemas:
        for name, attribute in it.attributes.items():
            if attribute.required:
                continue
            if attribute.default_value.name:
                counts = (it.name, name) != ("QuantizeLinear", "saturate")
            elif name == "value":
                counts = it.name == "ConstantOfShape"
            else:
                assert name in (DEFAULTS + NO_DEFAULTS).split(), f"decide on {it.name}.{name}"
                counts = name in DEFAULTS.split() and not (name == "axis" and "broadcast" in it.attributes)
            if counts:
                expected.add((it.name, it.since_version, name))
    assert bare(model) == expected


def defaults(signature: str, node: str, opset: int = 18) -> set[str]:
    """The attributes of a single node that count as left to their default."""
    source = f'<ir_version: 9, opset_import: ["" : {opset}]> g {signature} {{ {node} }}'
    return {attribute for _, _, attribute in bare(load_proto(parser.parse_model(source)))}


UNARY = "(float[2] X) => (float[2] Y)"
LSTM = "(float[5,1,3] X, float[1,8,3] W, float[1,8,2] R) => (float[5,1,1,2] Y)"
ALL_OF_LSTM = 'direction = "forward", hidden_size = 2, input_forget = 0, layout = 0'


def test_pads_must_be_absent_beside_another_auto_pad() -> None:
    rest = "dilations = [1,1], group = 1, kernel_shape = [3,3], strides = [1,1]"
    image = "(float[1,1,5,5] X, float[1,1,3,3] W) => (float[1,1,3,3] Y)"
    assert defaults(image, f'Y = Conv <auto_pad = "VALID", {rest}> (X, W)') == set()
    assert defaults(image, f'Y = Conv <auto_pad = "NOTSET", {rest}> (X, W)') == {"pads"}


def test_pads_are_an_alternative_to_output_shape() -> None:
    rest = 'auto_pad = "NOTSET", dilations = [1,1], group = 1, kernel_shape = [3,3], output_padding = [0,0]'
    rest += ", strides = [1,1]"
    image = "(float[1,1,3,3] X, float[1,1,3,3] W) => (float[1,1,5,5] Y)"
    assert defaults(image, f"Y = ConvTranspose <output_shape = [5,5], {rest}> (X, W)") == set()
    assert defaults(image, f"Y = ConvTranspose <{rest}> (X, W)") == {"pads"}


def test_an_old_axis_counts_only_with_broadcast() -> None:
    assert defaults(UNARY, "Y = Add <broadcast = 0> (X, X)", opset=6) == set()
    assert defaults(UNARY, "Y = Add <broadcast = 1> (X, X)", opset=6) == {"axis"}


@pytest.mark.parametrize(
    ("activation", "expected"), [("Sigmoid", set()), ("Elu", {"activation_alpha", "activation_beta"})]
)
def test_parameters_count_only_for_activations_that_have_some(activation: str, expected: set[str]) -> None:
    node = f'Y = LSTM <activations = ["{activation}","Tanh","Tanh"], {ALL_OF_LSTM}> (X, W, R)'
    assert defaults(LSTM, node) == expected


# ---- Guards -----------------------------------------------------------------------------------


def guarded() -> list[str]:
    """The restrictions on single operators that begin with a guard on the presence of inputs or outputs."""
    found = []
    for name in dict.fromkeys(rule.constraint for rule in profile().rules):
        body = specification().constraints[name].formula.args[-1]
        if isinstance(body, Expr) and body.head == "implies" and "has_input" in repr(body.args[0]):
            found.append(name)
    return found


@table("constraint", guarded())
def test_a_node_without_its_inputs_is_left_to_the_rules_about_inputs(constraint: str) -> None:
    operator = "Pow" if constraint == "PowTypes" else specification().constraints[constraint].doc.split(":")[0]
    source = f'<ir_version: 9, opset_import: ["" : 18]> g () => (float[2] Y) {{ Y = {operator}() }}'
    facts, constraints = structure(load_proto(parser.parse_model(source))), specification().constraints
    assert direct.judge(constraints[constraint], specification().functions, facts).verdict == "holds"
    assert direct.judge(constraints["PortsCounted"], specification().functions, facts).verdict == "violated"


# ---- Variants and statuses --------------------------------------------------------------------


def active(variant: str) -> set[str]:
    return {rule.id for rule in rule_sets.select(profile(), variant).rules}


def test_the_newest_wording_is_the_default_and_the_other_replaces_it() -> None:
    (default,) = rule_sets.resolve(specification(), ["sonnx-operators"])
    assert {rule.id for rule in default.rules} == active("newest")
    newest, older = active("newest") - active("wg-2026-08"), active("wg-2026-08") - active("newest")
    assert {"GR4", "REQ-OP-070", "Broadcasting", "MaxPool/R4", "Slice/R5"} <= newest
    assert {"Neg/R1-wg", "MaxPool/R1-wg", "Broadcasting-wg", "Slice/R5-wg"} <= older
    assert all(rule_id.endswith("-wg") for rule_id in older)


def test_a_rule_id_stands_for_one_rule() -> None:
    ids = [rule.id for rule in profile().rules]
    assert len(ids) == len(set(ids))


def test_rules_to_be_confirmed_are_reported_and_not_counted() -> None:
    open_ones = {rule.id for rule in profile().rules if not rule_sets.counts(rule, strict=False)}
    assert {"Gemm/R1", "Gemm/R2", "Gemm/R3", "Gemm/R4"} <= open_ones
    assert {name.split("/")[0] for name in open_ones} == {"Gemm", "LSTM", "GR4", "QuantizeLinear", "DequantizeLinear"}
    assert all(rule_sets.counts(rule, strict=True) for rule in profile().rules)


def test_every_rule_quotes_its_text_or_says_its_substance() -> None:
    assert clause(profile().clauses, "source")
    for rule in profile().rules:
        assert clause(rule.clauses, "quote") or clause(rule.clauses, "note"), rule.id
