"""`sonnx optimize` as a function: passes in a stated order, to a fixed point, by rules that are proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random

from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import check_well_formed
from sonnx.semantics.model.graph import Model, TensorId
from sonnx.semantics.model.path import quote
from sonnx.semantics.model.schemas import newest_opset
from sonnx.spec.elaborate.core import CoreRewrite
from sonnx.spec.terminal import Progress

from ..matching.patterns import by_root, commutation
from ..record import STRENGTHS, Proof, proofs
from .admitting import admitted
from .graphs import OpenModel
from .journal import Raised, Step
from .layout import layout
from .passes import Firing, dedupe, fold, prune, raised, rewrite

GLOBAL = ("fold", "dedupe", "prune", "layout")
LOCAL = ("rewrite",)
ORDER = ("fold", "dedupe", "rewrite", "prune", "layout")
"""The passes of one round. Rounds follow until one changes nothing."""
FIXED = 4
"""The IR version since which stored values need not be inputs (ONNX 1.23.2, IR.md, Graphs)."""
MOST = 20
"""For each node of a model rewrites are applied so many times at most."""
GLOBALS = {"fold": fold, "dedupe": dedupe, "prune": prune}


@dataclass(frozen=True, slots=True)
class Optimized:
    """The outcome. model: its graphs alone are meant to be read. strength: the weakest claim that was used, `exact`
    where nothing was changed. log: what was done, in order; steps: the same, so that it can be done again. before,
    after: the nodes of all graphs. finished: False where rewrites were stopped since they came to no end.
    """

    model: Model
    strength: str
    log: tuple[Firing, ...]
    steps: tuple[Step, ...]
    before: int
    after: int
    finished: bool

    def counts(self) -> Mapping[str, int]:
        """How often each rule or theorem was used, the most frequent one first."""
        return dict(Counter(it.rule for it in self.log).most_common())


def optimize(
    model: Model,
    *,
    strength: str = "exact",
    rules: Sequence[str | CoreRewrite] | None = None,
    proved: Mapping[str, Proof] | None = None,
    fixed: bool = False,
    opset: int | None = None,
    passes: Sequence[str] = ORDER,
    shuffled: int | None = None,
    progress: Progress | None = None,
) -> Optimized:
    """A model that means the same, as far as `strength` says, with fewer nodes.

    rules: the rewrites to use, by name or themselves, in this order; they are used wherever they stand, and one that is
    not on record is proved first. Without it all that are proved, where they leave fewer nodes to run. proved: in place
    of the record and of such proofs. fixed: stored values that a caller may override are no inputs any more. opset: the
    operator set of ONNX to which the model is raised first. passes: of each round, LOCAL and GLOBAL ones. shuffled: a
    seed for another order of the rules. Raises UnknownRule, and ModelError for a model that is not well-formed or
    cannot be raised.
    """
    wrong = check_well_formed(model)
    if wrong is not None:
        raise ModelError(f"the model is not well-formed, so it has no runs to be kept: {wrong.message}")
    if fixed:
        model = with_fixed_values(model)
    record = proofs() if proved is None else proved
    chosen, known = admitted(rules, strength, record, prove=proved is None)
    if shuffled is not None:
        Random(shuffled).shuffle(chosen)
    commuting = {it: rule.name for rule in chosen if (it := commutation(rule)) is not None}
    patterns = by_root(chosen)
    open_ = OpenModel(model)
    before = sum(map(len, open_.members))
    log: list[Firing] = []
    left = MOST * max(before, 1)
    if opset is not None:
        _raise(open_, opset, strength, record, log)
    changed = True
    while changed:
        changed = False
        for done, name in enumerate(passes):
            if progress is not None:
                progress(name, done, len(passes))
            if name in GLOBALS:
                changed |= GLOBALS[name](open_, log.append) > 0
                continue
            if name == "layout":  # last of all: what has moved may no longer be equal to what has not
                changed = changed or layout(open_, patterns, commuting, known, log.append) > 0
                continue
            fired = rewrite(open_, patterns, commuting, known, log.append, left, smaller=rules is None)
            left -= fired
            changed |= fired > 0
        changed &= left > 0
    claims = [it.claim for it in log]
    weakest = max(claims, key=STRENGTHS.index, default="exact")
    after = sum(map(len, open_.members))
    return Optimized(_readable(open_.closed()), weakest, tuple(log), tuple(open_.journal), before, after, left > 0)


def _readable(model: Model) -> Model:
    """The model with an IR version in which its stored values need not be inputs, if some are none."""
    graphs = model.graphs
    stored = {t for graph in graphs for t, _ in (*graph.initializers, *graph.sparse_initializers)}
    if stored <= {t for graph in graphs for t in graph.inputs}:
        return model
    return replace(model, ir_version=max(model.ir_version, FIXED))


def _raise(open_: OpenModel, opset: int, strength: str, known: Mapping[str, Proof], log: list[Firing]) -> None:
    """Raises the model. Raises ModelError where that is not possible."""
    now = open_.opsets.get("")
    if now is None or not now <= opset <= newest_opset():
        raise ModelError(f"the model can be raised to an operator set from {now} to {newest_opset()}, not to {opset}")
    rules, _ = admitted(None, strength, known)
    open_.journal.append(Raised(opset))
    left = raised(open_, by_root(rules), known, log.append, opset)
    if left is not None:
        node = open_.nodes[left]
        raise ModelError(
            f"{quote(node.path)} cannot be raised to operator set {opset}: no rewrite that is proved makes another"
            f" version of {node.op_type}-{node.version}"
        )


def overridable(model: Model) -> tuple[TensorId, ...]:
    """The inputs of the main graph that have a stored value, which holds where a caller gives none."""
    graph = model.graphs[0]
    stored = {t for t, _ in (*graph.initializers, *graph.sparse_initializers)}
    return tuple(t for t in graph.inputs if t in stored)


def with_fixed_values(model: Model) -> Model:
    """The model without such inputs: their values are fixed."""
    main, gone = model.graphs[0], set(overridable(model))
    kept = [(t, type_) for t, type_ in zip(main.inputs, main.input_types, strict=True) if t not in gone]
    main = replace(main, inputs=tuple(t for t, _ in kept), input_types=tuple(type_ for _, type_ in kept))
    return replace(model, graphs=(main, *model.graphs[1:]), ir_version=max(model.ir_version, FIXED))
