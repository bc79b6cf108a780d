"""Which element types a version of an operator admits, by its schema."""

from __future__ import annotations

from typing import Any

import numpy as np
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import element_of


def admits(op_type: str, version: int, dtype: Any, port: int = 0) -> bool:
    """Whether the input at a position may have elements of the type."""
    schema = schemas.schema("", op_type, version)
    return schema is not None and f"tensor({element_of(np.dtype(dtype))})" in schema.inputs[port].types
