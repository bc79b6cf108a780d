"""The kernels of the families, as one registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...model.graph import Node
from ...model.schemas import operator_name
from . import kernels
from .by_text import text_kernel
from .kernel import Kernel

Table = Mapping[str, tuple[Kernel, ...]]


@dataclass(frozen=True, slots=True)
class TableRegistry:
    """Kernels by the names of operators; of several that cover a node the first one of the table counts.

    others: gives the kernel of a node for which the table has none.
    """

    table: Table
    others: Callable[[Node], Kernel | None] | None = None

    def look_up_kernel(self, node: Node, element: str | None = None) -> Kernel | None:
        """The kernel for a node. element: the element type of its first input, None while it is not known."""
        if node.version is None:
            return None
        for kernel in self.table.get(operator_name(node.domain, node.op_type), ()):
            covered = kernel.types is None or element is None or element in kernel.types
            if kernel.first <= node.version <= kernel.last and covered:
                return kernel
        return None if self.others is None else self.others(node)


@cache
def numpy_kernels() -> TableRegistry:
    """The kernels of all families: the tables KERNELS of the modules of `kernels`; the text of what these leave out."""
    tables: dict[str, tuple[Kernel, ...]] = {}
    for module in sorted(it.name for it in iter_modules(kernels.__path__)):
        table: Table = getattr(import_module(f"{kernels.__name__}.{module}"), "KERNELS", {})
        for op_type, entries in table.items():
            tables[op_type] = (*tables.get(op_type, ()), *entries)
    return TableRegistry(tables, text_kernel)
