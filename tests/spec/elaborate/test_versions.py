"""Meanings that are stated as differences: what they stand for, in this layer and in the rechecker's own reading."""

from __future__ import annotations

import random

import pytest
from sampling import seeds
from sonnx.checker.rechecker.operators import text as rechecker
from sonnx.checker.rechecker.text import grammar, texts
from sonnx.spec.elaborate.declarations import elaborate
from sonnx.spec.elaborate.versions import expand_files, name_of
from sonnx.spec.language.parse import parse
from sonnx.spec.language.printer import print_declaration, print_file
from sonnx.spec.language.syntax import Operator
from sonnx.spec.library import specification

BASE = """operator Clip @ 6..12 (input: T[d...]) -> output: T
  "Doc."
  source "one"
  note "first"
  note "second"
  quote "quoted"
  require some_axes: len(d) > 0 "Some axes."
    demanded SONNX
  let low = cast(T, min)
  let high = cast(T, max)
  require ordered: min <= max "In order."
    demanded SONNX
  output[i... < d] = minimum(maximum(input[i], low), high)
"""
HEAD = 'operator Clip @ 1 like 6:\n  source "two"\n'


def expanded(difference: str) -> Operator:
    """The meaning that a difference from `BASE` stands for."""
    (file,), errors = expand_files([parse(f"{BASE}\n{difference}", "t")], {})
    assert not errors
    declared = file.declarations[-1]
    assert isinstance(declared, Operator)
    return declared


def names(operator: Operator) -> list[str]:
    return [name_of(statement) for statement in operator.statements]


def clauses(operator: Operator) -> list[tuple[str, str]]:
    return [(clause.key, clause.value) for clause in operator.clauses]


ALL = ["some_axes", "low", "high", "ordered", "output"]


def test_a_statement_takes_the_place_of_the_one_of_its_name() -> None:
    meaning = expanded(HEAD + '  require some_axes: len(d) > 1 "More axes."\n    demanded ONNX\n')
    assert names(meaning) == ALL
    assert meaning.statements[0].doc == "More axes."
    assert meaning.doc == "Doc."
    assert meaning.like == ("Clip-6", "some_axes")


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        ("let x = 1", ["x", *ALL]),
        ("let low = 2 let x = 1 let y = x", ["some_axes", "low", "x", "y", "high", "ordered", "output"]),
        ("after high let x = 1 let y = x", ["some_axes", "low", "high", "x", "y", "ordered", "output"]),
        ("after ordered let low = 1", ["some_axes", "high", "ordered", "low", "output"]),
        ("without ordered, low let x = 1", ["x", "some_axes", "high", "output"]),
    ],
)
def test_statements_stand_where_they_are_put(changes: str, order: list[str]) -> None:
    assert names(expanded(HEAD + changes)) == order
    library = rechecker.library(grammar(), {"t": f"{BASE}\n{HEAD}{changes}"})
    operator = library.operator("Clip", 1)
    assert operator is not None
    assert [statement.name for statement in operator.statements] == order


def test_a_clause_replaces_those_of_its_key_and_the_source_is_never_taken_over() -> None:
    meaning = expanded(HEAD + '  note "third"\n  without quote\n')
    assert clauses(meaning) == [("source", "two"), ("note", "third")]
    assert clauses(expanded('operator Clip @ 1 like 6:\n  note "third"\n')) == [("note", "third"), ("quote", "quoted")]


def test_a_difference_may_have_a_header_and_be_like_another_operator() -> None:
    meaning = expanded('operator Relu @ 6 like Clip @ 12 (X: T[d...]) -> Y: T:\n  source "two"\n')
    assert (meaning.name, meaning.inputs[0].name, meaning.like) == ("Relu", "X", ("Clip-6",))


def test_a_difference_of_a_difference_ends_in_a_full_text() -> None:
    chain = HEAD + '  let low = 0\noperator Clip @ 13 like 1:\n  source "three"\n  let high = 1\n'
    meaning = expanded(chain)
    assert [print_declaration(meaning).count(said) for said in ("let low = 0", "let high = 1")] == [1, 1]


def test_a_mistake_in_what_is_taken_over_is_reported_once() -> None:
    text = BASE.replace("cast(T, min)", "cast(T, nowhere)") + HEAD + "  let high = 1\n"
    assert [str(error).count("nowhere") for error in elaborate([parse(text, "t")]).errors].count(1) == 1


MANY, SAMPLE = 10_000, 60
"""More meanings than there are; so many of them are printed and parsed in every run."""


@pytest.mark.parametrize("chosen", seeds(MANY, SAMPLE))
def test_the_full_text_of_each_difference_parses_to_itself(chosen: range) -> None:
    every = [meaning for meanings in specification().operators.values() for meaning in meanings]
    assert SAMPLE < len(every) < MANY
    for meaning in random.Random(7).sample(every, len(every))[chosen.start : chosen.stop]:
        assert parse(print_declaration(meaning), "t").declarations == (meaning,)


def test_differences_are_printed_as_they_are_written() -> None:
    source = parse(f"{BASE}\n{HEAD}  without ordered, note\n  after high let x = 1\n  let low = 1\n", "t")
    assert parse(print_file(source), "t") == source


def test_the_rechecker_expands_every_difference_to_the_same_text() -> None:
    library = texts().operators
    for meanings in specification().operators.values():
        for meaning in meanings:
            own = library.operator(meaning.name, meaning.first)
            assert own is not None
            assert (own.first, own.last, own.doc) == (meaning.first, meaning.last, meaning.doc)
            ports = ((port.name, port.mark, port.type, port.shape) for port in (*meaning.inputs, *meaning.outputs))
            assert [(port.name, port.mark, port.type, port.shape) for port in (*own.inputs, *own.outputs)] == [*ports]
            stated = [(name_of(it), it.id, it.doc if it.id else "") for it in meaning.statements if it.kind != "rule"]
            read = [(it.name, it.id, it.sentence) for it in own.statements if it.kind != "meaning"]
            assert read == stated
