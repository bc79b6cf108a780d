"""The beginning and the end of a run: the declared types of inputs and outputs, and why it is over."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final

import numpy as np

from ...model.graph import NodeId, TensorId, ValueType
from ...model.values import Map, Optional, Sequence, Value
from .layout import Region, to_value, type_of
from .lines import Claim
from .rules import (
    ENABLED,
    FINISHED,
    NAMES,
    NODE,
    Refused,
    State,
    is_enabled,
    reads,
    region,
    tensor_path,
    turn,
    unfinished,
)

AS_DECLARED: Final = "AsDeclared"
COMPLETENESS: Final = "Completeness"
BUDGET: Final = "the budget of this run"
END: Final = "the end"


def as_declared(state: State, tensors: Items[TensorId], sizes: dict[str, int]) -> str:
    """Why not as_declared(t, M) for an input or output of the main graph; "" when all are. sizes: of the dimension
    variables met so far, which is brought up to date."""
    main = state.model.graphs[0]
    types = dict(
        zip((*main.inputs, *main.outputs), (*_padded(main.inputs, main.input_types), *main.output_types), strict=False)
    )
    for t in tensors:
        where, declared = region(state, t), types.get(t) or state.model.tensors[t].declared
        if where is not None and declared is not None:
            why = _unlike(state, where, declared, sizes)
            if why:
                return f"{tensor_path(state, t)} {why}"
    return ""


def _padded(tensors: Items[TensorId], types: Items[ValueType | None]) -> tuple[ValueType | None, ...]:
    return (*types, *(None,) * (len(tensors) - len(types)))


def _unlike(state: State, where: Region, declared: ValueType, sizes: dict[str, int]) -> str:
    shape = where.type.shape
    if where.type.kind != "tensor":  # the types of what it holds
        return (
            "" if _suits(to_value(state.memory.read(where), where.type), declared) else "has another type than declared"
        )
    if declared.kind in ("", "unset"):
        return ""
    if declared.kind not in ("tensor", "sparse_tensor") or declared.element not in ("", where.type.element):
        return f"is a tensor of {where.type.element}, declared is {declared.kind} of {declared.element or 'any'}"
    if declared.shape is None or shape is None:
        return ""
    if len(shape) != len(declared.shape):
        return f"has {len(shape)} dimensions, declared are {len(declared.shape)}"
    for axis, (size, wanted) in enumerate(zip(shape, declared.shape, strict=True)):
        if isinstance(wanted, int) and wanted >= 0 and size != wanted:
            return f"has size {size} along axis {axis}, declared is {wanted}"
        if isinstance(wanted, str) and wanted and isinstance(size, int) and sizes.setdefault(wanted, size) != size:
            return f"has size {size} along axis {axis}, and {wanted} is {sizes[wanted]}"
    return ""


def _suits(value: Value, declared: ValueType) -> bool:
    """The value, and all that it holds, has the declared kind and element types; what is left open suits."""
    if not _type_suits(type_of(value), declared):
        return False
    inner = declared.inner or ValueType("unset")
    match value:
        case np.ndarray():
            return True
        case Sequence():
            return all(_suits(item, inner) for item in value.items)
        case Optional():
            return value.item is None or _suits(value.item, inner)
        case Map():
            return all(_suits(item, inner) for _, item in value.items)


def _type_suits(type_: ValueType, declared: ValueType) -> bool:
    """The type has the declared kind and element types, as that of an empty sequence must have too."""
    if declared.kind in ("", "unset"):
        return True
    kind = "tensor" if declared.kind == "sparse_tensor" else declared.kind
    if type_.kind != kind or declared.element not in ("", type_.element):
        return False
    return declared.inner is None or (type_.inner is not None and _type_suits(type_.inner, declared.inner))


def still_enabled(state: State, schedule: str = "") -> str:
    """The path of a node of the graph that runs that is enabled, and that the schedule takes; "" when there is none.

    `demand` takes what the first output without a value needs, `recorded` what was recorded, the others all.
    """
    graph = state.model.graphs[state.frames[-1].graph]
    nodes: Iterable[NodeId] = graph.nodes
    match schedule:
        case "recorded":
            return ""
        case "demand":
            nodes = _needed(state, next((t for t in graph.outputs if region(state, t) is None), None), graph.nodes)
    return next((state.model.nodes[n].path for n in nodes if not is_enabled(state, n)), "")


def _needed(state: State, wanted: TensorId | None, nodes: Items[NodeId]) -> list[NodeId]:
    """The nodes that compute a tensor, and what they read that has no value."""
    makers = {t: n for n in nodes for t in state.model.nodes[n].outputs if t is not None}
    found: dict[NodeId, None] = {}
    waiting = [] if wanted is None else [wanted]
    while waiting:
        t = waiting.pop()
        n = makers.get(t) if region(state, t) is None else None
        if n is not None and n not in found:
            found[n] = None
            waiting += reads(state, n)
    return list(found)


@dataclass(frozen=True, slots=True)
class Inputs:
    """The inputs by their declarations. wrong: in what one contradicts its own, "" where all fit. sizes: those of the
    dimension variables that they fix."""

    wrong: str
    sizes: dict[str, int]


def contradiction(state: State, inputs: Inputs) -> str:
    """In what an input or output of the main graph contradicts its declaration; "" when all fit."""
    return inputs.wrong or as_declared(state, state.model.graphs[0].outputs, dict(inputs.sizes))


def ended(state: State, claim: Claim | None, schedule: str, inputs: Inputs) -> tuple[str, bool]:
    """Why the run is over, in a clause, and whether it came to its end; Refused when it might go on, or ended otherwise
    than the trace says."""
    if claim is not None:
        return _stuck(state, claim, schedule, inputs), False
    if len(state.frames) > 1:
        raise Refused(END, COMPLETENESS, "a body is running", "the run ended well")
    why = unfinished(state)
    if why:
        raise Refused(END, COMPLETENESS, why, "the run ended well")
    if left := still_enabled(state, schedule):
        raise Refused(END, "no rule applies", f"{left} is enabled", f"a run of the schedule {schedule} ended")
    wrong = contradiction(state, inputs)
    if wrong:
        raise Refused(END, AS_DECLARED, wrong, "the run ended well")
    if still_enabled(state):
        return f"every output has a value (the schedule {schedule} leaves nodes that no output needs)", True
    return "no node is enabled and every output has a value", True


def _stuck(state: State, claim: Claim, schedule: str, inputs: Inputs) -> str:
    says = f"stuck at {claim.rule}: {claim.premise}"
    if claim.premise == BUDGET:
        return "it broke off at a budget of steps, time or memory, by its own word"
    if claim.rule in (AS_DECLARED, COMPLETENESS):
        if left := still_enabled(state, schedule):
            raise Refused(END, "no rule applies", f"{left} is enabled", says)
        why = unfinished(state) or ("a body is running" if len(state.frames) > 1 else "")
        if claim.rule == COMPLETENESS and why:
            left = still_enabled(state)
            return f"the schedule {schedule} goes no further and {why}" if left else f"no node is enabled and {why}"
        wrong = "" if why else contradiction(state, inputs)
        if claim.rule == AS_DECLARED and wrong:
            return f"it contradicts a declaration: {wrong}"
        raise Refused(END, claim.rule, wrong or why or "every output has a value of its declared type", says)
    if claim.budget is not None and claim.budget < state.memory.size:
        raise Refused(END, BUDGET, f"M has {state.memory.size} bytes", f"the budget was {claim.budget} bytes")
    budget, state.budget = state.budget, claim.budget if claim.budget is not None else state.budget
    try:
        possible = turn(state, claim.node)
    except Refused as refused:
        left = still_enabled(state, schedule)
        if refused.premise == NODE or (refused.premise in (ENABLED, FINISHED) and (left or not unfinished(state))):
            holds = f"{left} is enabled" if left else refused.holds
            raise Refused(END, "no rule applies", holds, f"stuck at {claim.node}") from None
        if _same_rule(refused, claim):
            return f"it is stuck at {claim.node}: {refused.rule}, {refused.premise}: {refused.holds}"
        raise Refused(
            END, refused.premise, f"{refused.rule} is refused at {claim.node}: {refused.holds}", says
        ) from None
    except MemoryError as error:
        return f"it is stuck at {claim.node}: the budget of memory, which is its own word ({error})"
    finally:
        state.budget = budget
    raise Refused(END, "no rule applies", f"{possible.rule} is possible at {claim.node}", says)


def _same_rule(refused: Refused, claim: Claim) -> bool:
    """Of an operator the same requirement; of a rule of part 3 the same rule, or one of the same kind of body."""
    if not refused.rule.startswith("Step/"):
        return (refused.rule, refused.premise) == (claim.rule, claim.premise)
    families = [
        name
        for name in NAMES.values()
        if claim.rule.startswith(f"Step/{name}") and refused.rule.startswith(f"Step/{name}")
    ]
    return refused.rule == claim.rule or bool(families)
