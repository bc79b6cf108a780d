"""Engines: one opens a model, and a session gives outputs for inputs. That it cannot is data, not an error.

Anybody can add one: an object of this protocol, named by an entry point of the group `sonnx.engines`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from ...model.values import Value

Source = bytes | Path
"""A model: a serialised ModelProto, or a file of one whose external data lie beside it."""


class Kind(StrEnum):
    """Why there are no outputs."""

    SKEW = "version skew"
    """The engine is older than the model's IR version or operator set; it says nothing about its results."""
    UNSUPPORTED = "unsupported"
    """The engine takes the model to be valid and has no code for it."""
    INVALID = "invalid"
    """The engine takes the model to be invalid."""
    BINDING = "binding"
    """The values cannot be given to the engine, or taken from it, through its Python interface."""
    OUTSIDE = "outside the domain"
    """The engine says that the operators are not defined on these inputs."""
    LIMIT = "beyond the limits"
    """The run would take more memory or time than it is given; nothing is known of its results."""
    ERROR = "error"
    """The engine began, and raised an exception."""
    CRASH = "crash"
    """The process of the engine died."""
    TIMEOUT = "timeout"
    """The engine took longer than it was given, and was stopped."""


REFUSALS: Final = frozenset((Kind.SKEW, Kind.UNSUPPORTED, Kind.INVALID, Kind.BINDING))
"""The kinds with which an engine declines a model without having begun."""


@dataclass(frozen=True, slots=True)
class Failure:
    """No outputs. message: what the engine says, one line."""

    kind: Kind
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


Values = Mapping[str, Value]


class EngineSession(Protocol):
    """A model in an engine, ready to run any number of times."""

    def run(self, feeds: Values) -> Values | Failure:
        """The outputs of the main graph by name, for its inputs by name."""

    def close(self) -> None:
        """Gives up what the session holds; it is not used afterwards."""


@runtime_checkable
class TappedSession(Protocol):
    """A session that can say what each tensor was without being given another model."""

    def run_tapped(self, feeds: Values) -> Values | Failure:
        """The values of the tensors of the main graph that got one, by name."""


class Engine(Protocol):
    """Something that executes models."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def version(self) -> str:
        """The version of what executes, "" where it cannot be told."""

    def open(self, source: Source) -> EngineSession | Failure:
        """A session for a model. Does not raise for anything that is in the model."""


@runtime_checkable
class Remote(Protocol):
    """An engine that something else runs, which may be missing."""

    def unusable(self) -> str:
        """Why nothing can be run, "" where it can."""


# ---- Engines that optimize ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Switches:
    """The optimizers of an engine that may run: those up to a level, "" for what the engine does by default, without
    those whose names are off."""

    level: str = ""
    off: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pass:
    """An optimizer that ran on a model: the number of its level, and if it changed the model."""

    name: str
    level: int
    changed: bool


@dataclass(frozen=True, slots=True)
class Optimized:
    """The work of the optimizers on a model. content: what they made of it, serialised; None where the engine does not
    tell. passes: those that ran, in order. failure: why there is no session in the end."""

    content: bytes | None
    passes: tuple[Pass, ...]
    failure: Failure | None = None


@runtime_checkable
class Optimizing(Protocol):
    """An engine whose optimizers can be switched off by name."""

    @property
    def name(self) -> str:
        """The name on the command line and in reports."""

    @property
    def version(self) -> str:
        """The version of what executes."""

    @property
    def levels(self) -> tuple[str, ...]:
        """Its levels of optimization, from none at all to all."""

    def limited(self, seconds: float) -> Optimizing:
        """The same engine in a process of its own, which may take so long for each request."""

    def close(self) -> None:
        """Ends the process; the engine is not used afterwards."""

    def switched(self, source: Source, switches: Switches, *, apart: bool) -> EngineSession | Failure:
        """A session with the optimizers that may run. apart: in a process that has done nothing before."""

    def optimized(self, source: Source, switches: Switches) -> Optimized | Failure:
        """What the optimizers do to a model; a failure where nothing is known of it."""

    def parts(self, name: str) -> tuple[str, ...]:
        """The names that the parts of an optimizer may have, where it is made of parts that can be switched off; of ""
        all names that optimizers may have."""

    def advice(self, names: Sequence[str]) -> str:
        """How a user of the engine switches optimizers off, in one line."""
