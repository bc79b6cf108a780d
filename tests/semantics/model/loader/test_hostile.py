"""Damaged and hostile bytes: the loader gives a Model or a ModelError of one line, whatever the bytes are."""

from __future__ import annotations

import random
import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load
from sonnx.semantics.model.loader.wire import scan

SEED = 20250516
FLIPS = 1500


def small_model() -> onnx.ModelProto:
    """A model of some hundred bytes with every kind of part: bodies, functions, constants, types, metadata."""
    branch = helper.make_graph([helper.make_node("Relu", ["h"], ["b"])], "branch", [], [vi("b")])
    nodes = [
        helper.make_node("Add", ["x", "w"], ["h"], name="add ä"),
        helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        helper.make_node("twice", ["y"], ["z"], domain="local"),
    ]
    stored = [
        helper.make_tensor("w", TensorProto.FLOAT, [2], [1.5, -2.5]),
        helper.make_tensor("c", TensorProto.BOOL, [], b"\1", raw=True),
    ]
    graph = helper.make_graph(nodes, "main", [vi("x")], [vi("z")], stored, value_info=[vi("h")])
    body = [helper.make_node("Add", ["a", "a"], ["r"])]
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "twice", ["a"], ["r"], body, opsets[:1])
    return helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=10)


def vi(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2])


SMALL = small_model().SerializeToString()


def outcome(content: bytes, folder: Path) -> Model | str:
    """What loading a file with this content ends in: a model, or the line of a ModelError. All else is raised."""
    path = folder / "m.onnx"
    path.write_bytes(content)
    try:
        return load(path)
    except ModelError as error:
        return str(error)


def assert_one_line(line: str) -> None:
    assert line
    assert line.isascii()
    assert line.isprintable()


def flipped(rng: random.Random, content: bytes, bits: int) -> bytes:
    out = bytearray(content)
    for _ in range(bits):
        place = rng.randrange(8 * len(out))
        out[place // 8] ^= 1 << place % 8
    return bytes(out)


def test_the_small_model_itself_is_read(tmp_path: Path) -> None:
    found = outcome(SMALL, tmp_path)
    assert isinstance(found, Model)
    assert len(found.graphs) == 3


@pytest.mark.parametrize("length", range(len(SMALL)))
def test_a_model_cut_off_anywhere_is_a_model_error_or_ends_between_fields(length: int, tmp_path: Path) -> None:
    found = outcome(SMALL[:length], tmp_path)
    if isinstance(found, str):
        assert_one_line(found)
    else:
        whole = onnx.ModelProto.FromString(SMALL[:length])
        assert whole.SerializeToString() == SMALL[:length]


@pytest.mark.parametrize("bits", [1, 3])
def test_flipped_bits_give_a_model_or_one_line(bits: int, tmp_path: Path) -> None:
    rng = random.Random(SEED + bits)
    lines = 0
    for _ in range(FLIPS):
        found = outcome(flipped(rng, SMALL, bits), tmp_path)
        if isinstance(found, str):
            assert_one_line(found)
            lines += 1
    assert FLIPS // 10 < lines < FLIPS, "both outcomes occur"


def test_random_bytes_give_one_line(tmp_path: Path) -> None:
    rng = random.Random(SEED)
    for size in range(1, 300):
        found = outcome(rng.randbytes(size), tmp_path)
        if isinstance(found, str):
            assert_one_line(found)


def test_what_the_scan_passes_protobuf_reads_without_a_rest() -> None:
    rng = random.Random(SEED)
    passed = 0
    for _ in range(2 * FLIPS):
        content = flipped(rng, SMALL, 1)
        try:
            scanned = scan(content, keep=0)
        except ModelError as error:
            assert_one_line(str(error))
            continue
        passed += 1
        read = onnx.ModelProto.FromString(content)
        onnx.ModelProto.FromString(scanned.stripped)
        before = read.ByteSize()
        assert before >= len(content), "nothing was dropped, merged or shortened; lists grow that were packed"
        read.DiscardUnknownFields()
        assert read.ByteSize() == before
    assert passed > FLIPS // 10


NASTY = "n\n\r\t\0\x1b[2J\x1b]0;title\x07<script>&amp;\u202e\u2028%s{0}"


def test_names_with_control_characters_stay_data(tmp_path: Path) -> None:
    node = helper.make_node("Relu", [NASTY], [NASTY + "y"], name=NASTY)
    graph = helper.make_graph([node], NASTY, [vi(NASTY)], [vi(NASTY + "y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10, producer_name=NASTY)
    found = outcome(model.SerializeToString(), tmp_path)
    assert isinstance(found, Model)
    assert found.nodes[0].name == found.producer == NASTY
    assert {tensor.name for tensor in found.tensors} == {NASTY, NASTY + "y"}
    for path in [*(node.path for node in found.nodes), *(tensor.path for tensor in found.tensors)]:
        assert_one_line(path)
        assert not re.search("[<>&]", path)


def test_a_file_name_with_control_characters_is_shown_inert(tmp_path: Path) -> None:
    path = tmp_path / "a\n\x1b[31m.onnx"
    path.write_bytes(SMALL[:-1])
    with pytest.raises(ModelError) as caught:
        load(path)
    assert_one_line(str(caught.value))


@pytest.mark.parametrize("dims", [[-1], [2**62, 2**62], [2**40]])
def test_a_stored_tensor_of_absurd_size_takes_no_memory(dims: list[int], tmp_path: Path) -> None:
    model = small_model()
    model.graph.initializer[0].dims[:] = dims
    found = outcome(model.SerializeToString(), tmp_path)
    if isinstance(found, str):
        assert_one_line(found)
