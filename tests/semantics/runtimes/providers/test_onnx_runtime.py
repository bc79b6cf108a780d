"""onnxruntime as a provider: what it takes and declines, a worker that goes wrong, values of all kinds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import machine_models
import numpy as np
import onnx
import pytest
from machine_models import graph, node, proto, stored, value
from onnx import TensorProto
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.model.values import identical
from sonnx.semantics.runtimes.engines.own import NumpySession
from sonnx.semantics.runtimes.engines.protocol import Failure, Kind
from sonnx.semantics.runtimes.engines.registry import engine
from sonnx.semantics.runtimes.fastpath import RunError, Session
from sonnx.semantics.runtimes.fastpath.explanation import explained
from sonnx.semantics.runtimes.fastpath.providers import available_providers
from sonnx.semantics.runtimes.providers.onnx_runtime import OnnxruntimeExecutionProvider
from tables import table
from toy_providers import layers, net

SMALL = Path(__file__).parents[3] / "support" / "small_onnxruntime"
NAME = "OnnxruntimeExecutionProvider"
X = np.array([[1, 2], [-3, 4]], np.float32)
THERE = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs the extra [ort]")
PROCESSES = pytest.mark.parametrize("process", ["worker", "own"])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A runtime that goes wrong where it is told to, in place of onnxruntime."""
    held = {name: it for name, it in sys.modules.items() if name.partition(".")[0] == "onnxruntime"}
    for name in held:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delenv("SONNX_ONNXRUNTIME", raising=False)
    monkeypatch.syspath_prepend(SMALL)
    monkeypatch.setenv("PYTHONPATH", str(SMALL))
    yield
    sys.modules.pop("onnxruntime", None)


def parts(session: Session) -> list[tuple[str, tuple[int, ...]]]:
    return [(it.provider, it.nodes) for it in session.partitioning.assignments]


def negating() -> Any:
    """y = 2 relu(-x), of a declared shape."""
    made = net(node("Neg", ["x"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "b"], ["y"]))
    made.graph.input[0].CopyFrom(value("x", shape=["N", 2]))
    made.graph.output[0].CopyFrom(value("y", shape=["N", 2]))
    return made


# ---- A runtime that goes wrong ----------------------------------------------------------------

WHERE = f"/0:Neg to /2:Add ({NAME}, Onnxruntime_0): "
ENDED = WHERE + "the worker of onnxruntime ended, "
RAN = "; it ran /0:Neg, /1:Relu, /2:Add"


def test_a_worker_that_goes_wrong_is_named_in_one_line_with_its_nodes_and_the_next_run_goes_on(small: None) -> None:
    provider = OnnxruntimeExecutionProvider(seconds="20")
    session = Session(negating(), [provider])
    assert parts(session) == [(NAME, (0, 1, 2))]
    declared = "the provider gives what the model does not declare: "
    for number, said in (
        (1001, f"{ENDED}the process ended with signal 11 (SIGSEGV){RAN}"),
        (1002, f"{ENDED}the process ended with signal 6 (SIGABRT): free(): invalid pointer{RAN}"),
        (1004, f'{WHERE}onnxruntime gives tensor(double) for /"y", which is tensor(float)'),
        (1005, f'{WHERE}{declared}the output "y" has size 1 along axis 1, expected 2: float[N, 2], computed [2, 1]'),
        (1007, f"{WHERE}onnxruntime says RuntimeError: [ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION"),
    ):
        with pytest.raises(RunError) as failed:
            session.run(None, {"x": X * 0 + number})
        assert str(failed.value) == said
        (y,) = session.run(None, {"x": X})
        assert np.array_equal(y, np.maximum(-X, 0) * 2)  # type: ignore[arg-type]
    assert provider.sessions.memory.used <= 5 * 64  # type: ignore[union-attr]
    provider.sessions.remote.seconds = 0.2  # type: ignore[union-attr]
    with pytest.raises(RunError, match=r"ended, stopped after 0.2 s; it ran /0:Neg, /1:Relu, /2:Add$"):
        session.run(None, {"x": X * 0 + 1003})


def test_a_worker_that_dies_is_a_crash_of_the_engine(small: None, tmp_path: Path) -> None:
    onnx.save(negating(), tmp_path / "net.onnx")
    session = engine("provider:onnxruntime").open(tmp_path / "net.onnx")
    assert isinstance(session, NumpySession)
    died = session.run({"x": X * 0 + 1001})
    assert isinstance(died, Failure) and died.kind is Kind.CRASH and "SIGSEGV" in died.message
    said = session.run({"x": X * 0 + 1007})
    assert isinstance(said, Failure) and said.kind is Kind.OUTSIDE


def test_a_worker_that_ends_before_its_results_are_copied_gives_none(small: None) -> None:
    provider = OnnxruntimeExecutionProvider(seconds="20")
    session, remote = Session(negating(), [provider]), provider.sessions.remote  # type: ignore[union-attr]
    ask = remote.ask

    def ended_before(request: Any) -> Any:
        if request[0] == "take":
            remote.worker.stop()
        return ask(request)

    remote.ask = ended_before  # type: ignore[method-assign]
    with pytest.raises(RunError, match=f"ended, the process ended between two requests{RAN}$"):
        session.run(None, {"x": X})
    remote.ask = ask  # type: ignore[method-assign]
    (y,) = session.run(None, {"x": X})
    assert np.array_equal(y, np.maximum(-X, 0) * 2)  # type: ignore[arg-type]


def test_of_a_part_that_it_does_not_take_together_others_run_the_nodes_and_the_reason_is_told(small: None) -> None:
    operators = ("Sin", "Cos", "Tan", "Neg")
    made = net(*(node(operator, ["xabc"[at]], ["abcy"[at]]) for at, operator in enumerate(operators)))
    found = explained(load_proto(made), ["onnxruntime:process=own"])
    assert [(it.provider, it.nodes) for it in found.partitioning.assignments] == [
        ("NumpyExecutionProvider", (0,)), ("NumpyExecutionProvider", (1,)), ("NumpyExecutionProvider", (2,)),
        (NAME, (3,)),
    ]  # fmt: skip
    (refusal,) = found.partitioning.refusals
    assert refusal.nodes == (0, 1)
    together = "onnxruntime makes no session of them together"
    assert refusal.why == f"{together}, unsupported: NotImplemented: no Sin beside a Cos"
    tan = "onnxruntime makes no session of it, unsupported: NotImplemented: [ONNXRuntimeError] : 9 : NOT_IMPLEMENTED"
    assert found.others[2][0].why == f"it does not offer to run the node: {tan} : no kernel for Tan"


def test_nodes_that_nobody_reads_are_a_part_that_gives_nothing(small: None) -> None:
    made = net(node("Neg", ["x"], ["a"]), node("Tan", ["x"], ["y"]))
    session = Session(made, ["onnxruntime:process=own"])
    assert parts(session) == [(NAME, (0,)), ("NumpyExecutionProvider", (1,))]
    (y,) = session.run(None, {"x": X * 0 + 1007})
    assert np.array_equal(y, np.tan(X * 0 + 1007))  # type: ignore[arg-type]


@table(
    ("options", "said"),
    [
        ("process=thread", "process is worker or own, not thread"),
        ("level=most", "level is one of disabled, basic, extended, all, not most"),
        ("threads=0", "threads is a number from 1 to 1024, not 0"),
        ("threads=99999999999", "threads is a number from 1 to 1024, not 99999999999"),
        ("process=own,process=worker", 'state one twice: "process=own,process=worker"'),
        ("seconds=-1", "seconds is a number above 0, not -1"),
        ("seconds=x", "seconds is a number above 0, not x"),
        ("speed=9", 'has no option "speed": it has level, only, process, seconds, threads'),
        ("process", 'are written KEY=VALUE,...; "process" is none'),
    ],
)
def test_an_option_that_there_is_not_is_named(options: str, said: str) -> None:
    with pytest.raises(ModelError) as failed:
        Session(layers(), [f"onnxruntime:{options}"])
    assert said in str(failed.value) and NAME in str(failed.value)


def test_without_onnxruntime_one_sentence_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SONNX_ONNXRUNTIME", raising=False)
    for module in ("engines.onnxruntime_engine", "providers.onnx_runtime"):
        monkeypatch.setattr(f"sonnx.semantics.runtimes.{module}.find_spec", lambda name: None)
    for options in ("", ":process=own"):
        with pytest.raises(ModelError, match=r"install sonnx\[ort\]"):
            Session(layers(), [f"onnxruntime{options}"])
    assert NAME in available_providers()


def test_a_worker_that_does_not_start_is_said_and_nothing_runs_elsewhere(
    small: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('libonnxruntime.so is missing')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(ModelError) as failed:
        Session(layers(), ["onnxruntime"])
    said = "the worker of onnxruntime cannot be used: the worker does not start: the process ended with exit code 1: "
    assert str(failed.value) == f"{said}ImportError: libonnxruntime.so is missing"


# ---- onnxruntime itself -----------------------------------------------------------------------


@THERE
@PROCESSES
def test_parts_between_other_providers_give_what_the_machine_gives(process: str) -> None:
    made = net(
        node("MatMul", ["x", "w"], ["a"]),
        node("Relu", ["a"], ["b"]),
        node("Softmax", ["b"], ["c"], axis=-1),
        node("Add", ["c", "b"], ["d"]),
        node("TopK", ["d", "k"], ["v", "i"]),
        node("Cast", ["i"], ["y"], to=TensorProto.FLOAT16),
        outputs=("y", "v"),
        weights=[stored("w", [[1, 2], [3, -4]]), stored("k", [1], np.int64)],
    )
    made.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    session = Session(made, ["machine:only=Softmax", f"onnxruntime:process={process}"])
    assert [it[0] for it in parts(session)] == [NAME, "MachineExecutionProvider", NAME]
    expected = run(load_proto(made), {"x": X}).outputs
    for _ in range(2):
        y, v = session.run(None, {"x": X})
        assert identical(y, expected["y"]) and identical(v, expected["v"])  # type: ignore[arg-type]


KINDS = {
    "texts": (node("Identity", ["x"], ["y"]), TensorProto.STRING, np.array([b"a", b"\xc3\xa9"], object)),
    "bfloat16": (node("Identity", ["x"], ["y"]), TensorProto.BFLOAT16, [1, 2]),
    "int4": (node("Transpose", ["x"], ["y"]), TensorProto.INT4, [1, -2, 3]),
    "nothing": (node("Neg", ["x"], ["y"]), TensorProto.FLOAT, np.zeros((0, 3), np.float32)),
    "a scalar": (node("Neg", ["x"], ["y"]), TensorProto.FLOAT, np.float32(3)),
}


@THERE
@PROCESSES
def test_values_of_all_kinds_go_there_and_back(process: str) -> None:
    provider = OnnxruntimeExecutionProvider(process)
    for name, (one, element, given) in KINDS.items():
        made = proto(graph([one], [value("x", element, None)], [value("y", element, None)]), 21)
        x = given if isinstance(given, np.ndarray) else np.asarray(given, onnx.helper.tensor_dtype_to_np_dtype(element))
        session = Session(made, [provider])
        assert parts(session) == [(NAME, (0,))], name
        (y,) = session.run(None, {"x": x})
        assert identical(y, np.asarray(-x) if one.op_type == "Neg" else x), name  # type: ignore[arg-type]
    made = proto(
        graph(
            [node("SequenceConstruct", ["x", "x"], ["s"]), node("SequenceAt", ["s", "i"], ["y"])],
            [value("x", shape=None)],
            [value("y", shape=None), onnx.helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
            [stored("i", 1, np.int64)],
        )
    )
    session = Session(made, [provider])
    y, s = session.run(None, {"x": X})
    assert parts(session) == [(NAME, (0, 1))] and identical(y, X) and len(s.items) == 2  # type: ignore[union-attr, arg-type]


@THERE
def test_what_a_body_captures_is_given_to_its_part() -> None:
    inside = [node("Mul", ["n", "w"], ["t"]), node("Add", ["t", "n"], ["u"])]
    body = graph(inside, [], [value("u", shape=None)], (), "b")
    nodes = [node("Neg", ["x"], ["n"]), node("If", ["c"], ["y"], then_branch=body, else_branch=body)]
    inputs = [value("x", shape=None), value("c", TensorProto.BOOL, [])]
    made = proto(graph(nodes, inputs, [value("y", shape=None)], [stored("w", [2, 3])]))
    session = Session(made, ["onnxruntime"])
    assert [it for it in parts(session) if it[0] == NAME] == [(NAME, (2, 3)), (NAME, (4, 5)), (NAME, (0,))]
    (y,) = session.run(None, {"x": X, "c": np.array(True)})
    assert np.array_equal(y, -X * np.array([3, 4], np.float32))  # type: ignore[arg-type]


@THERE
def test_sessions_that_nobody_holds_are_closed_in_the_worker() -> None:
    provider = OnnxruntimeExecutionProvider()
    for _ in range(3):
        Session(machine_models.diamond(), [provider]).run(None, {"x": X[0]})
    assert len(provider.sessions._there) <= 2  # type: ignore[union-attr]
    assert provider.peak_bytes() > 1 << 20
