"""Nodes with bodies: counts and types as ONNX demands them, and the machine, which agrees with the rules."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, GraphProto, ModelProto, TensorProto, ValueInfoProto, helper, parser
from sampling import left
from sonnx.semantics import load_proto, run
from sonnx.semantics.facts.gathering import structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.machine.execution import Limits, Run
from sonnx.semantics.model.values import Sequence, Value
from sonnx.spec.library import specification
from tables import table

TEXT = specification()
COUNTS = ("Completeness", "BodiesPresent", "BodyArity", "BranchesAgree")
TYPES = ("BodyInputTypes", "BodyOutputTypes", "ScanLists")
GRAPH = ("SingleAssignment", "NoWriteToInput", "NoWriteToInitializer", "Sourced", "Acyclic", "NothingHidden")
HEADER = '<ir_version: 8, opset_import: ["" : 17]>'


def judged(model: ModelProto, constraint: str) -> str:
    return direct.judge(TEXT.constraints[constraint], TEXT.functions, structure(load_proto(model))).verdict


def broken(model: ModelProto) -> set[str]:
    """The constraints on bodies that a model does not keep."""
    facts = structure(load_proto(model))
    names = (*COUNTS, *TYPES)
    return {n for n in names if direct.judge(TEXT.constraints[n], TEXT.functions, facts).verdict != "holds"}


def ran(model: ModelProto, inputs: Mapping[str, Value]) -> Run:
    return run(load_proto(model), inputs, limits=Limits(steps=2000, seconds=20))


X = np.array([1, 2], np.float32)
YES, NO = np.array(True), np.array(False)


# ---- If ---------------------------------------------------------------------------------------

ONE_EACH = "then_branch = t () => (float[2] p) { p = Relu(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }"
TWO_EACH = """then_branch = t () => (float[2] p, float[2] p2) { p = Relu(x) p2 = Abs(x) },
  else_branch = e () => (float[2] q, float[2] q2) { q = Neg(x) q2 = Abs(x) }"""
SEQUENCES = """then_branch = t () => ({a} p) {{ p = SequenceConstruct(x) }},
  else_branch = e () => ({b} q) {{ k = Cast<to = 7>(x) q = SequenceConstruct(k) }}"""
OPTIONALS = """then_branch = t () => (optional(seq(float)) p) { s = SequenceConstruct(x) p = Optional(s) },
  else_branch = e () => (optional(seq(int64)) q) { k = Cast<to = 7>(x) s = SequenceConstruct(k) q = Optional(s) }"""


def chosen(branches: str, outputs: str = "y", declared: str = "float[2] y", inputs: str = "c") -> ModelProto:
    return parser.parse_model(
        f"{HEADER} g (bool c, float[2] x) => ({declared}) {{ {outputs} = If({inputs})<{branches}> }}"
    )


IFS = {
    "two outputs, one of each branch": (
        chosen(ONE_EACH, "y, z", "float[2] y, float[2] z"),
        {"Completeness", "BodyArity", "BranchesAgree"},
    ),
    "the second output alone": (
        chosen(ONE_EACH, '"", z', "float[2] z"),
        {"Completeness", "BodyArity", "BranchesAgree"},
    ),
    "one output, two of each branch": (chosen(TWO_EACH), {"BodyArity", "BranchesAgree"}),
    "two outputs of one branch": (
        chosen(TWO_EACH.split(",\n")[0] + "," + ONE_EACH.split(",")[1], "y, z", "float[2] y, float[2] z"),
        {"Completeness", "BodyArity", "BranchesAgree"},
    ),
    "sequences of other elements": (
        chosen(SEQUENCES.format(a="seq(float[2])", b="seq(int64[2])"), declared="seq(float[2]) y"),
        {"BranchesAgree"},
    ),
    "sequences declared alike": (
        chosen(SEQUENCES.format(a="seq(float[2])", b="seq(float[2])"), declared="seq(float[2]) y"),
        {"BranchesAgree"},
    ),
    "optionals of other elements": (chosen(OPTIONALS, declared="optional(seq(float)) y"), {"BranchesAgree"}),
    "declared float, computed int64": (
        chosen(ONE_EACH.replace("q = Neg(x)", "q = Cast<to = 7>(x)")),
        {"BranchesAgree"},
    ),
    "declared alike, computed otherwise on the way": (
        chosen(ONE_EACH.replace("q = Neg(x)", "k = Cast<to = 11>(x) q = Neg(k)")),
        {"BranchesAgree"},
    ),
    "declared otherwise, computed alike": (
        chosen(ONE_EACH.replace("(float[2] q)", "(double[2] q)")),
        {"BranchesAgree"},
    ),
    "no condition": (chosen(ONE_EACH, inputs=""), {"Completeness", "BodiesPresent"}),
    "an input of a branch": (
        chosen(ONE_EACH.replace("e () =>", "e (float[2] f) =>")),
        {"Completeness", "BodyArity", "BodyInputTypes"},
    ),
}


@table("name", IFS)
def test_an_if_whose_branches_do_not_fit_breaks_its_rules(name: str) -> None:
    model, rules = IFS[name]
    assert broken(model) == rules


@pytest.mark.parametrize("name", ["then_branch", "else_branch"])
def test_an_if_without_a_branch_breaks_the_rule_and_gets_stuck(name: str) -> None:
    model = chosen(ONE_EACH)
    left = [a for a in model.graph.node[0].attribute if a.name != name]
    model.graph.node[0].ClearField("attribute")
    model.graph.node[0].attribute.extend(left)
    assert broken(model) == {"Completeness", "BodiesPresent", "BodyArity"} - {"BodyArity"}
    missing = ran(model, {"c": YES if name == "then_branch" else NO, "x": X})
    assert missing.stuck is not None and missing.stuck.rule == "AttributesPresent"
    assert f'/0:If, "{name}"' in missing.stuck.message


@table("condition", [YES, NO])
@table(
    ("branches", "outputs", "declared"),
    [
        (ONE_EACH, "y", "float[2] y"),
        (TWO_EACH, "y, z", "float[2] y, float[2] z"),
        (TWO_EACH, '"", z', "float[2] z"),
        (TWO_EACH, 'y, ""', "float[2] y"),
        (SEQUENCES.format(a="seq(float)", b="seq(float)").replace("<to = 7>", "<to = 1>"), "y", "seq(float) y"),
    ],
)
def test_an_if_whose_branches_fit_keeps_the_rules_and_runs(
    branches: str, outputs: str, declared: str, condition: Any
) -> None:
    model = chosen(branches, outputs, declared)
    assert broken(model) == set()
    done = ran(model, {"c": condition, "x": X})
    assert done.stuck is None and len(done.outputs) == len(model.graph.output)


@pytest.mark.parametrize(
    "name", ["two outputs, one of each branch", "the second output alone", "two outputs of one branch"]
)
def test_the_machine_gets_stuck_where_an_output_gets_nothing_from_a_branch(name: str) -> None:
    ended = [ran(IFS[name][0], {"c": c, "x": X}).stuck for c in (YES, NO)]
    assert any(stuck is not None and "its branch" in stuck.message for stuck in ended)


def test_a_value_of_another_type_than_declared_is_refused() -> None:
    model = IFS["declared float, computed int64"][0]
    for c in (YES, NO):
        refused = ran(model, {"c": c, "x": X})
        assert refused.stuck is not None and refused.stuck.rule == "TypesAsDeclared" and not refused.outputs
        assert '/0:If.else_branch/"q"' in refused.stuck.message


# ---- Loop, Scan, SequenceMap ------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    """How many inputs and outputs a node and its body have. states: carried values; gives: collected outputs.

    more_in, more_out: of the body, beyond what the node has. named: which outputs of the node carry a name.
    """

    op: str
    states: int
    gives: int
    more_in: int = 0
    more_out: int = 0
    scans: int = 1
    named: tuple[bool, ...] = ()
    absent: int = -1
    """The position of an initial value that is left out, -1 for none."""


def made(shape: Shape) -> tuple[ModelProto, dict[str, Value]]:
    """A model with one such node, all of whose values are float[2], and inputs for it."""
    fixed = {"Loop": 2, "Scan": 0, "SequenceMap": 0}[shape.op]
    front = {"Loop": 1, "Scan": 0, "SequenceMap": 0}[shape.op]
    operands = shape.states + (shape.scans if shape.op != "Loop" else 0)
    formal = [f"f{i}" for i in range(max(fixed + operands + shape.more_in, 0))]
    counted = max(front + shape.states + shape.gives + shape.more_out, 0)
    types = {"Loop": {0: TensorProto.INT64, 1: TensorProto.BOOL}}.get(shape.op, {})
    nodes, results = [], []
    for i in range(counted):
        source = "c" if shape.op == "Loop" and i == 0 else "w"
        nodes.append(helper.make_node("Identity", [source], [f"r{i}"]))
        results.append(value(f"r{i}", TensorProto.BOOL if source == "c" else TensorProto.FLOAT))
    inner = helper.make_graph(
        nodes, "b", [value(n, types.get(i, TensorProto.FLOAT)) for i, n in enumerate(formal)], results
    )
    names = [f"a{i}" if i != shape.absent else "" for i in range(operands)]
    inputs = ["m", "c", *names] if shape.op == "Loop" else names
    outputs = [f"y{i}" for i in range(shape.states + shape.gives)]
    outputs = [n if i >= len(shape.named) or shape.named[i] else "" for i, n in enumerate(outputs)]
    options = {"num_scan_inputs": shape.scans} if shape.op == "Scan" else {}
    node = helper.make_node(shape.op, inputs, outputs, body=inner, **options)
    given: dict[str, Value] = {"w": X, "c": YES, "m": np.array(2)}
    listed = [value("w"), value("c", TensorProto.BOOL, []), value("m", TensorProto.INT64, [])]
    for i, name in enumerate(names):
        if not name:
            continue
        if shape.op == "SequenceMap" and i == 0:
            given[name] = Sequence(load_proto(SEQUENCE).tensors[0].declared.inner, (X, X))  # type: ignore[union-attr, arg-type]
            listed.append(helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, [2]))
            continue
        rows = shape.op == "Scan" and i >= shape.states
        given[name] = np.stack([X, X]) if rows else X
        listed.append(value(name, shape=[2, 2] if rows else [2]))
    shown = [ValueInfoProto(name=n) for n in outputs if n]
    return model_of(helper.make_graph([node], "g", listed, shown)), given


SEQUENCE = parser.parse_model(f"{HEADER} g (seq(float[2]) s) => (int64 n) {{ n = SequenceLength(s) }}")


def value(name: str, element: int = TensorProto.FLOAT, shape: list[int] | None = None) -> ValueInfoProto:
    sizes = shape if shape is not None else [2] if element == TensorProto.FLOAT else []
    return helper.make_tensor_value_info(name, element, sizes)


def model_of(graph: GraphProto) -> ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


FITTING = [
    Shape("Loop", 0, 1), Shape("Loop", 2, 0), Shape("Loop", 1, 2), Shape("Loop", 1, 1, named=(False, True)),
    Shape("Scan", 0, 1), Shape("Scan", 2, 1), Shape("Scan", 1, 1, scans=2), Shape("Scan", 2, 1, named=(True, False)),
    Shape("SequenceMap", 0, 1), Shape("SequenceMap", 0, 2), Shape("SequenceMap", 0, 1, scans=2),
]  # fmt: skip
UNFIT = [
    Shape("Loop", 1, 1, more_in=1), Shape("Loop", 1, 1, more_in=-1), Shape("Loop", 1, 1, more_out=-1),
    Shape("Loop", 1, 0, more_out=-1), Shape("Loop", 0, 1, more_in=-1), Shape("Loop", 2, 1, absent=1),
    Shape("Scan", 1, 1, more_in=1), Shape("Scan", 1, 1, more_in=-1), Shape("Scan", 1, 1, more_out=-1),
    Shape("Scan", 2, 0, more_out=-1), Shape("Scan", 1, 1, absent=0), Shape("Scan", 1, 1, scans=0),
    Shape("SequenceMap", 0, 1, more_in=1), Shape("SequenceMap", 0, 1, more_in=-1),
    Shape("SequenceMap", 0, 2, more_out=-1), Shape("SequenceMap", 0, 1, scans=2, more_in=-1),
]  # fmt: skip


@table("shape", FITTING, ids=str)
def test_a_body_that_fits_keeps_the_rules_and_runs(shape: Shape) -> None:
    model, given = made(shape)
    assert broken(model) == set()
    done = ran(model, given)
    assert done.stuck is None, done.stuck
    assert len(done.outputs) == len(model.graph.output)


@table("shape", UNFIT, ids=str)
def test_a_body_that_takes_or_gives_too_little_breaks_completeness(shape: Shape) -> None:
    """Completeness says that no output gets a value, BodyArity why; a value left out is a matter of the first alone."""
    model, _ = made(shape)
    assert "Completeness" in broken(model)
    assert ("BodyArity" in broken(model)) is (shape.absent < 0)


@pytest.mark.parametrize("op", ["Loop", "Scan", "SequenceMap"])
def test_a_body_with_an_output_too_many_is_no_valid_one(op: str) -> None:
    assert broken(made(Shape(op, 0, 1, more_out=1))[0]) == {"BodyArity"}


@pytest.mark.parametrize("op", ["Loop", "Scan", "SequenceMap"])
def test_a_node_without_its_body_breaks_the_rule(op: str) -> None:
    model, given = made(Shape(op, 0, 1))
    left = [a for a in model.graph.node[0].attribute if a.type != AttributeProto.GRAPH]
    model.graph.node[0].ClearField("attribute")
    model.graph.node[0].attribute.extend(left)
    assert broken(model) >= {"Completeness", "BodiesPresent"}
    assert ran_or_refused(model, given)


def ran_or_refused(model: ModelProto, given: Mapping[str, Value]) -> bool:
    """Whether the machine does not run a model to its end."""
    return ran(model, given).stuck is not None


TYPED = {
    "iteration number": ("int64 i", "float i", "BodyInputTypes"),
    "condition in": ("bool k", "int64 k", "BodyInputTypes"),
    "carried in": ("float[2] v", "double[2] v", "BodyInputTypes"),
    "condition out": ("k2 = Identity(k)", "k2 = Cast<to = 1>(k)", "BodyOutputTypes"),
    "carried out": ("v2 = Neg(v)", "v2 = Cast<to = 7>(v)", "BodyOutputTypes"),
    "collected sequence": ("s = Abs(v)", "s = SequenceConstruct(v)", "BodyOutputTypes"),
}
LOOP = f"""{HEADER} g (int64 n, bool c, float[2] x) => (float[2] y, z) {{
  y, z = Loop(n, c, x)<body = b (int64 i, bool k, float[2] v) => (k2, v2, s) {{
    k2 = Identity(k)
    v2 = Neg(v)
    s = Abs(v)
  }}>
}}"""


@table("name", TYPED)
def test_the_types_of_what_a_loop_hands_on_are_those_of_onnx(name: str) -> None:
    right, wrong, rule = TYPED[name]
    assert broken(parser.parse_model(LOOP)) == set()
    assert right in LOOP
    assert rule in broken(parser.parse_model(LOOP.replace(right, wrong)))


# ---- What conforms does not get stuck ---------------------------------------------------------


@cache
def shapes(count: int, seed: int) -> tuple[Shape, ...]:
    return tuple(_drawn(random.Random(seed), count))


def _drawn(choose: random.Random, count: int) -> Iterator[Shape]:
    for _ in range(count):
        op = choose.choice(("Loop", "Scan", "SequenceMap"))
        states = choose.randint(0, 2) if op != "SequenceMap" else 0
        gives = choose.randint(0, 2)
        odd = (-1, 0, 0, 0, 0, 1)
        named = tuple(choose.random() < 0.8 for _ in range(states + gives))
        absent = choose.randint(0, states - 1) if states and choose.random() < 0.2 else -1
        yield Shape(
            op, states, gives, choose.choice(odd), choose.choice(odd), choose.choice((0, 1, 1, 2)), named, absent
        )


@pytest.mark.parametrize("count", [100, left(400)])
def test_what_the_rules_accept_never_gets_stuck(count: int) -> None:
    """And what they do not accept mostly does: the rules are not simply strict."""
    accepted = stuck = 0
    for shape in shapes(count, 13):
        if shape.states + shape.gives == 0 or not any(shape.named):
            continue
        model, given = made(shape)
        done = ran(model, given)
        if broken(model):
            stuck += done.stuck is not None
            continue
        accepted += 1
        assert done.stuck is None, (shape, done.stuck)
        assert len(done.outputs) == len(model.graph.output), shape
    assert accepted > count // 8 and stuck > count // 5
