"""The rules Step/if, Step/loop, Step/scan and Step/sequence-map: bodies run step by step in frames.

Each operator with a body has three functions: which rule applies when the node is enabled, which one when every output
of its body has a value, and what the rule gives values to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ...model.graph import NodeId
from ...operators.application import Stuck
from ..phases import Change, Enter, Leave, Select
from ..rules import undefined
from ..state import State
from . import loop, scan, sequence_map
from .values import Results, held, input_at, named, one_bool, outputs_of_run, results

Chosen = tuple[str, Change] | Stuck
"""The rule that applies, and what becomes of the frames."""


@dataclass(frozen=True, slots=True)
class Control:
    """begins, ends: the rule for the enabled node, and for the end of a run of its body. computes: W of the rule."""

    begins: Callable[[State, NodeId], Chosen]
    ends: Callable[[State, NodeId], Chosen]
    computes: Callable[[State, Select], Results | Stuck]


# ---- If ---------------------------------------------------------------------------------------


def _if_begins(state: State, n: NodeId) -> Chosen:
    node = state.program.model.nodes[n]
    condition = node.inputs[0] if node.inputs else None
    held_true = one_bool(input_at(state, n, 0), "Step/if", "is_true", state, condition)
    if isinstance(held_true, Stuck):
        return held_true
    name = "then_branch" if held_true else "else_branch"
    body = held(state, n, name)
    if body is None:
        return undefined("Step/if", "branch", f"{node.path} has no graph {name}")
    return "Step/if", Enter(body)


def _if_ends(_state: State, _n: NodeId) -> Chosen:
    return "Step/if-leave", Leave()


def _if_computes(state: State, select: Select) -> Results | Stuck:
    if isinstance(select.change, Enter):
        return Results((), ())
    values, outputs = outputs_of_run(state), state.program.model.nodes[select.node].outputs
    if named(outputs) > len(values):
        message = f"{select.path} has {len(outputs)} outputs, its branch {len(values)}"
        return undefined(select.rule, "positioned", message, "Give both branches an output for each output of the If.")
    return results(zip(outputs, values, strict=False))


CONTROLS: Mapping[str, Control] = {
    "If": Control(_if_begins, _if_ends, _if_computes),
    "Loop": Control(loop.begins, loop.ends, loop.computes),
    "Scan": Control(scan.begins, scan.ends, scan.computes),
    "SequenceMap": Control(sequence_map.begins, sequence_map.ends, sequence_map.computes),
}
"""For each operator with a body, its rules."""
