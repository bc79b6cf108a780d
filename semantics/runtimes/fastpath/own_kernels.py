"""Kernels of users, for operators that a text of theirs declares: tables of plain functions, by the operators' names.

    KERNELS = {"com.example::Scale": lambda x, bias=None, *, alpha: x * np.float32(alpha)}

A function takes the inputs by position, None for one that is left out between others, and the attributes by name, those
with a default included; it gives the output, or a tuple of them. Tables come from entry points of the group
`sonnx.kernels`, from a file (the engine `numpy:FILE.py`), or from Python (`kernels_with`). Nothing is taken on trust:
`sonnx compare` holds what they compute against the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from runpy import run_path
from typing import Any, Final

import numpy as np

from ...errors import ModelError
from ...model.path import quote
from ...model.values import Map, Optional, Sequence, Value
from .kernel import Allocate, Inputs, Kernel, KernelError, Outputs, Site, unprepared
from .registry import Table, TableRegistry, numpy_kernels

GROUP: Final = "sonnx.kernels"
TABLE: Final = "KERNELS"
"""The name of the table in a file."""
Function = Callable[..., Any]
Own = Mapping[str, Function]


def kernels_with(own: Own, where: str = "the table") -> TableRegistry:
    """All kernels that are installed, with these for operators of one's own. Raises ModelError for an operator that has
    a kernel already, and for what is no function. where: what the message calls the table.
    """
    return _joined(installed_kernels(), own, where)


@cache
def installed_kernels() -> TableRegistry:
    """Our own kernels, and those of packages that name a table at an entry point. Raises ModelError where one of them
    cannot be loaded.
    """
    registry = numpy_kernels()
    for point in entry_points(group=GROUP):
        where = f"the entry point {point.value} of {GROUP}"
        try:
            own = point.load()
        except (ImportError, AttributeError) as error:
            raise ModelError(f"{where} cannot be loaded ({error}): install what it needs, or remove it") from None
        registry = _joined(registry, own, where)
    return registry


def kernels_of_file(path: Path) -> Own:
    """The table KERNELS of a Python file, which is executed. Raises ModelError, which says what is wrong with it."""
    try:
        own = run_path(str(path)).get(TABLE)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}; name a Python file with a table {TABLE}") from None
    except Exception as error:  # whatever the file raises is a mistake in it
        raise ModelError(f"{path}: {type(error).__name__}: {error}") from None
    if own is None:
        raise ModelError(f"{path} has no table {TABLE}: state one, from names of operators to functions")
    return _checked(own, f"{TABLE} in {path}")


def _checked(own: object, where: str) -> Own:
    if not isinstance(own, Mapping) or not all(isinstance(name, str) and callable(it) for name, it in own.items()):
        raise ModelError(f"{where} maps names of operators, such as com.example::Scale, to functions")
    return own


def _joined(registry: TableRegistry, own: object, where: str) -> TableRegistry:
    table: Table = registry.table
    for name, function in _checked(own, where).items():
        if name in table or "::" not in name:
            why = "has a kernel already" if name in table else "is an operator of ONNX's own domain"
            raise ModelError(f"{where}: {quote(name)} {why}: give kernels for operators that a text of yours declares")
        table = {**table, name: (Kernel(1, 1 << 31, unprepared(_calling(function)), alone=True),)}
    return TableRegistry(table, registry.others)


def _calling(function: Function) -> Callable[[Site, Inputs, Allocate], Outputs]:
    """The kernel that calls a function."""

    def run(site: Site, inputs: Inputs, _allocate: Allocate) -> Outputs:
        given = function(*inputs, **site.attributes)
        results = given if isinstance(given, tuple) else (given,)
        if len(results) < len(site.outputs):
            raise KernelError(f"the kernel of {site.op_type} gives {len(results)} outputs, not {len(site.outputs)}")
        return tuple(_result(it, inputs) if wanted else None for it, wanted in zip(results, site.outputs, strict=False))

    return run


def _result(given: Any, inputs: Inputs) -> Value:
    """A result in memory of its own, since that of an input is used again."""
    if isinstance(given, Sequence | Optional | Map):
        return given
    shared = any(isinstance(it, np.ndarray) and np.may_share_memory(it, given) for it in inputs)
    return np.array(given) if shared else np.ascontiguousarray(given).reshape(np.shape(given))
