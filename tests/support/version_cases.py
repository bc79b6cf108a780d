"""Applications which tell the meanings of an operator apart: what each version gives, or that it cannot be applied.

A version stands for its meaning, that is for all versions of the text that holds for it. The cases themselves lie in
version_cases_earlier, version_cases_neural, version_cases_numeric and version_cases_structure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import element_of
from sonnx.semantics.model.values import Optional, Sequence
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled.ieee import apply


@dataclass(frozen=True, slots=True)
class Free:
    """An output each of whose elements the text leaves open, or one of several: its element type and shape."""

    dtype: Any
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stuck:
    """The premise that does not hold."""

    premise: str


@dataclass(frozen=True, slots=True)
class Foreign:
    """The schema of the version has no such application: it lacks an input or an attribute, or an element type."""


FOREIGN: Final = Foreign()
Outcome = Any
"""What is expected: a value, a tuple of them for several outputs, a Free, a Stuck or FOREIGN."""


@dataclass(frozen=True, slots=True)
class Case:
    """An application of an operator, and its outcome for some versions of it. outputs: how many are asked for."""

    op_type: str
    inputs: tuple[Any, ...]
    attributes: Mapping[str, Any]
    outcomes: Mapping[int, Outcome]
    outputs: int = 1

    def tells_apart(self, first: int, second: int) -> bool:
        """Whether the outcomes of two versions are known and differ."""
        if not {first, second} <= set(self.outcomes):
            return False
        return not same(self.outcomes[first], self.outcomes[second])


def case(op_type: str, inputs: Any, outcomes: Mapping[int, Outcome], outputs: int = 1, **attributes: Any) -> Case:
    """A case; a single input need not be in a tuple."""
    return Case(op_type, inputs if isinstance(inputs, tuple) else (inputs,), attributes, outcomes, outputs)


def f32(content: Any) -> Any:
    """A tensor of type float."""
    return np.array(content, np.float32)


def i64(content: Any) -> Any:
    """A tensor of type int64."""
    return np.array(content, np.int64)


def outcome(given: Case, version: int) -> Outcome:
    """What a version makes of the application."""
    if not fits(given, version):
        return FOREIGN
    done = apply(Application(given.op_type, version, given.inputs, given.attributes, (True,) * given.outputs))
    if not isinstance(done, Outputs):
        return Stuck(done.premise)
    free = done.free or (None,) * given.outputs
    found = tuple(
        value if mask is None or not np.asarray(mask).any() else Free(value.dtype.type, value.shape)
        for value, mask in zip(done.values, free, strict=True)
    )
    return found if given.outputs > 1 else found[0]


def same(one: Outcome, other: Outcome) -> bool:
    """Whether two outcomes are the same, values bit by bit but for the bits of a NaN."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        return (
            isinstance(one, tuple)
            and isinstance(other, tuple)
            and len(one) == len(other)
            and all(same(a, b) for a, b in zip(one, other, strict=True))
        )
    if not isinstance(one, np.ndarray) or not isinstance(other, np.ndarray):
        return type(one) is type(other) and bool(one == other)
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return False
    if one.dtype == object or one.dtype.kind in "iub":
        return one.tolist() == other.tolist()
    a, b = one.astype(np.float64), other.astype(np.float64)
    return bool((((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))).all())


def fits(given: Case, version: int) -> bool:
    """Whether the schema of a version has the application: its inputs and attributes, its types, its outputs."""
    schema = schemas.schema_of(given.op_type, version)
    if schema is None or schema.since_version != version or not set(given.attributes) <= set(schema.attributes):
        return False
    if any(it.required and it.name not in given.attributes for it in schema.attributes.values()):
        return False
    count = len(given.inputs)
    if count < schema.min_inputs or (schema.max_inputs is not None and count > schema.max_inputs):
        return False
    if schema.max_outputs is not None and given.outputs > schema.max_outputs:
        return False
    bound: dict[str, str] = {}
    for formal, value in zip(_formals(schema), given.inputs, strict=False):
        if value is None:
            if formal.option == "single":
                return False
            continue
        found = type_name(value)
        if found not in formal.types or (formal.homogeneous and bound.setdefault(formal.type, found) != found):
            return False
    return True


def _formals(schema: schemas.Schema) -> Iterator[schemas.Formal]:
    yield from schema.inputs
    while schema.inputs and schema.inputs[-1].option == "variadic":
        yield schema.inputs[-1]


def type_name(value: Any) -> str:
    """The type of a value as schemas spell it."""
    match value:
        case Sequence(inner=inner):
            return f"seq(tensor({inner.element}))"
        case Optional(inner=inner):
            return f"optional(tensor({inner.element}))"
        case _:
            return f"tensor({element_of(value.dtype)})"
