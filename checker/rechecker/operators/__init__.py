"""Types, shapes and requirements of operators, derived again from ONNX's schema and the operators' texts.

`derive` walks a model, `objections` and `condition_objections` compare with what a certificate states. It shares the
grammar (`spec/language/language.lark`) and the texts (`spec/5-operators`) with the certifier, and no code; it must not
know the tables of facts nor the rules over them.
"""

from .checking import condition_objections, objections
from .knowledge import Derivation
from .text import library
from .walk import OVERRIDABLE, derive, unwalked

__all__ = ["OVERRIDABLE", "Derivation", "condition_objections", "derive", "library", "objections", "unwalked"]
