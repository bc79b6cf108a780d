"""The exact interpretation: what an application of an operator gives when nothing is rounded.

The same evaluator as the ieee interpretation, on another table of element arithmetic (`elements.exact`). It is for data
on which every order of summation gives the same bits, and it is partial: what has no exact value is Unsupported.
"""

from __future__ import annotations

from typing import Final

from ..application import Application, Outputs, Stuck
from .elements.exact import EXACT
from .ieee import interpreter

_apply: Final = interpreter(EXACT)


def apply(application: Application) -> Outputs | Stuck:
    """The outputs as object arrays of Fraction and int, truth values as bool.

    Raises Unsupported where there is no exact value, and for an operator without definition.
    """
    return _apply(application)
