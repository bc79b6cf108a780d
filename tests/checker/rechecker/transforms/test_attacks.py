"""Certificates of somebody who knows how they are made: of models that are not the same, and beyond what is proved."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import onnx
import own_operators
import pytest
from onnx import numpy_helper
from small_models import proto_of
from sonnx.checker.rechecker import Outcome
from sonnx.checker.rechecker.text import texts
from sonnx.checker.rechecker.transforms import judging, record
from sonnx.checker.rechecker.transforms.rules import rewrite
from sonnx.spec import project
from transformed import Certified, compared, optimized, resigned, with_record, written

# ---- What is drawn in a body is drawn each time that it runs ---------------------------------------

DRAWN: Mapping[str, tuple[str, str]] = {
    "before a loop": (
        "g (float[2] X, int64 M) => (float[2] Y) { Y = Loop(M, , X) <body = b (int64 i, bool c, float[2] v)"
        " => (bool d, float[2] w) { d = Identity(c) R = RandomNormalLike(X) w = Add(v, R) }> }",
        "g (float[2] X, int64 M) => (float[2] Y) { R = RandomNormalLike(X) Y = Loop(M, , X) <body = b (int64 i,"
        " bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Add(v, R) }> }",
    ),
    "in a loop before a loop": (
        "g (float[2] X, int64 M) => (float[2] Y) { Y = Loop(M, , X) <body = b (int64 i, bool c, float[2] v)"
        " => (bool d, float[2] w) { d = Identity(c) I = Loop(M, , X) <body = s (int64 j, bool e, float[2] u)"
        " => (bool f, float[2] z) { f = Identity(e) R = RandomNormalLike(X) z = Add(u, R) }> w = Add(v, I) }> }",
        "g (float[2] X, int64 M) => (float[2] Y) { I = Loop(M, , X) <body = s (int64 j, bool e, float[2] u)"
        " => (bool f, float[2] z) { f = Identity(e) R = RandomNormalLike(X) z = Add(u, R) }> Y = Loop(M, , X)"
        " <body = b (int64 i, bool c, float[2] v) => (bool d, float[2] w) { d = Identity(c) w = Add(v, I) }> }",
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_drawn_once_is_not_what_is_drawn_in_each_run_of_a_body(name: str, tmp_path: Path) -> None:
    one, other = map(proto_of, DRAWN[name])
    for models in ((one, other), (other, one)):
        done = compared(tmp_path, *models).outcome()
        assert done.outcome is Outcome.NOT_CHECKED and not done.shown, done
        assert "stands in a body of one model alone" in done.reasons[0]
    assert compared(tmp_path, one, one).outcome().outcome is Outcome.CONFIRMED


# ---- Bodies ----------------------------------------------------------------------------------------

SCAN = """g (float[N,2] X) => (float Y) {{ Y = Scan<num_scan_inputs=1, scan_input_axes=[{axis}], body = b (float[2] x)
  => (float[{size}] y) {{ y = Relu(x) }}>(X) }}"""


def scan(axis: int, size: int, opset: int) -> onnx.ModelProto:
    model = proto_of(SCAN.format(axis=axis, size=size), opset)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def test_what_bodies_declare_is_part_of_their_meaning(tmp_path: Path) -> None:
    one, other = (scan(0, size, 22) for size in (2, 3))  # where N is 0, Y has the shape [0, 2] or [0, 3]
    assert compared(tmp_path, one, one).outcome().outcome is Outcome.CONFIRMED
    done = compared(tmp_path, one, other).outcome()
    assert done.outcome is Outcome.NOT_CHECKED and "two bodies declare" in done.reasons[0], done


def test_a_scan_of_another_version_may_run_otherwise(tmp_path: Path) -> None:
    one, other = (scan(-2, 2, opset) for opset in (11, 9))  # an axis is counted from the end since version 11
    done = compared(tmp_path, one, other).outcome()
    assert done.outcome is Outcome.NOT_CHECKED and "has another version" in done.reasons[0], done


# ---- Inputs ----------------------------------------------------------------------------------------


def test_inputs_that_nothing_reads_and_that_differ_are_said_to_be_left_aside(tmp_path: Path) -> None:
    one, other = (
        proto_of(f"g (float[2] X, {unread}) => (float[2] Y) {{ Y = Relu(X) }}") for unread in ("float Q", "int64 R")
    )
    said = "inputs that nothing reads are left aside: A and B have different ones"
    for models, aside in (((one, other), True), ((one, one), False)):
        done = compared(tmp_path, *models).outcome()
        assert done.outcome is Outcome.CONFIRMED and (said in done.shown) is aside


# ---- Attributes ------------------------------------------------------------------------------------


def with_graph(it: onnx.AttributeProto) -> None:
    it.g.name = "more"


def with_graphs(it: onnx.AttributeProto) -> None:
    it.graphs.add().name = "more"


def with_tensor(it: onnx.AttributeProto) -> None:
    it.t.CopyFrom(numpy_helper.from_array(np.float32([1])))


def of_another_type(it: onnx.AttributeProto) -> None:
    it.type = onnx.AttributeProto.GRAPH


@pytest.mark.parametrize("change", [with_graph, with_graphs, with_tensor, of_another_type])
def test_an_attribute_with_two_values_hides_neither(
    change: Callable[[onnx.AttributeProto], None], tmp_path: Path
) -> None:
    models = [proto_of(f"g (float[2,3] X) => (float[2,3] Y) {{ Y = Softmax<axis={axis}>(X) }}") for axis in (0, 1)]
    certified = optimized(tmp_path, models[0])
    bare = compared(tmp_path, models[0], models[0])
    for model in models:
        change(model.graph.node[0].attribute[0])
    for made in (certified, bare):
        made.model.write_bytes(models[0].SerializeToString())
        made.other.write_bytes(models[1].SerializeToString())
        statement = made.statement
        first = resigned(statement, Certified(made.model, made.model, b""), made.model)["subject"][-1]["digest"]
        statement["subject"][0]["digest"] = first
        done = made.outcome(resigned(statement, made, made.other))
        assert done.outcome is Outcome.NOT_CHECKED and "besides that of its type" in done.reasons[0], done


def test_an_attribute_of_a_function_is_known_by_its_value_not_by_the_name_that_the_call_has_for_it(
    tmp_path: Path,
) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 22, "own": 1]> g (float[2,3] X) => (float[2,3] Y) { Y = own.f<ax=0>(X) }'
        ' <domain: "own", opset_import: ["": 22]> f<ax>(x) => (y) { z = Softmax<axis: int = @ax>(x) y = Relu(z) }'
    )
    done = optimized(tmp_path, model).outcome()
    assert (done.outcome, done.reasons) == (Outcome.CONFIRMED, ())


# ---- No further than the proof goes ----------------------------------------------------------------


def test_a_list_that_a_port_gives_is_no_longer_than_those_of_the_proof(tmp_path: Path) -> None:
    graph = "g (float[2,3,4] X) => (float[2,3,4] Y) { E = Expand(X, s) Y = Relu(E) }"
    certified = written(tmp_path, graph, {"s": np.int64([2, 1, 4])})
    assert certified.outcome().outcome is Outcome.CONFIRMED
    assert set(certified.statement["predicate"]["rules"]) == {"ExpandNothing"}
    done = with_record(certified, tmp_path, lambda _, row: row.update(lists="2") if "lists" in row else None)
    assert done.outcome is Outcome.REFUTED and "is proved for lists of up to 2" in done.reasons[0], done


def test_a_row_that_does_not_name_the_lists_that_were_cut_counts_them_all() -> None:
    own = judging.library_of(texts())
    pads, expansion = (rewrite(own, name) for name in ("PadTranspose", "ExpandNothing"))
    assert pads is not None and expansion is not None
    for cut, counted in ((frozenset[str](), ["pads", "shape"]), (frozenset({"n"}), ["pads", "shape"]),
                         (frozenset({"length of p"}), [])):  # fmt: skip
        proof = record.Proof("", "exact", 4, 4, cut)
        ports = (*pads.head.inputs, *expansion.head.inputs)
        assert [it.name for it in ports if proof.counts(it)] == counted


@pytest.mark.parametrize(("sizes", "used"), [(3, True), (4, True), (5, False)])
def test_the_optimizer_uses_a_rule_for_lists_as_long_as_those_of_the_proof(
    sizes: int, used: bool, tmp_path: Path
) -> None:
    graph = f"g (int64[{sizes}] s) => (int64[{sizes}] Y) {{ C = ConstantOfShape(s) S = Shape(C) Y = Neg(S) }}"
    certified = written(tmp_path, graph)
    assert ("ShapeConstantOfShape" in certified.statement["predicate"]["rules"]) is used
    assert certified.outcome().outcome is Outcome.CONFIRMED


# ---- What the definition allows --------------------------------------------------------------------


def test_what_is_allowed_of_one_model_is_not_said_of_the_other(tmp_path: Path) -> None:
    greatest = proto_of("g (float[2] X) => (float[2] Y) { Z = Max(X) Y = Relu(Z) }")
    itself = proto_of("g (float[2] X) => (float[2] Y) { Y = Relu(X) }")
    done = compared(tmp_path, greatest, itself, "allowed").outcome()
    assert done.outcome is Outcome.CONFIRMED and "results that the definition allows" in done.shown[0]
    done = compared(tmp_path, itself, greatest, "allowed").outcome()
    assert done.outcome is Outcome.NOT_CHECKED and not done.shown, done


# ---- Models of which readers make different things ---------------------------------------------------


def imports_twice(it: onnx.ModelProto) -> None:
    it.opset_import.insert(0, onnx.helper.make_opsetid("", 11))


def imports_under_both_names(it: onnx.ModelProto) -> None:
    it.opset_import.append(onnx.helper.make_opsetid("ai.onnx", 22))


def defines_twice(it: onnx.ModelProto) -> None:
    for name in ("Abs", "Neg"):
        body = [onnx.helper.make_node(name, ["x"], ["y"])]
        imports = [onnx.helper.make_opsetid("", 22)]
        it.functions.append(onnx.helper.make_function("own", "f", ["x"], ["y"], body, imports))


def states_axis_twice(it: onnx.ModelProto) -> None:
    it.graph.node[0].attribute.append(onnx.helper.make_attribute("axis", 1))


def stores_twice(it: onnx.ModelProto) -> None:
    it.graph.initializer.insert(0, numpy_helper.from_array(np.float32([5]), "k"))


def stores_in_two_fields(it: onnx.ModelProto) -> None:
    it.graph.initializer[0].float_data.append(5)


def writes_what_is_stored(it: onnx.ModelProto) -> None:
    it.graph.node.append(onnx.helper.make_node("Neg", ["X"], ["k"]))


def reads_input_twice(it: onnx.ModelProto) -> None:
    it.graph.input.append(it.graph.input[0])


AMBIGUOUS: Mapping[Callable[[onnx.ModelProto], None], str] = {
    imports_twice: "an operator set is imported twice",
    imports_under_both_names: "an operator set is imported twice",
    defines_twice: "a function is defined twice",
    states_axis_twice: "a node has an attribute twice",
    stores_twice: "a name has two stored values",
    stores_in_two_fields: "a stored value has two contents",
    writes_what_is_stored: "a tensor gets its value twice",
    reads_input_twice: "a graph has an input twice",
}


@pytest.mark.parametrize("change", AMBIGUOUS, ids=lambda it: it.__name__)
def test_nothing_is_shown_of_a_model_of_which_readers_make_different_things(
    change: Callable[[onnx.ModelProto], None], tmp_path: Path
) -> None:
    graph = "g (float[2,3] X) => (float[2,3] Y) { Z = Softmax<axis=0>(X) Y = Add(Z, k) }"
    model = proto_of(graph, stored={"k": np.float32([1])})
    for made in (compared(tmp_path, model, model), optimized(tmp_path, model)):
        last = onnx.load(made.other)
        change(last)
        made.other.write_bytes(last.SerializeToString())
        done = made.outcome(resigned(made.statement, made, made.other))
        assert done.outcome is Outcome.NOT_CHECKED and AMBIGUOUS[change] in done.reasons[0], done


# ---- What nobody but a user says -------------------------------------------------------------------


def test_two_models_that_apply_what_no_text_defines_are_not_refuted(tmp_path: Path) -> None:
    model = proto_of("g (float[2] X) => (float[2] Y) { Y = own.F(X) }")
    model.opset_import.append(onnx.helper.make_opsetid("own", 1))
    done = compared(tmp_path, model, model).outcome()
    assert done.outcome is Outcome.NOT_CHECKED and done.reasons == ("no text says what F is",)


def test_what_rests_on_an_added_text_says_so(tmp_path: Path) -> None:
    graph = "g (float[2,3] x) => (float[2,3] y) { a = com.example.Scale(x) b = Relu(a) y = Relu(b) }"
    model = proto_of(graph)
    model.opset_import.append(onnx.helper.make_opsetid("com.example", 1))
    with own_operators.nothing_added(tmp_path):
        own_operators.files(tmp_path)
        project.use([tmp_path / "own.sonnx"])
        done = optimized(tmp_path / "m", model).outcome()
    digest = hashlib.sha256((tmp_path / "own.sonnx").read_bytes()).hexdigest()
    assert done.outcome is Outcome.CONFIRMED
    assert done.shown[-1] == f'rests on the added text "own.sonnx", SHA-256 {digest}'
