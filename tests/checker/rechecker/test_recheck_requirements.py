"""Requirements of operators derived again: certificates are confirmed, and none that lies about them is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper
from sonnx.checker import certify, recheck
from sonnx.checker.certification.certificate import certificate, seal
from sonnx.checker.certification.formats.words import spelled
from sonnx.checker.rechecker import Outcome
from sonnx.checker.rechecker.facts import facts
from sonnx.checker.rechecker.operators import derive
from sonnx.checker.rechecker.operators.values import Tensor
from sonnx.checker.rechecker.reader import read
from sonnx.checker.rechecker.text import texts

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
RULES = ("domain", "sonnx-constraints")
Statement = dict[str, Any]
Forgery = Callable[[Statement], None]


def _value(name: str, shape: list[int | str | None] | None, kind: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    stored: dict[str, np.ndarray[Any, Any]] | None = None,
    infos: list[onnx.ValueInfoProto] | None = None,
) -> onnx.ModelProto:
    initializers = [numpy_helper.from_array(data, name) for name, data in (stored or {}).items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers, value_info=infos or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _convolution(image: list[int | str | None]) -> onnx.ModelProto:
    weights = np.ones((4, 1, 3, 3), np.float32)
    node = helper.make_node("Conv", ["X", "W"], ["Y"])
    return _model([node], [_value("X", image)], [_value("Y", None)], {"W": weights})


def _looked_up() -> onnx.ModelProto:
    node = helper.make_node("Gather", ["data", "where"], ["Y"])
    return _model([node], [_value("data", [5, 2]), _value("where", [3], INT64)], [_value("Y", None)])


def _counted() -> onnx.ModelProto:
    """A size that data decide, and a node behind that needs it to be 3."""
    nodes = [
        helper.make_node("NonZero", ["X"], ["at"]),
        helper.make_node("Cast", ["at"], ["found"], to=FLOAT),
        helper.make_node("Add", ["found", "B"], ["Y"]),
    ]
    return _model(nodes, [_value("X", [7]), _value("B", [1, 3])], [_value("Y", None)])


def _optimized() -> onnx.ModelProto:
    """An operator of another domain, one of whose outputs has a type by the text alone."""
    return onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["": 18, "ai.onnx.preview.training": 1]>
        g (float R, int64 T, float[N, 2] X, float[N, 2] G, float[N, 2] H) => (float[N, 2] Y) {
          x, h = ai.onnx.preview.training.Adagrad (R, T, X, G, H)
          Y = Relu (x)
        }""")


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    "fixed": lambda: _convolution([1, 1, 8, 8]),
    "small": lambda: _convolution([1, 1, 2, 8]),
    "free": lambda: _convolution(["N", 1, "H", "W"]),
    "data": _looked_up,
    "counted": _counted,
    "declared": lambda: _model(
        [helper.make_node("Concat", ["A", "B"], ["Y"], axis=0)],
        [_value("A", ["N", 3]), _value("B", ["N", 3])],
        [_value("Y", ["M", 3])],
    ),
    "lying": lambda: _model(
        [helper.make_node("Relu", ["A"], ["b"]), helper.make_node("MatMul", ["b", "B"], ["Y"])],
        [_value("A", [2, 3]), _value("B", [4, 5])],
        [_value("Y", None)],
        infos=[_value("b", [2, 4])],
    ),
    "domain": _optimized,
}
EXPECTED = {
    "fixed": "CONFORMS", "small": "VIOLATES", "free": "CONFORMS", "data": "CONFORMS", "counted": "CONFORMS",
    "declared": "CONFORMS", "lying": "VIOLATES", "domain": "CONFORMS",
}  # fmt: skip


@pytest.fixture(scope="session")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[bytes, Path]]:
    folder, made = tmp_path_factory.mktemp("requirements"), dict[str, tuple[bytes, Path]]()

    def issue(name: str) -> tuple[bytes, Path]:
        if name not in made:
            path = folder / f"{name}.onnx"
            path.write_bytes(MODELS[name]().SerializeToString())
            report = certify(path, rules=RULES, witnesses=True)
            assert report.verdict == EXPECTED[name]
            made[name] = seal(certificate(report)), path
        return made[name]

    return issue


Certified = Callable[[str], tuple[bytes, Path]]


@pytest.mark.parametrize("name", MODELS)
def test_a_certificate_over_requirements_is_confirmed(name: str, certified: Certified) -> None:
    found = recheck(*certified(name))
    assert found.outcome is Outcome.CONFIRMED, found.reasons


# ---- Forgeries ----------------------------------------------------------------------------------


def _rule(statement: Statement, name: str) -> Statement:
    return next(rule for rule in statement["predicate"]["rules"] if rule["id"] == name)


def _holds(*names: str) -> Forgery:
    """The rules are stated to hold, and with them everything else to conform."""

    def forge(statement: Statement) -> None:
        predicate = statement["predicate"]
        for name in names:
            _rule(statement, name).update(verdict="holds", findings=[], total=0, besides={}, obligations=0)
            predicate["witnesses"][name] = {"kind": "nodes"}
        predicate["conditions"] = {rule_set: [] for rule_set in predicate["conditions"]}
        for entry in predicate["rule_sets"]:
            own = [rule for rule in predicate["rules"] if rule["rule_set"] == entry["name"]]
            entry["verdict"] = "VIOLATES" if any(rule["verdict"] == "violated" for rule in own) else "CONFORMS"
            entry["obligations"] = sum(rule["obligations"] for rule in own)
        predicate["obligations"] = sum(rule["obligations"] for rule in predicate["rules"])
        violated = any(entry["verdict"] == "VIOLATES" for entry in predicate["rule_sets"])
        predicate["verdict"] = "VIOLATES" if violated else "CONFORMS"

    return forge


def _conditions(terms: list[object]) -> Forgery:
    def forge(statement: Statement) -> None:
        statement["predicate"]["conditions"]["domain"] = terms

    return forge


def _dropped(name: str) -> Forgery:
    def forge(statement: Statement) -> None:
        predicate = statement["predicate"]
        predicate["rules"] = [rule for rule in predicate["rules"] if rule["id"] != name]
        predicate["witnesses"].pop(name, None)

    return forge


def _witness(**changed: object) -> Forgery:
    def forge(statement: Statement) -> None:
        _rule(statement, "Conv-11/kernel_fits")["findings"][0]["witness"].update(changed)

    return forge


def _limited(statement: Statement) -> None:
    """Limits of sizes with which not everything holds."""
    for size in statement["predicate"]["sizes"]:
        size[1] = 2
    _holds("Conv-11/kernel_fits")(statement)


def _many(statement: Statement) -> None:
    """More places than are listed, so that the one which is hidden is not missed."""
    rule = _rule(statement, "Conv-11/kernel_fits")
    rule.update(total=1000)


def _renamed(statement: Statement) -> None:
    rule = _rule(statement, "Gather-1/indices_in_range")
    rule["findings"][0]["witness"]["condition"] = ["<=", 0, 0]


FORGERIES: dict[str, tuple[str, Forgery]] = {
    "a violated requirement is stated to hold": ("small", _holds("Conv-11/kernel_fits")),
    "a requirement of matrices of other sizes is stated to hold": ("lying", _holds("MatMul-1/inner_dimensions")),
    "a shape that the model declares wrongly is stated to be right": ("lying", _holds("shapes")),
    "a condition on sizes is stated to hold for all": ("free", _holds("Conv-11/kernel_fits")),
    "a weaker condition is stated": ("free", _conditions([["<=", 2, "H"], ["<=", 3, "W"]])),
    "half of the condition is stated": ("free", _conditions([["<=", 3, "H"]])),
    "no condition is stated": ("free", _conditions([])),
    "a stronger condition is stated": ("free", _conditions([["<=", 4, "H"], ["<=", 3, "W"]])),
    "the rule that is conditional is left out": ("free", _dropped("Conv-11/kernel_fits")),
    "a rule that holds is left out": ("fixed", _dropped("Conv-11/kernel_fits")),
    "a witness that does not fail": ("free", _witness(sizes={"H": 5, "W": 5, "N": 1})),
    "a witness that is no size": ("free", _witness(sizes={"H": 0, "W": 1})),
    "a witness with a size that is none": ("free", _witness(sizes={"H": 1, "W": 1, "K": 1})),
    "a witness with a size beside the sizes": ("free", _witness(H=1)),
    "a witness whose sizes are no names and numbers": ("free", _witness(sizes=[["H", 1], ["W", 1]])),
    "a witness with true in place of 1": ("free", _witness(sizes={"H": True, "W": True})),
    "the condition at the node is weakened": ("free", _witness(condition=["<=", 1, "H"])),
    "more places are stated than listed": ("free", _many),
    "the sizes are limited, and not enough": ("free", _limited),
    "an obligation is stated to hold": ("data", _holds("Gather-1/indices_in_range")),
    "an obligation has a condition of its own": ("data", _renamed),
}


def _forged(name: str, certified: Certified) -> tuple[bytes, Path]:
    model, forge = FORGERIES[name]
    sealed, path = certified(model)
    statement = json.loads(sealed)
    forge(statement)
    bare = seal(statement)
    assert bare != sealed
    return bare, path


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_certificate_is_not_confirmed(name: str, certified: Certified) -> None:
    found = recheck(*_forged(name, certified))
    by_data = name == "an obligation is stated to hold"  # what data decide is not refuted by sizes
    assert found.outcome is (Outcome.NOT_CHECKED if by_data else Outcome.REFUTED), found.reasons


# ---- Types and shapes ---------------------------------------------------------------------------


def _shapes(model: onnx.ModelProto) -> dict[str, tuple[str, object]]:
    derivation = derive(facts(read(model)), texts().operators)
    tensors = derivation.graph.reading.tensors
    return {
        tensors[t].name: (content.kind, content.shape)
        for t, content in derivation.contents.items()
        if isinstance(content, Tensor)
    }


def test_a_shape_that_is_computed_in_the_model_is_known() -> None:
    """Shape, Gather, Concat and Reshape, as exporters write it."""
    nodes = [
        helper.make_node("Shape", ["X"], ["all"]),
        helper.make_node("Gather", ["all", "zero"], ["first"], axis=0),
        helper.make_node("Concat", ["first", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["X", "wanted"], ["Y"]),
    ]
    stored = {"zero": np.array([0]), "rest": np.array([-1, 6])}
    found = _shapes(_model(nodes, [_value("X", [5, 4, 3])], [_value("Y", None)], stored))
    assert found["wanted"] == ("int64", (3,))
    assert found["Y"] == ("float", (5, 2, 6))


def test_what_the_model_declares_does_not_hide_what_is_computed() -> None:
    assert _shapes(MODELS["lying"]())["b"] == ("float", (2, 3))


def test_a_name_that_spells_a_term_is_a_size_of_its_own() -> None:
    """A dimension variable may not pass for a quotient that another size makes."""
    nodes = [helper.make_node("MaxPool", ["A"], ["a"], kernel_shape=[2], strides=[2])]
    nodes += [helper.make_node("Add", ["a", "B"], ["Y"])]
    for name in ("(1*H div 2)", '(1*"H" div 2)', '1*(1*"H" div 2)'):
        inputs = [_value("A", [1, 1, "H"]), _value("B", [1, 1, name])]
        derivation = derive(facts(read(_model(nodes, inputs, [_value("Y", None)]))), texts().operators)
        assert [judged.verdict for judged in derivation.judged["Add-7/shapes_broadcast"]] == ["conditional"]


def test_a_size_without_a_name_is_not_that_of_a_variable_which_spells_it() -> None:
    nodes = [helper.make_node("Concat", ["A", "B"], ["Y"], axis=0)]
    model = _model(nodes, [_value("A", [2, None]), _value("B", [2, "A[1]"])], [_value("Y", None)])
    derivation = derive(facts(read(model)), texts().operators)
    assert any(judged.verdict == "conditional" for judged in derivation.judged["Concat-4/same_other_sizes"])


def test_a_rule_set_without_a_rule_in_the_model_is_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "relu.onnx"
    path.write_bytes(
        _model([helper.make_node("Relu", ["X"], ["Y"])], [_value("X", [2])], [_value("Y", [2])]).SerializeToString()
    )
    sealed = seal(certificate(certify(path, rules=["sonnx-constraints"], witnesses=True)))
    assert json.loads(sealed)["predicate"]["rules"] == []
    assert recheck(sealed, path).outcome is Outcome.CONFIRMED


def test_places_that_are_known_are_read_at_any_index() -> None:
    """NonZero of a constant: all of its indices are stored, and a Gather asks for any of them."""
    nodes = [helper.make_node("NonZero", ["mask"], ["at"]), helper.make_node("GatherND", ["X", "at"], ["Y"])]
    stored = {"mask": np.ones((1, 40), np.float32)}
    derivation = derive(
        facts(read(_model(nodes, [_value("X", [1, 1])], [_value("Y", None)], stored))), texts().operators
    )
    assert derivation.judged["NonZero-9/inputs"][0].verdict == "holds"


# ---- What is owed once --------------------------------------------------------------------------

SLICES = """<ir_version: 8, opset_import: ["" : 13]>
slices (int64 n, bool go, float[1] y) => (float[1] last, float[K, 1] all) {
  last, all = Loop (n, go, y)
  <body = step (int64 i, bool go_in, float[1] y_in) => (bool go_out, float[1] y_out, float[1] z)
    <int64[1] zero = {0}, float[5] x = {1, 2, 3, 4, 5}, int64[1] one = {1}> {
      go_out = Identity (go_in)
      start = Unsqueeze (i, zero)
      end = Add (start, one)
      part = Slice (x, start, end)
      y_out = Add (y_in, part)
      z = Identity (y_out)
  }>
}
"""
MAKER, BEHIND = "/0:Loop.body/4:Add", "/0:Loop.body/5:Identity"


def _obliged(path: Path, change: Callable[[Statement], None]) -> Outcome:
    statement = json.loads(seal(certificate(certify(path, witnesses=True))))
    rule = _rule(statement, "shapes")
    places = [finding["where"] for finding in rule["findings"]]
    assert MAKER in places
    assert BEHIND not in places
    change(rule)
    return recheck(seal(statement), path).outcome


def _moved(rule: Statement) -> None:
    for finding in rule["findings"]:
        if finding["where"] == MAKER:
            finding["where"] = finding["witness"]["n"] = BEHIND


def test_what_a_node_owes_is_not_listed_again_behind_it_and_nowhere_else(tmp_path: Path) -> None:
    """The shape of y_out is owed by the Add that makes it; the Identity behind it needs the same."""
    path = tmp_path / "slices.onnxtxt"
    path.write_text(SLICES)
    assert _obliged(path, lambda rule: None) is Outcome.CONFIRMED
    assert _obliged(path, _moved) is not Outcome.CONFIRMED


WRAPPING = {
    "a product": "(int64[1] k) => (float[M] y) <int64[1] c = {2}> { r = Relu(k) s = Mul(r, c) y = ConstantOfShape(s) }",
    "a sum": "(int64[1] k) => (float[M] y) <int64[1] c = {2}> { r = Relu(k) s = Add(r, c) y = ConstantOfShape(s) }",
}


@pytest.mark.parametrize("name", WRAPPING)
def test_an_element_that_may_wrap_around_is_not_stated_to_be_in_range(name: str, tmp_path: Path) -> None:
    """With k = 2^63 - 1 the size is negative, and a run gets stuck."""
    path = tmp_path / "wrapping.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng {WRAPPING[name]}'), path)
    sealed = seal(certificate(certify(path, rules=RULES, witnesses=True)))
    assert recheck(sealed, path).outcome is Outcome.CONFIRMED
    statement = json.loads(sealed)
    _holds("ConstantOfShape-9/sizes_not_negative")(statement)
    assert recheck(seal(statement), path).outcome is not Outcome.CONFIRMED


# ---- Names of sizes ----------------------------------------------------------------------------

KEYS = ("condition", "sizes", "n", "needed_by", "kind", "where", "witness", "cycle", "size", "index", "and", "1", "")


@pytest.mark.parametrize("name", KEYS)
def test_a_size_may_bear_the_name_of_a_key(name: str, tmp_path: Path) -> None:
    path = tmp_path / "named.onnx"
    path.write_bytes(_convolution(["N", 1, name, "W"]).SerializeToString())
    report = certify(path, rules=RULES, witnesses=True)
    assert report.verdict == "CONFORMS"
    found = next(rule for rule in report.rules if rule.id == "Conv-11/kernel_fits").findings[0].witness
    label = name or "X[2]"
    assert found["n"] == "/0:Conv"
    assert set(found) == {"n", "sizes", "condition"}
    assert set(found["sizes"]) <= {label, "W"}  # type: ignore[arg-type]
    assert recheck(seal(certificate(report)), path).outcome is Outcome.CONFIRMED
    assert any(parts[0] in (label, "W") for parts in spelled(found))


# ---- Obligations that two derivations see alike -------------------------------------------------

SEEN_ALIKE = {
    "one index at two nodes": """(float[5] x, int64[2] i) => (float[2] y)
        { a = Gather(x, i) b = Gather(x, i) y = Add(a, b) }""",
    "a wider one first": """(float[5] x, float[7] z, int64[K] i) => (float[K] y)
        { a = Gather(z, i) b = Gather(x, i) y = Add(a, b) }""",
    "a declared size that follows": "(int64[1] s, float[1,1] x) => (float[1] y) { y = Reshape(x, s) }",
    "repeated indices": """(float[2,2,3] x, int64[1] n) => (float[a,b,c] y)
        <int64[2,3] at = {0, 1, 2, 0, 1, 2}, int64[2] rest = {2, 3}> {
        s = Concat<axis=0>(n, rest) i = Expand(at, s) y = GatherElements<axis=2>(x, i) }""",
    "parts of one input": """(int64[3] s) => (float[a,b] y) <int64 o = {0}, int64 t = {1}> {
        p, q, r = Split<axis=0, num_outputs=3>(s) u = Concat<axis=0>(r, q) v = ConstantOfShape(u)
        e = Squeeze(q) w = Range(o, e, t) z = Cast<to=1>(w) y = Add(v, z) }""",
    "one element or a number": "(int64[1] k) => (float[M] y) { r = Relu(k) y = ConstantOfShape(r) }",
    "an element between two numbers": """(float[5] x, int64 k) => (float y) <int64 f = {0}, int64 g = {4}>
        { i = Clip(k, f, g) y = Gather(x, i) }""",
    "the type of a tensor of any rank": """(float[2,3] x, int64 i, bool c) => (float y) {
        u = If(c) <then_branch = a () => (float[2,3] v) { v = Identity(x) },
                   else_branch = b () => (float w) { w = ReduceSum<keepdims=0>(x) }>
        y = CastLike(i, u) }""",
    "the type behind a tensor of any rank": """(float[2,1,3] x, int64[3] i, int64 j) => (float y) {
        u = Expand(x, i) v = Squeeze(u) w = Concat<axis=0>(v, v) y = CastLike(j, w) }""",
}


@pytest.mark.parametrize("name", SEEN_ALIKE)
def test_an_obligation_is_derived_where_it_is_stated(name: str, tmp_path: Path) -> None:
    path = tmp_path / "alike.onnx"
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]>\ng {SEEN_ALIKE[name]}'), path)
    report = certify(path, witnesses=True)
    assert report.verdict == "CONFORMS"
    found = recheck(seal(certificate(report)), path)
    assert found.outcome is Outcome.CONFIRMED, found.reasons


def _spelled(text: str) -> onnx.ModelProto:
    nodes = [
        helper.make_node(
            "Constant", [], ["c"], value=helper.make_tensor("c", TensorProto.STRING, [1], [text.encode()])
        ),
        helper.make_node("Cast", ["c"], ["y"], to=FLOAT),
        helper.make_node("Add", ["x", "y"], ["z"]),
    ]
    return _model(nodes, [_value("x", [1])], [_value("z", [1])])


def _matched(pattern: str) -> onnx.ModelProto:
    node = helper.make_node("RegexFullMatch", ["x"], ["y"], pattern=pattern)
    return _model([node], [_value("x", [1], TensorProto.STRING)], [_value("y", [1], TensorProto.BOOL)])


@pytest.mark.parametrize(
    ("proto", "outcome"),
    [
        (_spelled("\u0661"), Outcome.CONFIRMED),  # Python reads this digit as 1
        (_spelled("1"), Outcome.CONFIRMED),
        (_spelled("9" * 2000), Outcome.NOT_CHECKED),
        (_matched("a+[bc]"), Outcome.CONFIRMED),
        (_matched("["), Outcome.NOT_CHECKED),
    ],
)
def test_what_a_constant_text_comes_to_is_not_left_to_data(
    proto: onnx.ModelProto, outcome: Outcome, tmp_path: Path
) -> None:
    """An obligation on a constant would be confirmed though no data meet it."""
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)
    found = recheck(seal(certificate(certify(path, rules=["domain"], witnesses=True))), path)
    assert found.outcome is outcome, found.reasons
    assert not any("derived as obligation" in reason for reason in found.reasons)
