"""ONNX's own node tests, run by ONNX's own runner on the machine as a backend."""

from __future__ import annotations

import re
import unittest
from functools import cache
from pathlib import Path

import onnx
import onnx.backend.test
import pytest
from node_tests import FAULTY, REFUSED, node_cases
from sampling import sampled
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.schemas import operator_name
from sonnx.semantics.runtimes.backend import Machine, RunError
from sonnx.spec.library import specification

BLOCKS = 24


def operators(graph: onnx.GraphProto) -> set[str]:
    """The operators of a graph and of the bodies in it."""
    found = set()
    for node in graph.node:
        found.add(operator_name(node.domain, node.op_type))
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                found |= operators(body)
    return found


@cache
def covered() -> tuple[str, ...]:
    """The node tests whose models are made of operators that the specification defines."""
    known = set(specification().operators)
    names = []
    for case in node_cases():
        model = case.model if case.model is not None else onnx.load(Path(str(case.model_dir)) / "model.onnx")
        inner = {op for function in model.functions for op in operators(onnx.GraphProto(node=function.node))}
        if operators(model.graph) | inner <= known:
            names.append(case.name)
    return tuple(names)


def chosen(case: type[unittest.TestCase], wanted: set[str]) -> type[unittest.TestCase]:
    """The test case of ONNX's runner with the wanted tests alone."""
    kept = {name: member for name, member in vars(case).items() if name in wanted or not name.startswith("test_")}
    return type(case.__name__, (unittest.TestCase,), kept)


@cache
def runner() -> type[unittest.TestCase]:
    """The test case of ONNX's runner with the tests that are covered."""
    made = onnx.backend.test.BackendTest(Machine, __name__)
    names = [name for name in covered() if name not in FAULTY and name not in REFUSED]
    made.include(f"^({'|'.join(map(re.escape, names))})_cpu$")
    return chosen(made.test_cases["OnnxBackendNodeModelTest"], {f"{name}_cpu" for name in names})


@pytest.mark.parametrize("block", sampled(range(BLOCKS), 2))
def test_a_block_of_the_node_tests_passes(block: int) -> None:
    """Two blocks of twenty-four, and the others in the campaign. The tests are read when the first block runs: that
    takes seconds, and a collection of tests shall take none."""
    names = unittest.TestLoader().getTestCaseNames(runner())[block::BLOCKS]
    result = unittest.TestSuite(map(runner(), names)).run(unittest.TestResult())
    assert (result.testsRun, result.skipped) == (len(names), [])
    assert [f"{case}\n{trace}" for case, trace in (*result.failures, *result.errors)] == []


def test_the_tests_left_out_exist() -> None:
    assert set(FAULTY) | set(REFUSED) <= set(covered())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_for_the_reason_listed(name: str) -> None:
    (case,) = (case for case in node_cases() if case.name == name)
    with pytest.raises((RunError, Unsupported), match=re.escape(REFUSED[name])):
        Machine.prepare(case.model).run(case.data_sets[0][0])


@pytest.mark.parametrize("domain", ["ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"])
def test_the_operators_of_other_domains_are_covered_too(domain: str) -> None:
    assert any(
        node.domain == domain for case in node_cases() if case.name in covered() for node in case.model.graph.node
    )


def test_hundreds_of_node_tests_are_covered() -> None:
    assert len(covered()) > 400
