"""The session: interface, inputs and outputs, folding, memory that is used again, threads."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import machine_models as models
import numpy as np
import onnx
import pytest
from machine_models import FLOAT, INT64, graph, node, proto, stored, value
from onnx import TensorProto
from sonnx.semantics.errors import InternalError, ModelError, Unsupported
from sonnx.semantics.machine.execution import run
from sonnx.semantics.model.loader import load_proto
from sonnx.semantics.runtimes.fastpath import KernelError, RunError, Session
from sonnx.semantics.runtimes.fastpath.kernel import Kernel
from sonnx.semantics.runtimes.fastpath.provider import RunOptions
from toy_kernels import plain, provider
from toy_sessions import chain, floats, net, session

# ---- Interface --------------------------------------------------------------------------------


def test_a_session_opens_a_path_a_model_and_a_message(tmp_path: Path) -> None:
    onnx.save(models.diamond(), tmp_path / "net.onnx")
    for source in (models.diamond(), load_proto(models.diamond()), tmp_path / "net.onnx", str(tmp_path / "net.onnx")):
        (y,) = Session(source, [provider()]).run(None, {"x": floats(1, -2)})
        assert isinstance(y, np.ndarray) and y.tolist() == [1.0, 5.0]


def test_inputs_and_outputs_are_described_as_onnxruntime_does() -> None:
    made = proto(
        graph(
            [node("Add", ["x", "w"], ["y"]), node("SequenceConstruct", ["x"], ["s"])],
            [value("x", shape=["N", 2, None]), value("w", shape=[2])],
            [value("y", shape=None), onnx.helper.make_tensor_sequence_value_info("s", FLOAT, None)],
            [stored("w", [3, 5])],
        )
    )
    found = session(made)
    (x,) = found.get_inputs()
    assert (x.name, x.type, x.shape) == ("x", "tensor(float)", ["N", 2, None])
    (w,) = found.get_overridable_initializers()
    assert (w.name, w.shape) == ("w", [2])
    assert [(it.name, it.type, it.shape) for it in found.get_outputs()] == [
        ("y", "tensor(float)", None),
        ("s", "seq(tensor(float))", None),
    ]
    assert found.get_providers() == ["NumpyExecutionProvider"]


def test_outputs_are_given_in_the_order_asked_for() -> None:
    made = session(net([node("Neg", ["x"], ["a"]), node("Relu", ["x"], ["b"])], outputs=("a", "b")))
    b, a = made.run(["b", "a"], {"x": floats(-1)})
    assert (a.tolist(), b.tolist()) == ([1.0], [0.0])  # type: ignore[union-attr]
    with pytest.raises(ModelError, match='has no output "c": it has "a", "b"'):
        made.run(["c"], {"x": floats(-1)})


def test_a_stored_input_can_be_given_another_value() -> None:
    made = proto(
        graph(
            [node("Add", ["x", "w"], ["y"])],
            [value("x", shape=[2]), value("w", shape=[2])],
            [value("y", shape=[2])],
            [stored("w", [3, 5])],
        )
    )
    found = session(made)
    for _ in range(2):
        (y,) = found.run(None, {"x": floats(1, 1)})
        assert y.tolist() == [4.0, 6.0]  # type: ignore[union-attr]
        (y,) = found.run(None, {"x": floats(1, 1), "w": floats(0, 1)})
        assert y.tolist() == [1.0, 2.0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (
            {},
            'no value is given for the input "x": float[N, 2]:'
            " give one by name among the inputs, or a seed for random ones",
        ),
        ({"x": floats(1, 2)}, 'the input "x" has 1 dimensions [2], expected 2: float[N, 2]'),
        ({"x": floats([1, 2, 3])}, 'the input "x" has size 3 along axis 1, expected 2: float[N, 2], given [1, 3]'),
        ({"x": np.zeros((1, 2), np.int64)}, 'the input "x" is int64[1, 2], expected float[N, 2]'),
        ({"x": floats([1, 2]), "z": floats(1)}, 'the model has no input "z": it has "x": float[N, 2]'),
    ],
)
def test_a_wrong_input_is_named_with_what_is_expected_and_what_was_given(feed: Any, message: str) -> None:
    made = session(proto(graph([node("Neg", ["x"], ["y"])], [value("x", shape=["N", 2])], [value("y", shape=None)])))
    for _ in range(2):
        with pytest.raises(ModelError) as error:
            made.run(None, feed)
        assert str(error.value) == message
        made.run(None, {"x": floats([1, 2])})  # the plan that this makes admits nothing else


def test_inputs_may_be_views_of_any_order_and_texts_may_be_str() -> None:
    made = session(chain(2))
    x = floats(*range(12)).reshape(3, 4)
    for given in (x.T, x[::2], x[:, ::-1], np.asfortranarray(x), x.astype(">f4")):
        (y,) = made.run(None, {"x": given})
        assert np.array_equal(y, given)  # type: ignore[arg-type]
    texts = proto(
        graph(
            [node("Identity", ["x"], ["y"])],
            [value("x", TensorProto.STRING, None)],
            [value("y", TensorProto.STRING, None)],
        )
    )
    (y,) = session(texts).run(None, {"x": np.array(["a", "\xe9"])})
    assert y.tolist() == [b"a", "\xe9".encode()]  # type: ignore[union-attr]


# ---- Errors -----------------------------------------------------------------------------------


def test_a_requirement_that_fails_names_the_node_and_its_operator_in_one_line() -> None:
    made = session(net([node("Neg", ["x"], ["t"]), node("Div", ["x", "t"], ["y"], name="ratio")]))
    for _ in range(2):
        with pytest.raises(RunError) as error:
            made.run(None, {"x": floats(0)})
        assert str(error.value) == '/1:Div("ratio") (Div-14): the divisor is not 0'
        assert isinstance(error.value, KernelError)
        made.run(None, {"x": floats(1)})


def test_an_operator_without_a_kernel_is_named_with_its_version() -> None:
    with pytest.raises(
        Unsupported, match=r"no execution provider has a kernel for Erf-13 \(/0:Erf\), Tan-7 \(/1:Tan\)"
    ):
        session(net([node("Erf", ["x"], ["t"]), node("Tan", ["t"], ["y"])]))


def test_a_kernel_is_chosen_by_the_element_type() -> None:
    made = proto(
        graph(
            [node("Sqrt", ["x"], ["y"]), node("Sqrt", ["d"], ["z"]), node("Sqrt", ["h"], ["v"])],
            [value("x", shape=None), value("d", TensorProto.DOUBLE, None), value("h", TensorProto.FLOAT16, None)],
            [value("y", shape=None), value("z", TensorProto.DOUBLE, None), value("v", TensorProto.FLOAT16, None)],
        )
    )
    feed = {"x": floats(4), "d": np.array([4.0]), "h": np.array([4.0], np.float16)}
    with pytest.raises(Unsupported, match=r"no execution provider has a kernel for Sqrt-13 on float16 \(/2:Sqrt\)"):
        session(made).run(None, feed)
    del made.graph.node[2], made.graph.input[2], made.graph.output[2], feed["h"]
    y, z = session(made).run(None, feed)
    assert (y.tolist(), z.tolist()) == ([2.0], [3.0])  # type: ignore[union-attr]


def test_an_input_of_a_type_that_the_operator_does_not_admit_is_refused() -> None:
    made = proto(
        graph([node("Add", ["x", "i"], ["y"])], [value("x", shape=None), value("i", INT64, None)], [value("y")])
    )
    with pytest.raises(RunError, match=r"the inputs A and B are to have one type, they are tensor\(float\) and"):
        session(made).run(None, {"x": floats(1), "i": np.array([1])})
    texts = proto(graph([node("Neg", ["x"], ["y"])], [value("x", TensorProto.STRING, None)], [value("y")]))
    with pytest.raises(RunError, match=r"Neg-13\): the input X is string\[1\], Neg-13 does not admit that"):
        session(texts).run(None, {"x": np.array(["a"])})


NOT_AS_SCHEMAS_SAY = [
    (("Add", ["x", ""], ["y"]), {}, "RequiredPortsPresent"),
    (("TopK", ["x", "w"], ["", "y"]), {}, "RequiredPortsPresent"),
    (("Add", ["x"], ["y"]), {}, "PortsCounted"),
    (("Relu", ["x", "x"], ["y"]), {}, "PortsCounted"),
    (("Relu", ["x"], ["y", "z"]), {}, "PortsCounted"),
    (("Concat", ["x", "x"], ["y"]), {}, "AttributesPresent"),
    (("Cast", ["x"], ["y"]), {}, "AttributesPresent"),
    (("Relu", ["x"], ["y"]), {"alpha": 1.0}, "AttributesListed"),
    (("LeakyRelu", ["x"], ["y"]), {"alpha": 1}, "AttributeKinds"),
    (("Concat", ["x", "x"], ["y"]), {"axis": 0.0}, "AttributeKinds"),
]
"""Nodes that are no applications of their operators, and the constraint that says so."""


@pytest.mark.parametrize(("ports", "attributes", "constraint"), NOT_AS_SCHEMAS_SAY)
def test_a_node_that_is_not_as_its_schema_says_is_refused(ports: Any, attributes: Any, constraint: str) -> None:
    made = net([node(*ports, **attributes)], weights=[stored("w", [1], np.int64)])
    with pytest.raises(ModelError, match=f"not well formed: {constraint}"):
        session(made)
    stuck = run(load_proto(made), {"x": floats(1, 2)}).stuck
    assert stuck is not None and stuck.rule == constraint


@pytest.mark.parametrize(("version", "attributes", "what"), [(9, {"to": 16}, "bfloat16"), (13, {"to": 17}, "float8")])
def test_an_output_type_that_the_schema_does_not_admit_is_refused(version: int, attributes: Any, what: str) -> None:
    made = net([node("Cast", ["x"], ["z"], **attributes), node("Cast", ["z"], ["y"], to=1)])
    made.opset_import[0].version = version
    with pytest.raises(RunError, match=rf"/0:Cast \(Cast-{version}\): the output output is {what}.* does not admit"):
        Session(made).run(None, {"x": floats(1, 2)})
    stuck = run(load_proto(made), {"x": floats(1, 2)}).stuck
    assert stuck is not None and stuck.rule == f"Cast-{version}" and "does not admit" in stuck.message


def test_an_exception_in_a_kernel_is_a_defect_that_names_the_node() -> None:
    made = Session(chain(1), [provider(Neg=plain(lambda _, x: 1 // 0))])
    with pytest.raises(InternalError, match=r"/0:Neg \(Neg-13\): the kernel failed with ZeroDivisionError"):
        made.run(None, {"x": floats(1)})


@pytest.mark.parametrize(("outputs", "what"), [((), "NoneType"), ((np.float32(1),), "float32")])
def test_a_kernel_that_gives_no_value_is_found_out(outputs: Any, what: str) -> None:
    made = Session(chain(1), [provider(Neg=plain(lambda _, x: outputs))])
    with pytest.raises(InternalError, match=rf"/0:Neg \(Neg-13\): the kernel gives no output 0, but {what}"):
        made.run(None, {"x": floats(1)})


@pytest.mark.parametrize("known", [True, False])
def test_an_exception_while_a_node_is_prepared_names_it(known: bool) -> None:
    def prepare(_site: Any) -> Any:
        raise KeyError("axis")

    made = net([node("Neg", ["w" if known else "x"], ["y"])], weights=[stored("w", [3])] if known else ())
    with pytest.raises(InternalError, match=r"/0:Neg \(Neg-13\): the kernel failed with KeyError: 'axis'"):
        Session(made, [provider(Neg=Kernel(1, 99, prepare))])


def test_a_model_that_is_not_well_formed_is_refused() -> None:
    with pytest.raises(ModelError, match="not well formed: Acyclic"):
        session(net([node("Add", ["x", "b"], ["a"]), node("Neg", ["a"], ["b"])], outputs=("b",)))
    for nodes, output in ([node("Neg", ["x"], ["y"])], "z"), ([node("Neg", ["q"], ["y"])], "y"):
        with pytest.raises(ModelError, match=r'not well formed: (Sourced|Completeness).*/"[zq]" breaks it'):
            session(net(nodes, outputs=(output,)))


# ---- Folding ----------------------------------------------------------------------------------


def test_what_is_known_at_load_is_computed_once() -> None:
    calls = 0

    def negated(_site: Any, x: Any) -> Any:
        nonlocal calls
        calls += 1
        return (-x,)

    nodes = [node("Neg", ["w"], ["a"]), node("Neg", ["a"], ["b"]), node("Add", ["x", "b"], ["y"])]
    made = Session(net(nodes, weights=[stored("w", [3, 5])]), [provider(Neg=plain(negated))])
    assert calls == 2
    for _ in range(3):
        (y,) = made.run(None, {"x": floats(1, 1)})
        assert y.tolist() == [4.0, 6.0]  # type: ignore[union-attr]
    assert calls == 2
    folded = [it for it in made.partitioning.assignments if not it.provider]
    assert [(it.kernel, it.why) for it in folded] == [("Neg-13", "its inputs are known when the model is loaded")] * 2


def test_a_node_on_constants_that_has_no_meaning_fails_when_it_runs_and_not_at_load() -> None:
    made = session(net([node("Div", ["w", "z"], ["y"])], (), weights=[stored("w", [3]), stored("z", [0])]))
    with pytest.raises(RunError, match="the divisor is not 0"):
        made.run(None, {})


def test_kernels_are_told_of_constants_when_they_are_prepared() -> None:
    told = []

    def prepare(site: Any) -> Any:
        told.append([None if it is None else it.tolist() for it in site.constants])
        return lambda inputs, _allocate: (inputs[0] + inputs[1],)

    nodes = [node("Neg", ["w"], ["a"]), node("Add", ["x", "a"], ["y"])]
    Session(net(nodes, weights=[stored("w", [3])]), [provider(Add=Kernel(1, 99, prepare))])
    assert told == [[None, [-3.0]]]


# ---- Threads ----------------------------------------------------------------------------------


def test_eight_threads_may_run_one_session() -> None:
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("Add", ["b", "x"], ["c"])]
    nodes += [node("MatMul", ["c", "w"], ["d"]), node("Neg", ["d"], ["e"]), node("Mul", ["e", "c"], ["y"])]
    generator = np.random.default_rng(0)
    w = generator.standard_normal((64, 64)).astype(np.float32)
    made = session(net(nodes, weights=[stored("w", w)]))
    data = [generator.standard_normal((rows, 64)).astype(np.float32) for rows in (1, 7, 64) for _ in range(8)]

    def expected(x: Any) -> Any:
        c = np.maximum(x @ w, 0) + x
        return -(c @ w) * c

    def repeated(number: int) -> bool:
        return all(
            np.array_equal(made.run(None, {"x": x})[0], expected(x))  # type: ignore[arg-type]
            for _ in range(15)
            for x in (data[(number + i) % len(data)] for i in range(5))
        )

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(repeated, range(16)))


def test_providers_are_told_of_each_run() -> None:
    told: list[str] = []

    class Watching:
        name = "WatchingExecutionProvider"

        def get_kernel_registry(self) -> None:
            return None

        def get_capability(self, graph: object, kernel_lookup: object) -> tuple[()]:
            return ()

        def compile(self, fused: object) -> tuple[()]:
            return ()

        def create_allocator(self, info: object) -> None:
            return None

        def on_run_start(self, options: RunOptions) -> None:
            told.append(f"start {options.tag}")

        def on_run_end(self, options: RunOptions) -> None:
            told.append(f"end {options.tag}")

    made = Session(net([node("Div", ["x", "x"], ["y"])]), [Watching(), provider()])
    assert made.get_providers() == ["WatchingExecutionProvider", "NumpyExecutionProvider"]
    made.run(None, {"x": floats(1)}, RunOptions("a"))
    with pytest.raises(RunError):
        made.run(None, {"x": floats(0)}, RunOptions("b"))
    assert told == ["start a", "end a", "start b", "end b"]


# ---- Warnings ---------------------------------------------------------------------------------


def test_numbers_out_of_range_warn_neither_at_load_nor_in_a_run() -> None:
    """NumPy would warn of divisions by 0, overflows and invalid operations: folded, run, shared by threads."""
    made = proto(
        graph(
            [
                node("Exp", ["w"], ["e"]),
                node("Sub", ["e", "e"], ["n"]),
                node("Mul", ["x", "n"], ["d"]),
                node("Log", ["x"], ["l"]),
                node("Mul", ["x", "x"], ["m"]),
                node("Softmax", ["m"], ["s"], axis=-1),
                node("Cast", ["l"], ["c"], to=TensorProto.INT32),
            ],
            [value("x", shape=["N", 5])],
            [*(value(name, shape=["N", 5]) for name in "dlms"), value("c", TensorProto.INT32, ["N", 5])],
            [stored("w", [1e30])],
        )
    )
    x = np.tile(np.array([0, -1, 3e38, np.inf, np.nan], np.float32), (1 << 18, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened = Session(made)
        runs = [opened.run(None, {"x": x}) for _ in range(3)]
    for d, log, square, *_ in runs:
        assert isinstance(d, np.ndarray) and np.isnan(d).all()
        assert isinstance(log, np.ndarray) and log[-1, 0] == -np.inf and np.isnan(log[-1, 1])
        assert isinstance(square, np.ndarray) and square[-1, 2] == np.inf


@pytest.mark.parametrize(
    ("operator", "version", "attributes"),
    [
        ("LeakyRelu", 16, "alpha"),
        ("Elu", 22, "alpha"),
        ("HardSigmoid", 22, "beta"),
        ("Celu", 12, "alpha"),
        ("Pad", 2, "value"),
        ("Clip", 6, "min"),
        ("Clip", 6, "max"),
        ("Shrink", 9, "bias"),
        ("Swish", 24, "alpha"),
    ],
)
def test_attributes_that_differ_in_the_sign_of_zero_are_two(operator: str, version: int, attributes: str) -> None:
    x = floats(-1, 0.0, -0.0, 1)
    more = {"pads": [1, 1]} if operator == "Pad" else {}
    for number in (0.0, -0.0, 0.0):
        one = node(operator, ["x"], ["y"], **{attributes: number}, **more)
        made = proto(graph([one], [value("x", shape=[4])], [value("y", shape=None)]), version)
        wanted, (found,) = run(load_proto(made), {"x": x}).outputs["y"], Session(made).run(None, {"x": x})
        assert isinstance(wanted, np.ndarray) and isinstance(found, np.ndarray)
        assert found.tobytes() == wanted.tobytes(), number
