"""Operator definitions: the shipped texts, the schema, optional names, ranks."""

from __future__ import annotations

import subprocess
import sys

import pytest
from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.library import specification
from sonnx.spec.parsed import unit
from tables import table
from texts import few


def kinds(source: dict[str, str]) -> set[str]:
    """The kinds of mistakes in texts; those of the package are not parsed again."""
    return {error.kind for error in elaborate([unit(text, name).source() for name, text in source.items()]).errors}


@pytest.mark.parametrize("name", ["Relu", "MatMul", "Conv"])
def test_every_version_of_the_operator_has_one_meaning(name: str) -> None:
    for signature in signatures()[name]:
        meanings = [o for o in specification().operators[name] if o.first <= signature.version <= o.last]
        assert len(meanings) == 1, signature.version


def test_every_function_without_a_body_is_a_fact_or_a_primitive() -> None:
    functions = specification().functions.values()
    for function in functions:
        assert function.kind != "fun" or not function.span.file.startswith("5-operators"), function.name
    assert all(f.body is not None for f in functions if f.kind in ("define", "inductive"))


CHANGES = [
    ("activation.sonnx", "X[i] < 0", "X[i] < alpha", "name/unbound"),
    ("activation.sonnx", "  unused consumed_inputs\n", "", "schema/ignored-attribute"),
    ("activation.sonnx", "Relu @ 6..14", "Relu @ 1..14", "schema/ignored-attribute"),
    ("activation.sonnx", "Relu @ 6..14", "Relu @ 6..15", "schema/version"),
    ("activation.sonnx", "Relu @ 1 ", "Relu @ 6 ", "operator/overlap"),
    ("linear.sonnx", "B: T[b...]", "B?: T[b...]", "schema/mark"),
    ("linear.sonnx", "B: T[b...]", "C: T[b...]", "schema/no-port"),
    ("linear.sonnx", "A[align(h, p), i, l]", "A[align(h, p), i, X]", "name/unbound"),
    ("convolution.sonnx", "view P[b < n, z < c,", "view P[b < n,", "arity/rank"),
    ("convolution.sonnx", "X[b, z, x - before]", "X[b, x - before]", "arity/rank"),
    ("convolution.sonnx", "y * s + k * t]", "y * s + k * t, 0]", "arity/rank"),
    ("convolution.sonnx", "if given B then B[g * mg + r] else 0", "B[g * mg + r]", "given/unguarded"),
    ("convolution.sonnx", "if given pads then pads", "if given strides then pads", "given/unguarded"),
    ("convolution.sonnx", "B[g * mg + r] else 0", "B[g * mg + r] else mg", "sort/branches"),
    ("convolution.sonnx", "given kernel_shape implies kernel_shape = K", "K = K", "schema/ignored-attribute"),
    ("convolution.sonnx", "(g, r) < [group, mg]", "(g, r) < [group, mg, 1]", "arity/split"),
    ("convolution.sonnx", "y... < (padded", "y < (padded", "sort/bound"),
    ("convolution.sonnx", "B?: T[m]) -> Y: T", "B?: T[m]) -> Y: S", "schema/type"),
    ("convolution.sonnx", " demanded SONNX/Conv-strides-C1\n", "\n", "clause/missing"),
]  # fmt: skip


def test_few_texts_have_no_mistake_either() -> None:
    assert kinds(few()) == set()


@pytest.mark.parametrize(("file", "old", "new", "kind"), CHANGES)
def test_a_wrong_change_of_a_text_is_noticed(file: str, old: str, new: str, kind: str) -> None:
    source, name = few(), f"5-operators/{file}"
    assert old in source[name]
    source[name] = source[name].replace(old, new)
    assert kind in kinds(source)


PRELUDE = 'fun len(s: set Any): Int "The number of members."\nfun front(v: list Int, k: Int): list Int "The first k."\n'
PRELUDE += 'fun back(v: list Int, k: Int): list Int "The entries from k on."\n'


def relu(body: str, port: str = "X: T[n, d...]") -> set[str]:
    text = PRELUDE + f'operator Relu @ 6..14 ({port}) -> Y: T "Doc." source "a test"\n  {body}\n'
    return kinds({"t": text})


@table(
    "body",
    [
        "Y[b < n, i... < d] = X[b, i]",
        "Y[i... < [n] ++ d] = X[i]",
        "Y[i... < d] = X[0, if n = 1 then i else i * 0]",
        "Y[i... < d] = sum(b < n) X[b, i]",
        "view V[i... < d, b < n] = X[b, i]\n  Y[i... < d] = V[i, 0]",
        'require two_axes: len(d) = 2 "Two axes." demanded ONNX\n  Y[b < n] = X[b, 0, 1]',
        "let r = len(d)\n  Y[i... < front(d, r - 1)] = X[0, i, 0]",
        "Y[i... < back([n] ++ d, 1)] = X[0, i]",
        "let w = front([n] ++ d, 2)\n  Y[] = X[w, front(d, len(d) - 1)]",
    ],
)
def test_as_many_indices_as_axes_are_accepted(body: str) -> None:
    assert relu(body) == set()


@table(
    "body",
    [
        "Y[b < n, i... < d] = X[i]",
        "Y[b < n, i... < d] = X[b, i, 0]",
        "Y[i... < d] = sum(b < n) X[b, i, i]",
        "view V[i... < d, b < n] = X[b, i]\n  Y[i... < d] = V[i]",
        'require two_axes: len(d) = 2 "Two axes." demanded ONNX\n  Y[b < n] = X[b, 0]',
        "let r = len(d)\n  Y[i... < front(d, r - 1)] = X[0, i]",
    ],
)
def test_another_number_of_indices_is_refused(body: str) -> None:
    assert relu(body) == {"arity/rank"}


LANGUAGE = (
    PRELUDE
    + """
fun shape(x: Array): list Int "The shape of x."
fun values(x: Array): list Int "The elements of x."
fun cast(t: Type, e: Any): Element "e as an element of type t."
fun integer(e: Element): Int "The value of e."
fun total(v: list Any): Any "The sum of v."
fun put(v: list Any, k: Int, x: Any): list Any "v with x at k."
fun oneof(a: Any, b: Any): Any "Either."
"""
)
SUM = 'operator Sum @ 8..13 (data_0*: T) -> sum: T "Doc." source "a test"'


def of(header: str, body: str) -> set[str]:
    header = header if '"' in header else f'{header} "Doc." source "a test"'
    return kinds({"t": f"{LANGUAGE}{header}\n  {body}\n"})


RELU = "operator Relu @ 6..14 (X: T[d...]) -> Y: T"
SPLIT = 'operator Split @ 2..11 (input: T[d...]) -> (outputs*: T) "Doc." source "a test" unused axis unused split'
INSERT = "operator SequenceInsert @ 11 (input_sequence: S, tensor: T, position?: I) -> output_sequence: S"
OPTIONAL = "operator Optional @ 15 (input?: V) -> output: O"
REDUCE = 'operator ReduceSum @ 13..13 (data: T[d...], axes?: int64[q]) -> reduced: T "Doc." source "a test"'


@table(
    ("header", "body"),
    [
        (RELU, "Y = X"),
        (RELU, "let f(i: list Int, k: Int) = X[i] + cast(T, k)\n  Y[i... < d] = f(i, len(d))"),
        (RELU, "let f(A: Array, i: list Int) = A[i] + 1\n  Y[i... < d] = f(X, i)"),
        (RELU, "view V[i... < d] = X[i] = 0\n  Y[i... < d] = if V[i] then 1 else X[i]"),
        (RELU, "let P = filter(i... < d) (X[i] > 0)\n  Y[k < shape(P)[0]] = X[[P[k, j] for j < len(d)]]"),
        (RELU, "Y[i... < d] = last(j < 3 if j < 2 from X[i]) (X[i] * cast(T, j))"),
        (RELU, "Y[i... < d] = if T = float or T = bfloat16 then X[i] else oneof(X[i], 0)"),
        (RELU, "Y[i... < put(d, 0, total([k for k in d if k > 1]))] = X[put(i, 0, 0)]"),
        (RELU, "Y[i... < d] = if len(d) = 2 then X[i[0], i[1]] else X[i]"),
        (RELU, "along t < 3 { view H[t < 3, i... < d] = if t = 0 then X[i] else H[t - 1, i] }\n  Y[i... < d] = "
         "H[2, i]"),
        (
            RELU,
            "along t < 3 {\n"
            "    view P[t < 3] = if t = 0 then 0 else C[t - 1] + P[t - 1]\n    view C[t < 3] = P[t] + 1\n  }\n"
            "  Y[i... < d] = X[i] * cast(T, C[2])",
        ),
        (RELU, "Y[i... < d] = sum(j < 3) sum(k < j) (X[i] * cast(T, k))"),
        (RELU, "let f(i: list Int, n: Int) = sum(j < n) (X[i] * cast(T, j))\n"
         "  Y[i... < d] = f(i, len(i)) + (sum(k < 2) f(i, k))"),
        (RELU, "along t < 3 { view H[t < 3] = sum(j < t) j }\n  Y[i... < d] = X[i] + cast(T, H[2])"),
        (SUM, "sum[i... < shape(data_0[0])] = sum(p < len(data_0)) data_0[p][i]"),
        (SUM, "let r = total([len(shape(x)) for x in data_0])\n  sum[i... < [1 for j < r]] = data_0[r][i]"),
        (REDUCE, "let a = if given axes then values(axes) else []\n  let g = given axes and noop_with_empty_axes = 1\n"
         "  reduced[i... < a] = if g and keepdims = 0 then cast(T, integer(axes[0])) else data[i]"),
        (REDUCE, 'require axes_there: given axes "Given." demanded ONNX\n  let w = noop_with_empty_axes + keepdims\n'
         "  reduced[i... < values(axes)] = data[i] + cast(T, w)"),
        ('operator Dropout @ 10 (data: T[d...]) -> (output: T, mask?: T1) "Doc." source "a test" unused ratio',
         'require no_mask: not given mask "No mask." demanded SONNX\n  output = data'),
        ('operator Dropout @ 10 (data: T[d...]) -> (output: T, mask?: T1) "Doc." source "a test" unused ratio',
         "type T1 = bool\n  output = data\n  mask[i... < d] = true"),
        (SPLIT, "outputs[p][i... < d] = input[i] * cast(T, p + len(outputs))"),
        (SPLIT, "outputs = [input, input]"),
        (INSERT, "output_sequence = input_sequence ++ [tensor]"),
        (OPTIONAL, 'require input_or_type: given input or given type "One." demanded ONNX\n'
         "  type O = if given input then float else type\n  output = if given input then [input] else []"),
        ("operator Shape @ 1 (data: T[d...]) -> shape: T1", "type T1 = int64\n  shape[j < len(d)] = d[j]"),
    ],
)  # fmt: skip
def test_a_sound_definition_is_accepted(header: str, body: str) -> None:
    assert of(header, body) == set()


@table(
    ("header", "body", "kind"),
    [
        (RELU, "Y = shape(X)", "sort/expected"),
        (RELU, "view V[i... < d] = len(d)\n  Y = V", "sort/expected"),
        (RELU, "let f(i: Int) = 1\n  Y[i... < d] = X[i] + cast(T, f(0))", "name/unused"),
        (RELU, "let f(i: Int) = i\n  Y[i... < d] = X[i] + f(0)", "sort/operands"),
        (RELU, "let f(i: Int) = i\n  Y[i... < d] = X[i] + cast(T, f(0, 1))", "arity/arguments"),
        (RELU, "let f(i: Int) = i\n  Y[i... < d] = X[i]", "name/unused"),
        (RELU, "let f(i: Nothing) = i\n  Y[i... < d] = X[i] + cast(T, f(0))", "name/sort"),
        (RELU, "let len(i: Int) = i\n  Y[i... < d] = X[i] + cast(T, len(0))", "name/shadow"),
        (RELU, "let f(i: Int) = i\n  Y[i... < d] = X[i] + cast(T, f)", "name/no-parentheses"),
        (RELU, "Y[i... < d] = if X[i] then 1 else 0", "sort/expected"),
        (RELU, "Y[i... < d] = if T = floaty then X[i] else 0", "name/unbound"),
        (RELU, "let float = 1\n  Y[i... < d] = X[i] + cast(T, float)", "name/reserved"),
        (RELU, "Y[i... < d] = X[put(i, 0, X[i])]", "sort/operands"),
        (RELU, "Y[i... < d] = last(j < 3 if j < 2 from len(d)) X[i]", "sort/branches"),
        (RELU, "Y[i... < d] = if len(d) = 2 then X[i[0]] else X[i]", "arity/rank"),
        (RELU, "along t < 3 { view H[t < 3, i... < d] = X[i] }\n  Y[i... < d] = H[i]", "arity/rank"),
        (RELU, "along t < 3 { view H[t < 3] = 1 }\n  Y[i... < d] = X[i]", "name/unused"),
        (SUM, "sum[i... < shape(data_0)] = data_0[0][i]", "sort/expected"),
        (SPLIT, "outputs[p][i... < d] = outputs[0][i] * cast(T, p)", "operator/read-output"),
        (SPLIT, "outputs[T][i... < d] = input[i]", "name/shadow"),
        (SPLIT, "outputs = input", "sort/expected"),
        (INSERT, "output_sequence = tensor", "sort/expected"),
        (INSERT, "output_sequence = [input_sequence]", "sort/expected"),
        (OPTIONAL, "type O = if given input then float else type\n  output = if given input then [input] else []",
         "given/unguarded"),
        (OPTIONAL, "type O = if given type then type else float\n  output = if given input then input else []",
         "sort/expected"),
        (REDUCE, "let w = noop_with_empty_axes + keepdims\n  reduced[i... < values(axes)] = data[i] + cast(T, w)",
         "given/unguarded"),
        ('operator Dropout @ 10 (data: T[d...]) -> (output: T, mask?: T1) "Doc." source "a test" unused ratio',
         'require mask_there: given mask "A mask." demanded SONNX\n  output = data', "operator/undefined-output"),
    ],
)  # fmt: skip
def test_an_unsound_definition_is_refused(header: str, body: str, kind: str) -> None:
    assert of(header, body) == {kind}


COMPOSED = (
    LANGUAGE
    + """
operator TopK @ 10 (X: T[d...], K: int64[k]) -> (Values: T, Indices: I) "Doc." source "a test"
  type I = int64
  Values[i... < values(K)] = X[i] + cast(T, axis)
  Indices[i... < values(K)] = 0
operator ReduceSum @ 13 (data: T[d...], axes?: int64[q]) -> reduced: T "Doc." source "a test"
  reduced[i... < d] = if given axes and noop_with_empty_axes = keepdims then data[i] else 0
operator Relu @ 6..14 (X: T[d...]) -> Y: T "Doc." source "a test"
"""
)


@table(
    ("body", "found"),
    [
        ("view K[j < 1] = cast(int64, 3)\n  let v, _i = TopK@10(X, K; axis = -1)\n  Y = v", set()),
        ("Y = ReduceSum@13(X)", set()),
        ("Y = ReduceSum@13(X, _; keepdims = len(d))", set()),
        ("Y[i... < d] = ReduceSum@13(ReduceSum@13(X))[i]", set()),
        ("let v, i, _j = TopK@10(X, X)\n  Y[k... < d] = v[k] + i[k]", {"arity/names"}),
        ('Y = ReduceSum@13(X; keepdims = "yes")', {"sort/expected"}),
        ("Y = ReduceSum@13(d)", {"sort/expected"}),
        ("view V[i... < d] = len(d)\n  Y = ReduceSum@13(V)", {"sort/expected"}),
        ("Y = ReduceSum@13([X])", {"sort/expected"}),
        ("Y = Sum@13(X, [X, X])", {"apply/undefined"}),
        ("Y = Sum@13([d])", {"apply/undefined", "sort/expected"}),
        ("Y = ReduceSum@12(X)", {"schema/version"}),
        ("Y = ReduceSun@13(X)", {"schema/operator"}),
        ("Y = ReduceSum@13(X; axis = 1)", {"apply/attribute"}),
        ("Y = ReduceSum@13(_)", {"apply/left-out"}),
    ],
)
def test_an_operator_that_is_applied_is_held_against_its_schema(body: str, found: set[str]) -> None:
    assert kinds({"t": f"{COMPOSED}  {body}\n"}) == found


def test_elaborating_without_operators_does_not_import_onnx() -> None:
    script = (
        "import sys; from sonnx.spec.elaborate.declarations import elaborate;"
        "from sonnx.spec.language.parse import parse;"
        "print(len(elaborate([parse('sort A \"A.\"', 't')]).errors), 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
