"""Data that provoke, for each element type, and the element types that an operator admits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.runtimes.fastpath.registry import numpy_kernels
from sonnx.spec.elaborate.schema import signatures
from sonnx.spec.elaborate.statements import is_rule
from sonnx.spec.library import specification

PLAIN = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 6.0, 0.1, -0.1, 20.0, -20.0, 100.0, -100.0)


def admitted(op_type: str, version: int, position: int) -> tuple[str, ...]:
    """The element types of tensors that an operator admits as an input, those that NumPy and ml_dtypes have."""
    schema = schemas.schema("", op_type, version)
    if schema is None:
        raise LookupError(f"ONNX knows no {op_type} at version {version}")
    formal = schema.inputs[min(position, len(schema.inputs) - 1)]
    names = (name[7:-1] for name in formal.types if name.startswith("tensor("))
    return tuple(sorted(name for name in names if name in DTYPES))


def widest(op_type: str) -> list[int]:
    """The last version of each text of an operator that the specification defines and that has a kernel of its own."""
    return sorted(versions[-1] for versions in _versions(op_type))


def others(op_type: str) -> Iterator[int]:
    """The versions with a kernel of their own that are not the last one of their text."""
    for versions in _versions(op_type):
        yield from versions[:-1]


def _versions(op_type: str) -> Iterator[list[int]]:
    """For each text of an operator the versions for which there is a kernel."""
    kernels = numpy_kernels().table[op_type]
    for text in specification().operators[op_type]:
        covered = [
            s.version
            for s in signatures().get(op_type, ())
            if text.first <= s.version <= text.last and any(it.first <= s.version <= it.last for it in kernels)
        ]
        if covered and not is_rule(text):
            yield sorted(covered)


def provoking(element: str, size: int, seed: int = 0) -> Any:
    """A vector of an element type: its special values, numbers of ordinary size, and random bits."""
    dtype = DTYPES[element]
    rng = np.random.default_rng(seed)
    if element == "string":
        words = (b"", b"a", b"b", b"ab", "ü".encode(), b"A", b"\x00")
        flat = [words[k % len(words)] for k in range(seed, seed + size)]
        return np.array([*flat, None], dtype=object)[:-1]
    if element == "bool":
        return rng.integers(0, 2, size).astype(bool)
    with np.errstate(all="ignore"):
        found = _special(dtype)
        if dtype.kind == "f" or "float" in dtype.name or dtype.kind == "c":
            found = np.concatenate([found, (rng.normal(size=size) * 3).astype(dtype)])
    found = np.concatenate([found, _bits(dtype, size, rng)])
    return rng.permutation(found)[:size] if size < found.size else np.resize(rng.permutation(found), size)


def _special(dtype: Any) -> Any:
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        info = ml_dtypes.iinfo(dtype)
        near = [0, 1, 2, 3, 5, 7, info.max, info.max - 1, info.min, info.min + 1]
        near += [-1, -2, -3] if info.min else []
        return np.array([x for x in near if info.min <= x <= info.max]).astype(dtype)
    if dtype.kind == "c":
        return np.array([complex(a, b) for a in (0.0, -0.0, np.nan, np.inf, 1.5) for b in (0.0, -0.0, np.nan)], dtype)
    info = ml_dtypes.finfo(dtype)
    ends = np.array([info.max, info.min, info.tiny, info.smallest_subnormal, info.eps]).astype(np.float64)
    plain = np.array([*PLAIN, np.nan, np.inf, -np.inf])
    return np.concatenate([plain, ends, -ends, ends * 3]).astype(dtype)


def _bits(dtype: Any, size: int, rng: Any) -> Any:
    raw = rng.integers(0, 256, (size, dtype.itemsize)).astype(np.uint8)
    name = dtype.name
    used = next((int(digits) for digits in ("2", "4") if name.endswith("int" + digits)), 8)
    used = 4 if name.startswith("float4") else 6 if name.startswith("float6") else used
    codes = (raw & ((1 << used) - 1)).reshape(-1)
    return codes.astype(np.int8).astype(dtype) if used < 8 and "int" in name else codes.view(dtype)
