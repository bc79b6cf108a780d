"""The memory of providers is what their tensors take at one time."""

from __future__ import annotations

import numpy as np
from machine_models import node, stored
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.runtimes.fastpath.measuring import memory_of
from toy_providers import MAIN, net

MACHINE = "MachineExecutionProvider"
X = np.arange(1, 101, dtype=np.float32)


def tensors(made: object, *wanted: str) -> dict[str, int]:
    return {it.provider: it.tensors for it in memory_of(load_proto(made), wanted, {"x": X})}  # type: ignore[arg-type]


def test_a_tensor_counts_from_where_it_is_made_to_where_nothing_reads_it() -> None:
    chain = [node("Neg", ["x"], ["a"]), node("Exp", ["a"], ["b"]), node("Neg", ["b"], ["c"]), node("Exp", ["c"], ["y"])]
    assert tensors(net(*chain), "machine") == {MACHINE: 800, MAIN: 0}
    assert tensors(net(*chain, node("Add", ["a", "b"], ["z"]), outputs=("y", "z")), "machine")[MACHINE] == 1600


def test_what_is_handed_on_and_what_is_a_view_count_once() -> None:
    shaped = [node("Neg", ["x"], ["a"]), node("Identity", ["a"], ["b"]), node("Reshape", ["b", "s"], ["y"])]
    made = net(*shaped, weights=[stored("s", [10, 10], np.int64)])
    assert tensors(made, "machine:only=Neg") == {MACHINE: 400, MAIN: 0}


def test_what_is_known_when_the_model_is_loaded_counts_too() -> None:
    made = net(node("Neg", ["w"], ["a"]), node("Add", ["x", "a"], ["y"]), weights=[stored("w", np.ones((5, 100)))])
    assert tensors(made)[MAIN] == 2000 + 2000
