"""Engines for tests: the machine with a fault planted in one operator, and a machine that computes in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from sonnx.checker.runtimes.differential.comparison import CaseComparison
from sonnx.semantics.machine.execution import run
from sonnx.semantics.machine.judging import Standing
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.values import Value
from sonnx.semantics.operators.application import Application, Outputs, Stuck
from sonnx.semantics.operators.compiled import ieee
from sonnx.semantics.runtimes.engines.own import Watch
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind, Source, Values
from sonnx.semantics.runtimes.engines.sources import model_of

Fault = Callable[[Application, Outputs], tuple[Value | None, ...]]
"""The outputs that the faulty engine gives in place of the right ones."""


def outside(found: CaseComparison) -> list[str]:
    """The operators of the nodes whose outputs the specification does not allow, of the second engine."""
    return [
        node.operator
        for node in found.sides[1].nodes
        for _, judged in node.outputs
        if judged.standing is Standing.OUTSIDE
    ]


@dataclass(frozen=True)
class PlantedSession:
    model: Model
    faults: Mapping[str, Fault]

    def run(self, feeds: Values) -> Values | Failure:
        return self._run(feeds, None)

    def run_tapped(self, feeds: Values) -> Values | Failure:
        return self._run(feeds, Watch(self.model))

    def close(self) -> None: ...

    def _run(self, feeds: Values, watch: Watch | None) -> Values | Failure:
        def meaning(application: Application) -> Outputs | Stuck:
            done = ieee.apply(application)
            fault = self.faults.get(application.op_type)
            return done if fault is None or isinstance(done, Stuck) else Outputs(fault(application, done))

        done = run(self.model, feeds, meaning=meaning, observers=() if watch is None else (watch,), history=False)
        if done.stuck is not None:
            return Failure(Kind.OUTSIDE, done.stuck.message)
        return done.outputs if watch is None else watch.values


@dataclass(frozen=True)
class Planted:
    """The machine with faults by operator."""

    faults: Mapping[str, Fault]
    name: str = "planted"
    version: str = "1"

    def open(self, source: Source) -> PlantedSession:
        return PlantedSession(model_of(source), self.faults)


def dropped_term(application: Application, _: Outputs) -> tuple[Value | None, ...]:
    """MatMul without the last product."""
    a, b = application.inputs[:2]
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    return (np.matmul(a[..., :-1], b[..., :-1, :]),)


def other_order(application: Application, _: Outputs) -> tuple[Value | None, ...]:
    """MatMul with another order of summation, which is allowed."""
    a, b = application.inputs[:2]
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    return (np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype),)


def one_bit(_: Application, done: Outputs) -> tuple[Value | None, ...]:
    """The first output with the last bit of its last element turned."""
    value = done.values[0]
    assert isinstance(value, np.ndarray)
    made = value.copy()
    flat = made.reshape(-1).view(f"u{made.dtype.itemsize}")
    flat[-1:] ^= 1
    return (made, *done.values[1:])
