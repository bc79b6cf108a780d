"""Large models: what is planted in them is found by one command, and keeping all states costs what was written."""

from __future__ import annotations

import gc
import time
import tracemalloc
from pathlib import Path

import numpy as np
from debugger_models import answer, session, stopped, text
from light_models import image, light_model
from onnx import helper
from planted_faults import layers, planted, recorded_wrongly
from sampling import CAMPAIGN
from sonnx.semantics import load_proto
from sonnx.semantics.debugger.display.answers import Rows
from sonnx.semantics.debugger.session.opening import opened_model
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.machine.memory import history_bytes

NODES = 10_000


def found_at(found: Session, command: str, node: str, element: tuple[int, ...]) -> Session:
    """The session after the command, which has to name the node and the element; one step back is immediate."""
    started = time.process_time()
    found, got = stopped(found, command)
    assert time.process_time() - started < 10
    (hit,) = got.hits
    assert (hit.text.startswith(f"{node} writes"), hit.element) == (True, element), hit.text
    back = []
    here = found
    for _ in range(5):
        started = time.perf_counter()
        here, there = stopped(here, "reverse-step")
        back.append(time.perf_counter() - started)
        assert there.where.index == here.index == got.where.index - len(back)
    assert min(back) < 0.05  # the least: other processes take time too
    return found


def test_a_planted_nan_among_ten_thousand_nodes_is_found_with_its_cause() -> None:
    proto, inputs = layers(NODES, 64)
    what = planted(proto, inputs, "nan")
    found = found_at(session(what.proto, inputs), "find nan", what.node, what.element)
    rows = answer(found, "seek +40", 'why-nan `/"d1877"`[0, 42]')[1]
    assert isinstance(rows, Rows) and (rows.rows[-1][0], rows.rows[-1][4]) == ("Generated", what.node)
    assert "sqrt(-1e+30) = nan" in text(found, "why-nan planted[0, 42]")


@CAMPAIGN
def test_a_planted_overflow_in_a_net_of_the_size_of_resnet_is_found() -> None:
    proto = light_model("resnet50")
    what = planted(proto, image(proto), "overflow", 0.2)
    found = found_at(session(what.proto, image(proto)), "find overflow", what.node, what.element)
    assert "3e+38 * 4.0 = inf" in text(found, f"why-nan planted{list(what.element)}")


@CAMPAIGN
def test_a_planted_divergence_from_a_recorded_run_is_found(tmp_path: Path) -> None:
    proto, inputs = layers(4000, 64)
    node, element = recorded_wrongly(load_proto(proto), inputs, tmp_path / "run.trace")
    found = found_at(session(proto, inputs), f"find divergence {tmp_path / 'run.trace'}", node, element)
    assert f"{node} writes" in text(found, f"first-diff {tmp_path / 'run.trace'}")
    at_others = text(found, f"find divergence {tmp_path / 'run.trace'} at op:Add")
    assert at_others == "no divergence in 4000 steps"  # so small a difference is rounded away


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


def test_all_that_python_keeps_for_a_run_is_about_what_was_written() -> None:
    proto, inputs = layers(400, 8192)
    opened_model(load_proto(proto), inputs).history.finish()  # what is made once for all runs
    tracemalloc.start()
    try:
        history = session(proto, inputs).history
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        history.finish()
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    written = sum(it.written for i in range(1, history.last + 1) if (it := history.at(i).came) is not None)
    assert written < kept <= 1.3 * written
