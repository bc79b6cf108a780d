"""Every restriction and constraint of the working group is carried: by a statement, a rule, a header or an equation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.language.parse import parse
from sonnx.spec.language.printer import print_file
from sonnx.spec.language.syntax import DEMANDS, Operator
from sonnx.spec.library import specification
from tables import table

TABLE = Path(__file__).with_name("demands.tsv")
KINDS = frozenset(("require", "restrict", "rule", "header", "equation", "real", "none"))


@dataclass(frozen=True)
class Row:
    """What the working group's specification of an operator says under an id, and where it is carried."""

    operator: str
    section: str
    id: str
    kind: str
    carriers: tuple[str, ...]


def rows() -> tuple[Row, ...]:
    """The table."""
    lines = (line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#"))
    return tuple(Row(a, b, c, kind, tuple(" ".join(rest).split())) for a, b, c, kind, *rest in lines)


ROWS = rows()
STATED = [row for row in ROWS if row.kind in DEMANDS]
RULES = frozenset(rule.id for rule in specification().profiles["sonnx-operators"].rules)


def demanded(operator: Operator) -> Iterator[tuple[str, str]]:
    """The ids of SONNX that the statements of a definition name, each with the kind of the statement."""
    for statement in operator.statements:
        for item in statement.clauses:
            if item.key == "demanded" and item.value.startswith("SONNX/"):
                yield item.value.removeprefix("SONNX/"), statement.kind


def test_the_table_speaks_of_each_id_of_a_section_once() -> None:
    assert len({(row.operator, row.section, row.id) for row in ROWS}) == len(ROWS)
    assert {row.kind for row in ROWS} == KINDS


def test_every_operator_of_the_table_is_defined() -> None:
    assert {row.operator for row in ROWS} <= set(specification().operators)


def test_every_id_that_a_definition_names_is_in_the_table() -> None:
    stated = {(row.id, row.kind) for row in STATED}
    for texts in specification().operators.values():
        for operator in texts:
            strange = [found for found in demanded(operator) if found not in stated]
            assert not strange, f"{operator.name}-{operator.first}"


@table("row", STATED, ids=lambda row: f"{row.id} {row.section}")
def test_the_newest_definition_states_what_the_table_says_it_does(row: Row) -> None:
    newest = max(specification().operators[row.operator], key=lambda text: text.first)
    assert (row.id, row.kind) in set(demanded(newest))


def test_every_rule_that_carries_a_restriction_is_in_the_profile() -> None:
    for row in ROWS:
        assert set(row.carriers) <= RULES, row
        assert bool(row.carriers) == (row.kind == "rule"), row


def test_every_restriction_in_the_profile_is_in_the_table() -> None:
    carriers = {rule for row in ROWS for rule in row.carriers}
    numbered = {rule for rule in RULES if rule.partition("/")[0] in specification().operators}
    assert numbered - carriers == {
        "DequantizeLinear/types",
        "QuantizeLinear/types",
        "Slice/R5-wg",
    }, "the types are in the titles of two specifications, Slice/R5-wg is the other reading of Slice/R5"


# ---- restrict -----------------------------------------------------------------------------------

PRELUDE = 'fun cast(t: Type, e: Any): Element "e as an element of type t."\n'
LEAKY = PRELUDE + 'operator LeakyRelu @ 6..16 (X: T[d...]) -> Y: T\n  "Doc."\n  source "a test"\n'
CLIP = 'operator Clip @ 13 (input: T[d...], min?: T, max?: T) -> output: T\n  "Doc."\n  source "a test"\n'
RESTRICT = (
    '  restrict alpha_positive: alpha > 0\n    "alpha is positive."\n    demanded SONNX/LeakyRelu-R1,'
    " SONNX/LeakyRelu-X\n"
)


def mistakes(text: str) -> list[str]:
    """The kinds of the mistakes in a text."""
    return [error.kind for error in elaborate([parse(text, "t")]).errors]


def test_a_restriction_may_name_several_ids_and_is_printed_as_it_is_written() -> None:
    text = LEAKY + RESTRICT + "  Y[i... < d] = X[i] * cast(T, alpha)\n"
    assert mistakes(text) == []
    assert print_file(parse(text, "t")).endswith(RESTRICT + "  Y[i... < d] = X[i] * cast(T, alpha)\n")


def test_a_restriction_says_who_demands_it() -> None:
    bare = LEAKY + '  restrict alpha_positive: alpha > 0 "alpha is positive."\n  Y[i... < d] = X[i] * cast(T, alpha)\n'
    assert mistakes(bare) == ["clause/missing"]


def test_an_attribute_that_only_a_restriction_reads_is_ignored() -> None:
    assert mistakes(LEAKY + RESTRICT + "  Y[i... < d] = X[i]\n") == ["schema/ignored-attribute"]


@pytest.mark.parametrize(("word", "found"), [("require", []), ("restrict", ["given/unguarded"])])
def test_what_stands_behind_a_restriction_may_not_rely_on_it(word: str, found: list[str]) -> None:
    body = f'  {word} both: given min and given max "Both are given."\n    demanded SONNX\n'
    kinds = mistakes(CLIP + body + "  output[i... < d] = min[] + max[]\n")
    assert sorted(set(kinds)) == found
