"""The vectors of this processor, by which products are cut."""

from __future__ import annotations

from typing import Final

import llvmlite.binding as llvm

_FEATURES: Final = llvm.get_host_cpu_features()
LANES: Final = 16 if _FEATURES.get("avx512f") else 8 if _FEATURES.get("avx2") else 4
"""Floats in a vector."""
ROWS: Final = 4 if LANES == 8 else 8
"""Rows of a block of a product: three vectors for each, and what these are made of, fill the registers."""
