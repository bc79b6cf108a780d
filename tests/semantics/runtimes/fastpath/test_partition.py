"""Execution providers of others: what they are given, what they are refused, and that the result says why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest
from machine_models import graph, node, value
from sonnx.semantics.errors import ModelError
from sonnx.semantics.runtimes.fastpath import RunError, Session, providers
from sonnx.semantics.runtimes.fastpath.kernel import KernelError
from sonnx.semantics.runtimes.fastpath.provider import (
    ComputeCapability,
    Declined,
    GraphViewer,
    IndexedSubGraph,
    MetaDef,
)
from sonnx.semantics.runtimes.fastpath.registry import TableRegistry
from tables import table
from toy_kernels import TABLE, provider
from toy_providers import MAIN, Toy, layers, net, pairs, together


def rows(session: Session) -> list[tuple[tuple[int, ...], str, str, str]]:
    return sorted((it.nodes, it.provider, it.kernel, it.why) for it in session.partitioning.assignments)


# ---- Taken ------------------------------------------------------------------------------------


def test_a_provider_that_fuses_two_nodes_gets_them_and_the_rest_runs_in_numpy() -> None:
    toy = Toy(pairs, lambda a, b: (np.maximum(a @ b, 0) + 100,))
    found = Session(layers(), [toy, provider()])
    x = np.array([[1, 1]], np.float32)
    w = np.array([[1, 2], [3, -4]], np.float32)
    for _ in range(3):
        (y,) = found.run(None, {"x": x})
        assert np.array_equal(y, np.maximum(-((np.maximum(x @ w, 0) + 100) @ w), 0))  # type: ignore[arg-type]
    assert rows(found) == [
        ((0, 1), "ToyExecutionProvider", "Fused", "2 nodes fused"),
        ((2,), MAIN, "MatMul-13", "a kernel"),
        ((3,), MAIN, "Neg-13", "a kernel"),
        ((4,), MAIN, "Relu-14", "a kernel"),
    ]
    (whole,) = toy.compiled
    assert whole.filtered_graph.nodes == (0, 1)
    assert [whole.filtered_graph.program.model.tensors[t].name for t in whole.meta_def.inputs] == ["x", "w"]
    assert whole.filtered_graph.constant(whole.meta_def.inputs[1]) is not None


def test_a_provider_may_bring_kernels_and_memory_of_its_own() -> None:
    asked = []

    def memory(shape: Any, dtype: Any) -> Any:
        asked.append(shape)
        return np.empty(shape, dtype)

    def offers(viewer: GraphViewer) -> list[ComputeCapability]:
        return [ComputeCapability(IndexedSubGraph((n,)), "it wants them all") for n in viewer.nodes]

    toy = Toy(offers, kernels=TableRegistry({"Relu": TABLE["Neg"]}), memory=memory)
    found = Session(layers(), [toy, provider()])
    x = np.array([[1, 1]], np.float32)
    w = np.array([[1, 2], [3, -4]], np.float32)
    for _ in range(2):
        (y,) = found.run(None, {"x": x})
        assert np.array_equal(y, (-(x @ w)) @ w)  # type: ignore[arg-type]
    assert asked == [(1, 2)] * 4
    assert [it.kernel for it in found.partitioning.assignments if it.why == "it wants them all"] == ["Relu-14"] * 2
    refused = {it.nodes: it.why for it in found.partitioning.refusals}
    assert refused == dict.fromkeys([(0,), (2,), (3,)], "its registry has no kernel for the node")


def test_nodes_that_are_fused_may_stand_apart_in_the_order() -> None:
    made = net(
        node("Neg", ["x"], ["a"]),
        node("Add", ["a", "u"], ["b"]),
        node("Relu", ["u"], ["c"]),
        node("Mul", ["b", "c"], ["y"]),
        inputs=("x", "u"),
    )
    toy = Toy(
        lambda viewer: [together(viewer, 3, 0, 1, outputs=viewer.node(3).outputs)], lambda c, x, u: ((u - x) * c,)
    )
    found = Session(made, [toy, provider()])
    x, u = np.array([1, 2], np.float32), np.array([5, -5], np.float32)
    (y,) = found.run(None, {"x": x, "u": u})
    assert np.array_equal(y, (u - x) * np.maximum(u, 0))  # type: ignore[arg-type]
    assert toy.compiled[0].filtered_graph.nodes == (0, 1, 3)


def test_bodies_are_asked_about_apart_and_first() -> None:
    asked: list[tuple[int, tuple[int, ...]]] = []

    def offers(viewer: GraphViewer) -> list[ComputeCapability]:
        asked.append((viewer.graph, viewer.nodes))
        return []

    body = graph([node("Neg", ["x"], ["t"])], [], [value("t", shape=None)], (), "b")
    made = net(node("Neg", ["x"], ["n"]), node("If", ["c"], ["y"], then_branch=body, else_branch=body), inputs="xc")
    made.graph.input[1].type.tensor_type.elem_type = 9
    found = Session(made, [Toy(offers), provider()])
    nodes = found.model.graphs[0].nodes
    assert [it[0] for it in asked] == [1, 2, 0] and asked[2][1] == nodes[:1]
    (flow,) = (it for it in found.partitioning.assignments if not it.provider)
    assert (flow.nodes, flow.kernel, flow.why) == (nodes[1:], "If-16", "control flow is the session's own")


def test_every_node_is_in_one_assignment() -> None:
    found = Session(layers(), [Toy(pairs, lambda *it: it), provider()])
    listed = [n for it in found.partitioning.assignments for n in it.nodes]
    assert sorted(listed) == list(range(len(found.model.nodes)))


# ---- Refused ----------------------------------------------------------------------------------


def refusals(offers: Callable[[GraphViewer], Sequence[ComputeCapability]], made: Any = None) -> list[Any]:
    toy = Toy(offers, lambda *inputs: inputs)
    found = Session(layers() if made is None else made, [toy, provider()])
    return [(it.nodes, it.provider, it.why) for it in found.partitioning.refusals]


def test_of_offers_that_overlap_the_first_is_taken_and_the_later_refused_as_a_whole() -> None:
    toy = "ToyExecutionProvider"
    assert refusals(lambda viewer: [together(viewer, 0, 1), together(viewer, 1, 2), together(viewer, 2, 3)]) == [
        ((1, 2), toy, f"nodes of it are taken: /1:Relu by {toy}")
    ]
    first, second = (Toy(lambda viewer: [together(viewer, 0, 1)], name=f"{n}ExecutionProvider") for n in "AB")
    found = Session(layers(), [first, second, provider()])
    assert [(it.provider, it.why) for it in found.partitioning.refusals] == [
        ("BExecutionProvider", "nodes of it are taken: /0:MatMul by AExecutionProvider, /1:Relu by AExecutionProvider")
    ]


CYCLE = "a path leaves the nodes and enters them again"


def test_nodes_that_a_path_leaves_and_enters_again_are_not_fused() -> None:
    assert refusals(lambda viewer: [together(viewer, 0, 2)]) == [
        ((0, 2), "ToyExecutionProvider", f"{CYCLE}: /0:MatMul -> /1:Relu -> /2:MatMul")
    ]


def test_a_path_through_nodes_that_are_fused_already_counts() -> None:
    made = net(
        node("Neg", ["x"], ["a"]),
        node("Neg", ["u"], ["b"]),
        node("Relu", ["a"], ["c"]),
        node("Relu", ["b"], ["d"]),
        inputs=("x", "u"),
        outputs=("c", "d"),
    )
    # 0 and 3 run together, so 2, which waits for 0, and 1, for which 3 waits, cannot.
    assert refusals(lambda viewer: [together(viewer, 0, 3), together(viewer, 1, 2)], made) == [
        ((1, 2), "ToyExecutionProvider", f"{CYCLE}: /1:Neg -> /3:Relu = /0:Neg -> /2:Relu")
    ]


NO_SET = "it is not a set of nodes of the graph that are to be run"


@table(
    ("offer", "why"),
    [
        (lambda _: ComputeCapability(IndexedSubGraph((0, 1))), "several nodes are fused only under a MetaDef"),
        (lambda _: ComputeCapability(IndexedSubGraph(())), NO_SET),
        (lambda _: ComputeCapability(IndexedSubGraph((99,))), NO_SET),
        (lambda _: ComputeCapability(IndexedSubGraph((0,))), "its registry has no kernel for the node"),
        (
            lambda viewer: together(viewer, 0, 1, outputs=[]),
            'its MetaDef does not list what others read: /"b"',
        ),
        (
            lambda viewer: ComputeCapability(IndexedSubGraph((3,), MetaDef("F", (), viewer.node(3).outputs))),
            'its MetaDef does not list what its nodes read: /"c"',
        ),
        (
            lambda viewer: ComputeCapability(
                IndexedSubGraph(
                    (3,), MetaDef("F", viewer.node(3).inputs + viewer.node(3).outputs, viewer.node(3).outputs)
                )
            ),
            'its MetaDef lists as an input what its own nodes write: /"d"',
        ),
    ],
)  # fmt: skip
def test_an_offer_that_cannot_be_run_is_refused_with_the_reason(offer: Any, why: str) -> None:
    assert [it[2] for it in refusals(lambda viewer: [offer(viewer)])] == [why]


def test_a_part_that_is_declined_counts_as_never_offered_and_the_reason_is_kept() -> None:
    asked: list[tuple[int, ...]] = []

    def offers(viewer: GraphViewer) -> list[ComputeCapability]:
        asked.append(viewer.nodes)
        wanted = [together(viewer, 0, 1), together(viewer, 1, 2, 3), together(viewer, 4)]
        return [it for it in wanted if set(it.sub_graph.nodes) <= set(viewer.nodes)]

    toy = Toy(offers, lambda x: (np.maximum(x, 0),))
    whole = toy.compile

    def compile_(fused: Any) -> Any:
        made = zip(fused, whole(fused), strict=True)
        return [Declined("it is too new") if it.filtered_graph.nodes == (0, 1) else info for it, info in made]

    toy.compile = compile_  # type: ignore[method-assign]
    found = Session(layers(), [toy, provider()])
    assert asked == [(0, 1, 2, 3, 4), (2, 3, 4)]
    assert [it.nodes for it in found.partitioning.assignments if it.provider == toy.name] == [(4,)]
    assert [(it.nodes, it.why) for it in found.partitioning.refusals] == [((0, 1), "it is too new")]
    w = np.array([[1, 2], [3, -4]], np.float32)
    (y,) = found.run(None, {"x": ROW})
    assert np.array_equal(y, np.maximum(-(np.maximum(ROW @ w, 0) @ w), 0))  # type: ignore[arg-type]


# ---- Failures ---------------------------------------------------------------------------------


def test_a_requirement_that_fails_in_fused_nodes_names_them() -> None:
    def refuse(*_inputs: object) -> None:
        raise KernelError("no zeros")

    found = Session(layers(), [Toy(pairs, refuse), provider()])
    with pytest.raises(RunError, match=r"^/0:MatMul to /1:Relu \(ToyExecutionProvider, Fused\): no zeros$"):
        found.run(None, {"x": np.ones((1, 2), np.float32)})


def test_a_provider_that_compiles_too_little_is_found_out() -> None:
    toy = Toy(pairs)
    toy.compile = lambda fused: ()  # type: ignore[method-assign]
    with pytest.raises(ModelError, match="ToyExecutionProvider was given 1 subgraphs and compiled 0"):
        Session(layers(), [toy, provider()])


def _fails(*_arguments: object) -> Any:
    raise ZeroDivisionError("division by\nzero")


@table(
    ("change", "said"),
    [
        ({"offers": _fails}, "failed in get_capability with ZeroDivisionError: division by\\nzero; run without it"),
        ({"offers": lambda _: [7]}, "gives int in get_capability, which is no ComputeCapability"),
        ({"offers": lambda _: None}, "failed in get_capability with TypeError"),
        ({"compile": _fails}, "failed in compile with ZeroDivisionError"),
        ({"compile": lambda _: [7]}, "gives int in compile, which is no NodeComputeInfo"),
        ({"compile": lambda _: ()}, "was given 1 subgraphs and compiled 0"),
        ({"create_allocator": _fails}, "failed in create_allocator with ZeroDivisionError"),
        ({"get_kernel_registry": _fails}, "failed in get_kernel_registry with ZeroDivisionError"),
    ],
)
def test_a_provider_that_breaks_the_protocol_is_named_in_one_line(change: dict[str, Any], said: str) -> None:
    toy = Toy(pairs)
    for name, value_ in change.items():
        setattr(toy, name, value_)
    with pytest.raises(ModelError) as failed:
        Session(layers(), [toy, provider()])
    assert str(failed.value).startswith(f"ToyExecutionProvider {said}") and "\n" not in str(failed.value)


ROW = np.ones((1, 2), np.float32)


@table(
    ("fused", "said"),
    [
        (lambda *_: (), "the provider gives 0 values for 1 outputs"),
        (lambda *_: (ROW, ROW), "the provider gives 2 values for 1 outputs"),
        (lambda *_: 7, "the provider failed with TypeError: 'int' object is not iterable"),
        (lambda *_: ("text",), 'the provider gives str for /"b", which is no value'),
        (lambda *_: (ROW.astype(float),), 'the output "b" is double[1, 2], expected float'),
        (_fails, "the provider failed with ZeroDivisionError: division by\\nzero"),
    ],
)
def test_a_part_that_gives_what_it_may_not_is_named_in_one_line(fused: Callable[..., Any], said: str) -> None:
    made = layers()
    made.graph.value_info.append(value("b", shape=[1, 2]))
    found = Session(made, [Toy(pairs, fused), provider()])
    for _ in range(2):  # recorded or not
        with pytest.raises(RunError, match=r"^/0:MatMul to /1:Relu \(ToyExecutionProvider, Fused\): ") as failed:
            found.run(None, {"x": ROW})
        assert said in str(failed.value) and "\n" not in str(failed.value)


def test_the_declared_shape_of_an_output_is_kept_to_and_that_of_another_tensor_is_a_claim() -> None:
    made = layers()
    made.graph.output[0].CopyFrom(value("y", shape=[1, 2]))
    made.graph.value_info.append(value("b", shape=[7]))
    first = Toy(pairs, lambda *_: (ROW,), name="FirstExecutionProvider")
    last = Toy(lambda viewer: [together(viewer, 3, 4, outputs=viewer.node(4).outputs)], lambda _: (ROW[:, :1],))
    said = r"ToyExecutionProvider, Fused\): the provider gives what the model does not declare: the output \"y\""
    with pytest.raises(RunError, match=said):
        Session(made, [first, last, provider()]).run(None, {"x": ROW})


def test_a_capture_that_a_part_does_not_list_is_named() -> None:
    body = graph([node("Add", ["n", "x"], ["t"])], [], [value("t", shape=None)], (), "b")
    made = net(node("Neg", ["x"], ["n"]), node("If", ["c"], ["y"], then_branch=body, else_branch=body), inputs="xc")
    made.graph.input[1].type.tensor_type.elem_type = 9

    def offers(viewer: GraphViewer) -> list[ComputeCapability]:
        (n,) = viewer.nodes
        listed = viewer.node(n).inputs[1:] if viewer.graph else ()
        return [ComputeCapability(IndexedSubGraph((n,), MetaDef("F", listed, viewer.node(n).outputs)))]  # type: ignore[arg-type]

    found = refusals(offers, made)
    missing = "its MetaDef does not list what its nodes read"
    assert [why for _, _, why in found] == [f'{missing}: /"n"', f'{missing}: /"n"', f'{missing}: /"x"']


# ---- Grown ------------------------------------------------------------------------------------


def test_of_nodes_that_a_provider_supports_the_session_makes_parts_with_their_ends() -> None:
    def all_but_one(viewer: GraphViewer) -> list[ComputeCapability]:
        wanted = tuple(n for n in viewer.nodes if viewer.node(n).op_type != "Neg")
        return [ComputeCapability(IndexedSubGraph(wanted), grows=True)]

    toy = Toy(all_but_one, lambda *it: (np.maximum(np.maximum(it[0] @ it[1], 0) @ it[1], 0),))
    found = Session(layers(), [toy, provider()])
    assert rows(found)[0] == ((0, 1, 2), "ToyExecutionProvider", "Toy_0", "3 of the nodes it supports")
    metas = [it.meta_def for it in toy.compiled]
    names = [it.name for it in found.model.tensors]
    assert [([names[t] for t in it.inputs], [names[t] for t in it.outputs]) for it in metas] == [
        (["x", "w"], ["c"]), (["d"], ["y"]),
    ]  # fmt: skip


# ---- Discovery --------------------------------------------------------------------------------


def test_providers_are_found_by_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("ToyExecutionProvider", f"{__name__}:made", providers.GROUP)
    monkeypatch.setattr(providers, "entry_points", lambda group: [point] if group == providers.GROUP else [])
    monkeypatch.setattr(EntryPoint, "load", lambda self: lambda: Toy(pairs, lambda a, b: (np.maximum(a @ b, 0),)))
    assert providers.available_providers() == ("ToyExecutionProvider", MAIN)
    found = Session(layers(), ["ToyExecutionProvider", provider()])
    assert found.get_providers() == ["ToyExecutionProvider", MAIN]
    with pytest.raises(ModelError, match='"TouExecutionProvider" is installed: did you mean ToyExecutionProvider'):
        Session(layers(), ["TouExecutionProvider"])


def test_a_provider_has_a_name_that_says_so() -> None:
    with pytest.raises(ModelError, match='"Toy" is to have a name that ends in ExecutionProvider'):
        Session(layers(), [Toy(pairs, name="Toy")])


def test_the_numpy_provider_is_declared_and_the_default() -> None:
    assert MAIN in {it.name for it in providers.entry_points(group=providers.GROUP)}
    assert [it.name for it in providers.chosen_providers(())] == [MAIN]
