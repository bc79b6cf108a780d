"""Kernels of every family agree with the definition on exact data, and pass the node tests of the onnx wheel."""

from __future__ import annotations

from applications import applications
from fastpath_cases import agreement, every, unexpected
from sonnx.semantics.runtimes.fastpath.kernels import convolution, matrix, normalization, pooling, recurrent
from sonnx.semantics.runtimes.fastpath.registry import numpy_kernels
from tables import table

TABLE = numpy_kernels().table
MOST = {"Conv", "ConvInteger", *matrix.KERNELS}
"""Operators that many random applications are drawn for."""
SUMS = {*convolution.KERNELS, *matrix.KERNELS, *pooling.KERNELS}
"""Sums that may start with 0.0: the sign of a zero is not compared."""
ROUNDED = {
    *normalization.KERNELS,
    *recurrent.KERNELS,
    "Softmax",
    "LogSoftmax",
    "Resize",
    "SoftmaxCrossEntropyLoss",
}
"""Operators that round also on exact data; what they may differ by is tested with their family."""


@table("op_type", sorted(TABLE))
def test_the_node_tests_of_the_wheel_pass(op_type: str) -> None:
    assert not unexpected(TABLE, op_type)


@table(("op_type", "version"), [it for it in every(TABLE) if it[0] not in ROUNDED])
def test_kernels_agree_on_exact_data(op_type: str, version: int) -> None:
    made = applications(op_type, version, 8 if op_type in MOST else 5)
    assert not [(it, reason) for it in made if (reason := agreement(TABLE, it, signs=op_type not in SUMS))]
