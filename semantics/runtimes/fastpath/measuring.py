"""The memory of providers: how many bytes of tensors that each made were alive at one time.

Counted in the first run of a session of its own, where what a step asks for is new and given back when nothing shows
it: what its parts ask for, and what else they give. Tensors that are known when the model is loaded count with what
computed them. A provider whose parts run in another process tells what that had at most.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...model.graph import Model, Node
from ...model.values import Array, Value
from . import provider
from .compiled import root, roots
from .explanation import counted
from .kernel import Allocate, Compute, Inputs, Kernel, Outputs, Site
from .providers import Restricted, chosen_providers
from .session import Session


@dataclass(frozen=True, slots=True)
class Memory:
    """The figures of a provider. tensors, process: bytes at most; process is 0 where it has none of its own."""

    provider: str
    nodes: int
    parts: int
    tensors: int
    process: int = 0


@runtime_checkable
class Apart(Protocol):
    """A provider with a process of its own."""

    def peak_bytes(self) -> int:
        """The memory that it had at most, 0 where there is none."""


def memory_of(model: Model, wanted: Sequence[str], inputs: Mapping[str, Value]) -> tuple[Memory, ...]:
    """The memory of each provider in a run. Raises what a session does."""
    chosen = chosen_providers(wanted)
    ledgers = [Ledger() for _ in chosen]
    session = Session(model, [Counted(it, ledger) for it, ledger in zip(chosen, ledgers, strict=True)])
    session.run(None, inputs)
    counts = counted(session.partitioning, session.get_providers())
    made: dict[str, Memory] = {}
    for it, ledger in zip(chosen, ledgers, strict=True):
        inner = it.inner if isinstance(it, Restricted) else it
        before = made.get(it.name, Memory(it.name, *counts[it.name], 0)).tensors
        process = inner.peak_bytes() if isinstance(inner, Apart) else 0
        made[it.name] = Memory(it.name, *counts[it.name], before + ledger.peak, process)
    return tuple(made.values())


@dataclass
class Ledger:
    """Bytes of arrays that are alive. It changes while a session runs."""

    alive: dict[int, int] = field(default_factory=dict)
    current: int = 0
    peak: int = 0

    def note(self, array: Array) -> None:
        """Counts the memory that an array shows, once, until nothing shows it."""
        of = root(array)
        if id(of) not in self.alive:
            self.alive[id(of)] = of.nbytes
            self.current += of.nbytes
            self.peak = max(self.peak, self.current)
            weakref.finalize(of, self._drop, id(of)).atexit = False

    def _drop(self, number: int) -> None:
        self.current -= self.alive.pop(number)

    def counting(self, compute: Compute, inputs: Inputs, allocate: Allocate) -> Outputs:
        """The outputs of a computation."""

        def noted(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
            made = allocate(shape, dtype)
            self.note(made)
            return made

        given = {id(it) for value in inputs for it in roots(value)}
        results = tuple(compute(inputs, noted))
        for it in (it for value in results for it in roots(value)):
            if id(it) not in given:
                self.note(it)
        return results


@dataclass(frozen=True, slots=True)
class Counted:
    """A provider whose memory is counted."""

    inner: provider.ExecutionProvider
    ledger: Ledger

    @property
    def name(self) -> str:
        """That of the provider."""
        return self.inner.name

    def get_kernel_registry(self) -> provider.KernelRegistry | None:
        """Its kernels, counted."""
        registry = self.inner.get_kernel_registry()
        return None if registry is None else CountedKernels(registry, self.ledger)

    def get_capability(
        self, graph: provider.GraphViewer, kernel_lookup: provider.KernelRegistry | None
    ) -> Sequence[provider.ComputeCapability]:
        """Its offers."""
        return self.inner.get_capability(graph, self.inner.get_kernel_registry())

    def compile(
        self, fused: Sequence[provider.FusedNodeAndGraph]
    ) -> Sequence[provider.NodeComputeInfo | provider.Declined]:
        """Its functions, counted."""
        return [
            replace(it, compute=partial(self.ledger.counting, it.compute))
            if isinstance(it, provider.NodeComputeInfo)
            else it
            for it in self.inner.compile(fused)
        ]

    def create_allocator(self, info: provider.MemoryInfo) -> Allocate | None:
        """Its memory."""
        return self.inner.create_allocator(info)

    def on_run_start(self, options: provider.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_start(options)

    def on_run_end(self, options: provider.RunOptions) -> None:
        """It is told."""
        self.inner.on_run_end(options)


@dataclass(frozen=True, slots=True)
class CountedKernels:
    """Kernels whose memory is counted."""

    inner: provider.KernelRegistry
    ledger: Ledger

    def look_up_kernel(self, node: Node, element: str | None = None) -> Kernel | None:
        """The kernel for a node."""
        kernel = self.inner.look_up_kernel(node, element)
        return None if kernel is None else replace(kernel, prepare=partial(self._prepared, kernel))

    def _prepared(self, kernel: Kernel, site: Site) -> Compute:
        return partial(self.ledger.counting, kernel.prepare(site))
