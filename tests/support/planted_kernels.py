"""A copy of the fast path with a fault in the kernel of one operator; six faults of kinds that runtimes have had."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sonnx.semantics.model.values import Value
from sonnx.semantics.runtimes.engines.own import NumpySession
from sonnx.semantics.runtimes.engines.protocol import Source
from sonnx.semantics.runtimes.engines.sources import model_of
from sonnx.semantics.runtimes.fastpath import Session
from sonnx.semantics.runtimes.fastpath.kernel import Allocate, Compute, Kernel, Site
from sonnx.semantics.runtimes.fastpath.numpy_provider import NumpyExecutionProvider
from sonnx.semantics.runtimes.fastpath.registry import TableRegistry, numpy_kernels

Results = tuple[Value | None, ...]
Fault = Callable[[Kernel, Site], Compute]
"""What the faulty copy computes in place of a kernel."""


@dataclass(frozen=True)
class PlantedKernels:
    """The fast path with faults by operator."""

    faults: Mapping[str, Fault]
    name: str = "planted kernels"
    version: str = "1"

    def open(self, source: Source) -> NumpySession:
        model = model_of(source)
        table = dict(numpy_kernels().table)
        for op_type, fault in self.faults.items():
            table[op_type] = tuple(_planted(kernel, fault) for kernel in table[op_type])
        session = Session(model, [NumpyExecutionProvider(TableRegistry(table))])
        return NumpySession(session, tuple(model.tensors[t].name for t in model.graphs[0].outputs))


def _planted(kernel: Kernel, fault: Fault) -> Kernel:
    return replace(kernel, prepare=lambda site: fault(kernel, site), in_place=False)


def wrong_pad(kernel: Kernel, site: Site) -> Compute:
    """The pads at the end are taken for those at the beginning, and those for these."""
    pads = site.attributes["pads"]
    assert isinstance(pads, tuple)
    half = len(pads) // 2
    return kernel.prepare(replace(site, attributes={**site.attributes, "pads": pads[half:] + pads[:half]}))


def swapped_nan_rule(_: Kernel, __: Site) -> Compute:
    """Max gives the other number where one is NaN."""

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> Results:
        a, b = (np.asarray(it) for it in inputs)
        return (np.fmax(a, b),)

    return compute


def flush_to_zero(kernel: Kernel, site: Site) -> Compute:
    """Subnormal results become zero."""
    right = kernel.prepare(site)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> Results:
        value = np.array(right(inputs, allocate)[0])
        value[np.abs(value) < np.finfo(value.dtype).tiny] = 0
        return (value,)

    return compute


def dropped_tail(kernel: Kernel, site: Site) -> Compute:
    """The last part of a Split lacks its end."""
    right = kernel.prepare(site)
    axis = site.attributes.get("axis", 0)
    assert isinstance(axis, int)

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> Results:
        *parts, last = (np.asarray(it) for it in right(inputs, allocate))
        return (*parts, np.ascontiguousarray(np.delete(last, -1, axis)))

    return compute


def softmax_of_opset_13(kernel: Kernel, site: Site) -> Compute:
    """The rule of operator set 13, along one axis, for every version."""
    return kernel.prepare(replace(site, version=13))


def half_accumulation(_: Kernel, __: Site) -> Compute:
    """Sums of a product of matrices are kept in half precision."""

    def compute(inputs: Sequence[Value | None], allocate: Allocate) -> Results:
        a, b = (np.asarray(it) for it in inputs)
        total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float16)
        for k in range(a.shape[-1]):
            total = (total + a[..., k, None] * b[..., k, :]).astype(np.float16)
        return (total.astype(a.dtype),)

    return compute
