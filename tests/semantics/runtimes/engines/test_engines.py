"""Engines: values cross in every type, a process that dies or hangs is an outcome, and anybody can bring one."""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from miscompilations import LIVE
from onnx import helper, parser
from sonnx.semantics.errors import ModelError
from sonnx.semantics.machine.inputs import random_tensor
from sonnx.semantics.model.elements import DTYPES
from sonnx.semantics.model.graph import ValueType
from sonnx.semantics.model.type_protos import ELEMENT_CODES
from sonnx.semantics.model.values import Map, Optional, Sequence, Value, identical
from sonnx.semantics.runtimes.engines import onnxruntime_engine, onnxruntime_worker, registry
from sonnx.semantics.runtimes.engines.onnxruntime_engine import onnxruntime
from sonnx.semantics.runtimes.engines.own import MACHINE
from sonnx.semantics.runtimes.engines.protocol import Engine, Failure, Kind, Optimizing, Switches, Values
from sonnx.semantics.runtimes.engines.python_engine import REFERENCE, backend
from sonnx.semantics.runtimes.engines.remote import RemoteEngine, Worker, plain, valued
from sonnx.semantics.runtimes.engines.tapping import tapped
from tables import table

SUPPORT = str(Path(__file__).parents[3] / "support")
needs_onnxruntime = pytest.mark.skipif(
    not os.environ.get("SONNX_ONNXRUNTIME") and find_spec("onnxruntime") is None, reason="onnxruntime is not installed"
)


def identity(element: str, name: str = "x") -> bytes:
    code = ELEMENT_CODES[element]
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["y"])], "g", [value(name, code, [2, 3])], [value("y", code, [2, 3])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10).SerializeToString()


def ran(engine: Engine, model: bytes, feeds: Values) -> Values | Failure:
    session = engine.open(model)
    return session if isinstance(session, Failure) else session.run(feeds)


@pytest.fixture(scope="module")
def odd() -> Iterator[RemoteEngine]:
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = SUPPORT
    engine = backend("odd_backend")
    engine.seconds = 1.5
    assert engine.version == "7.1"
    yield engine
    engine.worker.stop()
    os.environ.pop("PYTHONPATH") if before is None else os.environ.update(PYTHONPATH=before)


VALUES: list[tuple[Value, ValueType | None]] = [
    *((random_tensor(element, (2, 3), np.random.default_rng(0)), None) for element in DTYPES),
    (random_tensor("int4", (0, 3), np.random.default_rng(0)), None),
    (Sequence(ValueType("tensor", "float"), (np.zeros(3, np.float32),)), None),
    (Sequence(ValueType("tensor", "int64"), ()), ValueType("sequence", inner=ValueType("tensor", "int64"))),
    (Optional(ValueType("tensor", "float"), None), ValueType("optional", inner=ValueType("tensor", "float"))),
    (Map("string", ValueType("tensor", "float"), ((b"a", np.float32([1])), (b"b", np.float32([2])))), None),
]


@table(("value", "declared"), VALUES, ids=lambda it: str(getattr(it, "dtype", "")))
def test_every_value_crosses_to_another_process_and_back(value: Value, declared: ValueType | None) -> None:
    assert identical(valued(plain(value), declared), value)


@table("element", ["float", "bfloat16", "int4", "string", "bool", "float8e4m3fn"])
def test_the_reference_gives_back_what_it_is_given(element: str) -> None:
    value = random_tensor(element, (2, 3), np.random.default_rng(1))
    found = ran(REFERENCE, identity(element), {"x": value})
    assert not isinstance(found, Failure), found
    assert identical(found["y"], value)


@needs_onnxruntime
@pytest.mark.parametrize("element", ["float", "bfloat16", "float16", "string", "bool", "float8e4m3fn"])
def test_onnxruntime_gives_back_what_it_is_given_in_types_that_numpy_lacks_too(element: str) -> None:
    value = random_tensor(element, (2, 3), np.random.default_rng(1))
    found = ran(onnxruntime("onnxruntime", "all"), identity(element), {"x": value})
    assert not isinstance(found, Failure), found
    assert identical(found["y"], value)


@needs_onnxruntime
def test_onnxruntime_says_why_it_declines() -> None:
    engine = onnxruntime("onnxruntime-disabled", "disabled")
    newer = helper.make_model(helper.make_graph([], "g", [], []), ir_version=99).SerializeToString()
    text = '<ir_version: 10, opset_import: ["" : 21]> g (bfloat16[2] x) => (bfloat16[2] y) { y = Relu(x) }'
    lacking = parser.parse_model(text).SerializeToString()
    wrong = parser.parse_model(text.replace("bfloat16", "float").replace("Relu", "NoSuchOperator")).SerializeToString()
    kinds = [engine.open(model) for model in (newer, lacking, wrong)]
    assert [it.kind if isinstance(it, Failure) else None for it in kinds] == [
        Kind.SKEW,
        Kind.UNSUPPORTED,
        Kind.UNSUPPORTED,
    ]


LOG = """
[I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer Unique modified: 0 with status: OK
[V:onnxruntime:, x.cc:35 ApplyTransformers] Applying 2 graph transformer(s) for level 1 for up to 10 step(s).
[V:onnxruntime:, x.cc:55 ApplyTransformers] Applying graph transformer Fusion on step 1.
[I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer Fusion modified: 1 with status: OK
[V:onnxruntime:, x.cc:55 ApplyTransformers] Applying graph transformer Fusion on step 2.
[I:onnxruntime:, graph_transformer.cc:15 Apply] GraphTransformer Fusion modified: 0 with status: OK
[V:onnxruntime:, x.cc:35 ApplyTransformers] Applying 2 graph transformer(s) for level 2 for up to 10 step(s).
[V:onnxruntime:, x.cc:55 ApplyTransformers] Applying graph transformer Other on step 1.
"""


def test_the_log_of_a_session_tells_the_optimizers_and_the_one_at_which_it_ended() -> None:
    found = onnxruntime_worker.passes(LOG)
    assert found == [(0, "Unique", False), (1, "Fusion", True), (2, "Other", True)]
    ended = onnxruntime_worker.passes(f"{LOG}GraphTransformer Other modified: 0 with status: OK")
    assert ended[2] == (2, "Other", False)
    assert onnxruntime_worker.passes("nothing that is known") == []


@needs_onnxruntime
def test_an_optimizer_is_switched_off_by_its_name_and_all_by_the_level() -> None:
    row = LIVE["DivMulIntegers-18/half"]
    engine = onnxruntime("onnxruntime", "all")
    assert isinstance(engine, Optimizing)

    def result(switches: Switches) -> int:
        session = engine.switched(row.source, switches, apart=True)
        found = session if isinstance(session, Failure) else session.run(row.feeds)
        assert not isinstance(found, Failure), found
        value = found["z"]
        assert isinstance(value, np.ndarray)
        return int(value[0])

    named = [Switches(off=frozenset({name})) for name in ("DivMulFusion", "CastElimination")]
    assert [result(it) for it in (Switches(), Switches("disabled"), Switches("basic"), *named)] == [3, 0, 3, 0, 3]


def test_an_engine_that_is_not_installed_tells_no_optimizers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SONNX_ONNXRUNTIME", raising=False)
    monkeypatch.setattr(onnxruntime_engine, "find_spec", lambda _: None)
    absent = onnxruntime("onnxruntime", "all")
    done = absent.optimized(identity("float"), Switches())
    assert isinstance(done, Failure) and "sonnx[ort]" in done.message
    assert absent.parts("") == ()


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("dies", Kind.CRASH, "exit code 3"),
        ("hangs", Kind.TIMEOUT, "1.5 s"),
        ("raises", Kind.ERROR, "ValueError: no"),
        ("refused", Kind.UNSUPPORTED, "not this one"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_an_outcome_and_the_next_case_runs(
    odd: RemoteEngine, name: str, kind: Kind, said: str
) -> None:
    value = np.ones((2, 3), np.float32)
    found = ran(odd, identity("float", name), {name: value})
    assert isinstance(found, Failure)
    assert found.kind is kind
    assert said in found.message
    after = ran(odd, identity("float"), {"x": value})
    assert not isinstance(after, Failure)
    assert identical(after["y"], value)


def test_a_session_outlives_the_process_that_it_was_opened_in(odd: RemoteEngine) -> None:
    value = np.ones((2, 3), np.float32)
    kept = odd.open(identity("float"))
    assert not isinstance(kept, Failure)
    assert isinstance(ran(odd, identity("float", "dies"), {"dies": value}), Failure)
    found = kept.run({"x": value})
    assert not isinstance(found, Failure)


def test_a_scalar_that_is_no_array_is_taken_as_one(odd: RemoteEngine) -> None:
    found = ran(odd, identity("float", "scalar"), {"scalar": np.ones((2, 3), np.float32)})
    assert not isinstance(found, Failure)
    assert identical(found["y"], np.float32([3]).reshape(()))


def test_a_module_that_is_missing_is_said() -> None:
    found = backend("no_such_module").open(identity("float"))
    assert isinstance(found, Failure)
    assert "no_such_module" in found.message


def test_a_third_party_brings_its_engine_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("mine", "sonnx.semantics.runtimes.engines.own:MACHINE", registry.GROUP)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == registry.GROUP else [])
    assert registry.names() == ("mine",)
    assert registry.engine("mine") is MACHINE
    with pytest.raises(ModelError, match="did you mean"):
        registry.engine("mina")


def test_the_package_brings_its_engines() -> None:
    assert {"machine", "numpy", "onnxruntime", "onnxruntime-disabled", "reference"} <= set(registry.names())


def test_a_tapped_model_shows_what_every_node_gives_those_in_functions_too() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "f" : 1]>
    g (float[2] x) => (float[2] z) { y = f.twice(x)  z = Relu(y) }
    <opset_import: ["" : 21], domain: "f"> twice (a) => (c) { b = Neg(a)  c = Neg(b) }"""
    model = parser.parse_model(text).SerializeToString()
    shown = ran(MACHINE, tapped(model), {"x": np.float32([1, -2])})
    assert not isinstance(shown, Failure)
    assert len(shown) == 3
    assert sorted(np.asarray(it).tolist() for it in shown.values()) == [[-1, 2], [1, -2], [1, 0]]


# ---- Answers that are not read, or cannot be ---------------------------------------------------

SLOW = """
import pickle, sys, time
wire = sys.stdout.buffer
pickle.dump("here", wire); wire.flush()
while True:
    asked = pickle.load(sys.stdin.buffer)
    time.sleep(asked / 1000)
    wire.write(b"nonsense" if asked == 2 else pickle.dumps(("ok", asked))); wire.flush()
"""


class Enough(Exception):  # noqa: N818 - it is none
    """What interrupts."""


def interrupt(*_: object) -> None:
    raise Enough


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there is no timer that interrupts")
def test_the_answer_to_a_request_that_was_interrupted_is_given_to_no_other() -> None:
    worker = Worker([sys.executable, "-c", SLOW])
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        assert worker.ask(1, 20) == ("ok", 1)
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(Enough):
            worker.ask(150, 20)
        assert worker.ask(3, 20) == ("ok", 3)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        worker.stop()


def test_an_answer_that_cannot_be_read_ends_the_process_at_once() -> None:
    worker = Worker([sys.executable, "-c", SLOW])
    found = worker.ask(2, 20)
    assert isinstance(found, Failure) and found.kind is Kind.CRASH and "no answer that can be read" in found.message
    assert worker.ask(3, 20) == ("ok", 3)
    worker.stop()


BUSY = """
import sys, time
from sonnx.semantics.runtimes.engines.onnxruntime_worker import serve
serve(sys.stdout.buffer, "here", lambda asked: time.sleep(asked))
"""


@pytest.mark.skipif(not hasattr(select, "poll"), reason="there is nothing that tells the end of a pipe")
def test_a_worker_ends_in_the_middle_of_a_request_when_nobody_is_left_who_asked() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert pickle.load(process.stdout) == "here"
        pickle.dump(60, process.stdin)
        process.stdin.close()  # as the system does for a process that is killed
        try:
            assert process.wait(20) == 1
        finally:
            process.kill()
