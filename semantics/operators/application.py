"""The contract between the machine and the meaning of operators: what is applied, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sonnx.spec.language.syntax import Span

from ..model.graph import ValueType
from ..model.values import Value

AttributeData = (
    int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | NDArray[np.generic] | ValueType
)
"""An attribute's value as an operator text sees it. A float is the exact value of the float32 that the model states."""


@dataclass(frozen=True, slots=True)
class Application:
    """One application of an operator of ONNX's own domain.

    version: the since_version in force. inputs: by position, None where an optional input is absent. attributes: those
    that the node states; the definition adds the schema's defaults. outputs: by position, whether the node names it.
    budget: the bytes that a tensor which is computed may take; a larger one is a MemoryError before it is allocated.
    """

    op_type: str
    version: int
    inputs: tuple[Value | None, ...]
    attributes: Mapping[str, AttributeData]
    outputs: tuple[bool, ...]
    budget: int | None = None


@dataclass(frozen=True, slots=True)
class Outputs:
    """The values by position, None for an output that is not asked for; they own their memory or view the inputs.

    free: by position, a mask of the elements that the text leaves open (`arbitrary`, `oneof`), None when none is.
    types: by position, the element type; given by interpretations whose arrays do not tell it.
    """

    values: tuple[Value | None, ...]
    free: tuple[NDArray[np.bool_] | None, ...] = ()
    types: tuple[np.dtype[np.generic] | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Stuck:
    """No transition is possible: which rule (or operator, as `Conv-11`), which premise in its own words, where it is
    written, and a sentence with the values that break it. at: in a run, the path of the node that could not fire.
    """

    rule: str
    premise: str
    span: Span
    message: str
    suggestion: str = ""
    at: str = ""
