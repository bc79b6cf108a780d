"""Operator definitions: the shipped texts, the schema, optional names, ranks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sonnx.spec
from sonnx.spec.elaborate import Elaboration, elaborate
from sonnx.spec.parse import parse
from sonnx.spec.schema import signatures

ROOT = Path(str(sonnx.spec.__file__)).parent


def texts() -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.sonnx"))}


def operator_texts() -> dict[str, str]:
    wanted = {path.name for path in (ROOT / "5-operators").glob("*.sonnx")} | {"primitives.sonnx"}
    return {name: text for name, text in texts().items() if name in wanted}


def kinds(source: dict[str, str]) -> set[str]:
    return {error.kind for error in elaborate([parse(text, name) for name, text in source.items()]).errors}


@pytest.fixture(scope="module")
def shipped() -> Elaboration:
    return elaborate([parse(text, name) for name, text in texts().items()])


def test_the_shipped_specification_has_no_mistake(shipped: Elaboration) -> None:
    assert [str(error) for error in shipped.errors] == []


@pytest.mark.parametrize("name", ["Relu", "MatMul", "Conv"])
def test_every_version_of_the_operator_has_one_meaning(shipped: Elaboration, name: str) -> None:
    for signature in signatures()[name]:
        meanings = [o for o in shipped.operators[name] if o.first <= signature.version <= o.last]
        assert len(meanings) == 1, signature.version


def test_every_function_without_a_body_is_a_fact_or_a_primitive(shipped: Elaboration) -> None:
    primitives = {f.name for f in shipped.functions.values() if f.kind == "fun" and f.span.file == "primitives.sonnx"}
    assert {"len", "repeat", "front", "back", "broadcast", "align", "minimum", "maximum", "cast", "shape"} == primitives
    assert all(f.body is not None for f in shipped.functions.values() if f.kind in ("define", "inductive"))


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
    ("convolution.sonnx", "    demanded SONNX/Conv-strides-C1\n", "", "clause/missing"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "kind"), CHANGES)
def test_a_wrong_change_of_a_text_is_noticed(file: str, old: str, new: str, kind: str) -> None:
    source = operator_texts()
    assert kinds(source) == set()
    assert old in source[file]
    source[file] = source[file].replace(old, new)
    assert kind in kinds(source)


PRELUDE = 'fun len(s: set Any): Int "The number of members."\nfun front(v: list Int, k: Int): list Int "The first k."\n'
PRELUDE += 'fun back(v: list Int, k: Int): list Int "The entries from k on."\n'


def relu(body: str, port: str = "X: T[n, d...]") -> set[str]:
    text = PRELUDE + f'operator Relu @ 6..14 ({port}) -> Y: T "Doc." source "a test"\n  {body}\n'
    return kinds({"t": text})


@pytest.mark.parametrize(
    "body",
    [
        "Y[b < n, i... < d] = X[b, i]",
        "Y[i... < [n] ++ d] = X[i]",
        "Y[i... < d] = X[0, if n = 1 then i else i * 0]",
        "Y[i... < d] = sum(b < n) X[b, i]",
        "view V[i... < d, b < n] = X[b, i]\n  Y[i... < d] = V[i, 0]",
        'require len(d) = 2 "Two axes." demanded ONNX\n  Y[b < n] = X[b, 0, 1]',
        "let r = len(d)\n  Y[i... < front(d, r - 1)] = X[0, i, 0]",
        "Y[i... < back([n] ++ d, 1)] = X[0, i]",
        "let w = front([n] ++ d, 2)\n  Y[] = X[w, front(d, len(d) - 1)]",
    ],
)
def test_as_many_indices_as_axes_are_accepted(body: str) -> None:
    assert relu(body) == set()


@pytest.mark.parametrize(
    "body",
    [
        "Y[b < n, i... < d] = X[i]",
        "Y[b < n, i... < d] = X[b, i, 0]",
        "Y[i... < d] = sum(b < n) X[b, i, i]",
        "view V[i... < d, b < n] = X[b, i]\n  Y[i... < d] = V[i]",
        'require len(d) = 2 "Two axes." demanded ONNX\n  Y[b < n] = X[b, 0]',
        "let r = len(d)\n  Y[i... < front(d, r - 1)] = X[0, i]",
    ],
)
def test_another_number_of_indices_is_refused(body: str) -> None:
    assert relu(body) == {"arity/rank"}


def test_elaborating_without_operators_does_not_import_onnx() -> None:
    script = (
        "import sys; from sonnx.spec.elaborate import elaborate; from sonnx.spec.parse import parse;"
        "print(len(elaborate([parse('sort A \"A.\"', 't')]).errors), 'onnx' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
