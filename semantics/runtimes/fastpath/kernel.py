"""The contract between a session and the kernels: what a kernel is told of its node, and what it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...model.values import Value
from ...operators.application import AttributeData

Array = NDArray[Any]

Allocate = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]
"""Uninitialised C-contiguous memory of a shape and dtype, for an output or for intermediate results.

It belongs to the application that asked for it: what is not part of an output is given to others afterwards, so a
kernel never keeps it from one call to the next. A later call with inputs of the same shapes gets the same memory again.
"""
Inputs = Sequence[Value | None]
Outputs = tuple[Value | None, ...]
Compute = Callable[[Inputs, Allocate], Outputs]
"""The outputs by position from the inputs by position, None for those that are absent or not asked for. It is called
with NumPy's warnings off (`workers.for_rows`)."""


class KernelError(Exception):
    """The operator is not defined on these inputs; the message says which requirement fails."""


class Interrupted(KernelError):  # noqa: N818 - it says nothing of the operator
    """What computes ended, or was stopped: nothing is said of the operator on these inputs."""


@dataclass(frozen=True, slots=True)
class Site:
    """The facts of one node that are known when a session is prepared.

    version: the since_version in force. attributes: those that the node states, completed by the schema's defaults.
    constants: by input position the value where it is known, else None. inputs, outputs: by position, whether it is
    given or named. place: the path of the node, from which random numbers follow.
    """

    op_type: str
    version: int
    attributes: Mapping[str, AttributeData]
    constants: tuple[Value | None, ...]
    inputs: tuple[bool, ...]
    outputs: tuple[bool, ...]
    place: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The computation of an operator from one since_version to another.

    prepare: reads attributes and packs constant inputs, once for each node. in_place: the operator is applied element
    by element; such a kernel asks `Allocate` for its outputs only, and the memory may be that of an input of the same
    shape and dtype. types: the element types of the first input that are covered, None for all that the schema admits.
    alone: no other node of a graph is computed at the same time: the function is a user's, or has all threads of BLAS.
    """

    first: int
    last: int
    prepare: Callable[[Site], Compute]
    in_place: bool = False
    types: frozenset[str] | None = None
    alone: bool = False


def unprepared(apply: Callable[[Site, Inputs, Allocate], Outputs]) -> Callable[[Site], Compute]:
    """A kernel that prepares nothing: what it reads of the site it reads at each application."""
    return lambda site: partial(apply, site)
