"""Definitions are defined for every number of axes and lists of any length; a mistake beyond 4 axes is noticed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path as File

import pytest
from click.testing import CliRunner
from definition_mutations import elaborated, mutations
from sampling import left
from sonnx.checker.commands.definedness import definedness
from sonnx.checker.definedness.proving import (
    EFFORT,
    OPEN,
    PROVED,
    REFUTED,
    TIMEOUT,
    Judgement,
    bounded,
    cases,
    judge,
    judge_every,
)
from sonnx.checker.definedness.record import EVERY, TABLE, read_records
from sonnx.checker.smt.prover import Prover
from sonnx.semantics.formulas.terms import FALSE, Term
from sonnx.semantics.operators.symbolic.definedness import Instance, Path, explore
from sonnx.semantics.operators.symbolic.numbers import equal
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.parse import parse
from sonnx.spec.language.printer import print_declaration
from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification
from tables import table

UNARY = "Relu @ 14 (X: T[d...]) -> Y: T"
REDUCED = "ReduceSum @ 1..11 (data: T[d...]) -> reduced: T"
SEVERAL = "Sum @ 8..13 (data_0*: T) -> sum: T"
SEQUENCE = "SequenceAt @ 11 (input_sequence: S, position: I[z...]) -> tensor: T"
MAP = "ai.onnx.ml::CastMap @ 1 (X: T1) -> Y: T2"


def operator_of(statements: str, header: str = UNARY) -> CoreOperator:
    """A definition with these statements."""
    (declaration,) = parse(f'operator {header}\n  "Any."\n  source "any"\n  {statements}\n', "any").declarations
    assert isinstance(declaration, Operator)
    return elaborated(declaration).cores[0]


FEW = 1_000_000
"""Steps of the solver that are enough for what is refuted, and that leave open what it would not end."""


def every(operator: CoreOperator, effort: int = EFFORT) -> Judgement:
    return judge_every(operator, Prover(TIMEOUT, effort=effort))


def named(name: str) -> CoreOperator:
    return next(o for o in specification().meanings if f"{o.name}-{o.first}" == name)


# ---- beyond four axes and three entries ---------------------------------------------------------


@table(
    ("header", "statements", "kind", "symbol", "number"),
    [
        (UNARY, "Y[i... < d] = X[i * (12 div (len(d) - 5)) div (12 div (len(d) - 5))]", "divisor", "axes.d", 5),
        (UNARY, "Y[i... < d] = X[[if k = 6 then i[k] + 1 else i[k] for k < len(d)]]", "index", "", 0),
        (
            UNARY,
            "let v = [0, 0, 0, 0, 0]\n  Y[i... < d] = X[i + (if len(d) > 0 then v[len(d) - 1] else 0)]",
            "position", "", 0,
        ),
        (UNARY, "Y[i... < if len(d) = 7 then d + 1 else d] = X[i]", "index", "axes.d", 7),
        (UNARY, "Y[i... < if len(d) = 7 then d - 1 else d] = X[i]", "size", "axes.d", 7),
        (UNARY, "Y[i... < repeat(1, if len(d) > 8 then 7 - len(d) else 0)] = X[d * 0]", "contract", "", 0),
        (
            REDUCED,
            "let v = [0, 0, 0, 0]\n  reduced[i... < d] = data[i + (if given axes then v[len(axes)] else 0)]",
            "position", "", 0,
        ),
        (SEVERAL, "sum[k < 5 - len(data_0)] = 0", "size", "", 0),
        (
            SEQUENCE,
            "let n = len(input_sequence)\n  require some: n > 0 \"Some.\"\n  "
            "tensor = input_sequence[if n = 5 then n else 0]",
            "position", "len.input_sequence", 5,
        ),
        (
            MAP,
            "let c = shape(X[0])[0]\n  Y[k < c] = cast(float, X[1][if c = 6 then k + 1 else k])",
            "index", "size.X", 6,
        ),
    ],
    few=1,
)  # fmt: skip
def test_a_mistake_beyond_four_axes_or_three_entries_is_refuted(
    header: str, statements: str, kind: str, symbol: str, number: int
) -> None:
    found = {finding.kind: finding for finding in every(operator_of(statements, header), FEW).findings}
    assert found[kind].status == REFUTED
    if symbol:
        assert found[kind].values[symbol] == str(number)


WITHIN = [
    ("sum(j < len(d)) product([j for k < len(d)])", 1),
    left(("sum(j < len(d)) product([k + j + 1 for k < len(d)])", 8)),
    left(("sum(j < len(d)) product([j, j + 1])", 2)),
    left(("sum(j < len(d)) sum(k < len(d)) j", 2)),
    left(("sum(j < len(d)) len([k for k < len(d) if k < j])", 1)),
    left(("sum(j < len(d)) find(j, [k for k < len(d)])", 1)),
    left(("sum(j < len(d)) sorted([j + k for k < len(d)])[1]", 3)),
    left(("sum(j < len(d)) (last(k < len(d) if k < j from 5) k)", 5)),
    left(("sum(j < len(d)) (max(k < len(d)) (k - j))", 1)),
    left(("product([last(k < len(d) if k <= j from 7) (k + 1) for j < len(d)])", 2)),
]
"""Numbers in which a list or fold depends on the place within another one, with their values where d has two axes."""


@pytest.mark.parametrize(("number", "value"), WITHIN)
def test_a_list_or_fold_within_another_one_depends_on_the_place(number: str, value: int) -> None:
    """Taken for the same everywhere, it would prove that the number is another one and the divisor not 0."""
    let = f"let z = {number}"
    statements = f'require two: len(d) = 2 "Two."\n  {let}\n  Y[i... < d] = X[i + 0 * (1 div (z - {value}))]'
    assert "divisor" in {finding.kind for finding in every(operator_of(statements), FEW).findings}


MISTAKES = [
    ("Split-18", "total(front(sizes, p))", "total(front(sizes, if p = 4 then 5 else p))"),
    ("Max-8", "j < r) (padded", "j < r if j < 5) (padded"),
    ("Reshape-14", "s[j] >= -1", "(j = 4 or s[j] >= -1)"),
    left(("Concat-4", "for p < len(inputs)]", "+ (if p = 5 then 1 else 0) for p < len(inputs)]")),
    left(("Concat-4", "all(p < len(inputs)) (put", "all(p < len(inputs) if p < 4) (put")),
    left(("Transpose-1", 'range(len(d)) "', '[if k = 5 then 4 else k for k < len(d)] "')),
    left(("GatherND-12", "j... < p, l < w)", "j... < p, l < w if l != 4)")),
    left(("Slice-10", "(given_steps[j] != 0)", "(j = 4 or given_steps[j] != 0)")),
    left(("com.microsoft::MatMulNBits-1", "s = [N, blocks] or", "s = [N, 1, blocks - 1] or")),
]
"""A definition, a part of its text, and another one that is wrong at 5 axes or entries and more."""


@pytest.mark.parametrize(("name", "right", "wrong"), MISTAKES)
def test_a_mistake_in_a_text_beyond_four_axes_is_not_proved(name: str, right: str, wrong: str) -> None:
    written = re.sub(r"\s+", " ", print_declaration(specification().written(named(name))))
    assert right in written
    (declaration,) = parse(written.replace(right, wrong), "any").declarations
    assert isinstance(declaration, Operator)
    assert bounded(every(elaborated(declaration).cores[0], FEW)) != ""


@pytest.mark.parametrize("name", ["Split-18", "Max-8", *(left(name) for name in ("Reshape-14", "Concat-4"))])
def test_a_text_without_the_mistake_is_proved(name: str) -> None:
    assert bounded(every(named(name))) == ""


def test_flatten_with_a_divisor_that_is_0_at_five_axes_is_proved_up_to_four_axes_only() -> None:
    statements = "let z = 12 div (len(d) - 5)\n  Y[i... < d] = X[i + z * 0]"
    judgement = judge(operator_of(statements))
    assert judgement.verdict == PROVED
    assert judgement.bound == "divisor"


@table(
    ("name", "written", "changed"),
    [
        ("RNN-7", "B[q, g + k]", "B[q, g + k + 1]"),
        ("RNN-7", "len(activations) >= D", "len(activations) >= 1"),
        ("RNN-7", "is_activation(names[j])", '(is_activation(names[j]) or names[j] = "swish")'),
        ("RNN-7", "if L = 0 then H_0[q, b, u] else H_t[L - 1, q, b, u]", "H_t[L - 1, q, b, u]"),
        ("LSTM-14", "P[q, j * h + u]", "P[q, (j + 1) * h + u]"),
        ("LSTM-14", "initial_c[b, q, u]", "initial_c[q, b, u]"),
        ("SequenceErase-11", "k < n", "(k < n or n > 4)"),
        ("SequenceInsert-11", "k <= n", "(k <= n or n > 5)"),
        ("OptionalGetElement-15", "output = content(input)[0]", "output = content(input)[1]"),
        ("ai.onnx.ml::SVMRegressor-1", "(if m > 0 then m else f)", "(if m > 5 then m else f)"),
        ("MaxRoiPool-1", "minimum(begins(b, 0, p) + i, h - 1)", "minimum(begins(b, 0, p) + i, h)"),
    ],
    few=1,
)  # fmt: skip
def test_a_change_of_a_definition_of_the_text_is_noticed(name: str, written: str, changed: str) -> None:
    text = print_declaration(specification().written(named(name)))
    assert written in text
    (declaration,) = parse(text.replace(written, changed), "any").declarations
    assert isinstance(declaration, Operator)
    assert bounded(every(elaborated(declaration).cores[0], FEW)) != ""


# ---- what holds for every rank ------------------------------------------------------------------


@table(
    ("header", "statements"),
    [
        (UNARY, "Y[i... < d] = X[i]"),
        (UNARY, "Y[i... < reverse(d)] = X[reverse(i)]"),
        (UNARY, "Y[i... < d] = X[(i + 7) mod d]"),
        (UNARY, "Y[i... < d + 2] = if i - 1 in d then X[i - 1] else 0"),
        (UNARY, "require axis: len(d) > 2 \"Three.\"\n  Y[i... < front(d, 2), k... < back(d, 2)] = X[i, k]"),
        (UNARY, "require axis: len(d) > 2 \"Three.\"\n  Y[i... < drop(d, 2), k < d[2]] = X[insert(i, 2, k)]"),
        (UNARY, "require sizes: d > 0 \"Not empty.\"\n  Y[i < 1] = max(k... < d) X[k]"),
        (UNARY, "let o = [product(front(d, 1 - 1)), product(d)]\n  Y[i... < o] = X[unflatten(flatten(i, o), d)]"),
        (
            UNARY,
            "let r = [d[k] for k < len(d) if d[k] > 3]\n  Y[i... < r] = if len(i) > 0 then cast(T, r[0] - i[0]) else 0",
        ),
    ],
    few=1,
)  # fmt: skip
def test_what_is_defined_for_every_rank_is_proved(header: str, statements: str) -> None:
    judgement = every(operator_of(statements, header))
    assert not judgement.reason
    assert judgement.verdict == PROVED


@table(
    ("statements", "kind"),
    [
        ("Y[i... < d + 1] = X[i]", "index"),
        ("Y[i... < d - 1] = X[i]", "size"),
        ("Y[i... < d] = X[i div (d[0] - 3)]", "divisor"),
        ("Y[i... < d] = X[front(i, len(i) - 1)]", "length"),
        ("Y[i... < d] = X[i + d[len(d)]]", "position"),
        ("Y[i < 1] = max(k... < d) X[k]", "window"),
        ("Y[i... < front(d, 3)] = X[i, d * 0]", "contract"),
        ("Y[i... < [d[k] for k < len(d) if d[k] > 3]] = X[i]", "length"),
        ("Y[i... < d] = X[put(i, 0, 0)]", "contract"),
        ("let o = [product(d) + 1]\n  Y[i... < o] = X[unflatten(flatten(i, o), d)]", "contract"),
    ],
    few=1,
)
def test_each_kind_of_obligation_can_fail_for_open_ranks(statements: str, kind: str) -> None:
    statuses = {finding.kind: finding.status for finding in every(operator_of(statements), FEW // 2).findings}
    assert statuses[kind] in (REFUTED, OPEN)


SAMPLE = ("Softmax-13", "Add-7", "Squeeze-13", "SequenceInsert-11", "ai.onnx.ml::CastMap-1")


@pytest.mark.parametrize("name", SAMPLE)
def test_a_definition_of_the_text_is_proved_for_every_rank(name: str) -> None:
    assert bounded(every(named(name))) == ""


NOTICED = ("Gather-1", "Softmax-13")


@pytest.mark.parametrize("name", NOTICED)
def test_a_requirement_less_is_noticed_at_open_ranks(name: str) -> None:
    written = specification().written(named(name))
    without = [m for m in mutations(written) if m.kind == "require"]
    assert without
    assert not [m.what for m in without if bounded(every(elaborated(m.operator).cores[0], FEW)) == ""]


# ---- the facts can hold -------------------------------------------------------------------------


def ends(operator: CoreOperator, prover: Prover) -> list[Path]:
    """The paths that get to the end."""
    batches = explore(Instance(operator, {}, every=True), lambda path, split: cases(path, split, prover))
    return [b.path for b in batches if not b.dead and b.path.position == len(operator.statements)]


def possible(paths: Sequence[Path], rank: int, prover: Prover) -> str:
    """Whether all that is known at the end of a path, what the lemmas say included, can hold at a number of axes."""
    answers = set()
    for path in paths:
        lengths = [name for name, (count, _) in path.declared().items() if name.startswith("axes.") and not count]
        facts = (*(equal(Term(name), rank) for name in lengths), *path.facts)
        answers.add(prover.ask(facts, FALSE, path.declared()).status)
    return "sat" if "sat" in answers else "unsat" if answers == {"unsat"} else "unknown"


@pytest.mark.parametrize("name", ["Softmax-13", "Gather-1", "Add-7", "Flatten-11"])
def test_the_requirements_can_hold_at_few_axes_and_at_many(name: str) -> None:
    prover = Prover(TIMEOUT, effort=EFFORT)
    paths = ends(named(name), prover)
    least = 1 if name in ("Softmax-13", "Gather-1") else 0
    found = {rank: possible(paths, rank, prover) for rank in (0, 1, 2, 3, 4, 5, 6, 40)}
    assert found == {rank: "sat" if rank >= least else "unsat" for rank in found}


@table(
    ("requirement", "met"),
    [
        ("len(d) >= 0", ()),
        ("len(d) > 6", ()),
        ("len(d) = 7 or len(d) = 2", ()),
        ("len(d) = 1 or len(d) = 2", ("1-2 axes of d",)),
        ("len(d) < 3", ("0-2 axes of d",)),
        ("len(d) < 5", ("0-4 axes of d",)),
        ("len(d) < 6", ()),
    ],
    few=1,
)
def test_it_is_said_where_the_requirements_leave_few_axes(requirement: str, met: tuple[str, ...]) -> None:
    judgement = every(operator_of(f'require few: {requirement} "Few."\n  Y[i... < d] = X[i]'))
    assert bounded(judgement) == ""
    assert judgement.met == met


@pytest.mark.parametrize("condition", ["len(d) < len(d)", "len(d) * len(d) = 2", "d > d and len(d) > 0"])
def test_a_requirement_that_never_holds_is_no_proof(condition: str) -> None:
    judgement = every(operator_of(f'require never: {condition} "Never."\n  Y[i... < d + 1] = X[i]'))
    assert bounded(judgement) != ""


def test_the_command_says_for_which_ranks() -> None:
    lines = CliRunner().invoke(definedness, ["Softmax", "--version", "13"]).output.splitlines()
    assert lines[0].endswith("for every rank")


def test_what_is_written_says_how_many_definitions_are_proved_for_every_rank() -> None:
    rows = read_records(TABLE.read_text("utf-8"))
    every = sum(row.ranks == EVERY for row in rows)
    readme = (File(__file__).parents[3] / "semantics/README.md").read_text("utf-8")
    few = sum(any(word.startswith("met at ") for word in row.left) for row in rows)
    assert f"for every rank in {every} of {len(rows)} definitions ({few} of them" in readme.replace("\n", " ")
