"""Each operator at each version that the specification defines has exactly one kernel, control flow has none."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from fastpath_cases import versions
from sonnx.semantics.runtimes.fastpath import kernels
from sonnx.semantics.runtimes.fastpath.kernel import Kernel
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


def test_each_defined_version_of_each_operator_has_exactly_one_kernel() -> None:
    wrong = {
        (op_type, version): covering(op_type, version)
        for op_type in specification().operators
        for version in versions(op_type)
        if len(covering(op_type, version)) != 1
    }
    assert not wrong


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
