"""A few kernels that are written here, so that tests of the session depend on no kernel of the package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sonnx.semantics.model.values import Sequence
from sonnx.semantics.runtimes.fastpath.kernel import Compute, Kernel, KernelError, Site
from sonnx.semantics.runtimes.fastpath.numpy_provider import NumpyExecutionProvider
from sonnx.semantics.runtimes.fastpath.registry import TableRegistry


def elementwise(function: Callable[..., Any]) -> Kernel:
    """A kernel that writes into the memory it is given, which may be that of an input."""

    def prepare(_site: Site) -> Compute:
        def compute(inputs: Any, allocate: Any) -> Any:
            shape = np.broadcast_shapes(*(it.shape for it in inputs))
            return (function(*inputs, out=allocate(shape, inputs[0].dtype)),)

        return compute

    return Kernel(1, 99, prepare, in_place=True)


def plain(function: Callable[..., Any]) -> Kernel:
    """A kernel from a function of site and inputs."""
    return Kernel(1, 99, lambda site: lambda inputs, _allocate: function(site, *inputs))


def _divided(_site: Site, a: Any, b: Any) -> Any:
    if not np.all(b):
        raise KernelError("the divisor is not 0")
    return (a / b,)


def _places(_site: Site) -> Compute:
    def compute(inputs: Any, allocate: Any) -> Any:
        found = np.nonzero(inputs[0])
        return (np.stack(found, out=allocate((len(found), len(found[0])), np.dtype(np.int64))),)

    return compute


def _softmax(site: Site) -> Compute:
    axis: Any = site.attributes["axis"]

    def compute(inputs: Any, allocate: Any) -> Any:
        (x,) = inputs
        raised = np.exp(x, out=allocate(x.shape, x.dtype))
        return (np.divide(raised, raised.sum(axis, keepdims=True), out=allocate(x.shape, x.dtype)),)

    return compute


TABLE: Mapping[str, tuple[Kernel, ...]] = {
    "Add": (elementwise(np.add),),
    "Sub": (elementwise(np.subtract),),
    "Mul": (elementwise(np.multiply),),
    "Neg": (elementwise(np.negative),),
    "Relu": (elementwise(lambda x, out: np.maximum(x, 0, out=out)),),
    "MatMul": (plain(lambda _, a, b: (a @ b,)),),
    "Identity": (plain(lambda _, x: (x,)),),
    "Transpose": (plain(lambda _, x: (x.T,)),),
    "Reshape": (plain(lambda _, x, shape: (x.reshape(shape),)),),
    "Constant": (plain(lambda site: (site.attributes["value"],)),),
    "Less": (plain(lambda _, a, b: (np.asarray(a < b),)),),
    "Not": (plain(lambda _, a: (~a,)),),
    "Div": (plain(_divided),),
    "Split": (plain(lambda site, x, *_: tuple(np.split(x, len(site.outputs)))),),
    "Where": (plain(lambda _, c, a, b: (a if c.all() else b if not c.any() else np.where(c, a, b),)),),
    "SequenceConstruct": (plain(lambda _, *items: (Sequence(_inner(items[0]), items),)),),
    "SequenceAt": (plain(lambda _, items, at: (items.items[int(at)],)),),
    "NonZero": (Kernel(1, 99, _places),),
    "Softmax": (Kernel(1, 99, _softmax),),
    "Sqrt": (
        Kernel(1, 99, lambda _: lambda inputs, _allocate: (np.sqrt(inputs[0]),), types=frozenset({"float"})),
        Kernel(1, 99, lambda _: lambda inputs, _allocate: (np.sqrt(inputs[0]) + 1,), types=frozenset({"double"})),
    ),
}


def _inner(value: Any) -> Any:
    from sonnx.semantics.machine.memory import type_of

    return type_of(value)


def provider(**others: Kernel) -> NumpyExecutionProvider:
    """The NumPy provider with these kernels, some replaced by others."""
    table = {**TABLE, **{name: (kernel,) for name, kernel in others.items()}}
    return NumpyExecutionProvider(TableRegistry(table))
