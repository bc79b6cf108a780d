"""Kernels of losses give what the definition gives, in every bit."""

from __future__ import annotations

import pytest
from applications import applications
from fastpath_cases import agreement, uncovered, wheel_failures
from fastpath_values import others, widest
from sonnx.semantics.fastpath.kernels import losses

TABLE = losses.KERNELS


def test_every_version_has_a_kernel() -> None:
    assert not uncovered(TABLE)


@pytest.mark.parametrize("op_type", sorted(TABLE))
def test_kernels_agree_on_exact_data_in_every_version(op_type: str) -> None:
    for version in (*widest(op_type), *others(op_type)):
        for given in applications(op_type, version, 10):
            assert not (reason := agreement(TABLE, given)), (given, reason)


@pytest.mark.parametrize("op_type", sorted(TABLE))
def test_kernels_pass_the_tests_of_the_wheel(op_type: str) -> None:
    assert not list(wheel_failures(TABLE, op_type))
