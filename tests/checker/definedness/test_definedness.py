"""Operator definitions are defined for arbitrary shapes; one requirement or guard less is noticed."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner
from definition_mutations import Mutation, chosen, detected, elaborated, mutations, provers, whole
from sampling import one_of_each
from sonnx.checker.commands.definedness import definedness
from sonnx.checker.definedness.proving import AT_ONCE, AXES, EFFORT, OPEN, PROVED, REFUTED, TIMEOUT, Judgement, judge
from sonnx.checker.definedness.record import (
    COMMAND,
    TABLE,
    VERDICTS,
    Record,
    read_records,
    record,
    verdicts,
    write_records,
)
from sonnx.checker.smt.prover import Prover
from sonnx.spec.elaborate.core import CoreOperator
from sonnx.spec.language.parse import parse
from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification
from tables import table

HERE = Path(__file__).parent


def definitions() -> list[CoreOperator]:
    """The definitions by equations."""
    return [operator for operator in specification().meanings if not operator.rule]


def label(operator: CoreOperator) -> str:
    return f"{operator.name}-{operator.first}"


@cache
def exceptions() -> dict[str, str]:
    """The reasons that are listed, by subject; lines that begin with # are comments."""
    lines = (HERE / "expect" / "definedness.txt").read_text(encoding="utf-8").splitlines()
    parts = (line.partition(" :: ") for line in lines if line and not line.startswith("#"))
    return {subject: reason for subject, _, reason in parts}


def text_of(operator: CoreOperator) -> str:
    """The file of its text, which tells its family."""
    return specification().written(operator).span.file


@pytest.mark.parametrize("operator", one_of_each(definitions(), text_of, 9), ids=label)
def test_a_definition_is_defined_at_small_ranks(operator: CoreOperator) -> None:
    if f"small {label(operator)}" not in exceptions():
        every = chosen(operator, 2)
        judgement = judge(operator, Prover(TIMEOUT, effort=EFFORT, listed=1), every[:: 1 + len(every) // 3])
        check(judgement if judgement.paths else judge(operator, Prover(TIMEOUT, effort=EFFORT, listed=1), every))


@pytest.mark.campaign
@pytest.mark.parametrize("operator", definitions(), ids=label)
def test_a_definition_is_defined_at_all_ranks_as_it_is_recorded(operator: CoreOperator) -> None:
    judgement = judge(operator)
    if judgement.most != 0:
        check(judgement)
    assert record(operator, judgement) == rows()[label(operator)], f"to be done: {COMMAND} {operator.name}"


def check(judgement: Judgement) -> None:
    """Every obligation is proved, or its kind is listed; some instance gets to the end."""
    known = exceptions()
    assert judgement.paths, "no instance gets to the end"
    assert not judgement.reason
    assert not [finding for finding in judgement.findings if f"{finding.kind} {finding.about}" not in known]


@pytest.mark.campaign
@pytest.mark.parametrize("operator", definitions(), ids=label)
def test_what_is_listed_is_the_requirements_and_guards_less_that_go_unnoticed(operator: CoreOperator) -> None:
    """No reason is missing, and none is given for what shows: each line holds in every definition that it speaks of.

    Of several guards with one text one that goes unnoticed is enough.
    """
    if label(operator) in exceptions():
        return
    written, (at_once, prover) = specification().written(operator), provers()
    known, tried = whole(written, at_once, prover), list(mutations(written))
    unnoticed = {m.name for m in tried if not detected(m, at_once, prover, known)}
    assert unnoticed == {m.name for m in tried if listed(m)}


def listed(mutation: Mutation) -> bool:
    return any(subject in exceptions() for subject in subjects(mutation))


def subjects(mutation: Mutation) -> tuple[str, str]:
    """A mutation in all definitions, and in its own."""
    return f"{mutation.kind} {mutation.what}", mutation.name


@pytest.mark.campaign
def test_what_is_listed_stands_in_the_text() -> None:
    known = specification()
    tried = {it for operator in definitions() for m in mutations(known.written(operator)) for it in subjects(m)}
    assert [it for it in exceptions() if re.search("(^| )(require|guard) ", it) and it not in tried] == []


SAMPLE = {"MatMul-1", "Gather-1", "Concat-4", "Flatten-11", "Trilu-14"}
"""The definitions whose mutations are always tried; nothing is listed of Gather-1, and three lines of Trilu-14."""


@pytest.mark.parametrize("operator", [o for o in definitions() if label(o) in SAMPLE], ids=label)
def test_what_is_listed_in_a_sample_goes_unnoticed(operator: CoreOperator) -> None:
    test_what_is_listed_is_the_requirements_and_guards_less_that_go_unnoticed(operator)


# ---- the record -------------------------------------------------------------------------------


@cache
def rows() -> dict[str, Record]:
    return {row.name: row for row in read_records(TABLE.read_text("utf-8"))}


def test_every_definition_has_a_verdict_that_was_recorded_of_its_present_meaning() -> None:
    known = specification()
    found = verdicts(rows().values(), known.operators, known.functions)
    open_ = [name for name, versions in found.items() if not {*versions.values()} <= {*VERDICTS}]
    assert not open_, f"to be done: {COMMAND} {' '.join(open_)}"
    assert set(rows()) == {label(operator) for operator in definitions()}


def test_the_record_and_the_exceptions_say_the_same() -> None:
    listed = (row for row in rows().values() if row.verdict == "listed")
    kinds = {what for row in listed for what in row.left if what[:6] not in ("short ", "met at")}
    assert kinds
    assert kinds <= set(exceptions())
    tested = {name for name, row in rows().items() if row.verdict == "tested"}
    assert not tested & AT_ONCE
    assert tested | AT_ONCE == set(AXES) == {label(o) for o in definitions() if label(o) in exceptions()}


PROVED_ANEW = {"SequenceLength-11", "Flatten-11", "Cast-24", "Pad-11"}
"""The definitions that are always judged as the record was made; the campaign judges all."""


@pytest.mark.parametrize("operator", [o for o in definitions() if label(o) in PROVED_ANEW], ids=label)
def test_the_record_is_what_the_prover_finds(operator: CoreOperator) -> None:
    assert record(operator, judge(operator)) == rows()[label(operator)]


def test_what_is_refuted_or_never_gets_to_the_end_is_not_recorded() -> None:
    for statements in ("Y[i < n + 1] = X[i]", 'require never: n < n "Never."\n  Y[i < n] = X[i]'):
        operator = operator_of(statements)
        assert record(operator, judge(operator)) is None


def test_the_command_records_its_definitions_and_keeps_the_others(tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    kept, old = rows()["Abs-6"], rows()["Relu-6"]
    gone = Record("Gone", 1, 1, "0", "proved", "every", 1)
    table.write_text(write_records([kept, replace(old, digest="0", verdict="listed"), gone]))
    assert CliRunner().invoke(definedness, ["Relu", "--record", str(table)]).exit_code == 0
    assert [row for row in read_records(table.read_text()) if row.name != "Relu-1"] == [kept, old]


# ---- single definitions -----------------------------------------------------------------------


def operator_of(statements: str, header: str = "Relu @ 14 (X: T[n]) -> Y: T") -> CoreOperator:
    """A definition with these statements."""
    text = f'operator {header}\n  "Any."\n  source "any"\n  {statements}\n'
    (declaration,) = parse(text, "any").declarations
    assert isinstance(declaration, Operator)
    return elaborated(declaration).cores[0]


def findings(statements: str, header: str = "Relu @ 14 (X: T[n]) -> Y: T") -> dict[str, str]:
    """The obligations that are not proved: status by kind."""
    judgement = judge(operator_of(statements, header))
    assert not judgement.reason
    assert judgement.paths
    return {finding.kind: finding.status for finding in judgement.findings}


def test_an_index_beyond_the_end_is_refuted_with_sizes() -> None:
    judgement = judge(operator_of("Y[i < n + 1] = X[i]"))
    (finding,) = judgement.findings
    assert (finding.kind, finding.about, finding.status) == ("index", "X", REFUTED)
    assert int(finding.values["X.0"]) >= 0
    assert finding.span.line == 4


@table(
    ("statements", "kind"),
    [
        ("Y[i < n - 1] = X[i]", "size"),
        ("Y[i < n] = X[n div (n - 3) - n div (n - 3) + i]", "divisor"),
        ("Y[i < 1] = max(k < n) X[k]", "window"),
        ("Y[i < 1] = max(k < 4 if k * 2 - 1 in n) X[k * 2 - 1]", "window"),
        ("Y[(i, j) < [2, n div 2]] = X[i * (n div 2) + j]", "split"),
        ("Y[i < n] = X[[i, i][n]]", "position"),
        ("Y[i < front([n, n], n)[0]] = X[i]", "contract"),
    ],
    few=1,
)
def test_each_kind_of_obligation_can_fail(statements: str, kind: str) -> None:
    assert findings(statements)[kind] == REFUTED


@table(
    "statements",
    [
        "Y[i < n] = X[n - 1 - i]",
        'require not_empty: n > 0 "Not empty."\n  Y[i < 1] = max(k < n) X[k]',
        "Y[i < n] = if i > 0 then X[i - 1] else X[i]",
        'require even: n mod 2 = 0 "Even."\n  Y[(i, j) < [2, n div 2]] = X[i * (n div 2) + j]',
        "Y[i < (n + 2) div 3] = X[i * 3]",
        "Y[i < n] = X[(i + 7) mod n]",
        "Y[i < n] = X[clip(i + 5, 0, n - 1)]",
    ],
    few=1,
)
def test_what_is_defined_is_proved(statements: str) -> None:
    assert findings(statements) == {}


@table(
    ("required", "found"),
    [
        ("b > 0 implies all(j < b) (any(k < c) (A[j, k] > 0))", {}),
        ("b > 0 implies all(j < b) (all(k < c) (A[j, k] > 0))", {"window": REFUTED}),
        ("all(j < b) (any(k < c) (all(l < c) (l <= k)))", {}),
        ("all(j < b) (all(k < c) (any(l < c) (l <= k)))", {"window": REFUTED}),
        ("b <= c and all(j < b) (max(k < c if k >= j) A[j, k] > 0)", {}),
        ("b <= c + 1 and all(j < b) (max(k < c if k >= j) A[j, k] > 0)", {"window": REFUTED}),
    ],
    few=1,
)
def test_a_fold_in_a_quantifier_has_variables_of_its_own(required: str, found: dict[str, str]) -> None:
    """Each tells whether a row has an element, which the maximum needs."""
    statements = f'require told: {required} "Told."\n  Y[j < b] = max(k < c) A[j, k]'
    assert findings(statements, "MatMul @ 13 (A: T[b, c], B: T[e, f]) -> Y: T") == found


@table("size", ["merge([n], [1], repeat(2, 8))", "insert(repeat(2, 9), n, 1)", "drop(repeat(2, 9), n)"])
def test_a_position_behind_the_end_of_a_long_list_is_refuted(size: str) -> None:
    judgement = judge(operator_of(f'require told: n = 12 "Told."\n  Y[i < len({size})] = X[i - i]'))
    assert [it.kind for it in judgement.findings] == ["contract"] and judgement.verdict == REFUTED


def test_each_of_nine_positions_is_tried() -> None:
    """They are no lengths of lists, of which the least are enough."""
    statements = 'require told: n < 9 "Told."\n  Y[i < merge([n], [1], repeat(2, 8))[8] * 0 + SIZE] = X[0]'
    assert findings(statements.replace("SIZE", "if n = 8 then 0 - 1 else 0"))["size"] == REFUTED


def test_an_undefined_size_leaves_the_obligations_of_the_outputs_before_it() -> None:
    header = "Split @ 2..11 (input: T[n]) -> (outputs*: T)"
    assert findings("outputs[p][i < [n][p]] = input[i + 1]", header) == {"index": REFUTED, "position": REFUTED}


def test_a_size_is_a_whole_part_of_its_axis_in_each_alternative() -> None:
    statements = "let m = if n > 5 then n div 2 else n\n  Y[i < m] = X[i]"
    assert findings(statements) == {"split": REFUTED}
    assert findings(f'require even: n > 5 implies n mod 2 = 0 "Even."\n  {statements}') == {}


def test_floor_division_by_a_negative_number_is_that_of_the_language() -> None:
    rounded = '(n div (3 - n - 1)) = -2 and n mod (2 - n) = -3 "Rounded down."'
    requires = f'require seven: n = 7 "Seven."\n  require rounded_down: {rounded}'
    judgement = judge(operator_of(f"{requires}\n  Y[i < n] = X[i]"))
    assert judgement.paths == 1


def test_what_takes_more_steps_than_are_allowed_is_not_proved_however_much_time_there_is() -> None:
    operator = operator_of("Y[i < n] = X[(i + 7) mod n]")
    judgement = judge(operator, Prover(TIMEOUT, effort=100))
    assert judgement.verdict == OPEN and {it.status for it in judgement.findings} == {OPEN}
    assert record(operator, judgement) is None


@pytest.mark.parametrize("condition", ["n < n", "n < 0", "n * n = 2"])
def test_a_requirement_that_never_holds_proves_nothing(condition: str) -> None:
    judgement = judge(operator_of(f'require never: {condition} "Never."\n  Y[i < n + 1] = X[i]'))
    assert judgement.paths == 0
    assert judgement.verdict != PROVED


def test_the_command_prints_a_line_for_each_definition() -> None:
    result = CliRunner().invoke(definedness, ["Relu"])
    assert result.exit_code == 0
    assert [line.split()[:2] for line in result.output.splitlines()] == [["Relu-1", "proved"], ["Relu-6..14", "proved"]]


def test_the_command_writes_its_questions(tmp_path: Path) -> None:
    result = CliRunner().invoke(definedness, ["MatMul", "--dump-smt", str(tmp_path)])
    assert result.exit_code == 0
    texts = sorted(tmp_path.glob("MatMul-1.index.*.smt2"))
    assert texts
    assert "(check-sat)" in texts[0].read_text(encoding="ascii")


def test_an_operator_that_is_not_defined_is_a_usage_error() -> None:
    assert CliRunner().invoke(definedness, ["Nonesuch"]).exit_code == 2
