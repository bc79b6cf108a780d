"""When two graphs mean the same: rewrites matched against graphs, proved, and applied.

Each package below holds one of these. What an operator is, and which rules there are, say the texts; by name the code
knows Transpose, which the pass `layout` moves, and BitCast, before which nothing is rewritten.

    from sonnx.checker.equivalence import GLOBAL, LOCAL, onnxscript_rule, optimize, rewrite
    from sonnx.semantics.model.loader import load

    model, log = rewrite(load("model.onnx"), ["TransposeTranspose"])    # local: rewrites, and nothing else
    done = optimize(load("model.onnx"), passes=(*GLOBAL, *LOCAL))       # and passes over the whole model
    rule = onnxscript_rule("TransposeTranspose")                        # for onnxscript's rewriter, extra `onnxscript`

Names are loaded when first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .optimizing.onnxscript_rules import onnxscript_rule
    from .optimizing.optimizer import GLOBAL, LOCAL, optimize
    from .optimizing.rewriting import rewrite

__all__ = ["GLOBAL", "LOCAL", "onnxscript_rule", "optimize", "rewrite"]

_HOMES = {"rewrite": "rewriting", "onnxscript_rule": "onnxscript_rules"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".optimizing.{_HOMES.get(name, 'optimizer')}", __name__), name)


def __dir__() -> list[str]:
    return sorted(__all__)
