"""For every defined operator the ieee value lies within the operator's own bounds, and so does what is computed in a
wider type and rounded at the end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from any_order import BFLOAT, DOUBLE, FLOAT, HALF, TYPES
from applications import KEPT, Case, defined, fitted, versions, wheel_cases
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model import schemas
from sonnx.semantics.model.values import Sequence
from sonnx.semantics.operators.application import Application, Outputs
from sonnx.semantics.operators.compiled import bound, ieee
from sonnx.semantics.operators.compiled.bound import Allowed, Bounds
from sonnx.semantics.operators.compiled.elements.bounds.verdict import judge
from sonnx.spec.library import specification
from tables import table

NEWEST = [(name, max(versions(name))) for name in sorted(specification().operators) if versions(name)]
WIDER = {HALF: FLOAT, BFLOAT: FLOAT, FLOAT: DOUBLE}
BUDGET = 1 << 26
DECIDING = frozenset(("OneHot", "Dropout"))
"""Operators in which a value that the text leaves open decides what is computed: a NaN as an index, a drawn outcome."""
PLACING = frozenset(("GridSample", "DeformConv", "NonMaxSuppression"))
"""Operators in which a computed value decides what is read or kept: a place, an area, that overflows."""
SPECIAL = np.asarray([0.0, -0.0, np.inf, -np.inf, np.nan, 65504, -65504, 6e-8, 1e-45, 3.4e38, 1.0])


def _names(op_type: str, version: int, count: int) -> list[str]:
    schema = schemas.schema("", op_type, version)
    formals = [formal.name for formal in schema.inputs] if schema is not None else []
    return [formals[min(position, len(formals) - 1)] for position in range(count)] if formals else []


def _varied(case: Case, op_type: str, version: int, dtype: Any, rng: np.random.Generator, *, special: bool) -> Case:
    """The case with floats of a type that are no round numbers, some of them special on request."""
    inputs, attributes, outputs = case
    found: list[Any] = []
    for name, x in zip(_names(op_type, version, len(inputs)), inputs, strict=True):
        if x is None or x.dtype not in TYPES or name in KEPT:
            found.append(x)
            continue
        values = x.astype(np.float64) * rng.uniform(0.7, 1.3, x.shape)
        if special and op_type != "Range":
            values = np.where(rng.random(x.shape) < 0.2, rng.choice(SPECIAL, x.shape), values)
        with np.errstate(over="ignore"):
            found.append(np.asarray(values).astype(dtype))
    return tuple(found), attributes, outputs


def _has_float(case: Case) -> bool:
    return any(x is not None and x.dtype in TYPES for x in case[0])


def _made(
    op_type: str, version: int, types: Any, count: int | None, *, special: bool
) -> Iterator[tuple[Any, Application]]:
    """Applications on floats of the types, with the type."""
    rng = np.random.default_rng(len(op_type) + version)
    cases = wheel_cases().get(op_type, ())
    for case in random.Random(op_type).sample(cases, min(count or len(cases), len(cases))):
        for dtype in types if _has_float(case) else (None,):
            made = fitted(op_type, version, _varied(case, op_type, version, dtype, rng, special=special))
            if made is not None:
                yield dtype, replace(made, budget=BUDGET)


def _outside(allowed: Any, value: Any, free: Any = None) -> str:
    """What of a value is not allowed, "" for nothing."""
    if isinstance(value, Sequence):
        pairs = zip(allowed, value.items, strict=True)
        return next((message for message in (_outside(a, v) for a, v in pairs) if message), "")
    if not isinstance(allowed, Allowed):
        return ""
    verdict = judge(allowed, value)
    wrong = ~verdict.allowed if free is None else ~verdict.allowed & ~free
    if not wrong.any():
        return ""
    at = tuple(int(k[0]) for k in np.nonzero(wrong))
    return (
        f"{value[at]!r} at {at} is not in {allowed.least[at]!r} .. {allowed.most[at]!r} ({wrong.sum()} of {wrong.size})"
    )


def _compared(application: Application, deciding: frozenset[str] = DECIDING) -> list[str]:
    """What the ieee interpretation gives that its bounds do not allow."""
    try:
        found = ieee.apply(application)
    except (Unsupported, MemoryError):
        return []
    if not isinstance(found, Outputs):
        return []
    try:
        allowed = bound.apply(application)
    except Unsupported:
        if found.free or application.op_type in deciding:
            return []
        raise
    assert isinstance(allowed, Bounds), (application.op_type, allowed)
    free = found.free or (None,) * len(found.values)
    messages = (_outside(a, v, f) for a, v, f in zip(allowed.values, found.values, free, strict=True) if v is not None)
    return [f"{application.op_type}-{application.version}: {m}" for m in messages if m]


def _in_wider_type(application: Application, dtype: Any) -> list[str]:
    """What a wider type gives, rounded at the end, that is not allowed."""
    wider = tuple(x.astype(WIDER[dtype]) if x is not None and x.dtype == dtype else x for x in application.inputs)
    other = fitted(
        application.op_type, application.version, (wider, dict(application.attributes), len(application.outputs))
    )
    try:
        found = None if other is None else ieee.apply(other)
    except (Unsupported, MemoryError):
        return []
    try:
        allowed = bound.apply(application)
    except Unsupported:
        if application.op_type in DECIDING:
            return []
        raise
    if not isinstance(found, Outputs) or not isinstance(allowed, Bounds):
        return []
    messages = []
    for a, v in zip(allowed.values, found.values, strict=True):
        if isinstance(a, Allowed) and isinstance(v, np.ndarray) and v.dtype in (a.type, WIDER[dtype]):
            with np.errstate(over="ignore"):
                messages.append(_outside(a, v.astype(a.type)))
    return [f"{application.op_type}-{application.version} in {WIDER[dtype]}: {m}" for m in messages if m]


@table(("op_type", "version"), NEWEST, ids=[name for name, _ in NEWEST])
def test_the_value_of_an_operator_lies_within_its_own_bounds(op_type: str, version: int) -> None:
    failures: list[str] = []
    for dtype, application in _made(op_type, version, (HALF, FLOAT), 2, special=False):
        failures += _compared(application)
        if dtype in WIDER:
            failures += _in_wider_type(application, dtype)
    assert not failures, "\n".join(failures)


@pytest.mark.campaign
@pytest.mark.parametrize("special", [False, True], ids=["numbers", "special values"])
@pytest.mark.parametrize(("op_type", "version"), defined(), ids=[f"{name}-{version}" for name, version in defined()])
def test_every_version_on_every_case_lies_within_its_own_bounds(op_type: str, version: int, special: bool) -> None:
    failures: list[str] = []
    for dtype, application in _made(op_type, version, TYPES, None, special=special):
        failures += _compared(application, DECIDING | PLACING if special else DECIDING)
        if dtype in WIDER and not special:
            failures += _in_wider_type(application, dtype)
    assert not failures, "\n".join(failures)


def test_a_quotient_is_rounded_once_so_that_the_product_with_the_inverse_is_outside() -> None:
    x = np.arange(-40, 41).astype(np.float32)
    application = Application("Softsign", 22, (x,), {}, (True,))
    found, allowed = ieee.apply(application), bound.apply(application)
    assert isinstance(found, Outputs)
    assert isinstance(allowed, Bounds)
    inverse = x * (np.float32(1) / (1 + np.abs(x)))
    within = judge(allowed.values[0], inverse, found.values[0]).allowed  # type: ignore[arg-type]
    assert within[inverse == found.values[0]].all()
    assert 0 < (~within).sum() < x.size
