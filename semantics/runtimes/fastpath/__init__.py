"""The fast path: kernels in NumPy, written from the ONNX standard, behind execution providers and a session.

`Session` runs a model and gives what the machine gives, within the bounds that the text allows; names are loaded when
first used. Kernels must not know the operators' texts or their compiled form, which a differential
test compares them with; where there is no kernel, `by_text` runs that form.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .execution import RunError
    from .kernel import KernelError
    from .numpy_provider import NumpyExecutionProvider
    from .own_kernels import kernels_with
    from .session import NodeArg, Session

__all__ = ["KernelError", "NodeArg", "NumpyExecutionProvider", "RunError", "Session", "kernels_with"]

_MODULES = {
    "KernelError": ".kernel",
    "NodeArg": ".session",
    "NumpyExecutionProvider": ".numpy_provider",
    "RunError": ".execution",
    "Session": ".session",
    "kernels_with": ".own_kernels",
}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name], __name__), name)
