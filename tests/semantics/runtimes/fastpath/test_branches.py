"""Branches of a graph: found where nothing flows between them, run at the same time, in memory of their own."""

from __future__ import annotations

from contextlib import suppress
from threading import Barrier
from time import sleep
from typing import Any
from weakref import ref

import numpy as np
import pytest
from machine_models import node
from sonnx.semantics.resources.process import paused
from sonnx.semantics.runtimes.fastpath import RunError, Session, branches
from sonnx.semantics.runtimes.fastpath.kernel import Kernel, KernelError
from sonnx.semantics.runtimes.fastpath.workers import THREADS
from tables import table
from toy_kernels import elementwise, provider
from toy_sessions import floats, net

SPLIT = (
    node("Abs", ["x"], ["a"]),
    node("Neg", ["a"], ["b"]),
    node("Sqrt", ["a"], ["c"]),
    node("Neg", ["b"], ["d"]),
    node("Sign", ["x"], ["e"]),
    node("Sum", ["c", "d", "e"], ["f"]),
    node("Neg", ["f"], ["y"]),
)
"""From a on there are the branches b d, c and e, until f."""


@table(
    "seconds, expected",
    [
        ((1, 1, 1, 1, 1, 1, 1), (((0,),), ((1, 3), (4,), (2,)), ((5, 6),))),
        ((1, 1, 9, 1, 1, 1, 1), (((0,),), ((2,), (1, 3), (4,)), ((5, 6),))),
        ((1, 0, 9, 0, 0, 1, 1), (((0, 1, 2, 3, 4, 5, 6),),)),
    ],
)
def test_branches_are_the_steps_between_which_nothing_flows_where_that_saves_enough(
    seconds: tuple[float, ...], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "THREADS", 2)
    compiled = Session(net(SPLIT))._variant(frozenset()).compiled
    assert branches.sections(compiled, seconds) == expected


TWO = [node("Mul", ["x", "x"], ["s"]), *(node("Neg", ["s"], [it]) for it in "ab"), node("Add", ["a", "b"], ["y"])]


@pytest.mark.skipif(THREADS < 2, reason="there is one thread")
def test_branches_run_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "WORTH", -1)
    met: list[Barrier] = []

    def negated(x: Any, out: Any) -> Any:
        for barrier in met:
            barrier.wait(10)
        return np.negative(x, out=out)

    made, x = Session(net(TWO), [provider(Neg=elementwise(negated))]), floats(1, 2, 3)
    made.run(None, {"x": x})
    met.append(Barrier(2))
    for _ in range(3):
        assert np.array_equal(made.run(None, {"x": x})[0], -2 * x * x)  # type: ignore[arg-type]


def test_what_one_branch_raises_is_raised_and_the_next_run_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "WORTH", -1)

    def negated(x: Any, out: Any) -> Any:
        if x[0] > 1:
            raise KernelError("it is small")
        return np.negative(x, out=out)

    made = Session(net(TWO), [provider(Neg=elementwise(negated))])
    for first in (0, 1, 2, 1):
        x = floats(first, 5)
        if first > 1:
            with pytest.raises(RunError, match="it is small"):
                made.run(None, {"x": x})
        else:
            assert made.run(None, {"x": x})[0].tolist() == [-2 * first, -50]  # type: ignore[union-attr]


@table("alone, longest", [(True, 1), (False, 2)])
def test_a_node_that_is_to_be_computed_alone_has_none_beside_it(
    alone: bool, longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "WORTH", -1)
    kernel = Kernel(1, 99, elementwise(np.negative).prepare, alone=alone)
    compiled = Session(net(TWO), [provider(Neg=kernel)])._variant(frozenset()).compiled
    assert max(map(len, branches.sections(compiled, (1, 1, 1, 1)))) == longest


def test_where_two_branches_fail_the_earlier_step_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "WORTH", -1)

    def negated(x: Any, out: Any) -> Any:
        if x[0] > 1:
            if x[0] < 5:
                sleep(0.02)
            raise KernelError("it is small")
        return np.negative(x, out=out)

    nodes = [node("Mul", ["x", "x"], ["s"]), node("Neg", ["s"], ["y"]), node("Add", ["s", "s"], ["t"])]
    made = Session(
        net([*nodes, node("Neg", ["t"], ["z"]), node("Add", ["y", "z"], ["w"])], outputs="w"),
        [provider(Neg=elementwise(negated))],
    )
    made.run(None, {"x": floats(0, 5)})
    for _ in range(3):
        with pytest.raises(RunError, match="/1:Neg"):
            made.run(None, {"x": floats(2, 5)})


@table("worth", [-1, 1])
def test_a_run_that_fails_leaves_nothing_in_memory(worth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even until garbage is collected: an error that held itself would hold the run."""
    monkeypatch.setattr(branches, "WORTH", worth)

    def negated(x: Any, out: Any) -> Any:
        if x[0] > 1:
            raise KernelError("it is small")
        return np.negative(x, out=out)

    made = Session(net(TWO), [provider(Neg=elementwise(negated))])
    made.run(None, {"x": floats(0, 5)})
    given = floats(2, 5)
    known = ref(given)
    with paused():
        with suppress(RunError):  # pytest.raises would keep the error
            made.run(None, {"x": given})
        del given
        assert known() is None
