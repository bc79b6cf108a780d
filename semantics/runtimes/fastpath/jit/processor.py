"""The processor, and its vectors, by which products are cut."""

from __future__ import annotations

from pathlib import Path
from typing import Final


def _described() -> tuple[str, frozenset[str]]:
    """What identifies the processor, and its features: as Linux lists them, elsewhere as LLVM finds them."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii").split("\n\n")[0].splitlines()
    except (OSError, ValueError):
        lines = []
    pairs = [[word.strip() for word in line.split(":", 1)] for line in lines if ":" in line]
    told = {pair[0]: pair[1] for pair in pairs}
    if "sse2" in told.get("flags", "").split():
        names = ("vendor_id", "cpu family", "model", "stepping", "flags")
        return " ".join(told.get(name, "") for name in names), frozenset(told["flags"].split())
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return f"{llvm.get_host_cpu_name()} {features.flatten()}", frozenset(k for k, has in features.items() if has)


IDENTITY, _FEATURES = _described()
LANES: Final = 16 if "avx512f" in _FEATURES else 8 if "avx2" in _FEATURES else 4
"""Floats in a vector."""
BYTE_PRODUCTS: Final = not _FEATURES.isdisjoint(
    ("avx512_vnni", "avx512vnni") if LANES == 16 else ("avx_vnni", "avxvnni") if LANES == 8 else ()
)
"""The processor adds four products of bytes at once."""
ROWS: Final = 4 if LANES == 8 else 8
"""Rows of a block of a product: three vectors for each, and what these are made of, fill the registers."""
