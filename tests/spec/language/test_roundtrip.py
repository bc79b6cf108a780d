"""Printing and parsing: what is printed reads as the same syntax."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import sonnx.spec
from hypothesis import given, settings
from hypothesis import strategies as st
from sonnx.spec.language.parse import parse, parse_expression
from sonnx.spec.language.printer import print_expression, print_file
from sonnx.spec.language.syntax import HEADS, Arm, Binder, Expr, File, Keyword, Range
from sonnx.spec.parsed import unit
from tables import table

ROOT = Path(str(sonnx.spec.__file__)).parent
FILES = sorted(ROOT.rglob("*.sonnx"))
NAMES = st.sampled_from(["a", "b'", "x_1", "order", "M", "source", "max", "_", "sums", "T''"])
CALLED = st.sampled_from(["f", "len", "is_in", "notion"])
TEXTS = st.lists(st.sampled_from(["a", '"', "\\", "é", "{", "\n", "#", "word" * 12, ":", ";"]), max_size=8).map(
    lambda parts: " ".join("".join(parts).split(" "))
)
RELATIONS = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "in", "not in"])


BINARY = ("implies", "iff", "add", "sub", "concat", "mul", "quotient", "div", "mod")
FOLDS = st.sampled_from(["sum", "prod", "max", "min", "any", "all", "count", "argmax", "argmin", "last", "filter"])


def forms(inner: st.SearchStrategy[Expr]) -> dict[str, st.SearchStrategy[tuple[object, ...]]]:
    """The arguments of every head that has sub-expressions, these from `inner`."""
    optional = st.none() | inner
    binders = st.lists(st.builds(Binder, NAMES, inner), min_size=1, max_size=2).map(tuple)
    one = st.builds(lambda n, dots, e: Range((n,), dots, e), NAMES, st.booleans(), inner)
    split = st.builds(lambda ns, e: Range(tuple(ns), False, e), st.lists(NAMES, min_size=2, max_size=3), inner)
    ranges = st.lists(one | split, min_size=1, max_size=2).map(tuple)
    arm = st.builds(lambda labels, e: Arm(tuple(labels), e), st.lists(TEXTS, max_size=2), inner)
    many = st.lists(inner, max_size=3).map(tuple)
    inputs = st.lists(optional.filter(lambda e: e != Expr("var", ("_",))), max_size=3).map(tuple)
    keywords = st.lists(st.builds(Keyword, NAMES, inner), max_size=2).map(tuple)
    pairs = st.lists(st.tuples(RELATIONS, inner), min_size=1, max_size=2)
    rules = st.just(("", None)) | st.tuples(st.sampled_from(["Step/fire", "Step/loop-next"]), optional)
    quantified = st.builds(lambda bs, e: (*bs, e), binders, inner)
    return {
        **dict.fromkeys(("or", "and"), st.lists(inner, min_size=2, max_size=3).map(tuple)),
        **dict.fromkeys(BINARY, st.tuples(inner, inner)),
        **dict.fromkeys(("not", "neg"), st.tuples(inner)),
        **dict.fromkeys(("forall", "exists", "unique"), quantified),
        "compare": st.builds(lambda e, ps: (e, *(x for p in ps for x in p)), inner, pairs),
        "ite": st.tuples(inner, inner, inner),
        "case": st.builds(lambda e, arms: (e, *arms), inner, st.lists(arm, min_size=1, max_size=3)),
        "fold": st.builds(lambda n, rs, g, f, e: (n, *rs, g, f, e), FOLDS, ranges, optional, optional, inner),
        "index": st.builds(lambda e, es: (e, *es), inner, many),
        "call": st.builds(lambda n, es: (n, *es), CALLED, many),
        "apply": st.builds(lambda n, v, es, ks: (n, v, *es, *ks), CALLED, st.integers(1, 99), inputs, keywords),
        "vector": many,
        "step": st.builds(lambda rule, states: (*rule, *states), rules, st.tuples(inner, inner, inner, inner)),
        "comprehension": st.tuples(inner, NAMES, inner, optional),
        "collect": st.tuples(inner, st.builds(Binder, NAMES, inner), optional),
        "set_comprehension": st.builds(lambda e, bs, g: (e, *bs, g), inner, binders, optional),
        "map_comprehension": st.builds(lambda k, v, bs: (k, v, *bs), inner, inner, binders),
    }


LEAVES: dict[str, st.SearchStrategy[tuple[object, ...]]] = {
    "var": st.tuples(NAMES),
    "given": st.tuples(NAMES),
    "every": st.tuples(NAMES),
    "int": st.tuples(st.integers(0, 10**12)),
    "float": st.tuples(st.sampled_from(["0.5", "1.25e-3", "2.0e10"])),
    "text": st.tuples(TEXTS),
    "true": st.just(()),
    "false": st.just(()),
}


def any_of(heads: dict[str, st.SearchStrategy[tuple[object, ...]]]) -> st.SearchStrategy[Expr]:
    return st.one_of([st.builds(Expr, st.just(head), args) for head, args in heads.items()])


EXPRESSIONS = st.recursive(any_of(LEAVES), lambda inner: any_of(forms(inner)), max_leaves=25)


SAMPLES = [
    "a", "1", "0.5", '"t"', "true", "false", "given a", "a or b", "a and b", "not a", "a implies b", "a iff b",
    "a < b <= c", "a in b", "a + b", "a - b", "a ++ b", "a * b", "a / b", "a div b", "a mod b", "-a",
    "forall x in a: b", "exists x in a, y in b: c", "unique x in a: b", "if a then b else c",
    'case a { "t": b; else: c }', "f(a, b)", "sum(i < a) b", "max(i... < a, (j, k) < b if c from d) e", "a[b, c]",
    "[a, b]", "[a for i < b if c]",
    "[a for x in b if c]", "Op@13(a, _, b; k = c, l = d)", "last(i < a if b from c) d", "filter(i... < a) b",
    "{a for x in b if c}", "{a |-> b for x in c}", "every S", "(a, b) ~> (c, d)", "(a, b) ~> (c, d) by Step/fire(e)",
]  # fmt: skip


PLACE = {Binder: "domain", Range: "bound", Arm: "body", Keyword: "value"}


def with_child(expr: Expr, position: int, child: Expr) -> Expr:
    """The expression with its sub-expression at `position` replaced."""
    args: list[object] = []
    for arg in expr.args:
        inner = arg if isinstance(arg, Expr) else None
        if isinstance(arg, Binder | Range | Arm | Keyword):
            inner = getattr(arg, PLACE[type(arg)])
        if inner is not None:
            if position == 0:
                name = PLACE.get(type(arg))
                arg = child if name is None else replace(arg, **{name: child})  # type: ignore[type-var]
            position -= 1
        args.append(arg)
    return Expr(expr.head, tuple(args))  # type: ignore[arg-type]


@pytest.mark.parametrize("outer", SAMPLES)
def test_every_form_inside_every_form_reads_as_itself(outer: str) -> None:
    frame = parse_expression(outer)
    for position in range(len(list(frame.children()))):
        for inner in SAMPLES:
            expr = with_child(frame, position, parse_expression(inner))
            assert parse_expression(print_expression(expr)) == expr, (outer, position, inner)


@pytest.mark.parametrize("inner", SAMPLES)
def test_every_form_in_a_pair_reads_as_itself(inner: str) -> None:
    lead = 'operator Op @ 1 (X: T) -> Z: S "A sentence."\n  Z[r < n][k < m] = '
    file = parse(f"{lead}{inner} |-> {inner}", "pair")
    assert parse(print_file(file), "pair") == file


def test_the_samples_have_every_head() -> None:
    assert {parse_expression(text).head for text in SAMPLES} == HEADS - {"pair"}


@settings(max_examples=100, deadline=None)
@given(EXPRESSIONS)
def test_a_printed_expression_reads_as_itself(expr: Expr) -> None:
    assert parse_expression(print_expression(expr)) == expr


def test_the_generated_expressions_have_every_head() -> None:
    assert set(LEAVES) | set(forms(any_of(LEAVES))) == HEADS - {"pair"}


@cache
def parsed(path: Path) -> File:
    """What a text parses to; that this is what lies ready in the package, test_parsed.py says."""
    return unit(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()).source()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_printed_specification_file_reads_as_itself(path: Path) -> None:
    file = parsed(path)
    printed = print_file(file)
    again = parse(printed, file.name)
    assert again == file
    assert print_file(again) == printed


@table("path", FILES, ids=lambda path: path.name)
def test_printed_lines_keep_within_110_columns(path: Path) -> None:
    printed = print_file(parsed(path))
    assert [line for line in printed.splitlines() if len(line) > 110] == []


EVERYTHING = r"""
sort A "One \"sort\" \\ of\nthings."
fact a(): set list A "No parameters."
fun b(x: A, y: list Int): Any "A primitive."
define c(x: A): Bool "A definition." = x in a()
inductive d(x: A) "A predicate." if c(x) or (exists y in a(): d(y))
constraint E "A sentence." at final: forall x in a(): c(x)
  violation "{x} is {len(a())} times \"{text(x)}\" wrong" suggest "mend {x}"
  evidence places source "s" quote "q" note "n"
rule Step/f-1.2 "A rule.": if n in a() let W = b(n, [1]) ---- (G, M) ~> (G, W)
profile p-2025.1 "A rule set." source "s" note "n" {
  rule R1/per-output "Title" = E status current variant old/wording quote "q"
}
operator Conv @ 11..22 (X: T[n, 3, d...], S: T[], B?: T[m], Xs*: T) -> (Y: T, Z?: int64, Ws*: T) "Doc."
  source "s" unused kernel_shape
  let a = 1
  let b, c = [1, 2]
  let f(i: Int, A: Array Int, B: Array) = A[i] + 1
  let d, e = TopK@11(X, _; axis = 1)
  type T2 = float
  along t < n { view H[t < n, i... < d] = if t = 0 then 0 else H[t - 1, i] view G[t < n] = H[t, 0] }
  require one: a = 1 "One." demanded SONNX/C1 note "n"
  view P[i < 3, j... < d, (q, r) < [2, 3]] = X[i, j]
  Y[] = P[0, d]
operator Relu @ 6 () -> Y: T "Doc."
  Y[i... < d] = 0.5
operator Abs @ 6 (X: T) -> Y: T "Doc."
  Y = Relu@6(X)
operator If @ 1 (c: B) -> outputs*: V "Doc."
  by rule Step/if
"""


def test_every_form_of_declaration_reads_as_itself() -> None:
    file = parse(EVERYTHING, "everything")
    again = parse(print_file(file), "everything")
    assert again == file
    assert len(file.declarations) == 12
    templates = [clause.parts for clause in file.declarations[5].clauses]  # type: ignore[union-attr]
    assert templates == [clause.parts for clause in again.declarations[5].clauses]  # type: ignore[union-attr]


def test_a_scalar_shape_differs_from_no_shape() -> None:
    operator = parse(EVERYTHING, "everything").declarations[8]
    assert [port.shape for port in operator.inputs] == [(("n", False), 3, ("d", True)), (), (("m", False),), None]  # type: ignore[union-attr]
