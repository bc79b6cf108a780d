"""Real models load, and expand to what ONNX's own inliner makes of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import GraphProto, NodeProto, helper, inliner
from sonnx.semantics.errors import ModelError
from sonnx.semantics.model.graph import Model
from sonnx.semantics.model.loader import load

MODELS = Path(__file__).parents[4] / ".." / "shared" / "models"
WHEEL = Path(onnx.__path__[0]) / "backend" / "test" / "data"
LIGHT = sorted((WHEEL / "light").glob("*.onnx"))

if not MODELS.is_dir():
    pytest.skip("the folder of real models, ../shared/models, is not here", allow_module_level=True)


def found(*folders: str) -> list[Path]:
    paths = (path for folder in folders for path in (MODELS / folder).rglob("*"))
    return sorted(path for path in paths if path.suffix in (".onnx", ".pb") and "test_data_set" not in str(path))


def label(path: Path) -> str:
    return path.name if path.stem != "model" else f"{path.parent.name}/{path.name}"


FOLDERS = sorted(path.name for path in MODELS.iterdir() if path.is_dir() and path.name != "invalid")
VALID = found(*FOLDERS)
INVALID = found("invalid")


def flat(graph: GraphProto) -> Iterator[NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for body in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
                yield from flat(body)


def operators(nodes: Iterator[NodeProto]) -> Counter[tuple[str, str]]:
    return Counter(("" if node.domain == "ai.onnx" else node.domain, node.op_type) for node in nodes)


def consistent(model: Model) -> None:
    """Every path names one element, and every number is in range."""
    paths = [it.path for part in (model.graphs, model.nodes, model.tensors) for it in part]
    assert len(set(paths)) == len(paths)
    tensors = range(len(model.tensors))
    assert all(t is None or t in tensors for n in model.nodes for t in (*n.inputs, *n.outputs, *n.captures))


def test_there_are_models() -> None:
    assert len(VALID) > 50
    assert len(INVALID) > 100
    assert LIGHT


@pytest.mark.parametrize("path", [*VALID, *LIGHT], ids=label)
def test_a_valid_model_loads_with_every_node(path: Path) -> None:
    model = load(path)
    consistent(model)
    proto = onnx.load(str(path), load_external_data=False)
    if proto.functions:
        proto = inliner.inline_local_functions(proto)
    assert Counter((node.domain, node.op_type) for node in model.nodes) == operators(flat(proto.graph))
    named = {name for node in flat(proto.graph) for name in (*node.input, *node.output) if name}
    assert {tensor.name for tensor in model.tensors} >= named or proto.functions or model.functions


@pytest.mark.parametrize("path", INVALID, ids=label)
def test_an_invalid_model_loads_or_is_refused_in_one_line(path: Path) -> None:
    try:
        consistent(load(path))
    except ModelError as error:
        text = str(error)
        assert all(" " <= char <= "~" for char in text)
        assert text.startswith('"')


@pytest.mark.parametrize("path", [path for path in VALID if path.stat().st_size < 10**6], ids=label)
def test_the_listing_of_a_model_has_its_graph(path: Path, tmp_path: Path) -> None:
    proto = onnx.load(str(path), load_external_data=False)
    if proto.functions:
        pytest.skip("a listing shows no functions")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        text = helper.printable_graph(proto.graph)
    (tmp_path / "listing.txt").write_text(text)
    try:
        listed = load(tmp_path / "listing.txt")
    except ModelError as error:
        assert "omits the initializers" in str(error)
        assert not proto.graph.input or any(a.HasField("g") for n in proto.graph.node for a in n.attribute)
        return
    assert listed.source == "listing"
    assert edges(listed) == edges(load(path))


def edges(model: Model) -> Counter[tuple[str, tuple[str | None, ...], tuple[str | None, ...]]]:
    """Each node by operator and names of what it reads and writes."""

    def name(t: int | None) -> str | None:
        return None if t is None else model.tensors[t].name

    return Counter((n.op_type, tuple(map(name, n.inputs)), tuple(map(name, n.outputs))) for n in model.nodes)
