"""When what is computed: shape inference in a process of its own, requirements meanwhile, rules by worker processes.

Rules that need no claims are judged while inference runs. No worker process may be forked while a thread of this one
waits for inference, so claims are waited for before. None of this changes a verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache

from sonnx.semantics.facts.gathering import ASKING
from sonnx.semantics.facts.inference.model import Claims, infer
from sonnx.semantics.facts.structure import Structure
from sonnx.semantics.model.graph import Model
from sonnx.spec.terminal import Progress

from . import preconditions
from .deciding import Judged, Task, decided, judge_constraints, long, needed, worth_forking
from .question import Question
from .rule_sets import reached


@dataclass(frozen=True, slots=True)
class Inference:
    """ONNX's shape inference of one model, in the background. result: the claims, waited for; they are asked for when
    this is first called, or by `begin`. ready: it is over. end: no thread of it is left."""

    begin: Callable[[], object]
    ready: Callable[[], bool]
    result: Callable[[], Claims]
    end: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions: each constraint by name, and the requirements where a rule set takes them in."""

    judged: Mapping[str, Judged]
    requirements: preconditions.Decisions | None


@contextmanager
def inference(model: Model, timeout: float) -> Iterator[Inference]:
    """Shape inference that can be begun early, while other work is done. timeout: seconds that it may take."""
    with ThreadPoolExecutor(max_workers=1) as background:
        submitted = cache(lambda: background.submit(infer, model, timeout))
        yield Inference(submitted, lambda: submitted().done(), lambda: submitted().result(), background.shutdown)


def decide_requirements(
    question: Question, model: Model, claims: Inference, tell: Progress
) -> preconditions.Decisions | None:
    """The requirements of operators, decided while inference runs; None where no rule set takes them in."""
    if question.remaining or question.requirements:
        claims.begin()
    if not question.requirements:
        return None
    return preconditions.decide_preconditions(model, question.sizes, min(question.timeout, preconditions.TIMEOUT), tell)


def decide_constraints(
    question: Question, model: Model, facts: Structure, claims: Inference, tell: Progress
) -> Mapping[str, Judged]:
    """Each constraint that is asked for, decided in this process or, for a large model, by forked ones; those that need
    claims come last."""
    functions = question.specification.functions
    asking = {
        it.name
        for it in question.constraints
        if any(symbol.name in ASKING for symbol in reached(it.formula, functions))
    }
    constraints = sorted(question.constraints, key=lambda it: it.name in asking)
    task = Task(constraints, functions, facts, question.timeout, worth_forking(len(model.nodes)))
    early: dict[str, Judged] = {}
    if task.forks and (asking or question.requirements):
        short = (it for it in constraints if it.name not in asking and not long(it, functions))
        while not claims.ready() and (constraint := next(short, None)):
            tell(f"checking {constraint.name}", len(early), len(constraints))
            early[constraint.name] = decided(constraint, task)
        tell("inferring types", len(early), len(constraints))
        claims.result()
        claims.end()
    rest = replace(task, constraints=[it for it in constraints if it.name not in early])
    if task.forks:
        facts.forget(needed(rest.constraints, functions))
    return {**early, **judge_constraints(rest, tell)}
