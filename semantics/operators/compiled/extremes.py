"""maximum and minimum of elements: of 0.0 and -0.0 the greater is 0.0 (IEEE 754-2019, 9.6), a NaN wins.

NumPy leaves to the processor which of the two zeros it gives.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .terms import Array


@dataclass(frozen=True, slots=True)
class Extreme:
    """The greater or the lesser of two floating-point arrays, and the fold of it along an axis. function: NumPy's."""

    function: np.ufunc

    def __call__(self, a: Array, b: Array, out: Array | None = None) -> Array:
        """Element by element."""
        zeros = np.logical_and(a == 0, b == 0)
        if not np.any(zeros):
            return np.asarray(self.function(a, b, out=out))
        both = np.asarray(a + b if self.function is np.maximum else -(-a + -b))
        result = np.asarray(self.function(a, b, out=out))
        np.copyto(result, both, where=zeros)
        return result

    def accumulate(self, terms: Array, axis: int) -> Array:
        """The folds of all beginnings of a matrix along axis 1; the sign of a zero is exact in the last one alone."""
        result = np.asarray(self.function.accumulate(terms, axis=axis))
        rows = result[:, -1] == 0
        if rows.any():
            some = terms[rows]
            wins = np.signbit(some) == (self.function is np.minimum)
            greater = ((some == 0) & wins).any(axis=1) == (self.function is np.maximum)
            result[rows, -1] = np.where(greater, 0.0, -0.0).astype(result.dtype)
        return result
