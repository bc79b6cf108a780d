"""The rechecker's evaluator gives formulas the meaning that the direct evaluator gives them, on tables of facts."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest
import small_graphs
from lark import Lark, Tree
from sonnx.checker.rechecker.fixpoints import Fixpoints, follows
from sonnx.checker.rechecker.formulas import Context, compiled, instances
from sonnx.checker.rechecker.text import Text, grammar, texts
from sonnx.checker.rechecker.values import UNKNOWN, Find, Tables
from sonnx.semantics.facts.structure import SetTable, Structure, Unknown
from sonnx.semantics.formulas import evaluate as direct
from sonnx.spec.library import specification
from tables import table

GRAPH_RULES = (
    "Acyclic", "Sourced", "NodeConnected", "OutputUsage", "InputUsage", "Completeness", "Contributes", "OnInputPath",
    "SingleAssignment", "NoWriteToInput", "OutputPositions", "Deterministic", "UniqueFunctions",
)  # fmt: skip


def tables(structure: Structure) -> Tables:
    """The same facts, for the rechecker."""

    def maker(fact: str) -> Find:
        table = structure.table(fact)
        if isinstance(table, SetTable):
            return table.rows.get
        return lambda key: UNKNOWN if isinstance(found := table.rows.get(key), Unknown) else found

    return Tables({fact: lambda fact=fact: maker(fact) for fact in structure.facts()})


def graphs(step: int) -> Iterator[object]:
    yield from islice(small_graphs.up_to_renaming(2, 2), 0, None, step)
    yield from small_graphs.sampled(300 // step, 11, 4, 5)
    yield from small_graphs.sampled(100 // step, 12, 6, 6)


@pytest.mark.parametrize("step", [pytest.param(8, id="sample"), pytest.param(1, id="all", marks=pytest.mark.campaign)])
def test_every_rule_of_graphs_is_judged_alike_on_all_tiny_and_many_random_graphs(step: int) -> None:
    """On every eighth of them; on all in the campaign."""
    spec, text = specification(), texts()
    known = [name for name in GRAPH_RULES if small_facts(name) <= set(some().facts())]
    assert len(known) >= 10
    for graph in graphs(step):
        structure = small_graphs.structure(graph)
        facts = tables(structure)
        fixpoints = Fixpoints(text, facts)
        for name in known:
            judged = direct.judge(spec.constraints[name], spec.functions, structure, limit=10**6)
            declared = text.declaration(name)
            assert declared is not None
            places = list(instances(declared.body, Context(text, facts, fixpoints.atoms)))
            failing = [place for place in places if place.fails] or places
            expected = judged.failures or judged.unknowns
            assert [tuple(e for _, e in place.elements) for place in failing] == [
                tuple(element for _, _, element in instance.bindings) for instance in expected
            ], (name, graph)
            assert any(place.fails for place in places) == (judged.verdict == "violated"), (name, graph)


def some() -> Structure:
    return small_graphs.structure(next(small_graphs.up_to_renaming(1, 1)))


def small_facts(name: str) -> set[str]:
    spec = specification()
    return set(small_graphs.facts_of(spec.constraints[name].formula, spec.functions))


def test_an_order_follows_only_if_it_is_the_least_one() -> None:
    text = texts()
    graph = small_graphs.SmallGraph(5, ((), (0,), (), (1, 2)), ((0,), (1,), (2,), (3,)), (), (3,))
    facts = tables(small_graphs.structure(graph))
    assert follows("founded", [0, 1, 2, 3], text, facts, range(4))
    for order in (
        [0, 2, 1, 3],
        [2, 0, 1, 3],
        [1, 0, 2, 3],
        [0, 1, 2],
        [0, 1, 2, 3, 3],
        [0, 1, 3, 2],
        [],
        [0, 1, 2, 3, 4],
    ):
        assert not follows("founded", order, text, facts, range(4)), order
    # 2 waits for 3, and 1 does not: 1 comes first, though 3, 2, 1 has each node greater than the next one's premise
    waiting = small_graphs.SmallGraph(4, ((), (), (3,), ()), ((0,), (1,), (2,), (3,)), (), (2,))
    facts = tables(small_graphs.structure(waiting))
    assert follows("founded", [0, 1, 3, 2], text, facts, range(4))
    for order in ([3, 2, 0, 1], [0, 3, 2, 1], [3, 0, 1, 2], [0, 3, 1, 2]):
        assert not follows("founded", order, text, facts, range(4)), order


@table(
    ("written", "value"),
    [
        ("open() or true", True),
        ("open() and false", False),
        ("open() and true", UNKNOWN),
        ("open() or false", UNKNOWN),
        ("open() implies true", True),
        ("false implies open()", True),
        ("open() iff open()", UNKNOWN),
        ("not open()", UNKNOWN),
        ("if open() then true else true", UNKNOWN),
        ("forall n in nodes(): n < 2 or open()", UNKNOWN),
        ("forall n in nodes(): n < 2 and open()", False),
        ("exists n in nodes(): n = 2 or open()", True),
        ("exists n in none(): open()", False),
        ("forall n in unknowable(): true", UNKNOWN),
        ("unique n in nodes(): n = 1", True),
        ("unique n in nodes(): n >= 1", False),
        ("unique n in nodes(): n = 1 or open()", UNKNOWN),
        ("1 div 0 = 1", UNKNOWN),
        ("-7 div 2 = -4 and -7 mod 2 = 1", True),
        ("[1, 2][2] = 0", UNKNOWN),
        ("[1, 2][1] = 2", True),
        ("len({n + 1 for n in nodes()}) = 3", True),
        ("{n mod 2 for n in nodes()} = {n for n in nodes() if n < 2}", True),
        ("0 <= 1 < 2 < 2", False),
        ('"a" in ["b", "a"] and "c" not in ["b"]', True),
        ("case text() { \"a\": true; else: open() }", True),
        ("case text() { \"b\": true }", UNKNOWN),
        ("missing() = 1", UNKNOWN),
        ("2 in nodes() and not (3 in nodes())", True),
        ("forall n in [1, 1, 2], m in nodes(): n + m >= 1", True),
    ],
)  # fmt: skip
def test_connectives_and_quantifiers_have_three_values(written: str, value: object) -> None:
    facts = Tables(
        {
            "open": lambda: lambda key: UNKNOWN,
            "nodes": lambda: lambda key: (0, 1, 2),
            "none": lambda: lambda key: (),
            "unknowable": lambda: lambda key: UNKNOWN,
            "text": lambda: lambda key: "a",
            "missing": lambda: lambda key: None,
        }
    )
    text = Text(
        {
            "1-facts.sonnx": 'sort Node "n"\n'
            'fact open(): Bool "o"\nfact nodes(): set Int "n"\nfact none(): set Int "n"\n'
            'fact unknowable(): set Int "u"\n'
            'fact text(): Text "t"\nfact missing(): Int "m"\n'
            f'constraint C "c" at static: {written}\n'
        }
    )
    declared = text.declaration("C")
    assert declared is not None
    slots: list[str] = []
    code = compiled(declared.body, Context(text, facts, lambda name: None, slots))
    assert code([False] * len(slots)) is value


def test_every_constraint_that_a_rule_set_selects_can_be_compiled() -> None:
    text, spec = texts(), specification()
    facts = Tables({name: lambda: lambda key: UNKNOWN for name, f in spec.functions.items() if f.kind == "fact"})
    for name in {rule.constraint for profile in spec.profiles.values() for rule in profile.rules}:
        declared = text.declaration(name)
        assert declared is not None
        assert declared.doc == spec.constraints[name].doc
        list(instances(declared.body, Context(text, facts, Fixpoints(text, facts).atoms)))


def test_the_grammar_is_the_file_of_the_specification() -> None:
    assert "start: _declaration*" in grammar()
    assert isinstance(Lark(grammar(), parser="lalr", start="expr").parse("1 + 1"), Tree)


def test_texts_and_digests_are_those_of_the_library() -> None:
    text, spec = texts(), specification()
    assert set(text.contents) == set(spec.digests)
    for name, profile in spec.profiles.items():
        found = text.rule_set(name)
        assert found is not None
        assert [rule.id for rule in found.rules] == [rule.id for rule in profile.rules]
        assert [rule.constraint for rule in found.rules] == [rule.constraint for rule in profile.rules]
