"""Cast and CastLike convert each value of each element type to each other type as the definition does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agreement, computed, stuck
from fastpath_values import admitted, provoking, widest
from sonnx.semantics.model import schemas
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernels import casting

TABLE = casting.KERNELS
CODES = {name: code for code, name in schemas.element_types().items()}
ROUNDINGS = ("up", "down", "nearest")
VERSIONS = [(op_type, version) for op_type in TABLE for version in widest(op_type)]


def given(op_type: str, version: int, x: Any, target: str, **attributes: Any) -> Application:
    if op_type == "Cast":
        return Application(op_type, version, (x,), {"to": CODES[target], **attributes}, (True,))
    return Application(op_type, version, (x, np.empty(0, DTYPES[target])), attributes, (True,))


def targets(op_type: str, version: int) -> tuple[str, ...]:
    return admitted(op_type, version, 0 if op_type == "Cast" else 1)


def settings(version: int, target: str) -> list[dict[str, Any]]:
    if version < 19 or not target.startswith("float8"):
        return [{}]
    if target != "float8e8m0":
        return [{}, {"saturate": 0}]
    return [{"round_mode": word, "saturate": limit} for word in ROUNDINGS for limit in (0, 1)]


@pytest.mark.parametrize(("op_type", "version"), VERSIONS)
def test_each_pair_of_types_agrees_on_provoking_values(op_type: str, version: int) -> None:
    for source in admitted(op_type, version, 0):
        x = provoking(source, 200, version)
        for target in targets(op_type, version):
            if (source == "string") == (target == "string"):
                for attributes in settings(version, target):
                    application = given(op_type, version, x, target, **attributes)
                    assert not (reason := agreement(TABLE, application)), (source, target, attributes, reason)


@pytest.mark.parametrize("source", ["int64", "uint64", "double"])
def test_numbers_with_more_digits_than_a_double_or_a_float_are_rounded_once(source: str) -> None:
    """Next to the midpoints of the numbers of the narrower types."""
    middles = [(2 * k + 1) << shift for k in (64, 128, 1024, 1 << 23, 1 << 24) for shift in (8, 20, 30, 52)]
    near = [m + d for m in middles for d in (-1, 0, 1) if abs(m) < 2**62]
    x = np.array(near, np.int64).astype(DTYPES[source])
    for target in ("float", "float16", "bfloat16", "float8e5m2", "float8e4m3fn", "double"):
        for sign in (1, -1):
            data = x if source == "uint64" else x * sign
            assert not (reason := agreement(TABLE, given("Cast", 28, data, target, saturate=0))), (target, reason)


def test_scalars_and_empty_tensors_are_converted() -> None:
    for source in admitted("Cast", 28, 0):
        for target in targets("Cast", 28):
            if (source == "string") == (target == "string"):
                x = provoking(source, 1, 5)
                for data in (x.reshape(()), x[:0].reshape(2, 0)):
                    assert not (reason := agreement(TABLE, given("Cast", 28, data, target))), (source, target, reason)


def test_numbers_become_strings_and_strings_numbers() -> None:
    words = np.array([b"1", b"-2", b"+30"], object)
    for op_type, version in (("Cast", 9), ("Cast", 28), ("CastLike", 25)):
        for other in set(admitted(op_type, version, 0)) - {"string", "bool"}:
            for application in (
                given(op_type, version, words, other),
                given(op_type, version, provoking(other, 20, 3), "string"),
                given(op_type, version, words[:0], other),
            ):
                assert not stuck(application), (version, other)
                assert not (reason := agreement(TABLE, application)), (version, other, reason)


def test_a_conversion_to_the_same_type_copies_nothing() -> None:
    x = provoking("float", 20)
    (found,) = computed(TABLE, given("Cast", 13, x, "float"))
    assert np.shares_memory(found, x)
    assert not found.flags.writeable


def test_what_the_definition_refuses_is_refused() -> None:
    x = provoking("float", 3)
    for refused in (
        given("Cast", 13, provoking("bool", 3), "string"),
        given("Cast", 13, np.array([b"1", b"a"], object), "float"),
        given("Cast", 24, x, "float8e8m0", round_mode="even"),
        Application("Cast", 13, (x,), {"to": 99}, (True,)),
    ):
        assert stuck(refused)
        assert not (reason := agreement(TABLE, refused)), reason
