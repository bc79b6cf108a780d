"""The wrong rewrites of the installed onnxruntime are named by the optimizers that make them."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec

import pytest
from miscompilations import LIVE, deep_model
from sampling import sampled
from sonnx.checker.runtimes.bisection.searching import Bisection, Verdict, bisect
from sonnx.checker.runtimes.bisection.trials import Answer, Criterion
from sonnx.semantics.runtimes.engines.onnxruntime_engine import OnnxRuntime, onnxruntime
from sonnx.semantics.runtimes.engines.protocol import Failure, Optimized, Source, Switches, Values

needs_onnxruntime = pytest.mark.skipif(
    not os.environ.get("SONNX_ONNXRUNTIME") and find_spec("onnxruntime") is None, reason="onnxruntime is not installed"
)
pytestmark = needs_onnxruntime
VERSION = "1.32.0"
"""The version in which all are wrong."""


@cache
def engine() -> OnnxRuntime:
    return onnxruntime("onnxruntime", "all")


def asked(source: Source, feeds: Values) -> Bisection:
    return bisect(engine(), source, "given", feeds, criterion=Criterion.SPECIFICATION, seconds=60, tell=lambda _: None)


@pytest.mark.parametrize("name", sampled(LIVE, 1))
def test_the_optimizers_of_a_wrong_rewrite_are_named(name: str) -> None:
    row = LIVE[name]
    found = asked(row.source, row.feeds)
    if found.verdict is Verdict.RIGHT and engine().version != VERSION:
        pytest.skip(f"onnxruntime {engine().version} has repaired {row.name}")
    assert row.passes in [frozenset(it.names) for it in found.guilty], found.reason
    if found.default is not None and found.default.answer is Answer.OUTSIDE:
        assert any(rule.claim == "never" for it in found.guilty for rule in it.rules)
    assert found.remedy is not None and found.plain is not None and found.plain.answer is Answer.ALLOWED
    assert found.smallest is not None and found.default is not None
    assert found.smallest.default.signature == found.default.signature


@pytest.mark.campaign
def test_a_wrong_rewrite_deep_in_fifty_nodes_is_named_by_the_part_that_shows_it() -> None:
    row = deep_model()
    found = asked(row.source, row.feeds)
    assert [frozenset(it.names) for it in found.guilty] == [row.passes]
    assert found.part.count("/") == 5


def test_the_log_tells_the_optimizers_also_of_a_session_that_fails() -> None:
    done = engine().optimized(LIVE["MatMulScaleBits-18/great"].source, Switches())
    assert isinstance(done, Optimized) and done.content is not None
    assert ("MatMulScaleFusion", 2) in [(it.name, it.level) for it in done.passes if it.changed]
    failed = engine().optimized(LIVE["ReluClip-18/double"].source, Switches())
    assert isinstance(failed, Optimized) and failed.content is None and failed.failure is not None
    assert [it.name for it in failed.passes if it.changed] == ["Level1_RuleBasedTransformer"]


def test_every_name_of_the_rows_is_one_that_the_library_or_its_log_tells() -> None:
    names = set(engine().parts("Level1_RuleBasedTransformer"))
    logged = engine().optimized(LIVE["GeluTolerance-18/short"].source, Switches())
    assert not isinstance(logged, Failure)
    names |= {it.name for it in logged.passes}
    assert {name for it in LIVE.values() for name in it.passes} <= names
    assert engine().parts("MatMulScaleFusion") == ()
