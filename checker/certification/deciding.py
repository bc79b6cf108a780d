"""Deciding constraints: the solver's answer and the direct evaluator's judgement on each.

A small model is judged in this process. A large one is judged by worker processes,
forked when the model has been read, so that its facts are shared and each worker takes one constraint after the other.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.queues import SimpleQueue
from threading import Lock
from typing import Final

from sonnx.semantics.errors import InternalError
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.formulas import evaluate as direct
from sonnx.semantics.formulas import ground
from sonnx.spec.language.syntax import Constraint, FunctionDeclaration
from sonnx.spec.terminal import Progress

from ..smt import solver
from .report import RuleVerdict
from .rule_sets import reached

Functions = Mapping[str, FunctionDeclaration]

WORKERS = 2
"""Processes at work at once."""
LARGE = 4_000
"""A model with more nodes is judged by processes: for a smaller one they cost more than they bring."""


@dataclass(frozen=True, slots=True)
class Judged:
    """One constraint, decided: the verdict, what the solver answered, the instances at which it fails or is open."""

    verdict: RuleVerdict
    answer: solver.Answer
    judgement: direct.Judgement


@dataclass(frozen=True, slots=True)
class Task:
    """A task: constraints over the facts of one model. timeout: seconds for each solver query.

    forks: whether worker processes do it.
    """

    constraints: Sequence[Constraint]
    functions: Functions
    facts: Structure
    timeout: float
    forks: bool = False


def worth_forking(nodes: int) -> bool:
    """A model of this size is judged by worker processes on this machine."""
    return nodes > LARGE and "fork" in multiprocessing.get_all_start_methods() and (os.cpu_count() or 1) > 1


@contextmanager
def under_way() -> Iterator[None]:
    """While a thread certifies. No other one forks then, since what a thread holds at a fork nobody gives back in the
    new process; one that is forking is waited for."""
    me = object()
    with _FORKING:
        _UNDER_WAY.append(me)
    try:
        yield
    finally:
        _UNDER_WAY.remove(me)


_FORKING: Final = Lock()
_UNDER_WAY: Final[list[object]] = []


def judge_constraints(task: Task, tell: Progress) -> Mapping[str, Judged]:
    """Every constraint of the task by name; by this process alone where another of its threads certifies.

    Raises InternalError when solver and direct evaluator disagree, or when a worker process dies.
    """
    done = (_by_processes(task, tell) if task.forks else None) or _one_by_one(task, tell)
    tell("checking", len(task.constraints), len(task.constraints))
    return done


def long(constraint: Constraint, functions: Functions) -> bool:
    """The constraint takes longer than most: it speaks of a fixpoint."""
    return any(it.kind == "inductive" for it in reached(constraint.formula, functions))


def needed(constraints: Collection[Constraint], functions: Functions) -> frozenset[str]:
    """The facts, and the results derived from them, that deciding these constraints takes."""
    names = {symbol.name for it in constraints for symbol in reached(it.formula, functions)}
    return frozenset(names | {"fixpoints"} if any(long(it, functions) for it in constraints) else names)


def decided(constraint: Constraint, task: Task) -> Judged:
    """One constraint of a task, decided by both."""
    answer = solver.solve(ground.query(constraint, task.functions, task.facts), task.timeout)
    return _judged(constraint, answer, direct.judge(constraint, task.functions, task.facts, limit=sys.maxsize))


def _judged(constraint: Constraint, answer: solver.Answer, judgement: direct.Judgement) -> Judged:
    verdict = RuleVerdict(answer.verdict)
    if RuleVerdict.UNKNOWN not in (verdict, judgement.verdict) and verdict != judgement.verdict:
        raise InternalError(
            f"the solver says that {constraint.name} {verdict}, the direct evaluator that it {judgement.verdict}; "
            f"please report this with the output of --dump-smt"
        )
    return Judged(verdict, answer, judgement)


def _one_by_one(task: Task, tell: Progress) -> dict[str, Judged]:
    done: dict[str, Judged] = {}
    for count, constraint in enumerate(task.constraints):
        tell(f"checking {constraint.name}", count, len(task.constraints))
        done[constraint.name] = decided(constraint, task)
    return done


# ---- In worker processes ----------------------------------------------------------------------


def _by_processes(task: Task, tell: Progress) -> dict[str, Judged] | None:
    """Each worker takes the next constraint when it has decided one; the longest come first. None where another thread
    certifies."""
    context = multiprocessing.get_context("fork")
    queue: SimpleQueue[int | None] = context.SimpleQueue()
    task = replace(task, constraints=sorted(task.constraints, key=lambda it: not long(it, task.functions)))
    for position in range(len(task.constraints)):
        queue.put(position)
    workers, ends = [], []
    try:
        with _FORKING:
            if len(_UNDER_WAY) > 1:
                return None
            for _ in range(WORKERS):
                queue.put(None)
                end, other = context.Pipe(duplex=False)
                worker = context.Process(target=_work, args=(task, queue, other), daemon=True)
                worker.start()
                other.close()
                workers.append(worker)
                ends.append(end)
        return _collected(ends, task, tell)
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join()


def _collected(ends: list[Connection], task: Task, tell: Progress) -> dict[str, Judged]:
    done: dict[str, Judged] = {}
    for constraint, result in _messages(ends):
        if isinstance(result, BaseException):
            raise result
        if result is None:
            tell(f"checking {constraint}", len(done), len(task.constraints))
        else:
            done[constraint] = result
    if len(done) < len(task.constraints):
        raise InternalError("a worker process ended before its work; memory may be short: close other programs")
    return done


def _messages(ends: Sequence[Connection]) -> Iterator[tuple[str, Judged | BaseException | None]]:
    """The messages of the workers, until each has closed its end."""
    waiting = set(ends)
    while waiting:
        for end in waiting.intersection(wait(list(waiting))):
            try:
                yield end.recv()
            except EOFError:
                waiting.remove(end)


def _work(task: Task, queue: SimpleQueue[int | None], end: Connection) -> None:
    """A worker: sends the name of each constraint when it begins and when it is decided, or the error that stops it. It
    gives back the tables that no constraint from there on needs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):
        while (position := queue.get()) is not None:
            constraint = task.constraints[position]
            task.facts.forget(needed(task.constraints[position:], task.functions))
            end.send((constraint.name, None))
            try:
                end.send((constraint.name, decided(constraint, task)))
            except Exception as problem:
                end.send((constraint.name, problem))
                return
