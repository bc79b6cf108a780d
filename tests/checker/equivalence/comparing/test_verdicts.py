"""Small pairs of models, each with the verdict that is right: above all that no two that differ are called equal."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx import numpy_helper
from sampling import sampled
from sonnx.checker.equivalence.comparing.comparison import Comparison, Verdict, compare
from sonnx.checker.equivalence.comparing.normalizing import Strength
from sonnx.checker.equivalence.comparing.rewriting import CLAIMS, Trusted
from sonnx.semantics import load_proto
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.spec.library import specification

HEAD = '<ir_version: {ir}, opset_import: ["" : {opset}]>\n'


def model(text: str, opset: int = 17, ir: int = 8, **stored: np.ndarray) -> Model:
    proto = onnx.parser.parse_model(HEAD.format(ir=ir, opset=opset) + text)
    proto.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in stored.items())
    return load_proto(proto)


def verdict(a: Model, b: Model, strength: Strength = Strength.EXACT, seconds: float = 0.3) -> Comparison:
    return compare(a, b, strength=strength, seconds=seconds)


F = np.float32
EQUAL = {
    "itself": ("g (float[N, 3] x) => (float[N, 3] y) { y = Relu(x) }",) * 2,
    "names and order of nodes": (
        "g (float[3] x) => (float[3] y) { a = Relu(x) b = Abs(x) y = Sub(a, b) }",
        "g (float[3] x) => (float[3] y) { q = Abs(x) p = Relu(x) y = Sub(p, q) }",
    ),
    "a default spelled": (
        "g (float[1, 2, 5] x, float[2, 2, 3] w) => (float[1, 2, 3] y) { y = Conv(x, w) }",
        "g (float[1, 2, 5] x, float[2, 2, 3] w) => (float[1, 2, 3] y) "
        '{ y = Conv<group = 1, auto_pad = "NOTSET">(x, w) }',
    ),
    "common subexpressions": (
        "g (float[3] x) => (float[3] y) { a = Exp(x) b = Exp(x) y = Add(a, b) }",
        "g (float[3] x) => (float[3] y) { a = Exp(x) y = Add(a, a) }",
    ),
    "a dead node that cannot get stuck": (
        "g (float[3] x) => (float[3] y) { a = Exp(x) y = Relu(x) }",
        "g (float[3] x) => (float[3] y) { y = Relu(x) }",
    ),
    "evaluated": (
        "g (float[2] x) => (float[2] y) { a = Constant<value_floats = [1.0, 2.0]>() b = Neg(a) y = Add(x, b) }",
        "g (float[2] x) => (float[2] y) { b = Constant<value_floats = [-1.0, -2.0]>() y = Add(x, b) }",
    ),
    "sizes that are known": (
        "g (float[2, 3] x) => (float[3, 2] y) { s = Shape(x) i = Constant<value_ints = [1, 0]>() "
        "t = Gather(s, i) y = Reshape(x, t) }",
        "g (float[2, 3] x) => (float[3, 2] y) { t = Constant<value_ints = [3, 2]>() y = Reshape(x, t) }",
    ),
    "bodies of If under other names": (
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Relu(x) }, "
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = u () => (float[2] k) { k = Relu(x) }, "
        "else_branch = v () => (float[2] l) { l = Neg(x) }> }",
    ),
    "a branch that is known": (
        "g (float[2] x) => (float[2] y) { i = Constant<value_int = 1>() c = Cast<to = 9>(i) "
        "y = If(c) <then_branch = t () => (float[2] p) { p = Relu(x) }, else_branch = e () => (float[2] q) "
        "{ q = Neg(x) }> }",
        "g (float[2] x) => (float[2] y) { y = Relu(x) }",
    ),
    "an input as output, twice": (
        "g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }",
        "g (float[2] x) => (float[2] x, float[2] y) { y = Relu(x) }",
    ),
}
LOOP = (
    "g (int64 n, float[2] x, float[2] b) => (float[2] y, float[K, 2] z) {{ t = Constant<value_int = 1>()"
    " c = Cast<to = 9>(t)"
    " y, z = Loop(n, c, x) <body = l (int64 {i}, bool {c}, float[2] {s}) => (bool {d}, float[2] {v}, float[2] {w})"
    " {{ {d} = Identity({c}) {v} = Add({s}, {other}) {w} = {op}({v}) }}> }}"
)
NAMES = {"i": "i", "c": "k", "s": "s", "d": "d", "v": "v", "w": "w"}
OTHERS = {"i": "ii", "c": "kk", "s": "ss", "d": "dd", "v": "vv", "w": "ww"}
EQUAL["bodies of Loop under other names"] = (
    LOOP.format(**NAMES, other="b", op="Relu"),
    LOOP.format(**OTHERS, other="b", op="Relu"),
)


@pytest.mark.parametrize("name", EQUAL)
def test_models_that_mean_the_same_are_shown_to(name: str) -> None:
    a, b = map(model, EQUAL[name])
    for pair in ((a, b), (b, a)):
        found = verdict(*pair)
        assert (found.verdict, found.code) == (Verdict.EQUAL, 0)


UNEQUAL = {
    "an attribute": (
        "g (float[2, 3] x) => (float[1, 3] y) { y = ReduceSum<keepdims = 1>(x, a) }",
        "g (float[2, 3] x) => (float[1, 3] y) { y = ReduceMax<keepdims = 1, axes = [0]>(x) }",
    ),
    "swapped operands": (
        "g (float[3] x, float[3] z) => (float[3] y) { y = Sub(x, z) }",
        "g (float[3] x, float[3] z) => (float[3] y) { y = Sub(z, x) }",
    ),
    "the sign of a zero": (
        "g (float[1] x) => (float[1] y) { b = Constant<value_floats = [0.0]>() y = Add(x, b) }",
        "g (float[1] x) => (float[1] y) { y = Relu(x) }",
    ),
    "zeros of two signs": (
        "g (float[1] x) => (float[1] y) { z = Constant<value_floats = [0.0]>() y = Div(x, z) }",
        "g (float[1] x) => (float[1] y) { z = Constant<value_floats = [0.0]>() n = Neg(z) y = Div(x, n) }",
    ),
    "an output declared otherwise": (
        "g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }",
        "g (float[2, 3] x) => (float[3, 2] y) { y = Relu(x) }",
    ),
    "an output declared of the size of an input": (
        "g (float[N, M] x) => (float[N, M] y) { y = Relu(x) }",
        "g (float[N, M] x) => (float[N, N] y) { y = Relu(x) }",
    ),
    "two outputs declared of one size": (
        "g (float[3] x, float[2] z) => (float[K] y, float[L] v) { y = Relu(x) v = Relu(z) }",
        "g (float[3] x, float[2] z) => (float[K] y, float[K] v) { y = Relu(x) v = Relu(z) }",
    ),
    "outputs exchanged": (
        "g (float[2] x) => (float[2] y, float[2] z) { y = Relu(x) z = Neg(x) }",
        "g (float[2] x) => (float[2] y, float[2] z) { z = Relu(x) y = Neg(x) }",
    ),
    "another branch": (
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Relu(x) }, "
        "else_branch = e () => (float[2] q) { q = Neg(x) }> }",
        "g (bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) { p = Neg(x) }, "
        "else_branch = e () => (float[2] q) { q = Relu(x) }> }",
    ),
    "another capture": (
        LOOP.format(**NAMES, other="b", op="Relu"),
        LOOP.format(**OTHERS, other="x", op="Relu"),
    ),
    "carried or captured": (
        LOOP.format(**NAMES, other="s", op="Relu"),
        LOOP.format(**OTHERS, other="x", op="Relu"),
    ),
    "another element type": (
        "g (float[2] x) => (float[2] y) { d = Cast<to = 10>(x) y = Cast<to = 1>(d) }",
        "g (float[2] x) => (float[2] y) { d = Cast<to = 11>(x) y = Cast<to = 1>(d) }",
    ),
    "a dead node that may get stuck": (
        "g (float[2] x, int64[1] i) => (float[2] y) { a = Gather(x, i) y = Relu(x) }",
        "g (float[2] x, int64[1] i) => (float[2] y) { y = Relu(x) }",
    ),
    "a dead node that may get stuck in a branch": (
        "g (bool c, float[2] x, int64[1] i) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) "
        "{ a = Gather(x, i) p = Relu(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }> }",
        "g (bool c, float[2] x, int64[1] i) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] p) "
        "{ p = Relu(x) }, else_branch = e () => (float[2] q) { q = Neg(x) }> }",
    ),
    "a node taken out of a branch": (
        "g (bool c, float[2] x, int64[1] i) => (float[1] y) { y = If(c) <then_branch = t () => (float[1] p) "
        "{ p = Gather(x, i) }, else_branch = e () => (float[1] q) { q = Constant<value_floats = [1.0]>() }> }",
        "g (bool c, float[2] x, int64[1] i) => (float[1] y) { p = Gather(x, i) y = If(c) <then_branch = t () => "
        "(float[1] r) { r = Identity(p) }, else_branch = e () => (float[1] q) "
        "{ q = Constant<value_floats = [1.0]>() }> }",
    ),
    "reshaped to a size that the input decides": (
        "g (float[N, 2] x) => (float[K, 2] y) { y = Relu(x) }",
        "g (float[N, 2] x) => (float[K, 2] y) { s = Constant<value_ints = [3, 2]>() a = Reshape(x, s) y = Relu(a) }",
    ),
    "what a Loop gives that does not run": (
        "g (int64 n, bool k, float[2] x) => (float[K, 2] z) { z = Loop(n, k) <body = l (int64 i, bool c) "
        "=> (bool c, float[2] v) { v = Relu(x) }> }",
        "g (int64 n, bool k, float[2] x) => (float[K, 2] z) { z = Loop(n, k) <body = l (int64 i, bool c) "
        "=> (bool c, float[M] v) { v = Relu(x) }> }",
    ),
}


def unequal(name: str) -> tuple[Model, Model]:
    axes = {"a": np.array([0], np.int64)} if name == "an attribute" else {}
    return model(UNEQUAL[name][0], **axes), model(UNEQUAL[name][1])


def check_unequal(a: Model, b: Model, strength: Strength) -> None:
    for pair in ((a, b), (b, a)):
        found = verdict(*pair, strength)
        assert found.verdict in (Verdict.DIFFERS, Verdict.UNKNOWN) and found.code in (1, 3)


@pytest.mark.parametrize("name", UNEQUAL)
def test_models_that_differ_are_never_called_equal(name: str) -> None:
    a, b = unequal(name)
    check_unequal(a, b, Strength.EXACT)
    assert verdict(a, b, seconds=2.0).code == 1


@pytest.mark.parametrize("strength", [it for it in Strength if it is not Strength.EXACT])
@pytest.mark.parametrize("name", sampled(UNEQUAL, 4))
def test_models_that_differ_are_never_called_equal_in_a_weaker_sense(name: str, strength: Strength) -> None:
    check_unequal(*unequal(name), strength)


def test_a_random_node_is_no_other_one_and_never_shown_equal() -> None:
    text = "g (float[2] x) => (float[2] y) { r = RandomUniformLike(x) y = Add(x, r) }"
    assert verdict(model(text), model(text)).verdict is not Verdict.EQUAL


def test_training_is_random_and_inference_is_not() -> None:
    text = "g (float[2] x) => (float[2] y) {{ t = Constant<value_int = {}>() b = Cast<to = 9>(t) y = Dropout(x, , b) }}"
    training = model(text.format(1))
    assert verdict(training, training).verdict is not Verdict.EQUAL


def test_what_the_text_leaves_open_is_allowed_not_equal() -> None:
    once = "g (float[2] x, float[2] z) => (float[2] y) { a = Max(x, z) y = Sub(a, a) }"
    twice = "g (float[2] x, float[2] z) => (float[2] y) { a = Max(x, z) b = Max(x, z) y = Sub(a, b) }"
    assert verdict(model(once), model(once)).verdict is Verdict.ALLOWED
    assert verdict(model(twice), model(once)).verdict is Verdict.UNKNOWN


W = np.array([1.0, 2.0], F)


def test_a_stored_value_that_a_caller_may_replace_is_no_constant() -> None:
    text = "g (float[2] x{}) => (float[2] y) {{ y = Add(x, w) }}"
    free, fixed = model(text.format(", float[2] w"), w=W), model(text.format(""), w=W)
    assert verdict(free, free).verdict is Verdict.EQUAL
    other = verdict(free, model(text.format(", float[2] w"), w=W + 1))
    assert other.verdict is Verdict.DIFFERS
    folded = verdict(free, model("g (float[2] x) => (float[2] y) { y = Sub(x, w) }", w=-W))
    assert folded.verdict is not Verdict.EQUAL
    frozen = verdict(free, fixed)
    assert frozen.verdict is Verdict.EQUAL and "is one of A alone" in " ".join(frozen.ports.changes)
    summed = "g (float[2] x, float[2] w) => (float[2] y) {{ s = Add(w, w) y = Mul(x, s) }}"
    doubled = "g (float[2] x, float[2] w) => (float[2] y) { s = Constant<value_floats = [2.0, 4.0]>() y = Mul(x, s) }"
    assert verdict(model(summed.format(), w=W), model(doubled, w=W)).verdict is Verdict.UNKNOWN
    old = verdict(model(text.format(", float[2] w"), opset=7, ir=3, w=W), model(text.format(""), opset=7, ir=4, w=W))
    assert old.verdict is Verdict.EQUAL


def test_a_weight_that_differs_by_one_bit_is_named() -> None:
    text = "g (float[2] x) => (float[2] y) { y = Mul(x, w) }"
    near = W.copy()
    near[1] = np.nextafter(near[1], F(3))
    found = verdict(model(text, w=W), model(text, w=near))
    (constant,) = found.differences.constants
    assert (constant.ulps, constant.count, constant.element) == (1, 1, (1,))
    assert found.verdict is Verdict.DIFFERS
    zeros = verdict(model(text, w=np.array([0.0, 1.0], F)), model(text, w=np.array([-0.0, 1.0], F)))
    assert zeros.verdict is Verdict.DIFFERS
    one, other = (np.array([n], np.uint32).view(F) for n in (0x7FC00000, 0x7FC00001))
    two = "g (float[1] x) => (float[1] y) { y = Mul(x, w) }"
    assert verdict(model(two, w=one), model(two, w=other)).verdict is Verdict.UNKNOWN


def test_a_difference_that_rounding_explains_refutes_no_equality_over_the_reals() -> None:
    def constant(number: float) -> np.ndarray:
        return np.full(300, number, F)

    one = "g (float[300] x) => (float[300] y) { y = Add(x, w) }"
    left = model("g (float[300] x) => (float[300] y) { y = Sum(x, v, w) }", v=constant(0.25), w=constant(16))
    right = model(one, w=constant(16.25))
    assert verdict(left, right).verdict is Verdict.DIFFERS
    reals = verdict(left, right, Strength.REALS)
    assert (reals.verdict, reals.code) == (Verdict.UNKNOWN, 3)
    far = model(one, w=constant(1))
    assert verdict(left, far, Strength.REALS).verdict is Verdict.DIFFERS


def test_changes_of_the_interface_are_told_apart() -> None:
    wide = model("g (float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }")
    one = model("g (float[1, 2] image) => (float[1, 2] score) { score = Relu(image) }")
    found = verdict(wide, one)
    assert found.verdict is Verdict.EQUAL
    assert found.ports.changes == (
        'the input "x" of A is called "image" in B',
        'the output "y" of A is called "score" in B',
        'the input "x" is float[N, 2] in A and float[1, 2] in B',
        'the output "y" is float[N, 2] in A and float[1, 2] in B',
    )
    half = model("g (float16[N, 2] x) => (float16[N, 2] y) { y = Relu(x) }")
    apart = verdict(wide, half)
    assert apart.verdict is Verdict.UNKNOWN and 'no value of "x" is one that both models accept' in apart.ports.apart


def test_versions_with_one_definition_are_one_and_others_are_not() -> None:
    text = "g (float[2, 3] x) => (float[2, 3] y) { y = Softmax<axis = 1>(x) }"
    assert verdict(model(text, 13), model(text, 17)).verdict is Verdict.EQUAL
    other = "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax<axis = 1>(x) }"
    assert verdict(model(other, 11), model(other, 13)).verdict is Verdict.DIFFERS
    default = "g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax(x) }"
    assert verdict(model(default, 11), model(default, 13)).verdict is Verdict.DIFFERS


ROUNDED = "g (float[1, 1, 4, 4] x) => (float[1, 1, 3, 3] y) { c = Conv(x, w, b) y = BatchNormalization(c, s, o, m, v) }"


def test_statistics_that_differ_and_are_rounded_to_one_are_not_equal_over_the_reals() -> None:
    """The mean disappears in the bias: what is evaluated has the same bits, and is another number."""
    one = {name: F([1]) for name in "sobv"} | {"w": np.ones((1, 1, 2, 2), F)}
    rules = specification().rules
    trusted = Trusted(tuple(rules[name] for name in rules if rules[name].claim in CLAIMS))
    small, same, other = (model(ROUNDED, **one, m=F([mean])) for mean in (1e-20, 1e-20, 2e-20))
    found = compare(small, other, strength=Strength.REALS, rules=trusted, seconds=0.01)
    assert found.verdict is Verdict.UNKNOWN and found.differences
    assert compare(small, same, strength=Strength.REALS, rules=trusted, seconds=0.01).settled


def test_operands_that_may_change_places_have_one_order() -> None:
    """A stored one is the last, whenever it came about: so that what differs is told pair by pair."""
    one = model("g (float[3] x) => (float[3] y) { r = Relu(x) y = Add(k, r) }", k=F([1, 2, 3]))
    other = model(
        "g (float[3] x) => (float[3] y) { r = Exp(x) k = Constant<value_floats = [1.0, 2.0, 4.0]>() y = Add(k, r) }"
    )
    for a, b in ((one, other), (other, one)):
        found = verdict(a, b).differences
        assert (len(found.constants), len(found.islands)) == (1, 1)


def test_stored_numbers_that_are_no_lists_differ_as_others_do() -> None:
    text = "g (float[1] x) => (float[1] y) { y = Mul(x, w) }"
    found = verdict(model(text, w=np.array(3.0, F)), model(text, w=np.array(6.0, F)))
    (constant,) = found.differences.constants
    assert (constant.ulps, constant.element, found.verdict) == (1 << 23, (), Verdict.DIFFERS)


def test_a_model_that_accepts_more_inputs_is_told_apart() -> None:
    text = "g (float[N] x, float[{}] w) => (float[N] y) {{ y = Add(x, w) }}"
    free, tied = model(text.format("M")), model(text.format("N"))
    (said,) = verdict(free, tied).ports.changes
    assert said.startswith('B asks that the sizes called "N" be equal')
    assert not verdict(tied, tied).ports.changes
    fixed = "g (float[2] x, float[2] w) => (float[2] y) { y = Add(x, w) }"
    (said,) = verdict(model(fixed, w=W), model(fixed)).ports.changes
    assert said == 'the input "w" has a stored value in A alone: B must be given it'


TYPES = "g (float[2] x, double[2] z, float8e4m3fn[2] f) => (float[2] y) {{ y = Relu(x) {} }}"


@pytest.mark.parametrize(
    ("one", "opset", "other", "of"),
    [
        ("d = Add(x, z)", 17, "", 17),
        ("d = Cast<to = 17>(x)", 13, "", 13),
        ('d = BitShift<direction = "LEFT">(x, x)', 13, "", 13),
        ("d = Shape(f)", 13, "d = Shape(f)", 21),
        ("d = Shape(f)", 13, "d = Constant<value_ints = [2]>()", 13),
    ],
)
def test_a_model_that_a_type_stops_is_equal_to_none_that_it_does_not(one: str, opset: int, other: str, of: int) -> None:
    a, b = model(TYPES.format(one), opset), model(TYPES.format(other), of)
    for pair in ((a, b), (b, a)):
        assert verdict(*pair).verdict is Verdict.DIFFERS
    assert verdict(a, a).verdict is Verdict.EQUAL


def test_a_node_that_could_draw_is_stopped_by_a_type_as_others_are() -> None:
    a, b = (model(TYPES.format(it), 21) for it in ("d = Dropout<seed = 3>(f)", "d = Identity(f)"))
    assert verdict(a, b).verdict is Verdict.DIFFERS


def test_an_output_that_no_node_writes_is_said_so() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) {{ y = Relu(x) {} }}"
    with pytest.raises(ModelError, match='the output "z" is written by no node'):
        verdict(model(text.format("z = Neg(x)")), model(text.format("")))
