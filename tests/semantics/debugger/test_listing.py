"""The listing: lines and nodes correspond one to one, columns say where a name stands, and no name does harm."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from debugger_models import NESTED, model
from onnx import helper
from sonnx.semantics import load_proto
from sonnx.semantics.debugger.display.listing import Listing, check_listing, listing, write_listing
from sonnx.semantics.errors import ModelError, Unsupported
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.path import quote

MODELS = Path(__file__).parents[3] / ".." / "shared" / "models"


def check_bijection(loaded: Model, found: Listing) -> None:
    nodes = [line.node for line in found.lines if line.kind == "node"]
    assert sorted(it for it in nodes if it is not None) == list(range(len(loaded.nodes)))
    assert [line.number for line in found.lines] == list(range(1, len(found.lines) + 1))
    assert found.text.splitlines() == [line.text for line in found.lines]
    for n, number in found.of_node.items():
        assert found.stop_at(number).node == n
    assert set(found.of_return) == set(range(len(loaded.graphs)))
    for line in found.lines:
        assert line.text.isascii() and line.text.isprintable()
        for span in line.spans:
            shown = line.text[span.start - 1 : span.end - 1]
            assert shown and (span.tensor is None or shown == quote(loaded.tensors[span.tensor].name))


@pytest.mark.skipif(not MODELS.is_dir(), reason="the shared models are not at ../shared/models")
def test_lines_and_nodes_of_all_shared_models_correspond_one_to_one() -> None:
    checked = 0
    for path in sorted([*MODELS.rglob("*.onnx"), *MODELS.rglob("scan_1.pb")]):
        try:
            loaded = load(path)
        except (ModelError, Unsupported):
            continue
        check_bijection(loaded, listing(loaded))
        checked += 1
    assert checked > 100


def test_bodies_and_calls_are_indented_below_their_lines() -> None:
    found = listing(load_proto(model(NESTED)))
    check_bijection(load_proto(model(NESTED)), found)
    lines = found.text.splitlines()
    assert lines[9:13] == [
        "  call /1:local::Twice:",
        '    "t" = Add("a", "a")  # 0:Add',
        '    "b" = Identity("t")  # 1:Identity',
        "  call /2:local::Twice:",
    ]
    assert '      "e1" = Abs("d")  # 0:Abs' in lines
    assert "      call /4:Loop.body/2:local::Twice:" in lines


def test_hostile_names_and_texts_stay_on_their_lines() -> None:
    bad = '\x1b[31m\n  "y" = Fake()  # \r\u202e\U0001f600'
    node = helper.make_node(bad, [bad, ""], [bad + "2"], bad, domain=bad, attribute=bad)
    graph = helper.make_graph(
        [node],
        bad,
        [helper.make_tensor_value_info(bad, 1, [bad])],
        [helper.make_tensor_value_info(bad + "2", 1, None)],
    )
    loaded = load_proto(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(bad, 1)])
    )
    found = listing(loaded)
    check_bijection(loaded, found)
    assert len(found.lines) == 8


def test_the_listing_has_no_weights_and_is_short() -> None:
    weights = helper.make_tensor("w", onnx.TensorProto.FLOAT, [300, 300], [0.5] * 90_000)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])], "g", [], [helper.make_tensor_value_info("y", 1, None)], [weights]
    )
    assert len(listing(load_proto(helper.make_model(graph))).text) < 400


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    found = listing(load_proto(model(NESTED)))
    write_listing(found, tmp_path / "a.lst")
    check_listing(found, tmp_path / "a.lst")
    other = listing(load_proto(model(NESTED.replace("Neg", "Abs"))))
    with pytest.raises(ModelError, match="no listing of this model"):
        check_listing(other, tmp_path / "a.lst")
