"""The core: what elaboration makes of the whole text keeps to the rules, and each rule can be broken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from sonnx.spec.elaborate.core import Binding, Bound, Core
from sonnx.spec.elaborate.formulas import CLEAR, Cores, Definition
from sonnx.spec.elaborate.sorts import CLASH
from sonnx.spec.language.parse import parse_expression
from sonnx.spec.language.syntax import BOOL, INT, NOWHERE, TEXT, Sort
from sonnx.spec.library import specification
from wellformed_core import RULES, malformed, malformed_statements

TEXT_OF_ALL = specification()
CORES = Cores(TEXT_OF_ALL.functions)


def definitions() -> Iterator[Definition]:
    for name, function in TEXT_OF_ALL.functions.items():
        if function.body is not None:
            yield CORES.definition(name)
    for constraint in TEXT_OF_ALL.constraints.values():
        memory = [("M", Sort("Memory"))] if constraint.phase == "final" else []
        yield CORES.over(constraint.formula, memory)
    for prop in TEXT_OF_ALL.properties.values():
        variables = [(parameter.name, parameter.sort) for parameter in prop.parameters]
        for premise in prop.premises:
            made = CORES.over(premise.expr, variables)
            if premise.name is not None and made.body.sort is not None:
                variables.append((premise.name, made.body.sort))
            yield made
        yield CORES.over(prop.goal, variables)


def test_the_core_of_the_whole_text_keeps_to_the_rules() -> None:
    wrong = [f"{node.span} {node.head}" for made in definitions() for node in malformed(made.body, made.parameters)]
    assert wrong == []


def test_the_cores_of_all_operators_keep_to_the_rules() -> None:
    meanings = list(TEXT_OF_ALL.meanings)
    assert len(meanings) == sum(map(len, TEXT_OF_ALL.operators.values()))
    assert [f"{node.span} {node.head}" for meaning in meanings for node in malformed_statements(meaning)] == []


def test_a_statement_that_reads_what_stands_behind_it_is_malformed() -> None:
    conv = TEXT_OF_ALL.meanings.at("Conv", 11)
    assert conv is not None
    turned = replace(conv, statements=conv.statements[::-1])
    assert (list(malformed_statements(conv)), bool(list(malformed_statements(turned)))) == ([], True)


def test_every_node_has_its_place_in_the_text() -> None:
    assert [node for made in definitions() for node in made.body.nodes() if node.span == NOWHERE and node.parts] == []


def core(text: str) -> Core:
    variables = {"x": INT, "t": TEXT, "b": BOOL, "s": Sort("set", INT), "l": Sort("list", INT)}
    return CORES.over(parse_expression(text), variables.items()).body


SAMPLES = [
    "1", "x", "not b", "b and b", "b or b", "b implies b", "b iff b", "x < 1", "if b then x else 2",
    'case t { "a": 1; else: 2 }', "x + 1", "-x", "forall i in s: i = 1", "exists i in l: i = x", "unique i in s: i = x",
    "{i for i in s}", "[i for i < x]", "[i for i in l if i < x]", "{i |-> b for i in s}", "sum(i < x) i", "[1, x]",
    "l[x]", "len(l)", "l ++ l", "maximum(x, 1)",
]  # fmt: skip


@pytest.mark.parametrize("text", SAMPLES)
def test_a_core_without_its_sort_or_with_another_number_of_parts_is_malformed(text: str) -> None:
    found = core(text)
    assert list(malformed(found, parameters(found))) == []
    least, most, _ = RULES[found.head]
    broken = [replace(found, sort=None), replace(found, sort=CLASH), replace(found, head="mistaken")]
    broken += [replace(found, parts=found.parts[: least - 1])] if least else []
    broken += [] if most is None else [replace(found, parts=(*found.parts, *[found] * (most + 1 - len(found.parts))))]
    assert [it for it in broken if it not in malformed(it, parameters(found))] == []


def parameters(found: Core) -> list[Binding]:
    """The variables that occur and are bound outside."""
    own = {variable for node in found.nodes() for item in node.bound for variable in item.variables}
    return [node.variable for node in found.nodes() if node.variable is not None and node.variable not in own]


def test_a_variable_outside_its_quantifier_is_malformed() -> None:
    inner = core("forall i in s: i = 1").parts[0]
    assert [node.name for node in malformed(inner)] == ["i"]


def test_a_variable_of_another_sort_than_its_domain_is_malformed() -> None:
    found = core("exists i in s: true")
    (bound,) = found.bound
    other = replace(found, bound=(Bound((replace(bound.variable, sort=TEXT),), bound.domain),))
    assert [list(malformed(it, parameters(found))) for it in (found, other)] == [[], [other]]


def test_each_head_of_formulas_has_a_rule() -> None:
    heads = {node.head for made in definitions() for node in made.body.nodes()}
    assert heads <= RULES.keys()
    assert {"literal", "variable", "compare", "case", "list", "step", "every", "fold"} <= heads


def test_a_relation_of_a_chain_stands_alone() -> None:
    found = core("1 < x <= 3")
    assert (found.head, [part.name for part in found.parts]) == ("and", ["<", "<="])


def test_mistakes_that_leave_a_meaning_are_about_names_and_sorts() -> None:
    assert {kind.partition("/")[0] for kind in CLEAR} == {"name", "sort"}
