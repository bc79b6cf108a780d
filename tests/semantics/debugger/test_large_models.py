"""Large models: what is planted in them is found by one command, and keeping all states costs what was written."""

from __future__ import annotations

import time

import numpy as np
import onnx
from debugger_models import answer, session, stopped, text
from onnx import helper, numpy_helper
from sonnx.semantics.debugger.answers import Rows
from sonnx.semantics.memory import history_bytes

NODES, BAD = 10_000, 7000


def chain() -> onnx.ModelProto:
    """A chain of additions; the NaN of a division is added in the middle."""
    nodes = []
    before = "x"
    for i in range(NODES):
        if i == BAD:
            nodes.append(helper.make_node("Div", ["zero", "zero"], ["bad"]))
        nodes.append(helper.make_node("Add", [before, "bad" if i == BAD else "one"], [f"t{i}"]))
        before = f"t{i}"
    stored = [numpy_helper.from_array(np.array([v], np.float32), n) for n, v in (("one", 1), ("zero", 0))]
    ends = [helper.make_tensor_value_info(name, 1, [3]) for name in ("x", before)]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_a_nan_among_ten_thousand_nodes_is_found_and_a_step_back_is_immediate() -> None:
    found, got = stopped(session(chain(), {"x": np.zeros(3, np.float32)}), "find nan")
    assert (got.hits[0].text.split()[0], got.hits[0].element, found.index) == (f"/{BAD}:Div", (0,), BAD + 1)
    started = time.perf_counter()
    found, got = stopped(found, "reverse-step")
    assert time.perf_counter() - started < 1  # some microseconds; re-execution would take long
    assert got.where.index == BAD
    rows = answer(found, f"seek {BAD + 40}", f"why-nan t{BAD + 30}[2]")[1]
    assert isinstance(rows, Rows) and (rows.rows[-1][0], rows.rows[-1][4]) == ("Generated", f"/{BAD}:Div")
    assert "0.0 / 0.0 = nan" in text(found, f"seek {BAD + 2}", "why-nan bad[0]")


def test_keeping_all_states_costs_about_what_was_written() -> None:
    nodes = [helper.make_node("Add", [f"t{i}" if i else "x", "x"], [f"t{i + 1}"]) for i in range(50)]
    ends = [helper.make_tensor_value_info(name, 1, [20_000]) for name in ("x", "t50")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    found, _ = answer(session(proto, {"x": np.ones(20_000, np.float32)}), "seek end")
    history = found.history
    written = sum(it.written for i in range(1, 51) if (it := history.at(i).came) is not None)
    states = [history.at(i).state.store.memory for i in range(51)]
    assert history_bytes(states) - history_bytes(states[:1]) <= 1.3 * written
