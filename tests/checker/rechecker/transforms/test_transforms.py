"""Certificates about two models: honest ones are confirmed, and say what they rest on; others are not."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from own_operators import nothing_added
from small_models import proto_of
from sonnx.checker.equivalence.optimizing.graphs import OpenModel
from sonnx.checker.equivalence.record import PATH, rows, write_texts
from sonnx.checker.equivalence.texts import rests_on, theorem
from sonnx.checker.rechecker import Outcome, recheck
from sonnx.checker.rechecker.text import texts
from sonnx.checker.rechecker.transforms import judging
from sonnx.checker.rechecker.transforms.replay import THEOREMS
from sonnx.checker.rechecker.transforms.rules import rewrite
from sonnx.semantics.errors import ModelError
from sonnx.spec import cli
from transformed import Certified, Statement, compared, optimized, resigned, sealed, with_record, written

TWO = {"a": np.float32([1, 2]), "b": np.float32([1, 2])}
CASES: Mapping[str, tuple[str, Mapping[str, np.ndarray], Mapping[str, Any]]] = {
    "transpositions": (
        "g (float[2,N,4] X) => (float[4,N,2] Y) { A = Transpose<perm=[1,0,2]>(X) Y = Transpose<perm=[2,0,1]>(A) }",
        {}, {},
    ),
    "back and forth": (
        "g (float[2,3,4] X) => (float[2,3,4] Y) { A = Transpose<perm=[1,0,2]>(X) B = Transpose<perm=[1,0,2]>(A)"
        " Y = Relu(B) }", {}, {},
    ),
    "operands changed places": (
        "g (float[2,3] A, float[3,4] B, float[4] C) => (float[2,4] Y) { M = MatMul(A, B) Y = Add(C, M) }", {}, {},
    ),
    "dead": ("g (float[2] X) => (float[2] Y) { A = Exp(X) B = Log(A) Y = Relu(X) }", {}, {}),
    "equal": ("g (float[2] X) => (float[2] Y) { A = Exp(X) B = Exp(X) Y = Add(A, B) }", {}, {}),
    "folded": ("g (float[2] X) => (float[2] Y) { c = Add(a, a) Y = Mul(X, c) }", TWO, {}),
    "stored twice": ("g (float[2] X) => (float[2] Y) { A = Mul(X, a) Y = Add(A, b) }", TWO, {}),
    "raised": ("g (float[2] X) => (float[2] Y) { Y = Softmax<axis=0>(X) }", {}, {"of": 11, "opset": 22}),
    "fixed": (
        "g (float[2] X, float[2] a) => (float[2] Y) { c = Add(a, a) Y = Mul(X, c) }", {"a": TWO["a"]}, {"fixed": True},
    ),
    "over the reals": (
        "g (float[2] X) => (float[2] Y) { A = Reciprocal(X) B = Reciprocal(A) Y = Abs(B) }", {}, {"strength": "reals"},
    ),
    "in a branch": (
        "g (bool c, float[2,3] X) => (float[2,3] Y) { A = Transpose(X) Y = If(c) <then_branch = t () => (float[2,3] P)"
        " { P = Transpose(A) }, else_branch = e () => (float[2,3] Q) { B = Transpose(X) C = Transpose(B)"
        " Q = Transpose<perm=[0,1]>(C) }> }", {}, {},
    ),
    "an attribute that is not there": (
        "g (float[2,3] X) => (float[3,2] Y) { A = Relu(X) Y = Transpose(A) }", {}, {"rules": ["ReluTranspose"]},
    ),
    "a constant of 16 bits": (
        "g (float16[2] X) => (float16[2] Y) { A = Mul(X, one) Y = Neg(A) }", {"one": np.array(1, np.float16)}, {},
    ),
    "drawn twice": (
        "g (float[2] X) => (float[2] Y) { A = RandomNormalLike(X) B = RandomNormalLike(X) Y = Add(A, B) }", {}, {},
    ),
}  # fmt: skip


def case(name: str, folder: Path) -> Certified:
    graph, stored, how = CASES[name]
    return written(folder, graph, stored, **how)


@pytest.mark.parametrize("name", CASES)
def test_an_honest_certificate_is_confirmed(name: str, tmp_path: Path) -> None:
    certified = case(name, tmp_path)
    done = certified.outcome()
    assert (done.outcome, done.reasons) == (Outcome.CONFIRMED, ())
    assert done.shown[0].startswith("shown: for the same inputs, B gives ")
    predicate = certified.statement["predicate"]
    assert f"strength {predicate['strength']}" in done.shown[1]
    for rule, rests in predicate["rules"].items():
        assert f"rests on the recorded proof of {rule}, digest {rests['proof']}" in done.shown
    for said in predicate["assumed"]:
        assert f"assumed of values: {said}" in done.shown
    steps = [it["do"] for it in predicate["sequences"][0]["steps"]]
    assert all(theorem in done.shown[-1] for do in steps for theorem in THEOREMS[do])


def test_what_is_said_depends_on_what_was_done(tmp_path: Path) -> None:
    assert "where no caller of A gives values" in "\n".join(case("fixed", tmp_path).outcome().shown)
    reals = case("over the reals", tmp_path).outcome().shown
    assert "equal over the real numbers" in reals[0] and "assumed of values: No number is 0." in reals


def test_a_value_that_is_not_evaluated_is_taken_on_trust_and_said_to_be(tmp_path: Path) -> None:
    graph = "g (float[2] X) => (float[2] Y) { c = Exp(a) Y = Mul(X, c) }"
    done = written(tmp_path, graph, {"a": TWO["a"]}).outcome()
    assert done.outcome is Outcome.NOT_CHECKED
    assert done.reasons == ('taken on trust: the value of Exp that writes "c": an element of it is not evaluated here',)
    assert "given that 1 folded value is right, which is not shown here" in done.shown


def test_two_models_that_come_to_the_same(tmp_path: Path) -> None:
    head = "g (float[2,3] X) => (float[2,3] Y)"
    one = f"{head} {{ A = Transpose(X) B = Transpose(A) C = Relu(B) D = Relu(B) Y = Add(C, D) }}"
    same = "g (float[2,3] X) => (float[2,3] Y) { q = Relu(X) Y = Add(q, q) }"
    other = "g (float[2,3] X) => (float[2,3] Y) { q = Relu(X) Y = Sub(q, q) }"
    done = compared(tmp_path, proto_of(one), proto_of(same)).outcome()
    assert done.outcome is Outcome.CONFIRMED and "in runs of A and B that come to their end" in done.shown[0]
    assert compared(tmp_path, proto_of(one), proto_of(other)).outcome().reasons == ("Add is not seen to be Sub",)


# ---- Forgeries ----------------------------------------------------------------------------------


def steps(statement: Statement) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = statement["predicate"]["sequences"][0]["steps"]
    return listed


def other_rule(it: Statement) -> None:
    name = steps(it)[0]["rule"] = "TransposeNothing"
    row = next(row for row in rows() if row["rule"] == name)
    it["predicate"]["rules"] = {name: {"claim": row["claim"], "proof": row["digest"], "text": rests_on(name)}}


def never(it: Statement) -> None:
    steps(it)[0]["rule"] = "TransposeTransposeBackwards"


def unknown_rule(it: Statement) -> None:
    steps(it)[0]["rule"] = "TransposeAway"


def other_text(it: Statement) -> None:
    it["predicate"]["rules"]["TransposeTranspose"]["text"] = "0" * 64


def other_proof(it: Statement) -> None:
    it["predicate"]["rules"]["TransposeTranspose"]["proof"] = "0" * 64


def other_claim(it: Statement) -> None:
    it["predicate"]["rules"]["TransposeTranspose"]["claim"] = "reals"


def more_rules(it: Statement) -> None:
    it["predicate"]["rules"]["AbsAbs"] = it["predicate"]["rules"]["TransposeTranspose"]


def stronger(it: Statement) -> None:
    it["predicate"]["strength"] = "exact"


def weaker(it: Statement) -> None:
    it["predicate"]["strength"] = "reals"


def not_assumed(it: Statement) -> None:
    it["predicate"]["assumed"] = []


def more_assumed(it: Statement) -> None:
    it["predicate"]["assumed"].append("All is well.")


def other_permutation(it: Statement) -> None:
    steps(it)[0]["made"][0]["attributes"]["perm"][1] = ["0", "1", "2"]


def other_operator(it: Statement) -> None:
    steps(it)[0]["made"][0]["op_type"] = "Reshape"


def other_version(it: Statement) -> None:
    steps(it)[0]["made"][0]["version"] = 12


def other_input(it: Statement) -> None:
    steps(it)[0]["made"][0]["inputs"] = [1]


def other_nodes(it: Statement) -> None:
    steps(it)[0]["nodes"].reverse()


def not_fresh(it: Statement) -> None:
    steps(it)[0]["made"][0]["node"] = 0


def other_order(it: Statement) -> None:
    steps(it).reverse()


def twice(it: Statement) -> None:
    steps(it).append(steps(it)[-1])


def drops_more(it: Statement) -> None:
    steps(it).append({"do": "drop", "node": 2})


def drops_nothing(it: Statement) -> None:
    steps(it).append({"do": "drop", "node": 77})


def swaps(it: Statement) -> None:
    steps(it)[0]["swapped"] = [[0, "AddConstantSecond"]]


def no_swap(it: Statement) -> None:
    steps(it)[0]["swapped"] = []


def swaps_by(it: Statement) -> None:
    steps(it)[0]["swapped"] = [[1, "MulConstantSecond"]]


def other_value(it: Statement) -> None:
    steps(it)[0]["values"][0]["sha256"] = "0" * 64


def other_tensor(it: Statement) -> None:
    steps(it)[0]["values"][0]["tensor"] = 0


def merges_others(it: Statement) -> None:
    steps(it)[0]["other"] = 2


def merges_itself(it: Statement) -> None:
    steps(it)[0]["other"] = steps(it)[0]["node"]


def shares_an_input(it: Statement) -> None:
    steps(it)[0]["other"] = 0


def renames(it: Statement) -> None:
    it["predicate"]["names"] = [[0, "Z"]]


def renames_again(it: Statement) -> None:
    it["predicate"]["names"] = [[1, "A"], [1, "B"]]


def not_fixed(it: Statement) -> None:
    it["predicate"]["sequences"][0]["fixed"] = False


def no_theorem(it: Statement) -> None:
    it["predicate"]["theorems"] = {}


def other_theorem(it: Statement) -> None:
    it["predicate"]["theorems"]["Pruning"] = "0" * 64


def lowers(it: Statement) -> None:
    steps(it)[0]["opset"] = 7


def raises_more(it: Statement) -> None:
    steps(it)[0]["opset"] = 1 << 50


def as_comparison(it: Statement) -> None:
    it["predicate"]["kind"] = "equiv"


def no_files(it: Statement) -> None:
    it["subject"] = it["subject"][:1]


def merges_draws(it: Statement) -> None:
    steps(it).append({"do": "merge", "node": 1, "other": 0})


def folds_draws(it: Statement) -> None:
    steps(it).append({"do": "fold", "node": 0, "values": [None]})


FORGED: Mapping[str, tuple[str, Callable[[Statement], None], str]] = {
    "another rule": ("transpositions", other_rule, "stands at the nodes [1], not at [0, 1]"),
    "a rule that is never right": ("transpositions", never, "never right"),
    "no rule": ("transpositions", unknown_rule, "there is no rewrite"),
    "another text": ("transpositions", other_text, "rests on another text, proof or claim"),
    "another proof": ("transpositions", other_proof, "rests on another text, proof or claim"),
    "another claim": ("transpositions", other_claim, "rests on another text, proof or claim"),
    "rules that were not used": ("transpositions", more_rules, "the rules are not those that were used"),
    "stronger than its rules": ("over the reals", stronger, "by the rules that were used it is reals"),
    "weaker than its rules": ("transpositions", weaker, "by the rules that were used it is exact"),
    "an assumption left out": ("over the reals", not_assumed, "No number is 0."),
    "an assumption of nobody": ("over the reals", more_assumed, "that no rule assumes"),
    "another attribute": ("transpositions", other_permutation, "the attributes of Transpose are not those"),
    "another operator": ("transpositions", other_operator, "a new node is Transpose, not Reshape"),
    "another version": ("transpositions", other_version, "has another meaning"),
    "another input": ("transpositions", other_input, "reads something else"),
    "nodes in another order": ("transpositions", other_nodes, "does not match"),
    "a node that is there already": ("transpositions", not_fresh, "node 0 is not new"),
    "steps in another order": ("transpositions", other_order, "is read, or given out"),
    "a step twice": ("transpositions", twice, "speaks of something that is not there"),
    "a node that is needed": ("transpositions", drops_more, "is read, or given out"),
    "a node that is not there": ("transpositions", drops_nothing, "speaks of something that is not there"),
    "operands that are not two": ("transpositions", swaps, "cannot change places"),
    "operands as they do not stand": ("operands changed places", no_swap, "does not match"),
    "another operator commutes": ("operands changed places", swaps_by, "rests on another text, proof or claim"),
    "another value": ("folded", other_value, "gives other values"),
    "a value of another tensor": ("folded", other_tensor, "are not those of the results"),
    "nodes that are not equal": ("equal", merges_others, "not the same operator"),
    "a node that is itself": ("equal", merges_itself, "not the same operator"),
    "a value that is an input": ("stored twice", shares_an_input, "no stored values of one graph"),
    "an input renamed": ("transpositions", renames, "is given another name"),
    "a name given twice": ("transpositions", renames_again, "a name is given to a tensor"),
    "a value that callers override": ("fixed", not_fixed, "reads what is no stored value"),
    "no theorem": ("dead", no_theorem, "the theorems are not those"),
    "another theorem": ("dead", other_theorem, "the theorems are not those"),
    "an operator set lowered": ("raised", lowers, "not raised but lowered"),
    "an operator set of the future": ("raised", raises_more, "the last model is of another operator set"),
    "a comparison": ("transpositions", as_comparison, "more or fewer sequences"),
    "one file": ("transpositions", no_files, "model B is not the one that was certified"),
    "draws that are equal": ("drawn twice", merges_draws, "draws its result"),
    "a draw that is folded": ("drawn twice", folds_draws, "draws its result"),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_is_not_confirmed(name: str, tmp_path: Path) -> None:
    model, forge, words = FORGED[name]
    certified = case(model, tmp_path)
    statement = certified.statement
    forge(statement)
    done = certified.outcome(statement)
    assert done.outcome is not Outcome.CONFIRMED and not done.shown, done
    assert len(done.reasons) == 1 and "\n" not in done.reasons[0] and words in done.reasons[0], done.reasons


# ---- Another last model -------------------------------------------------------------------------


def changes_permutation(it: onnx.ModelProto) -> None:
    it.graph.node[0].attribute[0].ints[:] = [0, 1, 2]


def changes_operator(it: onnx.ModelProto) -> None:
    it.graph.node[0].op_type = "Neg"


def changes_node_name(it: onnx.ModelProto) -> None:
    it.graph.node[0].name = "another"


def changes_input(it: onnx.ModelProto) -> None:
    it.graph.input[0].name = it.graph.node[0].input[0] = "Z"


def changes_declaration(it: onnx.ModelProto) -> None:
    it.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 7


def changes_element_type(it: onnx.ModelProto) -> None:
    it.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.DOUBLE


def changes_bit(it: onnx.ModelProto) -> None:
    data = bytearray(it.graph.initializer[0].raw_data)
    data[0] ^= 1
    it.graph.initializer[0].raw_data = bytes(data)


def changes_sizes(it: onnx.ModelProto) -> None:
    it.graph.initializer[0].dims[:] = [2, 1]


def adds_node(it: onnx.ModelProto) -> None:
    it.graph.node.append(onnx.helper.make_node("Neg", ["X"], ["unread"]))


def adds_value(it: onnx.ModelProto) -> None:
    it.graph.initializer.append(numpy_helper.from_array(np.float32([1]), "more"))


def overrides(it: onnx.ModelProto) -> None:
    it.graph.input.append(onnx.helper.make_tensor_value_info(it.graph.initializer[0].name, 1, [2]))


def lowers_opset(it: onnx.ModelProto) -> None:
    it.opset_import[0].version = 11


LAST: Mapping[str, tuple[str, Callable[[onnx.ModelProto], None], str]] = {
    "another attribute": ("transpositions", changes_permutation, "other attributes"),
    "another operator": ("dead", changes_operator, "another operator"),
    "another name of a node": ("dead", changes_node_name, "has another name"),
    "another name of an input": ("dead", changes_input, 'is not "Z"'),
    "another size": ("dead", changes_declaration, "declared otherwise"),
    "another element type": ("dead", changes_element_type, "declared otherwise"),
    "another bit": ("folded", changes_bit, "is another one"),
    "another shape of a value": ("folded", changes_sizes, "is another one"),
    "a node more": ("dead", adds_node, "the steps lead to 1 nodes in a graph that has 2"),
    "a value more": ("dead", adds_value, "is another one"),
    "an input more": ("folded", overrides, "an input or an output more"),
    "another operator set": ("raised", lowers_opset, "the last model is of another operator set"),
}


@pytest.mark.parametrize("name", LAST)
def test_another_last_model_is_not_what_the_steps_lead_to(name: str, tmp_path: Path) -> None:
    model, change, words = LAST[name]
    certified = case(model, tmp_path)
    last = onnx.load(certified.other)
    change(last)
    certified.other.write_bytes(last.SerializeToString())
    assert certified.outcome().reasons == ("model B is not the one that was certified: its SHA-256 differs",)
    done = certified.outcome(resigned(certified.statement, certified, certified.other))
    assert done.outcome is not Outcome.CONFIRMED and not done.shown
    assert len(done.reasons) == 1 and words in done.reasons[0], done.reasons


def test_the_models_are_those_that_were_certified_in_their_order(tmp_path: Path) -> None:
    certified = case("dead", tmp_path)
    turned = recheck(certified.data, certified.other, certified.model)
    assert turned.reasons == ("model A is not the one that was certified: its SHA-256 differs",)
    with pytest.raises(ModelError, match="is about two models: name both"):
        recheck(certified.data, certified.model)


# ---- Bytes --------------------------------------------------------------------------------------


def with_step(step: object) -> Callable[[Statement], bytes]:
    def change(it: Statement) -> bytes:
        it["predicate"]["sequences"][0]["steps"] = [step]
        return sealed(it)

    return change


HOSTILE: Mapping[str, tuple[Callable[[Statement], bytes], str]] = {
    "a step of no kind": (with_step({"do": "believe"}), "must be a step whose do is one of"),
    "a step that is a list": (with_step(["drop", 1]), "must be a step whose do is one of"),
    "a step with more": (with_step({"do": "drop", "node": 1, "why": ""}), "exactly the keys"),
    "a number that is true": (with_step({"do": "drop", "node": True}), "must be an integer"),
    "a huge number": (with_step({"do": "drop", "node": 1 << 60}), "more than 53 bits"),
    "a negative number": (with_step({"do": "drop", "node": -1}), ""),
    "a key twice": (lambda it: sealed(it).replace(b'{"_type"', b'{"_type":"","_type"', 1), "names one key twice"),
    "a number with a point": (lambda it: sealed(it).replace(b'"names":[]', b'"names":[1.5]'), "only integers"),
    "deep nesting": (lambda it: sealed(it).replace(b'"names":[]', b'"names":' + b"[" * 900 + b"]" * 900), ""),
    "another seal": (lambda it: sealed(it).replace(b'"seal":"', b'"seal":"0', 1)[:-2] + b"\n", ""),
    "a blank": (lambda it: sealed(it).replace(b'"names":[]', b'"names": []'), "not in canonical form"),
    "a path": (
        lambda it: sealed({**it, "subject": [*it["subject"], {"name": "B/../../x", "digest": {"sha256": "0" * 64}}]}),
        "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    change, words = HOSTILE[name]
    certified = case("dead", tmp_path)
    data = change(certified.statement)
    try:
        done = recheck(data, certified.model, certified.other)
    except ModelError as error:
        said = str(error)
    else:
        assert done.outcome is not Outcome.CONFIRMED and len(done.reasons) == 1 and not done.shown
        said = done.reasons[0]
    assert words in said and "\n" not in said and len(said) < 500


# ---- The record ---------------------------------------------------------------------------------


def test_the_record_says_of_which_texts_its_rows_are() -> None:
    if os.environ.get("SONNX_UPDATE"):
        write_texts()
    listed = rows(PATH.with_name("texts.tsv"))
    assert {it["rule"]: it["digest"] for it in listed} == {it["rule"]: it["digest"] for it in rows()}
    wrong = [it["rule"] for it in listed if it["text"] != rests_on(it["rule"])]
    assert not wrong, "SONNX_UPDATE=1 writes the texts of rows that are of the present text"


def test_both_readers_have_the_same_digests_of_texts() -> None:
    own = judging.library_of(texts())
    assert [it["rule"] for it in rows() if own.rests_on(it["rule"]) != rests_on(it["rule"])] == []
    stated = judging.theorems_of(texts())
    assert all(stated.theorem(name) == theorem(name) != "" for listed in THEOREMS.values() for name in listed)


def changed(column: str, value: str) -> Callable[[dict[str, str]], None]:
    return lambda row: row.update({column: value})


RECORDS: Mapping[str, tuple[str, Callable[[dict[str, str]], None], str]] = {
    "another digest": ("proved.tsv", changed("digest", "0" * 64), "is one of another text"),
    "another text": ("texts.tsv", changed("text", "0" * 64), "is one of another text"),
    "refuted": ("proved.tsv", changed("verdict", "refuted"), "on record as refuted"),
    "weaker": ("proved.tsv", changed("strength", "reals"), "is proved as reals only"),
    "another claim": ("proved.tsv", changed("claim", "allowed"), "with the claim allowed"),
    "fewer axes": ("proved.tsv", changed("axes", "2"), "is proved for up to 2 axes"),
    "shorter lists": ("proved.tsv", changed("lists", "2"), "is proved for lists of up to 2"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_rule_is_used_as_far_as_its_record_goes(name: str, tmp_path: Path) -> None:
    file, change, words = RECORDS[name]
    certified = case("transpositions", tmp_path)
    done = with_record(certified, tmp_path, lambda each, row: change(row) if each == file else None)
    assert done.outcome is not Outcome.CONFIRMED and words in done.reasons[0], done.reasons


def test_every_rewrite_is_read_here() -> None:
    own = judging.library_of(texts())
    for row in rows():
        found = rewrite(own, row["rule"])
        assert found is not None and found.claim == row["claim"] and found.left and found.right


def test_the_statement_is_json_that_any_reader_takes(tmp_path: Path) -> None:
    certified = case("transpositions", tmp_path)
    assert sealed(json.loads(certified.data)) == certified.data


def sonnx(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit code of a command in a folder, and what it prints."""
    out = io.StringIO()
    with nothing_added(folder), redirect_stdout(out), redirect_stderr(out):
        return cli.run([*arguments]), out.getvalue()


BOTH = ("one.txt", "other.txt")
HEAD = '<ir_version: 10, opset_import: ["" : 22]> g (float[2,3] X) => (float[2,3] Y)'


def test_the_commands(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(f"{HEAD} {{ A = Transpose(X) B = Transpose(A) Y = Relu(B) }}")
    (tmp_path / "other.txt").write_text(f"{HEAD} {{ Y = Relu(X) }}")
    code, told = sonnx(tmp_path, "optimize", "one.txt", "-o", "small.onnx", "--certificate", "done.json")
    assert code == 0 and "3 nodes before, 1 now" in told
    code, told = sonnx(tmp_path, "recheck", "done.json", "one.txt", "small.onnx")
    assert code == 0 and told.startswith("CONFIRMED\n  shown: for the same inputs, B gives the same bits, but that a")
    code, told = sonnx(tmp_path, "recheck", "done.json", "one.txt", "small.onnx", "--format", "json")
    assert code == 0 and json.loads(told)["shown"][1] == 'A is "one.txt", B is "small.onnx"; strength exact'
    code, told = sonnx(tmp_path, "recheck", "done.json", "other.txt", "small.onnx")
    assert code == 1 and "model A is not the one that was certified" in told
    assert "no certificate" not in sonnx(tmp_path, "equiv", *BOTH, "--certificate", "same.json")[1]
    code, told = sonnx(tmp_path, "recheck", "same.json", *BOTH)
    assert code == 0 and "in runs of A and B that come to their end" in told


def test_equiv_writes_no_certificate_that_cannot_be_done_again(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text(f"{HEAD} {{ Y = Neg(X) }}")
    (tmp_path / "other.txt").write_text(f"{HEAD} {{ Y = Relu(X) }}")
    code, told = sonnx(tmp_path, "equiv", *BOTH, "--certificate", "same.json")
    assert code == 1 and "no certificate is written: they differ" in told
    (tmp_path / "other.txt").write_text(f"{HEAD} {{ A = Abs(X) Y = Neg(A) }}".replace("X)", "X, float W)", 1))
    code, told = sonnx(tmp_path, "equiv", "other.txt", "one.txt", "--max-time", "0.1", "--certificate", "same.json")
    assert code in (1, 3) and "no certificate is written: " in told
    assert not (tmp_path / "same.json").exists()


OWN = """
rewrite OwnNegations (X: T[d...]) -> Y: T "Two changes of sign are none." source "here"
  from Y = Neg@13(Neg@13(X))
  to Y = X
  exactly
"""


def test_no_certificate_rests_on_a_proof_that_is_on_no_record(tmp_path: Path) -> None:
    (tmp_path / "own.sonnx").write_text(OWN)
    (tmp_path / "one.txt").write_text(f"{HEAD} {{ A = Neg(X) B = Neg(A) Y = Relu(B) }}")
    command = ("--spec", "own.sonnx", "optimize", "one.txt", "-o", "small.onnx", "--rules", "OwnNegations")
    code, told = sonnx(tmp_path, *command, "--certificate", "done.json")
    assert code == 2 and "OwnNegations is a rewrite of an added text, on whose proof no certificate can rest" in told


def test_a_model_that_nothing_is_done_to(tmp_path: Path) -> None:
    done = optimized(tmp_path, proto_of("g (float[2] X) => (float[2] Y) { Y = Relu(X) }")).outcome()
    assert done.outcome is Outcome.CONFIRMED and len(done.shown) == 2


SHOWN = "g (float[2] x, float[2] b) => (int32[2] y) {{ n = Neg(x) m = Mul(n, b) y = {}<to=6>(m) }}"
SHOWN_LATER = (
    "g (float[2] x, float[3] xs) => (float[2] y, int32[3,2] z) {{ y, z = Scan(x, xs) <num_scan_inputs=1, body = l"
    " (float[2] s, float e) => (float[2] v, int32[2] w) {{ n = Neg(s) v = Mul(n, e) w = {}<to=6>(s) }}> }}"
)


@pytest.mark.parametrize("text", [SHOWN, SHOWN_LATER], ids=["", "in the next round"])
def test_a_rewrite_of_numbers_whose_digits_bitcast_shows_is_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(OpenModel, "shown", lambda _: frozenset())
    found = written(tmp_path / "one", text.format("BitCast"), of=26, rules=["NegMul"]).outcome()
    assert found.outcome is Outcome.NOT_CHECKED and "BitCast shows which NaN" in found.reasons[0]
    assert (
        written(tmp_path / "two", text.format("Cast"), of=26, rules=["NegMul"]).outcome().outcome is Outcome.CONFIRMED
    )
