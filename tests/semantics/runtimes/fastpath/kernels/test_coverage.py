"""An operator at a version that the specification defines has one kernel, or its text is run; control flow has none."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

import numpy as np
import pytest
from fastpath_cases import versions
from sonnx.semantics.model.graph import Node
from sonnx.semantics.runtimes.fastpath import kernels
from sonnx.semantics.runtimes.fastpath.by_text import BY_TEXT
from sonnx.semantics.runtimes.fastpath.kernel import Kernel, KernelError, Site
from sonnx.semantics.runtimes.fastpath.registry import numpy_kernels
from sonnx.spec.elaborate.statements import is_rule
from sonnx.spec.library import specification

MODULES = sorted(module.name for module in iter_modules(kernels.__path__))
ENTRIES: list[tuple[str, str, Kernel]] = [
    (module, op_type, kernel)
    for module in MODULES
    for op_type, row in getattr(import_module(f"{kernels.__name__}.{module}"), "KERNELS", {}).items()
    for kernel in row
]


def covering(op_type: str, version: int) -> list[str]:
    """The modules that have a kernel for an operator at a version; one for each entry."""
    return [module for module, name, kernel in ENTRIES if name == op_type and kernel.first <= version <= kernel.last]


def node(op_type: str, version: int) -> Node:
    """A node of an operator at a version, without inputs and outputs."""
    return Node("", "/0", 0, "", op_type, "", version, version, (), ())


def test_each_defined_version_of_each_operator_has_one_kernel_or_its_text_is_run() -> None:
    registry = numpy_kernels()
    for op_type in specification().operators:
        for version in versions(op_type):
            own = covering(op_type, version)
            kernel = registry.look_up_kernel(node(op_type, version))
            assert len(own) <= 1, (op_type, version, own)
            assert kernel is not None and (kernel is BY_TEXT) == (not own), (op_type, version)


@pytest.mark.parametrize("op_type", ["If", "Loop", "Scan", "SequenceMap", "Nonsense"])
def test_what_no_equations_define_has_no_kernel(op_type: str) -> None:
    assert numpy_kernels().look_up_kernel(node(op_type, 23)) is None


def test_a_kernel_by_text_gives_what_the_machine_gives_and_refuses_what_it_refuses() -> None:
    x = np.array([[3, -1], [2, 5]], np.float32)
    site = Site("TopK", 11, {"axis": -1, "largest": 1, "sorted": 1}, (None, None), (True, True), (True, False))
    values, indices = BY_TEXT.prepare(site)((x, np.array([1])), np.empty)
    assert isinstance(values, np.ndarray) and values.tolist() == [[3], [5]] and indices is None
    with pytest.raises(KernelError, match="The axis has K elements"):
        BY_TEXT.prepare(site)((x, np.array([3])), np.empty)


def test_no_kernel_is_for_an_operator_that_the_specification_lacks_or_defines_by_rule() -> None:
    operators = specification().operators
    by_rule = {name for name, texts in operators.items() if any(is_rule(text) for text in texts)}
    assert not {name for _, name, _ in ENTRIES if name not in operators or name in by_rule}
    assert by_rule >= {"If", "Loop", "Scan", "SequenceMap"}


def test_each_kernel_covers_a_version_and_all_element_types() -> None:
    for module, op_type, kernel in ENTRIES:
        covered = [it for it in versions(op_type) if kernel.first <= it <= kernel.last]
        assert covered, (module, op_type, kernel)
        assert kernel.types is None, (module, op_type)
