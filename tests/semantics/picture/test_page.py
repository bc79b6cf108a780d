"""The page of a picture: small, inert, the same each time, and true of the model."""

from __future__ import annotations

import re

import onnx.helper
import onnx.parser
import pytest
from debugger_models import NESTED
from onnx import TensorProto
from pages import Page
from picture_models import column, drawn_graph, page_data, unfolded
from sonnx.semantics import load_proto
from sonnx.semantics.errors import Unsupported
from sonnx.semantics.model.graph import Model
from sonnx.semantics.picture.notes import TONES, Content, Mark, Picture
from sonnx.semantics.picture.page import BYTES, drawn, to_html

MARKS = (Mark("wrong", "\u2717", "wrong", "bad"), Mark("fine", "", "fine", "plain"))
HOSTILE = '</script><img src=x onerror=alert(1)><!--\x1b[31m\u202e"\\&amp;'


def test_a_page_runs_nothing_that_comes_from_a_model_and_loads_nothing() -> None:
    value = onnx.helper.make_tensor_value_info("x", TensorProto.FLOAT, [f"d{HOSTILE}"])
    nodes = [
        onnx.helper.make_node("Relu", ["x"], [f"y{HOSTILE}"], f"n{HOSTILE}"),
        onnx.helper.make_node(f"Op{HOSTILE}", [f"y{HOSTILE}"], ["z"], domain=f"d{HOSTILE}", **{f"a{HOSTILE}": HOSTILE}),
    ]
    graph = onnx.helper.make_graph(nodes, f"g{HOSTILE}", [value], [])
    model = load_proto(onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=9))
    said = {0: (HOSTILE,)}
    values = {0: Content(HOSTILE, ((HOSTILE, HOSTILE),), HOSTILE)}
    picture = Picture(HOSTILE, (HOSTILE,), MARKS, {0: ("wrong",), 1: ("fine",)}, said, values, 0, (HOSTILE,))
    page = to_html(model, picture)
    assert not set(page) & {"\x1b", "\u202e"}
    parsed = Page(page)
    assert not parsed.wrong and not parsed.open
    tags = [tag for tag, _ in parsed.tags]
    assert tags.count("script") == 2 and "img" not in tags
    assert not any(name.startswith("on") for _, attributes in parsed.tags for name in attributes)
    assert not list(parsed.values("src")) and not list(parsed.values("href"))
    assert "http:" not in page and "https:" not in page
    policy = next(it for it in parsed.values("content") if "default-src" in it)
    assert policy.startswith("default-src 'none'; style-src 'sha256-") and "script-src 'sha256-" in policy
    assert "unsafe" not in policy
    assert page_data(page)["title"].startswith("</script>"), "the text itself is there"


def test_two_pages_of_a_model_are_the_same_bytes() -> None:
    picture = Picture("net", ("a fact",), MARKS, {3: ("wrong",)})
    assert to_html(drawn_graph(80, 5, 4), picture) == to_html(drawn_graph(80, 5, 4), picture)


def test_the_data_say_paths_types_and_marks_of_the_model() -> None:
    model = load_proto(onnx.parser.parse_model(NESTED))
    marked = {n: ("wrong",) if n == 2 else ("fine",) for n in range(len(model.nodes))}
    data = page_data(to_html(model, Picture("net", (), MARKS, marked, {2: ("it is wrong",)}, {}, 2)))
    kinds, parents, at = data["kind"], unfolded(data["parent"]), unfolded(data["index"])
    titles, names = column(data, "title_of", "title"), column(data, "name_of", "name")
    paths: list[str] = []
    for box, kind in enumerate(kinds):
        around = paths[parents[box]] if box else ""
        base = {"0": "", "1": "!", "2": "" if around == "/" else "/"}[kinds[parents[box]]]
        usual = f"{around}{base}{at[box]}:{titles[box]}" + (f'("{names[box]}")' if names[box] else "")
        paths.append(data["path"].get(str(box), usual if kind == "0" else around))
    nodes = [box for box, kind in enumerate(kinds) if kind == "0"]
    assert [paths[box] for box in nodes] == [node.path for node in model.nodes]
    wrong = [box for box, bits in enumerate(unfolded(data["marked"])) if bits & 1]
    assert [paths[it] for it in wrong] == [model.nodes[2].path] and data["focus"] == wrong[0]
    assert [data["texts"]["line"]["rest"][it] for it in data["said"][str(wrong[0])]] == ["it is wrong"]
    assert {"float[2]", "bool[]", "int64[]"} <= set(column(data, "type", "type"))


def test_every_tensor_has_its_path() -> None:
    proto = onnx.parser.parse_model(NESTED)
    for number, node in enumerate(proto.graph.node):
        node.name = f"a {number}/"
    model = load_proto(proto)
    data = page_data(to_html(model, Picture("net", (), MARKS)))
    kinds, parents, at = data["kind"], unfolded(data["parent"]), unfolded(data["index"])
    titles, names = column(data, "title_of", "title"), column(data, "name_of", "name")
    bases: list[str] = []
    for box, kind in enumerate(kinds):
        around = bases[parents[box]] if box else ""
        usual = f"{around}{at[box]}:{titles[box]}" + (f'("{names[box]}")' if names[box] else "")
        path = data["path"].get(str(box), usual if kind == "0" else "")
        bases.append(path + {"1": "!", "2": "" if path == "/" else "/"}.get(kind, ""))
    homes = unfolded(data["home"])
    used = {t for node in model.nodes for t in (*node.inputs, *node.outputs) if t is not None}
    quoted = [f'"{name}"' for name in column(data, "tensor", "tensor")]
    paths = [data["tensor_path"].get(str(t), bases[home] + quoted[t]) for t, home in enumerate(homes)]
    assert {model.tensors[t].path for t in used} <= set(paths) <= {it.path for it in model.tensors}


@pytest.fixture(scope="module")
def large() -> Model:
    return drawn_graph(10_000, 1, 30)


@pytest.mark.campaign
def test_ten_thousand_nodes_with_values_are_whole_on_a_page(large: Model) -> None:
    rows = (("min", "-1.23456789"), ("max", "12.3456789"), ("mean", "0.123456789"), ("nan", "0"), ("inf", "0"))
    texts = {t: f"first -1.2345{t} 0.98765{t} 3.14159{t} 0.0" for t in range(len(large.tensors))}
    values = {t: Content("float[4]", (*rows, ("step", str(t))), text) for t, text in texts.items()}
    marked = dict.fromkeys(range(10000), ("fine",))
    page = to_html(large, Picture("large", (), MARKS, marked, {}, values))
    assert len(page.encode()) <= BYTES
    assert page_data(page)["kind"].count("0") == 10_000 and "Drawn are" not in page


def test_of_a_model_that_a_page_does_not_hold_a_part_about_the_focus_is_drawn_and_said() -> None:
    model = drawn_graph(900, 2, 5)
    said = {n: (f"{n} " * 300,) for n in range(900)}
    picture = Picture("net", (), MARKS, {700: ("wrong",), 2: ("wrong",), 899: ("wrong",)}, said, {}, 700)
    part = drawn(model, picture, BYTES - 200_000)
    assert part is not None and len(part.data) < 200_000
    (limit,) = part.limits
    found = re.fullmatch(r"Drawn are (\d+) of the 900 nodes, from (/\S+) to (/\S+), in the order .*", limit)
    assert found is not None and 10 < int(found[1]) < 500
    assert limit.endswith("Not drawn: 2 of the mark 'wrong'.")
    first, last = (int(path.split(":")[0][1:]) for path in found.groups()[1:])
    assert first < 700 < last and last - first + 1 == int(found[1])


def test_a_page_without_room_has_no_picture() -> None:
    model = drawn_graph(3, 2, 5)
    assert drawn(model, Picture("net", (), MARKS), BYTES - 1000) is None
    name = "n" * (BYTES + 1)
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name)
    graph = onnx.helper.make_graph([node], "g", [], [])
    with pytest.raises(Unsupported, match="the texts about one node"):
        to_html(load_proto(onnx.helper.make_model(graph)), Picture("net", (), MARKS))


def test_the_style_sheet_has_the_colours_of_all_tones() -> None:
    style = drawn(drawn_graph(1, 1, 1), Picture("net", (), MARKS))
    assert style is not None
    for tone in TONES:
        assert style.parts.style.count(f"--{tone}:") == 2 and style.parts.style.count(f"--{tone}-line:") == 2
