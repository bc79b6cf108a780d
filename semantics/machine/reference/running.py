"""A run of a model by the reference interpreter, from inputs by name to outputs by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sonnx.spec.language.printer import print_expression
from sonnx.spec.library import specification

from ...model.graph import Model
from ...model.values import Value
from ...operators.application import Meaning, Stuck
from ..execution import AS_DECLARED, check_supported, check_well_formed
from ..inputs import bound_inputs, contradicted
from ..memory import type_of
from ..phases import over_budget, violated
from .rules import Ended, Machine, Refusal, State, begin, path, run


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run. steps: how many rules were applied; outputs: those that have a value, none where one
    contradicts its declaration; stuck: why it did not end well."""

    steps: int
    outputs: Mapping[str, Value]
    stuck: Stuck | None = None


def run_model(
    model: Model,
    inputs: Mapping[str, Value],
    *,
    meaning: Meaning | None = None,
    draws: int = 0,
    steps: int | None = None,
) -> Outcome:
    """The run of a model on inputs by name. steps: how many rules may be applied.

    meaning: of the operators without bodies, the ieee interpretation where nothing is said. draws: the seed of random
    numbers. Raises ModelError and Unsupported as the run of the fast machine does, before anything runs.
    """
    if meaning is None:
        from ...operators.compiled import ieee

        check_supported(model)
        meaning = ieee.apply
    wrong = check_well_formed(model)
    if wrong is not None:
        return Outcome(0, {}, wrong)
    machine = Machine(model, meaning, draws)
    given = bound_inputs(model, inputs)
    ended = run(machine, begin(machine, given), steps)
    last = ended.states[-1]
    outputs = {t: last.memory[t] for t in model.graphs[0].outputs if last.frames is None and t in last.memory}
    stuck = _stuck(machine, ended)
    if stuck is None:
        types = {t: type_of(value) for t, value in begin(machine, given).memory.items() if t in model.graphs[0].inputs}
        reason = contradicted(model, types, {t: outputs.get(t) for t in model.graphs[0].outputs})
        if reason is not None:
            advice = "Correct the declaration, or the node that computes the output."
            return Outcome(len(ended.choices), {}, violated(specification().constraints[AS_DECLARED], reason, advice))
    return Outcome(len(ended.choices), {model.tensors[t].name: value for t, value in outputs.items()}, stuck)


def _stuck(machine: Machine, ended: Ended) -> Stuck | None:
    """Why a run has not got to its end."""
    last, refusal = ended.states[-1], ended.refusal
    if refusal is not None:
        return explained(machine, last, refusal)
    if last.frames is None and all(t in last.memory for t in machine.model.graphs[0].outputs):
        return None
    message = f"{len(ended.choices)} steps are taken, which is the limit"
    return over_budget("Step/fire", message, "--max-steps")


def explained(machine: Machine, state: State, refusal: Refusal) -> Stuck:
    """A refusal as the fast machine says it: the rule and the premise, or what an operator asks of its inputs."""
    at = path(machine.model, state, refusal.node)
    if refusal.operator is not None:
        return replace(refusal.operator, at=at)
    name, expr = refusal.premise.name, refusal.premise.expr
    text = print_expression(expr) if name is None else f"{name} = {print_expression(expr)}"
    return Stuck(refusal.rule, text, refusal.premise.span, refusal.why or "it does not hold", "", at)
