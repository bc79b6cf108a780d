"""Models with bodies, runs and states: stepping in them, back to the write of an element, and where elements come from.

What `origin` and `explain` name is exactly what changing the inputs and stored values confirms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from debugger_models import answer, stopped, text
from onnx import helper
from perturbing import disagreements, element_of, exposed, graphs_of, perturbed_stored, stored_in, stored_values
from sonnx.semantics import load_proto
from sonnx.semantics.debugger.display.answers import Rows, cell_text
from sonnx.semantics.debugger.expressions import element_meant, parse
from sonnx.semantics.debugger.queries.explaining import Leaf, Operation, Tree
from sonnx.semantics.debugger.queries.sources import Element, Origin, Part, Sources, origin
from sonnx.semantics.debugger.session.opening import opened_model
from sonnx.semantics.debugger.session.session import Session, context
from sonnx.semantics.machine.state import value_of
from sonnx.semantics.model.loader import load

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"
LOOP = MODELS / "control-flow" / "loop.onnx"
SCAN = MODELS / "control-flow" / "scan_1.pb"
FUNCTION = MODELS / "control-flow" / "function_subgraph_initializer.onnx"
QLSTM = MODELS / "quantized" / "qlstm_3-2-3_T3_S1" / "model.onnx"
LSTM = MODELS / "recurrent" / "infineon_lstm_small.onnx"
LENET = MODELS / "zoo" / "planet-mnist-lenet" / "lenet.onnx"

pytestmark = pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")


def normal(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def three_runs() -> dict[str, Any]:
    """Inputs of the loop model with which its body runs three times."""
    return {"input_0": np.array([-3], np.int32), "while_maximum_iterations_0": np.array(3)}


def ended(path: Path, inputs: Mapping[str, Any]) -> Session:
    """A session at the end of the run."""
    found, got = stopped(opened_model(load(path), inputs), "seek end")
    assert got.where.ended and found.history.stuck is None
    return found


def origin_of(found: Session, element: str, depth: int | None = None) -> Origin:
    instance, index, _ = element_meant(parse(element), context(found))
    got = origin(Sources(found.history, found.index), Element(instance, index), depth)
    assert not got.cut and not got.inexact
    return got


def named(found: Session, parts: Iterable[Part]) -> dict[str, set[tuple[int, ...]]]:
    return {found.model.tensors[part.instance.tensor].name: set(part.elements) for part in parts}


def lines_of(found: Session, command: str, count: int) -> list[int]:
    seen = []
    for _ in range(count):
        found, got = stopped(found, command)
        seen.append(got.where.line)
    return seen


# ---- Stepping ---------------------------------------------------------------------------------


def test_steps_go_into_the_runs_of_the_loop_and_back_out_of_them() -> None:
    found = opened_model(load(LOOP), three_runs())
    body = [23, 24, 25, 26, 27]
    forth = [15, 16, 17, *body, *body, *body, 28, 29, 30]
    assert lines_of(found, "step", len(forth)) == forth
    assert lines_of(ended(LOOP, three_runs()), "reverse-step", len(forth)) == [14, *forth][-2::-1]
    assert lines_of(found, "next", 6) == [15, 16, 17, 28, 29, 30]
    inside, _ = stopped(found, "until 24", "until 24")
    shown = answer(inside, "where")[1]
    assert isinstance(shown, Rows) and [tuple(map(cell_text, row[1:4])) for row in shown.rows] == [
        ('/3:Loop("while_loop").body@1', "1", "24"),
        ("/", "", "17"),
    ]
    assert lines_of(inside, "finish", 1) == [28] and lines_of(inside, "reverse-finish", 1) == [17]


def test_steps_go_into_the_runs_of_each_scan() -> None:
    found = opened_model(load(SCAN), {"Input13165": normal(2, 1, 3)})
    assert lines_of(found, "next", 4) == [76, 105, 134, 163]
    inside, _ = stopped(found, "next", "step 30")
    shown = answer(inside, "where")[1]
    assert isinstance(shown, Rows) and tuple(map(cell_text, shown.rows[0][1:3])) == (
        '/1:Scan("ElementTimes16623").body@1',
        "1",
    )
    assert lines_of(inside, "finish", 1) == [105] and lines_of(inside, "reverse-finish", 1) == [76]


def test_steps_go_into_the_call_and_into_the_branch_in_it() -> None:
    found = opened_model(load(FUNCTION), {"condition": np.array(False)})
    assert lines_of(found, "step", 3) == [15, 16, 17]
    assert lines_of(found, "next", 1) == [17]
    shown = answer(found, "step", "where")[1]
    assert isinstance(shown, Rows)
    assert [row[1] for row in shown.rows] == ["/0:local::F!0:If.else_branch", "/0:local::F", "/"]
    assert "false" in text(found, "step", "why-branch")


def test_the_body_of_the_quantized_lstm_is_stepped_through_run_by_run() -> None:
    found = opened_model(load(QLSTM), {"input": normal(3, 3)})
    found, _ = answer(found, "break QLinearConv", "seek 0")
    stops = []
    for _ in range(6):
        found, got = stopped(found, "continue")
        stops.append(got.where.node)
    assert stops == [f"/3:Scan.body@{run}/{n}:QLinearConv" for run in range(3) for n in (2, 61)]
    for expected in reversed(stops[:-1]):
        found, got = stopped(found, "reverse-continue")
        assert got.where.node == expected


# ---- Back to the write of an element ----------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "inputs", "element", "writes"),
    [
        (LOOP, three_runs(), "while_placeholder_0[0]", 3),
        (SCAN, {"Input13165": normal(3, 1, 3)}, "Plus16564_Output_0[0, 1]", 3),
        (FUNCTION, {"condition": np.array(False)}, '`/0:local::F!0:If.else_branch/"output"`', 1),
        (QLSTM, {"input": normal(3, 3)}, '"lstm1.cellup"[0, 1]', 3),
    ],
    ids=["loop", "scan_1", "function", "qlstm"],
)
def test_reverse_continue_goes_back_to_each_write_of_an_element(
    path: Path, inputs: Mapping[str, Any], element: str, writes: int
) -> None:
    found = ended(path, inputs)
    if path == FUNCTION:
        found = stopped(found, "seek 2")[0]  # the branch runs
    found, _ = answer(found, f"watch {element}")
    (watch,) = found.stops
    known = list(found.history.writes(watch.tensor, found.history.last))[::-1]  # type: ignore[union-attr,arg-type]
    assert len(known) == writes
    for at in reversed([it for it in known if it <= found.index]):
        found, got = stopped(found, "reverse-continue")
        assert (got.reason, found.index) == ("watch", at - 1)
        value = value_of(found.history.at(at).state, watch.tensor)  # type: ignore[union-attr,arg-type]
        assert isinstance(value, np.ndarray) and got.hits[0].new
        forward, again = stopped(found, "continue")
        assert (forward.index, again.hits[0].new) == (at, got.hits[0].new)
    assert stopped(found, "reverse-continue")[1].reason == "start"


# ---- Origins ----------------------------------------------------------------------------------


def test_the_origin_in_the_loop_model_is_what_changing_the_inputs_confirms() -> None:
    base = {**stored_values(onnx.load(LOOP)), **three_runs()}
    base["const_fold_opt__17"] = np.array(-2.5, np.float32)
    got = origin_of(found := ended(LOOP, base), "output_0[0]")
    data, control = named(found, got.data), named(found, got.control)
    assert set(data) == {"input_0", "Const_0"}
    loaded = load(LOOP)
    assert disagreements(loaded, base, "output_0", (0,), {**control, **data}) == []


def test_the_origin_in_the_scan_model_is_what_changing_the_inputs_confirms() -> None:
    base = {**stored_values(onnx.load(SCAN)), "Input13165": normal(2, 1, 3)}
    got = origin_of(found := ended(SCAN, base), "ElementTimes16679_Output_0[0, 0, 1]")
    data = named(found, got.data)
    assert data["Input13165"] == {(0, 0, 0), (0, 0, 1), (0, 0, 2)} and not got.control
    assert data["Constant15770PastValue16491"] == {(0, 1)} and len(data["b"]) == 4
    assert disagreements(load(SCAN), base, "ElementTimes16679_Output_0", (0, 0, 1), data, most=4) == []


def test_the_origin_in_the_function_model_is_the_stored_value_of_the_branch_that_ran() -> None:
    proto = onnx.load(FUNCTION)
    for tensor in stored_in(proto):
        if tensor.name == "missing":
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.array(5, np.float32), "missing"))
    base = {"condition": np.array(False)}
    found = stopped(opened_model(load_proto(proto), base), "seek end")[0]
    got = origin_of(found, '`/"output"`')
    assert named(found, got.data) == {"one": {()}} == perturbed_stored(proto, [base], "output", (), [0.5])
    assert named(found, got.control) == {"condition": {()}}
    assert disagreements(found.model, base, "output", (), {"condition": {()}}) == []
    assert "there from the start" in text(found, 'explain `/"output"`')


def test_the_origin_in_the_quantized_lstm_has_all_that_changing_inputs_and_stored_values_changes() -> None:
    base = {"input": normal(2, 3)}
    found = ended(QLSTM, base)
    got = origin_of(found, "output[1, 0]")
    data, control = named(found, got.data), named(found, got.control)
    assert data["input"] == set(np.ndindex(2, 3))
    assert len(data) == len(got.data) and all("@" not in part.instance.path for part in got.data)  # one for all runs
    assert all(
        part.whole for part in got.data if part.instance.path.endswith('kernel"') and "proj" not in part.instance.path
    )
    assert text(found, 'print "lstm1.bias"[1]').endswith("int32[] = -380")
    assert "step 7, 77" in text(found, 'who-reads "lstm1.bias"[1]')
    assert origin_of(found, "output[0, 0]").data[0].elements == ((0, 0), (0, 1), (0, 2))
    assert disagreements(found.model, base, "output", (1, 0), data, (1.0, -1.0, 3.0)) == []
    rounded = frozenset(it.name for it in stored_in(onnx.load(QLSTM)) if "proj" not in it.name)
    changed = perturbed_stored(onnx.load(QLSTM), [base], "output", (1, 0), [40, -40, 127, -127], rounded)
    assert changed.keys() == {it for it in (*data, *control) if "proj" in it} and len(changed) == 5
    for name, elements in changed.items():
        assert elements == {**control, **data}[name], name


# ---- One operator -----------------------------------------------------------------------------


def alone(path: Path, inputs: Mapping[str, Any], output: str) -> tuple[onnx.ModelProto, dict[str, Any]]:
    """The node that writes a tensor as a model of its own, with the inputs of its last firing."""
    proto = onnx.load(path)
    node = next(it for graph in graphs_of(proto) for it in graph.node if output in it.output)
    found = ended(path, inputs)
    t = next(t for t, it in enumerate(found.model.tensors) if it.name == output)
    written = next(found.history.writes(t, found.history.last))
    before = found.history.at(written - 1).state
    n = found.history.at(written).came.node  # type: ignore[union-attr]
    values = {
        name: np.asarray(value_of(before, i))
        for name, i in zip(node.input, found.model.nodes[n].inputs, strict=True)
        if i is not None
    }
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(it.dtype), it.shape)
        for name, it in values.items()
    ]
    graph = helper.make_graph([node], "alone", infos, [helper.make_empty_tensor_value_info(output)])
    made = helper.make_model(graph, opset_imports=list(proto.opset_import), ir_version=8)
    return made, values


def leaves(tree: Tree) -> Iterator[Leaf]:
    stack, seen = [tree], set[int]()
    while stack:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Leaf):
            yield item
        elif isinstance(item, Operation):
            stack += item.arguments


@pytest.mark.parametrize(
    ("path", "inputs", "output", "index"),
    [
        (LENET, {"Input_1": normal(1, 1, 28, 28)}, "Conv_1", (0, 1, 12, 12)),
        (LENET, {"Input_1": normal(1, 1, 28, 28)}, "Conv_1", (0, 2, 4, 7)),
        (QLSTM, {"input": normal(3, 3)}, "lstm1.four_parts.convout", (0, 1, 0)),
        (LSTM, {"input": normal(1, 10, 3)}, "/lstm/LSTM_output_0", (0, 0, 0, 3)),
    ],
    ids=["conv-at-edge", "conv", "qlinearconv", "lstm"],
)
def test_the_terms_of_a_convolution_and_of_an_lstm_read_what_changing_the_inputs_confirms(
    path: Path, inputs: Mapping[str, Any], output: str, index: tuple[int, ...]
) -> None:
    proto, values = alone(path, inputs, output)
    loaded = load_proto(proto)
    found = stopped(opened_model(loaded, values), "seek end")[0]
    element = f'"{output}"{list(index)}'
    instance, at, _ = element_meant(parse(element), context(found))
    source = Sources(found.history, found.index).of(Element(instance, at))
    assert source.tree is not None
    read: dict[str, set[tuple[int, ...]]] = {}
    for leaf in leaves(source.tree):
        read.setdefault(proto.graph.node[0].input[leaf.position or 0], set()).add(leaf.index)
    assert named(found, origin_of(found, element).data) == read
    if path == QLSTM:  # whole numbers are rounded: each is changed until the sum is another one
        assert read["lstm1.kernel"] == {(1, i, 0) for i in range(5)} and read["lstm1.bias"] == {(1,)}
        confirmed(loaded, values, output, index, read)
    else:
        assert len(read) >= 3 and disagreements(loaded, values, output, index, read) == []


def confirmed(
    loaded: Any,
    values: Mapping[str, Any],
    output: str,
    index: tuple[int, ...],
    read: Mapping[str, set[tuple[int, ...]]],
) -> None:
    """What is read changes the result when it is changed enough, what is not read never does."""
    before = element_of(loaded, values, output, index)
    for name, value in values.items():
        for at in np.ndindex(value.shape):
            changes = []
            for change in (1, -1, 50, -50, 1000, -1000):
                made = np.array(value)
                limits = np.iinfo(made.dtype) if made.dtype.kind == "i" else None
                moved = made[at] * 3 if limits is None else min(max(int(made[at]) + change, limits.min), limits.max)
                made[at] = moved
                changes.append(element_of(loaded, {**values, name: made}, output, index) != before)
            assert any(changes) == (at in read.get(name, set())), (name, at)


def test_the_whole_way_from_the_lstm_to_the_input_is_what_changing_the_inputs_confirms() -> None:
    proto = exposed(onnx.load(LSTM), "/lstm/LSTM_output_0")
    base = {**stored_values(proto), "input": normal(1, 10, 3)}
    del base["/Constant_output_0"]  # a position, of which another output is computed
    found = stopped(opened_model(load_proto(proto), base), "seek end")[0]
    got = named(found, origin_of(found, '"/lstm/LSTM_output_0"[0, 0, 0, 3]').data)
    assert got["input"] == {(0, 0, 0), (0, 0, 1), (0, 0, 2)} and len(got["onnx::LSTM_108"]) == 64
    assert disagreements(found.model, base, "/lstm/LSTM_output_0", (0, 0, 0, 3), got) == []
