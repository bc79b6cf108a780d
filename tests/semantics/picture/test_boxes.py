"""The boxes of a model: bodies and calls lie in what holds them, and every edge is within one box."""

from __future__ import annotations

import onnx.parser
from debugger_models import NESTED
from picture_models import drawn_graph
from sonnx.semantics import load_proto
from sonnx.semantics.model.graph import Model
from sonnx.semantics.picture.boxes import Box, Kind, boxes, reading_order, with_holders


def nested() -> Model:
    return load_proto(onnx.parser.parse_model(NESTED))


def named(made: list[Box], number: int) -> str:
    box = made[number]
    around = "" if not number else f"{named(made, box.parent)}/"
    return f"{around}{box.kind.name.lower()} {box.title}"


def test_each_node_lies_in_its_bodies_and_calls() -> None:
    model = nested()
    made = boxes(model, set(range(len(model.nodes))))
    assert sorted(box.node for box in made if box.node is not None) == list(range(len(model.nodes)))
    for at, box in enumerate(made):
        assert box.parent <= at and (not at or at in made[box.parent].inner)
        if box.node is not None:
            node = model.nodes[box.node]
            around = [it for it in _around(made, at) if made[it].kind is Kind.CALL]
            assert [made[it].path for it in reversed(around)] == list(node.calls)
            assert node.path.startswith(made[box.parent].base)
    inside = {named(made, at) for at in range(len(made))}
    loop = "body nested/node Loop/body body body"
    assert f"{loop}/call 2:local::Twice/in s2" in inside
    assert f"{loop}/call 2:local::Twice/out o" in inside
    assert f"{loop}/in x" in inside, "what a body reads from outside comes in"


def _around(made: list[Box], at: int) -> list[int]:
    around = []
    while at:
        at = made[at].parent
        around.append(at)
    return around


def test_an_edge_joins_boxes_of_one_box_and_each_read_is_a_way() -> None:
    model = nested()
    made = boxes(model, set(range(len(model.nodes))))
    for at, box in enumerate(made):
        assert all(made[a].parent == made[b].parent == at for a, b in box.edges)
    readers = [at for at, box in enumerate(made) if box.node is not None and model.nodes[box.node].inputs]
    for at in readers:
        node = model.nodes[made[at].node or 0]
        leading = [a for a, b in made[made[at].parent].edges if b == at]
        assert len(leading) == len({t for t in (*node.inputs, *node.captures) if t is not None})


def test_a_part_of_a_model_has_the_holders_of_its_bodies_and_no_box_for_what_it_does_not_touch() -> None:
    model = nested()
    inside = next(n for n in reading_order(model) if model.nodes[n].graph == model.nodes[-1].graph and n != 0)
    shown = with_holders(model, [inside])
    made = boxes(model, shown)
    assert {box.node for box in made if box.node is not None} == set(shown)
    large = drawn_graph(50, 1, 3)
    few = boxes(large, set(range(20, 30)))
    assert sum(box.kind is Kind.NODE for box in few) == 10 and not any(box.kind is Kind.IN for box in few)


def test_the_reading_order_is_that_of_the_listing() -> None:
    model = nested()
    order = list(reading_order(model))
    assert sorted(order) == list(range(len(model.nodes)))
    ops = [model.nodes[n].op_type for n in order]
    assert ops[:8] == ["Add", "Add", "Identity", "Add", "Identity", "If", "Neg", "Abs"]
