"""Values as trees: what an item says, and that its parts are made in pages."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from debugger_models import answer, nested, session
from sonnx.semantics.debugger.inspection.items import (
    EFFORT,
    NONE,
    WIDTH,
    Item,
    Parts,
    View,
    distinct,
    expression_item,
    full_text,
    grouped,
    page,
    ranges,
)
from sonnx.semantics.debugger.session.session import Session
from sonnx.semantics.debugger.timeline.history import Refused
from tables import table

KINDS = """<ir_version: 10, opset_import: ["" : 21]>
kinds (float[3] x, string[2] s) => (seq(float[3]) q, optional(float[3]) o, float[2, 3] m, float16[3] h, int4[3] i) {
  q = SequenceConstruct (x, x)
  o = Optional (x)
  r = Constant <value = float[2, 3] {1, 2, 3, 4, 5, 6}> ()
  m = Neg (r)
  h = Cast <to = 10> (x)
  i = Cast <to = 22> (x)
  u = Neg (x)
}"""
X = np.array([0.1, np.nan, -np.inf], np.float32)
SECOND = "break /4:Loop.body@1/0:Identity"
"""Where the second run of the body of `nested` begins."""
TEXTS = np.array([b"plain", "\u202e\x1b[31m".encode()], object)


def kinds(steps: int = 7, **given: Any) -> Session:
    inputs: Mapping[str, Any] = {"x": X, "s": TEXTS, **given}
    return answer(session(KINDS, inputs), f"step {steps}")[0]


def parts_of(item: Item) -> Parts:
    assert item.inside is not None
    return item.inside


def named(found: Session, item: Item) -> dict[str, Item]:
    return {it.name: it for it in parts_of(item).named(found, View())}


def wide(count: int) -> Session:
    text = f"""<ir_version: 10, opset_import: ["" : 18]> g (float[{count}] x) => (float[{count}] y) {{ y = Neg (x) }}"""
    return session(text, {"x": np.arange(count, dtype=np.float32)})


@table(
    ("text", "value"),
    [
        ("x", "float[3] [0.1, nan, -inf]"),
        ("x[0]", "0.1"),
        ("m", "float[2, 3] [[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]]"),
        ("h", "float16[3] [0.1, nan, -inf]"),
        ("s[0]", '"plain"'),
        ("s[1]", '"\\u202e\\u001b[31m"'),
        ("q", "sequence(float) 2 items"),
        ("o", "optional(float) one value"),
        ("count(m)", "6"),
        ("dtype(h)", '"float16"'),
    ],
)
def test_an_item_says_its_value_in_one_line(text: str, value: str) -> None:
    assert expression_item(kinds(), text, View()).value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x[0]", "0x1.99999a0000000p-4"),
        ("x[1]", "nan (bits 0x7fc00000)"),
        ("x[2]", "-inf"),
        ("i[0]", "0x00"),
        ("count(m)", "0x0000000000000006"),
    ],
)
def test_numbers_are_shown_to_the_last_bit_on_request(text: str, value: str) -> None:
    assert expression_item(kinds(), text, View(hexadecimal=True)).value == value


def test_a_tensor_of_many_elements_is_summed_up_and_told_about() -> None:
    found = wide(1000)
    item = expression_item(found, "x", View())
    assert item.value.startswith("float[1000] min=0.0 max=999.0 nan=0 inf=0 #")
    told = named(found, item)
    assert list(told) == ["shape", "statistics", "producer", "consumers", "address", "digest"]
    assert told["shape"].value == "[1000]" and told["consumers"].value == "1: Neg"
    assert told["producer"].value == "none: input of /" and told["address"].value == "0x0, 4000 bytes"
    assert item.value.endswith(told["digest"].value.removeprefix("sha256 ")[:8])
    numbers = named(found, told["statistics"])
    assert (numbers["min"].value, numbers["max"].value, numbers["zero"].value) == ("0.0", "999.0", "1")


def test_the_producer_is_named_with_the_run_and_the_step() -> None:
    found, _ = answer(nested(), SECOND, "continue", "step")
    told = named(found, expression_item(found, "go2", View()))
    assert told["producer"].value == f"/4:Loop.body@1/0:Identity, step {found.index}"
    assert found.listing.lines[(told["producer"].line or 0) - 1].text.strip().startswith('"go2" = Identity')


def test_the_consumers_are_nodes_with_their_lines() -> None:
    found = nested()
    readers = named(found, named(found, expression_item(found, "x", View()))["consumers"])
    assert list(readers) == ["/0:Add", "/4:Loop", "/4:Loop.body/1:Add"]
    assert [found.listing.lines[(it.line or 0) - 1].text.strip() for it in readers.values()] == [
        it.value for it in readers.values()
    ]


def test_a_tensor_that_is_too_large_is_not_looked_at() -> None:
    found = wide(1000)
    item = expression_item(found, "x", View(effort=100))
    assert item.value == "float[1000]"
    told = {it.name: it for it in parts_of(item).named(found, View(effort=100))}
    assert told["statistics"].value == "of 1000 elements" and told["digest"].lazy
    (digest,) = parts_of(told["digest"]).named(found, View())
    assert digest.value.startswith("sha256 ")


def test_a_page_shares_the_effort_among_its_items() -> None:
    found = session(
        """<ir_version: 10, opset_import: ["" : 18]> g (float[40, 60000] x) => (float[40, 60000] y) { y = Neg (x) }""",
        {"x": np.zeros((40, 60000), np.float32)},
    )
    inside = parts_of(expression_item(found, "x", View()))
    assert EFFORT < 40 * 60000
    assert {it.value for it in page(found, inside, View(), 0, 40)} == {"float[60000]"}
    (one,) = page(found, inside, View(), 7, 1)
    assert one.value.startswith("float[60000] min=0.0") and one.expression == "x[7]"


@pytest.mark.parametrize(("start", "count", "names"), [(0, 2, "01"), (998, 5, "89"), (1000, 5, ""), (-3, 1, "0")])
def test_a_page_ends_with_the_parts(start: int, count: int, names: str) -> None:
    found = wide(1000)
    shown = page(found, parts_of(expression_item(found, "x", View())), View(), start, count)
    assert "".join(it.name[-2] for it in shown) == names


@table("count", [1, 100, 101, 9_999, 10_001, 123_456])
def test_ranges_lead_to_each_element_and_are_never_more_than_a_hundred(count: int) -> None:
    found = wide(count)
    inside, last = parts_of(expression_item(found, "x", View())), count - 1
    items = grouped(found, inside, View())
    while items[-1].kind == "virtual":
        assert len(items) <= WIDTH
        items = parts_of(items[-1]).named(found, View())
    assert items[-1].name == f"[{last}]" and items[-1].value == f"{float(last)}"


@pytest.mark.parametrize("count", [101, 10_000, 10_001, 1_000_001, 1 << 40])
def test_ranges_make_up_the_whole(count: int) -> None:
    found = ranges(7, count)
    assert len(found) <= WIDTH and found[0][0] == 7
    assert all(a + size == b for (a, size), (b, _) in pairwise(found))
    assert sum(size for _, size in found) == count


def test_slices_open_axis_by_axis() -> None:
    found = kinds()
    rows = page(found, parts_of(expression_item(found, "m", View())), View(), 0, 10)
    assert [(it.name, it.value, it.expression) for it in rows] == [
        ("[0]", "float[3] [-1.0, -2.0, -3.0]", "m[0]"),
        ("[1]", "float[3] [-4.0, -5.0, -6.0]", "m[1]"),
    ]
    cells = page(found, parts_of(rows[1]), View(), 1, 2)
    assert [(it.value, it.expression) for it in cells] == [("-5.0", "m[1, 1]"), ("-6.0", "m[1, 2]")]
    assert not any(it.inside for it in cells)


def test_sequences_and_optionals_open() -> None:
    found = kinds()
    sequence = page(found, parts_of(expression_item(found, "q", View())), View(), 0, 10)
    assert [(it.name, it.expression) for it in sequence] == [("[0]", "q[0]"), ("[1]", "q[1]")]
    assert page(found, parts_of(sequence[1]), View(), 0, 1)[0].value == "0.1"
    item = named(found, expression_item(found, "o", View()))["item"]
    assert item.value == "float[3] [0.1, nan, -inf]"


def test_what_has_no_value_yet_says_so() -> None:
    found = kinds(1)
    item = expression_item(found, "m", View())
    assert item.value.startswith(NONE) and not item.bytes
    assert named(found, item)["producer"].value == "/3:Neg"
    with pytest.raises(Refused):
        expression_item(found, "m + 1", View())


def test_a_value_of_an_earlier_run_is_said_to_be_one() -> None:
    found, _ = answer(nested(), SECOND, "continue")
    item = expression_item(found, "s2", View())
    assert item.value.endswith('(of /4:Loop.body@0/"s2")') and not item.editable


def test_names_of_the_model_cannot_harm() -> None:
    name = "a\x1b[2J\u202e\nb" + "c" * 1000
    quoted = '"' + name.replace("\n", "\\n").replace("\x1b", "\\u001b") + '"'
    import onnx.helper

    node = onnx.helper.make_node("Neg", ["x"], [name])
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph([node], "g", [value("x", 1, [1])], [value(name, 1, [1])])
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10)
    found = session(proto, {"x": np.zeros(1, np.float32)})
    item = expression_item(found, quoted, View())
    assert item.name.isprintable() and len(item.name) < 300


def test_items_of_one_name_are_told_apart() -> None:
    found = distinct((Item("a", "1"), Item("a", "2"), Item("b", "3"), Item("a", "4")))
    assert [it.name for it in found] == ["a", "a (2)", "b", "a (3)"]


def test_all_elements_are_there_for_the_clipboard() -> None:
    assert full_text(wide(1000), "x", View()).split() == [str(float(i)) for i in range(1000)]
    assert full_text(kinds(), "x", View(hexadecimal=True)).startswith("0x1.99999a")


def test_single_elements_are_the_ones_that_can_be_changed() -> None:
    found = kinds()
    texts = ("x", "x[0]", "m[1]", "s[0]", "count(m)")
    assert {text: expression_item(found, text, View()).editable for text in texts} == {
        "x": False,
        "x[0]": True,
        "m[1]": False,
        "s[0]": False,
        "count(m)": False,
    }
