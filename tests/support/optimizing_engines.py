"""An engine for tests whose optimizers can be switched off: the machine, on which sets of optimizers plant faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from planted_engines import Fault, PlantedSession
from sonnx.semantics.runtimes.engines.protocol import (
    EngineSession,
    Failure,
    Kind,
    Optimized,
    Pass,
    Source,
    Switches,
)
from sonnx.semantics.runtimes.engines.sources import model_of

Effect = tuple[str, Fault] | Failure
"""An operator that computes otherwise, or why there is no session."""


@dataclass(frozen=True)
class Optimizer:
    """An optimizer at a level. parts: it is made of these, of which at least one has to be on."""

    name: str
    level: int = 1
    parts: tuple[str, ...] = ()


@dataclass
class Fake:
    """The engine. effects: what happens when all of a set are on. names: that its library holds besides those of parts.

    It stores no model where a session fails, and the passes behind one that fails do not run. opened: the sets that
    were off, of every session.
    """

    passes: Sequence[Optimizer]
    effects: Mapping[frozenset[str], Effect] = field(default_factory=dict)
    names: Sequence[str] = ()
    name: str = "fake"
    version: str = "1"
    levels: tuple[str, ...] = ("none", "some", "all")
    opened: list[tuple[Switches, bool]] = field(default_factory=list)
    closed: int = 0

    def limited(self, seconds: float) -> Fake:
        assert seconds > 0
        return self

    def close(self) -> None:
        self.closed += 1

    def open(self, source: Source) -> EngineSession | Failure:
        return self.switched(source, Switches(), apart=False)

    def switched(self, source: Source, switches: Switches, *, apart: bool) -> EngineSession | Failure:
        self.opened.append((switches, apart))
        faults = {}
        for effect in self._effects(source, switches):
            if isinstance(effect, Failure):
                return effect
            faults[effect[0]] = effect[1]
        return PlantedSession(model_of(source), faults)

    def optimized(self, source: Source, switches: Switches) -> Optimized | Failure:
        effects = self._effects(source, switches)
        failure = next((it for it in effects if isinstance(it, Failure)), None)
        if failure is not None and failure.kind is Kind.CRASH:
            return failure
        operators = {it[0] for it in effects if not isinstance(it, Failure)}
        proto = onnx.ModelProto.FromString(source if isinstance(source, bytes) else source.read_bytes())
        for node in proto.graph.node:
            if node.op_type in operators:
                node.op_type = f"Fused{node.op_type}"
        on = self._on(switches)
        ran: list[Pass] = []
        for it in self.passes:
            if it.name in switches.off or switches.level == self.levels[0]:
                continue
            guilty = {it.name, *it.parts} & on
            touched = any(guilty & names for names, effect in self.effects.items() if names <= on)
            ran.append(Pass(it.name, it.level, touched))
            stops = any(guilty & names for names, effect in self.effects.items() if isinstance(effect, Failure))
            if failure is not None and touched and stops:
                break
        return Optimized(None if failure is not None else proto.SerializeToString(), tuple(ran), failure)

    def parts(self, name: str) -> tuple[str, ...]:
        if not name:
            return (*self.names, *(part for it in self.passes for part in (it.name, *it.parts)))
        own = next((it.parts for it in self.passes if it.name == name), ())
        return (*self.names, *own) if own else ()

    def advice(self, names: Sequence[str]) -> str:
        return f"off = {' '.join(names)}"

    def _on(self, switches: Switches) -> frozenset[str]:
        level = self.levels.index(switches.level) if switches.level else len(self.levels) - 1
        running = [it for it in self.passes if it.level <= level and it.name not in switches.off]
        return frozenset(name for it in running for name in (it.parts or (it.name,))) - switches.off

    def _effects(self, source: Source, switches: Switches) -> list[Effect]:
        """What happens to a model; a fault only where the model has the operator."""
        on = self._on(switches)
        operators = {it.op_type for it in model_of(source).nodes}
        found = [effect for names, effect in self.effects.items() if names <= on]
        return [it for it in found if isinstance(it, Failure) or it[0] in operators]
