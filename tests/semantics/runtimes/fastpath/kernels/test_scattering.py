"""Scattered updates give what the definition gives in every bit, in the order that it states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastpath_cases import agrees, application, computed, stuck
from fastpath_values import admitted, provoking
from sonnx.semantics.operators.application import Application
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.kernels import indexing
from tables import table

TABLE = indexing.KERNELS


WORDS = {11: ("none",), 13: ("none",), 16: ("none", "add", "mul"), 18: ("none", "add", "mul", "max", "min")}


def numeric(element: str, word: str) -> bool:
    ordered = not element.startswith("complex") or word in ("add", "mul")
    return word == "none" or (element not in ("string", "bool") and ordered)


def stated(version: int, word: str) -> dict[str, Any]:
    return {"reduction": word} if version >= 16 else {}


@pytest.mark.parametrize("version", [11, 13, 16, 18])
def test_updates_of_each_type_are_applied_in_order(version: int) -> None:
    rng = np.random.default_rng(version)
    for element in admitted("ScatterND", version, 0):
        x, u = provoking(element, 60, 1).reshape(3, 4, 5), provoking(element, 40, 2).reshape(2, 4, 5)
        few = u[:, :3, :4]
        once = np.stack([rng.permutation(4)[:3] for _ in range(8)], axis=1).reshape(3, 2, 4).transpose(1, 0, 2) - 4
        often = rng.integers(-4, 4, (2, 3, 4)).astype(np.int32)
        for word in WORDS[version]:
            if numeric(element, word):
                how = stated(version, word)
                agrees("ScatterElements", version, x, once if word == "none" else often, few, axis=1, **how)
                rows = np.array([[2], [-3]]) if word == "none" else np.array([[1], [-2]])
                agrees("ScatterND", version, x, rows, u, **how)
                pairs = np.array([[2, 1, 0], [0, -1, 4]]) if word == "none" else np.array([[1, 1, 1], [-2, 1, -4]])
                agrees("ScatterND", version, x, pairs, u[:, 0, 0], **how)


def test_the_version_before_is_the_same() -> None:
    x, u = provoking("float", 6, 1).reshape(2, 3), provoking("float", 3, 2).reshape(1, 3)
    agrees("Scatter", 9, x, np.array([[1, 0, -1]]), u)
    agrees("Scatter", 9, x, np.array([[1, 0, -3 + 2]]).astype(np.int32)[:, :2], u[:, :2], axis=-1)


@pytest.mark.parametrize("word", ["max", "min"])
def test_zeros_of_both_signs_have_the_sign_that_the_definition_states(word: str) -> None:
    zeros = np.array([0.0, -0.0])
    for element in ("float", "double", "float16", "bfloat16"):
        x = zeros.astype(provoking(element, 1).dtype)
        data, updates = np.repeat(x, 4), np.tile(x, 4)
        agrees("ScatterElements", 18, data, np.arange(8), updates, reduction=word)
        agrees("ScatterND", 18, data, np.arange(8)[:, None] // 2, updates, reduction=word)


def test_nothing_is_scattered_to_nothing() -> None:
    x = np.zeros((2, 0, 3), np.float32)
    none = np.zeros((0, 0, 3), np.int64)
    agrees("ScatterElements", 18, x, none, none.astype(np.float32), axis=0)
    agrees("ScatterND", 18, x, np.zeros((1, 1), np.int64), np.zeros((1, 0, 3), np.float32))
    agrees("ScatterND", 18, x, np.zeros((0, 3), np.int64), np.zeros((0,), np.float32))
    agrees("ScatterND", 18, x[:, :, 0].reshape(0, 2), np.zeros((0,), np.int64), np.zeros((0, 2), np.float32))
    agrees("ScatterND", 18, np.ones(3, np.float32), np.zeros((1, 0), np.int64), np.zeros((1, 3), np.float32))


def refusals() -> list[Application]:
    x, text = np.ones((2, 3), np.float32), provoking("string", 6).reshape(2, 3)

    def at(*values: int) -> Any:
        return np.array(values, np.int64).reshape(1, -1)

    row = np.ones((1, 3), np.float32)
    return [
        *(application(name, v, x, at(0, 2, 0), row) for name, v in (("Scatter", 9), ("ScatterElements", 18))),
        application("ScatterElements", 18, x, at(0, 0, -3), row),
        application("ScatterElements", 18, x, at(0, 0), row),
        application("ScatterElements", 18, x, at(0, 0, 0)[0], row[0]),
        application("ScatterElements", 18, x, at(0, 0, 0, 0), np.ones((1, 4), np.float32)),
        application("ScatterElements", 18, x, at(0, 0, 0), row, axis=2),
        application("ScatterElements", 18, x, at(0, 1, -3), row, axis=1),
        application("ScatterElements", 18, x, at(0, 0, 0), row, reduction="mean"),
        application("ScatterElements", 16, x, at(0, 0, 0), row, reduction="max"),
        application("ScatterElements", 18, text, at(0, 0, 0), text[:1], reduction="add"),
        application("ScatterElements", 18, x > 0, at(0, 0, 0), row > 0, reduction="mul"),
        application("ScatterElements", 18, x + 0j, at(0, 0, 0), row + 0j, reduction="max"),
        application("ScatterND", 18, x, at(2), row),
        application("ScatterND", 18, x, at(0), row[:, :2]),
        application("ScatterND", 18, x, at(0, 0, 0), row[0, :1]),
        application("ScatterND", 18, x, np.asarray(0, np.int64), row),
        application("ScatterND", 18, np.asarray(x[0, 0]), np.zeros((1, 0), np.int64), row[0, :1]),
        application("ScatterND", 18, x, np.array([[1], [-1]]), x),
        application("ScatterND", 18, x, np.zeros((2, 0), np.int64), np.ones((2, 2, 3), np.float32)),
        application("ScatterND", 16, x, at(0), row, reduction="min"),
        application("ScatterND", 18, text, at(0), text[:1], reduction="add"),
    ]


@table("given", [pytest.param(it, id=f"{it.op_type}-{k}") for k, it in enumerate(refusals())])
def test_what_the_definition_refuses_is_refused(given: Application) -> None:
    assert stuck(given)
    with pytest.raises(KernelError):
        computed(TABLE, given)
